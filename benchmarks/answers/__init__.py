"""Labels beside those of other graders and of people."""
