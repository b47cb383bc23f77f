"""The ledger, the budget and the workers under a virtual clock, with faults that a seed chooses."""
