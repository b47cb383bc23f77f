"""Audits of a workspace or a release: usage and prices, labels, health; repricing."""
