"""Near-duplicates: easy and hard vectors, and shards of them."""
