# What `import routeyard` offers, each name once, in the order of docs/python.md: releases, builds,
# evaluation; then what a part of your own implements; then errors. `__init__.py` reads this list.
# ruff: noqa: I001, E402

from routeyard.pipelines.registry import Names

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
from routeyard.flows.audits.anything import audit_path as _audit

audit = _audit

# Evaluation
from routeyard.flows.evaluation.evaluate import evaluate as evaluate
from routeyard.flows.evaluation.evaluate import certify as certify
from routeyard.pipelines.experiment.settings import EvaluationSettings as EvaluationSettings
from routeyard.flows.evaluation.route import route as route
from routeyard.flows.reproduce import reproduce as reproduce
from routeyard.pipelines.scorers.score_answers import score as score

# A router
from routeyard.pipelines.routers.base import Router as Router
from routeyard.pipelines.routers.base import Traits as Traits
from routeyard.pipelines.matrix.examples import Examples as Examples
from routeyard.pipelines.matrix.examples import Queries as Queries
from routeyard.pipelines.routers.base import usable as usable
from routeyard.pipelines.routers.base import model_means as model_means

# A scorer
from routeyard.pipelines.scorers.scorer import Scorer as Scorer
from routeyard.pipelines.scorers.scorer import ScoringInput as ScoringInput
from routeyard.pipelines.scorers.scorer import ScoreResult as ScoreResult
from routeyard.pipelines.scorers.extraction.short_answer import short_answer as short_answer
from routeyard.pipelines.scorers.extraction.marks import committed as committed
from routeyard.pipelines.scorers.extraction.commitment import settle as settle

# A curation rule
from routeyard.pipelines.curate.rule import Rule as Rule
from routeyard.pipelines.curate.rule import Curated as Curated
from routeyard.pipelines.curate.rule import removals as removals

# A metric
from routeyard.pipelines.metrics.spec import MetricSpec as MetricSpec
from routeyard.pipelines.metrics.spec import MetricValue as MetricValue
from routeyard.pipelines.metrics.spec import Routed as Routed
from routeyard.pipelines.metrics.spec import Swept as Swept

# An importer
from routeyard.pipelines.ingest.importers.spec import Importer as Importer
from routeyard.pipelines.ingest.importers.spec import ImportResult as ImportResult
from routeyard.pipelines.ingest.importers.spec import ImportedQuestion as ImportedQuestion
from routeyard.pipelines.ingest.importers.spec import ImportedAnswer as ImportedAnswer

# A study, an exporter
from routeyard.pipelines.studies.study import Study as Study
from routeyard.pipelines.studies.study import StudyCell as StudyCell
from routeyard.pipelines.studies.context import StudyContext as StudyContext
from routeyard.pipelines.release.exporters.bundle import Exporter as Exporter
from routeyard.pipelines.release.exporters.bundle import Exported as Exported

# Errors
from routeyard.pipelines.errors import RouteyardError as RouteyardError
from routeyard.pipelines.errors import BadInput as BadInput
from routeyard.pipelines.errors import ContractError as ContractError
from routeyard.pipelines.errors import RecipeError as RecipeError
from routeyard.pipelines.errors import UnknownName as UnknownName
from routeyard.pipelines.errors import SourceError as SourceError
from routeyard.pipelines.errors import RecordedError as RecordedError
from routeyard.pipelines.errors import VersionExists as VersionExists
from routeyard.pipelines.errors import Unsafe as Unsafe
from routeyard.pipelines.errors import GateFailed as GateFailed
from routeyard.pipelines.errors import ProviderError as ProviderError
from routeyard.pipelines.errors import Retryable as Retryable
from routeyard.pipelines.errors import Permanent as Permanent
from routeyard.pipelines.errors import BudgetReached as BudgetReached
from routeyard.pipelines.errors import DiskFull as DiskFull

__version__: str
#: Names of all metrics that `evaluate` knows.
metrics: Names
