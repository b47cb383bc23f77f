"""Requests to models: whatever costs money is claimed, limited, sent, stored and counted here.

Read `runner.py` first; `client.py` speaks to providers, `batch.py` is the other transport.
"""
