"""One linear model per candidate: ridge, logistic regression, and the bandit LinUCB.

Read `ridge` first.
"""
