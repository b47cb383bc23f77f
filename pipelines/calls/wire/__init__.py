"""What comes over the wire: bounded in bytes and time, decoded, and cleaned of secrets.

`received.py` is the one door in; `secret.py` says what is hidden, `timeouts_and_sizes.py`
how much is read, `requests_client.py` is the transport over `requests`.
"""
