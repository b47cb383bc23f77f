"""Mended faults: where each arose, how to put it back, and the test that holds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One mended fault: what it was, how to put it back, and the test that holds it.

    Attributes:
        file: Where `right` stands once, to be replaced by `wrong`.
    """

    item: str
    was: str
    file: str
    right: str
    wrong: str
    test: str


_RELEASES = "tests/faults/test_releases.py::test_a_corruption_is_a_named_finding"
_INJECTIONS = "tests/label/test_injections.py"
FAULTS: dict[str, Fault] = {
    "pickles": Fault(
        "1",
        "a pickle was read by Python's own reader with a list of allowed names",
        "pipelines/pickles/load.py",
        "return plain(run(view))",
        "return _allowed(view)",
        "tests/pickles/test_refused.py::test_bytes_of_the_file_are_never_followed_as_pointers",
    ),
    "database": Fault(
        "2",
        "nothing compared the database with the tables",
        "pipelines/release/checks/database.py",
        "list(_compare(Path(path), Manifest.model_validate_json(manifest), held, rows))",
        "[]",
        f"{_RELEASES}[a macro of rows]",
    ),
    "budget": Fault(
        "3",
        "each run had the budget for itself",
        "pipelines/calls/budget.py",
        "        self._account = account\n",
        "        self._account = account + uuid.uuid4().hex\n",
        "tests/calls/test_one_budget.py::test_the_same_command_does_not_spend_it_again",
    ),
    "reported cost": Fault(
        "3",
        "a cost of nothing was believed",
        "pipelines/calls/budget.py",
        "    return max(by_table, usage.cost_usd or 0.0)",
        "    return by_table if usage.cost_usd is None else usage.cost_usd",
        "tests/calls/test_one_budget.py::test_a_provider_that_says_it_costs_nothing_is_not_believed",
    ),
    "unanswered": Fault(
        "4",
        "what is billed and never answered was asked at each run",
        "pipelines/collect/collect.py",
        "        unanswered_after=plan.collect.unanswered.after,",
        "        unanswered_after=None,",
        "tests/calls/test_unanswered.py::test_it_is_settled_after_a_stated_number_of_billed_attempts",
    ),
    "cut verdict": Fault(
        "5",
        "a judge's reply that was cut stood as a verdict",
        "pipelines/label/model_requests.py",
        '    if choice.status == "truncated":',
        '    if choice.status == "never":',
        f"{_INJECTIONS}::test_a_reply_that_was_cut_is_no_verdict",
    ),
    "wire": Fault(
        "6",
        "what is unpacked had no largest size",
        "pipelines/calls/wire/timeouts_and_sizes.py",
        "                if self._made > self._most:",
        "                if self._made < 0:",
        "tests/calls/test_wire.py::test_a_gzip_bomb_is_cut_off",
    ),
    "deaf queries": Fault(
        "7",
        "a query ended when DuckDB heard of its time-out, if it did",
        "pipelines/release/query/process.py",
        "        limits = Limits(self._most + _OVERHEAD, timeout_s, answer=self._most)",
        "        limits = Limits(self._most + _OVERHEAD, 3_600.0, answer=self._most)",
        "tests/release/test_query_limits.py::test_an_expression_that_hears_no_interrupt_is_ended",
    ),
    "sockets": Fault(
        "8",
        "the jail let programs make sockets of every family",
        "pipelines/isolation/jail/calls.py",
        "            line(_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),",
        "            line(_RETURN, 0, 0, _ALLOW),",
        "tests/scorers/test_sandbox.py::test_no_hostile_program_is_marked_correct",
    ),
    "assertions": Fault(
        "8",
        "a test passed whose assertions were never reached",
        "pipelines/isolation/jail/examiner.py",
        "    if missed := reached.missed():",
        "    if missed := ():",
        "tests/scorers/test_vacuous.py::test_a_check_that_nothing_reached_does_not_hold",
    ),
    "verify": Fault(
        "9",
        "what a viewer of SVG and Croissant would run was not looked at",
        "pipelines/release/checks/active.py",
        "    if path.stat().st_size > _MOST:",
        "    return\n    if path.stat().st_size > _MOST:",
        f"{_RELEASES}[a script in a plot]",
    ),
    "secrets": Fault(
        "10",
        "a key in a recipe was taken",
        "schemas/recipe/secrets.py",
        "    return _KEY.search(text) is not None",
        "    return False",
        "tests/schemas/test_recipe_secrets.py::test_a_secret_in_a_recipe_is_refused_and_not_shown",
    ),
    "providers": Fault(
        "12",
        "answers were shared by the provider's label",
        "pipelines/calls/request.py",
        "        identity = identity_of(provider)\n",
        "        identity = provider.name\n",
        "tests/calls/test_providers_are_not_names.py::"
        "test_two_recipes_with_one_label_and_two_servers_get_their_own_answers",
    ),
    "same questions": Fault(
        "11",
        "models were compared by means over different questions",
        "pipelines/metrics/baselines.py",
        "    return single_means(evened(labels))",
        "    return single_means(labels)",
        "tests/evaluate/test_same_questions.py::"
        "test_who_was_asked_easy_questions_is_not_the_best_single_model",
    ),
}
