"""`verify` over honest releases: findings, of which there should be none, and time."""
