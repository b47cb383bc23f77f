"""The collect room."""
