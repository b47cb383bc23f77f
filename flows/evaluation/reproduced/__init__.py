"""What `routeyard reproduce` reads: the releases that stand for benchmarks, and the zoo on them."""
