"""Strangers' text made fit for terminals, Markdown and spreadsheets; read `text.py`."""

from schemas.shown.text import markdown, one_line, prose, spreadsheet, visible

__all__ = ["markdown", "one_line", "prose", "spreadsheet", "visible"]
