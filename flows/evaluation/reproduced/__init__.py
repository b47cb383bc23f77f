"""What `routeyard reproduce` reads: the releases used for benchmarks, and the zoo on them."""
