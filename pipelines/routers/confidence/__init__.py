"""Routers that read what models show of their own answers: `signal`, training-free."""

from __future__ import annotations
