"""What is as large as a release: arrays (`room.py`) and texts (`texts.py`) that lie on disk
when they are many, and whether it fits (`fits.py`). Read `room` first."""
