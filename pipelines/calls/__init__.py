"""The one asker: whatever costs money is claimed, limited, sent, kept and counted here.

Read `runner.py` first; `client.py` speaks to providers, `batch.py` is the other transport.
"""
