"""`python -m flows` is `routeyard`."""

from flows.cli import main

main()
