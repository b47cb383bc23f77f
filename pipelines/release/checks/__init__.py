"""The long checks of `verify`: tables read again, derived ones made again.

Read `reread` first: a table in parts against its contract, order and fingerprint.
"""
