"""The batch endpoints of providers as another transport; see `run.py`."""
