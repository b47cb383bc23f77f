"""Traffic of gateways and agents: replayed, shadowed by a router, timed."""
