"""Which pairs lack an answer, what they would cost, and asking them; `README.md` lists the files."""
