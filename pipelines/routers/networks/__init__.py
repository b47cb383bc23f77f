"""Networks on a frozen embedding, trained by gradient; they differ in loss and head.

Read `mlp` first, then `trained`, the base that the others share.
"""
