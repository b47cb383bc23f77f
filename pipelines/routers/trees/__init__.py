"""Forests and boosted trees: RoRF and OptLLM.

Read `forest` first: trees kept as arrays, so that a saved router is never a pickle.
"""
