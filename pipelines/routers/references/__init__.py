"""What a router is measured against: chance, the best single model, the best of each task.

Read `generalist` first.
"""
