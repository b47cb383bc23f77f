"""The table of checks: kind, function, what it needs, how grave it is, and the key that mends it.

`score` checks are mended by making the scores of their rows unknown, `cost` checks by making the
costs unknown; the effect on the leaderboard is measured so.
"""

from __future__ import annotations

from routeyard.pipelines.audit import costs, cut_off, errors, missing, questions, rows, suites
from routeyard.pipelines.audit.finding import AuditCheck as Check

_SCORE = ("score",)
_RECORDED = "collect.recorded[].fields"

CHECKS = (
    Check("zero_cost", costs.zero_costs, ("cost_usd",), "grave", "cost",
          f"{_RECORDED}.cost_usd: leave 0 unknown; a model that is free states price_in: 0"),
    Check("zero_tokens", costs.zero_tokens, (), "doubt", "nothing",
          f"{_RECORDED}.completion_tokens"),
    Check("zero_latency", costs.zero_latency, ("latency_s",), "doubt", "nothing",
          f"{_RECORDED}.latency_s"),
    Check("impossible_value", costs.no_number, (), "grave", "nothing", _RECORDED),
    Check("score_out_of_range", costs.scores_out_of_range, _SCORE, "doubt", "score",
          f"{_RECORDED}.score"),
    Check("price_mismatch", costs.prices, ("cost_usd", "completion_tokens"), "doubt", "cost",
          "pool.models[].price_in, price_out"),
    Check("odd_cost", costs.odd_costs, ("cost_usd", "suite"), "doubt", "cost",
          f"{_RECORDED}.cost_usd"),
    Check("tokens_capped", cut_off.limits, ("completion_tokens",), "doubt", "nothing",
          f"{_RECORDED}.status: a column that says `truncated` of them"),
    Check("texts_cut", cut_off.cut_texts, ("text",), "doubt", "nothing", f"{_RECORDED}.text"),
    Check("infrastructure_errors", errors.infrastructure_errors, _SCORE, "grave", "score",
          f"{_RECORDED}.status: a column that says `error` of them, or .error"),
    Check("failures_in_a_row", errors.failures_in_a_row, _SCORE, "doubt", "score",
          f"{_RECORDED}.status: a column that says `error` of them, or .error"),
    Check("ungraded_as_wrong", errors.ungraded, ("score", "status"), "grave", "score",
          f"{_RECORDED}.status: a column that says `ungraded` of them"),
    Check("stopped_at_limit", errors.stopped, ("score", "status"), "note", "score",
          f"{_RECORDED}.status: `unanswered` of them makes them missing"),
    Check("empty_answers", errors.empty_answers, ("score", "text"), "doubt", "score",
          f"{_RECORDED}.status: a column that says `empty` or `error` of them"),
    Check("odd_cell", suites.anomalies, ("score", "suite"), "doubt", "score",
          "sources[].exclude"),
    Check("arms_swapped", suites.swapped_arms, (), "doubt", "score",
          f"{_RECORDED}.model"),
    Check("broken_grader", suites.broken_graders, ("score", "suite"), "doubt", "score",
          "sources[].scorer"),
    Check("solved_suite", suites.solved_suites, _SCORE, "note", "nothing", "sources[].exclude"),
    Check("foreign_rows", rows.served, ("served_model",), "grave", "score",
          "collect.metering.served_as"),
    Check("copied_rows", rows.copies, ("text",), "doubt", "score", f"{_RECORDED}.model"),
    Check("repeated_rows", rows.repeated, (), "doubt", "score", "collect.recorded[].duplicates"),
    Check("graded_both_ways", rows.both_ways, ("score", "text"), "doubt", "score",
          "sources[].scorer"),
    Check("reference_rejected", rows.rejected, ("score", "text", "reference"), "doubt", "score",
          "sources[].scorer"),
    Check("modes_as_questions", questions.modes, (), "grave", "nothing",
          "sources[].fields.group"),
    Check("asked_twice", questions.asked_twice, ("prompt",), "note", "nothing",
          "sources[].fields.group"),
    Check("ids_shared", questions.shared_ids, ("suite",), "doubt", "nothing",
          "sources[].fields.group"),
    Check("leak", questions.leaked, ("split",), "grave", "score", "sources[].fields.group"),
    Check("missing_not_at_random", missing.not_at_random, _SCORE, "doubt", "nothing",
          "collect.coverage"),
    Check("unmeasured", missing.unmeasured, (), "doubt", "nothing",
          f"{_RECORDED}: the columns of usage"),
    Check("disjoint_arms", missing.disjoint, _SCORE, "doubt", "nothing", "collect.coverage"),
    Check("few_answers", missing.few_answers, _SCORE, "doubt", "nothing", "collect.coverage"),
)  # fmt: skip
