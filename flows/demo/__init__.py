"""The embedded default: a question bank and a simulated pool behind a real HTTP server."""
