"""Pages that a local HTTP server serves on this machine: the review page and the site."""
