"""What users wait for, beside the least that the same work takes."""
