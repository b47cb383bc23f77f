"""Routers that place questions and descriptors of models in one space; read `space` first."""

from __future__ import annotations
