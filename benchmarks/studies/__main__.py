"""`python -m benchmarks.studies`."""

from benchmarks.studies.run import main

main()
