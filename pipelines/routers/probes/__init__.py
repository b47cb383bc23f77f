"""Routers that read a model's hidden states of the question; read `probe` first."""

from __future__ import annotations
