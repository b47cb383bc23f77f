"""What `routeyard verify` computes again from a release, and what it says of the rest."""
