"""Verdicts of rules, verifiers, judges and people, and their aggregation into labels."""
