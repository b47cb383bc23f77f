"""Evaluation from Python and the command line: routers, studies and the zoo on a release."""
