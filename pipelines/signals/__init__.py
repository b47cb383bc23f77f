"""What models show of themselves: fingerprints, hidden states, self-assessment."""
