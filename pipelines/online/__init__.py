"""Routers over a stream: they choose, see what their choice gave, and choose again."""
