"""What a bootstrap draws, and sums over it. Read `bootstrap.py` first."""
