"""One evaluation: routers fitted, measured and compared. Read `evaluation.py` first."""

from pipelines.evaluate.run.evaluation import REFERENCES, Evaluation, evaluate
from pipelines.evaluate.run.fitted import Maker

__all__ = ["REFERENCES", "Evaluation", "Maker", "evaluate"]
