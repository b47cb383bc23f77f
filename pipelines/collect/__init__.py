"""Which pairs lack an answer, what they would cost, and asking them (files: `README.md`)."""
