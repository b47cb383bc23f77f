"""The release room."""
