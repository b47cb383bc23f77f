"""Routers between a small and a large model, and RouteLLM's routers in their published form.

Read `battles` first: preference data as they take it.
"""
