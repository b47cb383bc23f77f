# %% [markdown]
# # A tour for router authors
#
# This page is a script (`docs/tour.py`) that Jupyter with Jupytext, VS Code and Spyder open as a
# notebook. It needs a release; `routeyard demo` makes the one it uses, under `yard/`.

# %%
import numpy as np

import routeyard

RELEASE = "yard/releases/demo/1.0.0"

# %% [markdown]
# ## What is in a release
#
# `outcomes` has one row per question and model: what the answer scored, what it cost, who decided.

# %%
with routeyard.open_release(RELEASE) as release:
    outcomes = release.outcomes.df()
    queries = release.pandas("queries")
print(outcomes[["query_id", "model_id", "correct", "cost_usd", "decided_by"]].head())

# %% [markdown]
# A model is good where it is good: accuracy by task is what a router can learn from.

# %%
labelled = outcomes.merge(queries[["query_id", "task"]], on="query_id")
by_task = labelled.pivot_table(index="task", columns="model_id", values="correct", aggfunc="mean")
print(by_task.round(2))

# %% [markdown]
# ## How much there is to win
#
# The oracle takes, per question, any model that is right. Its lead over the best single model is
# the most that a router can gain. Both are taken over the questions that every model answered, so
# that they are averages over the same things.

# %%
wide = outcomes.pivot(index="query_id", columns="model_id", values="correct").dropna().astype(bool)
single, oracle = wide.mean().max(), wide.any(axis=1).mean()
print(f"{len(wide)} questions: best single {single:.1%}, oracle {oracle:.1%}")

# %% [markdown]
# The same without leaving SQL; the database is read-only and cannot reach other files.

# %%
with routeyard.open_release(RELEASE) as release:
    print(
        release.sql(
            "SELECT model_id, count(*) AS questions, avg(correct::INT) AS accuracy, "
            "avg(cost_usd) * 1000 AS usd_per_1000 FROM outcomes GROUP BY ALL ORDER BY accuracy DESC"
        ).to_pandas()
    )


# %% [markdown]
# ## A router of your own
#
# A class with `fit` and `scores`. Scores are one number per question and model, higher is better;
# what a choice costs is the protocol's business, not yours. Labels can be missing: they are NaN,
# never zero.


# %%
class TaskMean:
    """The mean label of each model on the question's task; the pool's mean on unseen tasks."""

    name = "task-mean"

    def fit(self, train: routeyard.Examples) -> None:
        self.everywhere = np.nanmean(train.labels, axis=0)
        self.means = {
            task: np.nanmean(train.labels[train.queries.tasks == task], axis=0)
            for task in np.unique(train.queries.tasks)
        }

    def scores(self, queries: routeyard.Queries) -> np.ndarray:
        return np.stack([self.means.get(task, self.everywhere) for task in queries.tasks])


# %% [markdown]
# ## Compared with others
#
# All routers learn on the same train questions and are measured on the same test questions;
# intervals come from a paired bootstrap.

# %%
found = routeyard.evaluate(
    RELEASE,
    {"task-mean": TaskMean, "best-generalist": "best-generalist", "random": "random"},
    resamples=500,
    pair_routers=False,
)
for place in found.ranking:
    places = f"{place['best_place']} to {place['worst_place']}"
    print(f"{place['router']}: {place['value']:.1%}, place {places}")

# %%
metrics = found.metrics.to_pandas()
shown = metrics[metrics["metric"].isin(["accuracy", "mean_cost[usd]", "audc[usd]"])]
print(shown.pivot_table(index="router", columns="metric", values="value").round(5))

# %% [markdown]
# The deferral curve: mean cost (`x`) against accuracy (`y`) as dollars are worth more or less.

# %%
curves = found.curves.to_pandas()
mine = curves[(curves["router"] == "task-mean") & (curves["measure"] == "usd")]
print(mine[mine["curve"] == "deferral"][["x", "y", "low", "high"]].iloc[::25])

# %% [markdown]
# ## Can this release tell routers apart?
#
# A certificate answers that before anybody publishes a table made on it.

# %%
certificate = routeyard.certify(RELEASE, resamples=200)
print(certificate.words)
