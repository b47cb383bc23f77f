"""Parts outside the core: traffic of gateways, tuned encoders, the leaderboard."""
