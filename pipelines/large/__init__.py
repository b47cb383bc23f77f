"""What is as large as a release: arrays (`room.py`) and texts (`texts.py`) that lie on disk
when they are many. Read `room` first."""
