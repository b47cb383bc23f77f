"""Value of a policy that was not run, from logged decisions with propensities."""
