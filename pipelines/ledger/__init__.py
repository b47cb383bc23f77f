"""Every attempt at every call is kept here, so nothing paid for is lost; see `ledger.py`."""
