"""Small releases for the papers' own routers, and a page of their studies; see `__main__`."""

from __future__ import annotations
