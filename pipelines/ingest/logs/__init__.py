"""Logs of gateways and tracers: one record per call, as the table `steps`."""
