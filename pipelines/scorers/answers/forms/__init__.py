"""Mathematical forms, and whether two are the same; start at `math_form.py`."""
