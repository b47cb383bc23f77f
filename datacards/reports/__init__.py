"""Reports of a release: its health, an evaluation of routers, a study; pages and Markdown."""
