"""What comes over the wire: bounded in bytes and time, decoded, and cleaned of secrets.

`received.py` is the one door in; `secret.py` says what is hidden, `body.py` how much
is read, `posting.py` is the transport over `requests`.
"""
