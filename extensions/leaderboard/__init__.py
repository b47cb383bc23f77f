"""Bundles that router authors submit, and the board made of them."""
