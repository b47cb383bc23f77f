"""The static site of releases: pages, their figures, shards of questions; `write.py` writes them.

Every page is made of a `Book`: the manifest of one release, a function that answers SQL over it,
and the files beside it. The report of an evaluation, the health report and the studies are single
pages of the same templates (`language.py`). Text of models and questions is untrusted: pages
escape it, shards carry it compressed, and the pages' scripts only ever make text nodes of it.
"""
