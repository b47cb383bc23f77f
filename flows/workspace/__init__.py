"""The folder a build works in; `stage_folders.py` says where everything is stored."""
