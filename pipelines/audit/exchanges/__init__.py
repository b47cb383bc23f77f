"""Exchanged answers of two arms, told by measures, styles and scores."""
