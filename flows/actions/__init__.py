"""What a command does, apart from its options; one module per command of the same name."""
