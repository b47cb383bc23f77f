"""Work that may take too much or end its process: child processes with limits, and the jail."""
