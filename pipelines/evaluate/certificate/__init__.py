"""The routability certificate: can this pool and these queries tell routers apart?

Read `issued.py` first: it takes the pool's figures (`pool.py`, `possible_gain.py`),
tries the reference routers (`crossfit.py`) and decides on a verdict (`verdict.py`).
"""

from routeyard.pipelines.evaluate.certificate.issued import Certificate, certify

__all__ = ["Certificate", "certify"]
