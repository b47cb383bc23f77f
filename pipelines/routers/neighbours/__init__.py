"""Routers that look at the nearest train questions: kNN, CARROT, Eagle.

Read `knn` first; the others take their neighbours from it.
"""
