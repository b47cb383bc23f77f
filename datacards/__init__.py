"""Dataset cards, Croissant metadata, plots and publishing; every number comes from the release."""
