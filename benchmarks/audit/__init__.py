"""The audit over published matrices: what it says of honest ones, and of injected faults."""
