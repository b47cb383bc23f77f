"""One evaluation: routers fitted, measured and compared. Read `evaluation.py` first."""

from routeyard.pipelines.evaluate.run.evaluation import REFERENCES, Evaluation, evaluate
from routeyard.pipelines.experiment.entrants import Maker

__all__ = ["REFERENCES", "Evaluation", "Maker", "evaluate"]
