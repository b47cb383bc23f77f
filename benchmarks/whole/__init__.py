"""All benchmarks by one command, compared with peers and with an earlier run.

`cases.py` says what is run and which figures count, `running.py` runs it in
separate processes, `results.py` is the file that a run writes, `page.py` the
page and plots, `comparing.py` the comparison of two files. Read `cases.py` first.
"""
