"""Steps of agents and calls through gateways: as arrays, audited, and replayed under other arms."""
