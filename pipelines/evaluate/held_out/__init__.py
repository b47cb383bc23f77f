"""Tasks and models held out of training: what a router loses on them; start at `ood.py`."""
