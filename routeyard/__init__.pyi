# What `import routeyard` offers, each name once, in the order of docs/python.md: releases, builds,
# evaluation; then what a part of your own implements; then errors. `__init__.py` reads this list.
# ruff: noqa: I001, E402

from routeyard.pipelines.common.registry import Names

# Releases
from routeyard.pipelines.release.reader import open_release as open_release
from routeyard.flows.publish import check_release as _verify

verify = _verify

# Builds
from routeyard.flows.recipe import load_recipe as load_recipe
from routeyard.flows.plan import plan_build as _plan

plan = _plan
from routeyard.flows.build import run_build as _build

build = _build

# Audits
from routeyard.flows.audits import audit_path as _audit

audit = _audit

# Evaluation
from routeyard.flows.evaluation.evaluate import evaluate as evaluate
from routeyard.flows.evaluation.evaluate import certify as certify
from routeyard.pipelines.evaluate.settings import EvaluationSettings as EvaluationSettings
from routeyard.flows.evaluation.route import route as route
from routeyard.papers.reproduction import reproduce as reproduce
from routeyard.pipelines.label.scorers.score_answers import score as score

# A router
from routeyard.pipelines.routers.base import Router as Router
from routeyard.pipelines.routers.base import Traits as Traits
from routeyard.pipelines.common.matrix import Examples as Examples
from routeyard.pipelines.common.matrix import Queries as Queries
from routeyard.pipelines.routers.base import usable as usable
from routeyard.pipelines.routers.base import model_means as model_means

# A scorer
from routeyard.pipelines.label.scorers.scorer import Scorer as Scorer
from routeyard.pipelines.label.scorers.scorer import ScoringInput as ScoringInput
from routeyard.pipelines.label.scorers.scorer import ScoreResult as ScoreResult
from routeyard.pipelines.label.scorers.reading import short_answer as short_answer
from routeyard.pipelines.label.scorers.reading import committed as committed
from routeyard.pipelines.label.scorers.reading import settle as settle

# A curation rule
from routeyard.pipelines.curate.rule import Rule as Rule
from routeyard.pipelines.curate.rule import Curated as Curated
from routeyard.pipelines.curate.rule import removals as removals

# A metric
from routeyard.pipelines.evaluate.metrics.spec import MetricSpec as MetricSpec
from routeyard.pipelines.evaluate.metrics.spec import MetricValue as MetricValue
from routeyard.pipelines.evaluate.metrics.spec import Routed as Routed
from routeyard.pipelines.evaluate.metrics.spec import Swept as Swept

# An importer
from routeyard.pipelines.ingest.importers.reading import Importer as Importer
from routeyard.pipelines.ingest.importers.reading import ImportResult as ImportResult
from routeyard.pipelines.ingest.importers.reading import ImportedQuestion as ImportedQuestion
from routeyard.pipelines.ingest.importers.reading import ImportedAnswer as ImportedAnswer

# A study, an exporter
from routeyard.pipelines.evaluate.studies.study import Study as Study
from routeyard.pipelines.evaluate.studies.study import StudyCell as StudyCell
from routeyard.pipelines.evaluate.studies.study import StudyContext as StudyContext
from routeyard.pipelines.release.exporters.router_tables import Exporter as Exporter
from routeyard.pipelines.release.exporters.router_tables import Exported as Exported

# Errors
from routeyard.pipelines.common.errors import RouteyardError as RouteyardError
from routeyard.pipelines.common.errors import BadInput as BadInput
from routeyard.pipelines.common.errors import ContractError as ContractError
from routeyard.pipelines.common.errors import RecipeError as RecipeError
from routeyard.pipelines.common.errors import UnknownName as UnknownName
from routeyard.pipelines.common.errors import SourceError as SourceError
from routeyard.pipelines.common.errors import RecordedError as RecordedError
from routeyard.pipelines.common.errors import VersionExists as VersionExists
from routeyard.pipelines.common.errors import Unsafe as Unsafe
from routeyard.pipelines.common.errors import GateFailed as GateFailed
from routeyard.pipelines.common.errors import ProviderError as ProviderError
from routeyard.pipelines.common.errors import Retryable as Retryable
from routeyard.pipelines.common.errors import Permanent as Permanent
from routeyard.pipelines.common.errors import BudgetReached as BudgetReached
from routeyard.pipelines.common.errors import DiskFull as DiskFull

__version__: str
#: Names of all metrics that `evaluate` knows.
metrics: Names
