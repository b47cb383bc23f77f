"""Models and questions as vectors whose product is a score: factorisation and item response.

Read `matrix_factorisation` first.
"""
