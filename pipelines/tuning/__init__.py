"""Routers whose encoder is trained end to end (plateau study, arXiv 2606.07587, section 6).

The eight trainable heads of the zoo on top of a transformer: their losses are the zoo's
own, only the vectors they read move. Read `loop.py` first: it is the training; `cell.py`
is one fit of a grid, `settings.py` what may be chosen, `size.py` what it needs, said before
weights are loaded (`model_size.py`: any transformer's).
"""
