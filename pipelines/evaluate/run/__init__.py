"""One evaluation: routers fitted, measured and compared. Read `evaluation.py` first."""

from routeyard.pipelines.evaluate.run.evaluation import REFERENCES, Evaluation, evaluate
from routeyard.pipelines.evaluate.run.fitted import Maker

__all__ = ["REFERENCES", "Evaluation", "Maker", "evaluate"]
