"""Logs of gateways and agents: replay, shadow, latency, online and off-policy evaluation."""
