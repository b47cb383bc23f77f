"""`python -m routeyard` is the command `routeyard`."""

from routeyard.flows.cli import main

main()
