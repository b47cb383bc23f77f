"""What a release says of routers and its pool; start at `core.py`, a release as matrices."""
