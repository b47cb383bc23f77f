"""Strangers' text made fit for terminals, Markdown and spreadsheets; read `text.py`."""

from schemas.shown.text import fenced, markdown, one_line, prose, spreadsheet, visible

__all__ = ["fenced", "markdown", "one_line", "prose", "spreadsheet", "visible"]
