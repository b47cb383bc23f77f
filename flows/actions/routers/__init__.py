"""Routers on a release: all under one protocol, one asked a question, one fed a stream.

Read `zoo` first; `rules` reads its winners under selection rules.
"""
