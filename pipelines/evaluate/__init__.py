"""The evaluate room."""
