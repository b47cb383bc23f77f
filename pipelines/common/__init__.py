"""What several packages share: files, isolation, mappings, the matrix, encoders."""
