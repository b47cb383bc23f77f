"""Mended faults that mutmut does not make by itself: one algorithm or check in place of another.

Each says what it was, where it arose, how to put it back, and the test that must then fail.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One mended fault: what it was, how to put it back, and the test that then fails.

    Attributes:
        file: Holds `right` once, to be replaced by `wrong`.
    """

    was: str
    file: str
    right: str
    wrong: str
    test: str


_RELEASES = "tests/faults/test_releases.py::test_a_corruption_is_a_named_finding"
FAULTS: dict[str, Fault] = {
    "pickles": Fault(
        "a pickle was read by Python's own reader with a list of allowed names",
        "pipelines/common/pickles.py",
        "return Plain().of(_Machine(view).load())",
        "return _allowed(view)",
        "tests/pickles/test_refused.py::test_bytes_of_the_file_are_never_followed_as_pointers",
    ),
    "database": Fault(
        "nothing compared the database with the tables",
        "pipelines/verify/database.py",
        "[says for (says,) in differ] or [*_other_rows(connection, rows, left_out)]",
        "[]",
        f"{_RELEASES}[a macro of rows]",
    ),
    "budget": Fault(
        "each run had the budget for itself",
        "pipelines/collect/budget.py",
        "        self._account = account\n",
        "        self._account = account + uuid.uuid4().hex\n",
        "tests/calls/test_one_budget.py::test_the_same_command_does_not_spend_it_again",
    ),
    "reported cost": Fault(
        "a cost of nothing was believed",
        "pipelines/collect/budget.py",
        "    return max(by_table, usage.cost_usd or 0.0)",
        "    return by_table if usage.cost_usd is None else usage.cost_usd",
        "tests/calls/test_one_budget.py::test_a_provider_that_says_it_costs_nothing_is_not_believed",
    ),
    "sockets": Fault(
        "the jail let programs make sockets of every family",
        "pipelines/common/isolation/jail/allowed_calls.txt",
        "socket                   41  198  0 in 1 EAFNOSUPPORT\n",
        "socket                   41  198\n",
        "tests/scorers/test_sandbox.py::test_no_hostile_program_is_marked_correct",
    ),
    "verify": Fault(
        "what a viewer of SVG and Croissant would run was not looked at",
        "pipelines/verify/files.py",
        "    if path.stat().st_size > _MOST:",
        "    return\n    if path.stat().st_size > _MOST:",
        f"{_RELEASES}[a script in a plot]",
    ),
    "providers": Fault(
        "answers were shared by the provider's label",
        "pipelines/collect/request.py",
        "        return cls(identity_of(provider), ",
        "        return cls(provider.name, ",
        "tests/calls/test_moved_ports.py::"
        "test_two_recipes_with_one_label_and_two_servers_get_their_own_answers",
    ),
    "same questions": Fault(
        "models were compared by means over different questions",
        "pipelines/common/arrays.py",
        "    return single_means(evened(labels))",
        "    return single_means(labels)",
        "tests/evaluate/test_same_questions.py::"
        "test_who_was_asked_easy_questions_is_not_the_best_single_model",
    ),
    "read-only": Fault(
        "a read-only workspace was a traceback",
        "flows/cli/disk_errors.json",
        '  "EROFS": [',
        '  "ERANGE": [',
        "tests/flows/test_stopped.py::test_what_the_file_system_refuses_is_no_traceback",
    ),
    "mappings": Fault(
        "a filter of a mapping could grow without end beside us",
        "pipelines/common/mapping.py",
        "        return node.name in _PLAIN_FILTERS and _fixed(node)",
        "        return node.name in _PLAIN_FILTERS",
        "tests/mapping/test_jinja.py::test_only_what_cannot_grow_runs_beside_us",
    ),
    "diff": Fault(
        "`diff` did not see verdicts",
        "pipelines/release/differences.sql",
        "-- name: verdicts\n",
        "-- name: no_such_table\n",
        "tests/release/test_diff.py::test_verdicts_are_compared_at_their_newest",
    ),
    "emptied": Fault(
        "a program that emptied its arguments and returned nothing passed",
        "pipelines/common/isolation/jail/examiner.py",
        "            self.changed = self.changed or used",
        '            self.changed = self.changed or reply.get("value") is not None',
        "tests/scorers/test_vacuous.py::"
        "test_arguments_changed_in_place_are_seen_and_are_no_way_out",
    ),
    "emptied before": Fault(
        "a program that emptied an argument when nothing was asked passed when it was given again",
        "pipelines/common/isolation/jail/examiner.py",
        "                self.left.meets(name, call_args)",
        "                pass",
        "tests/scorers/test_vacuous.py::"
        "test_arguments_changed_in_place_are_seen_and_are_no_way_out",
    ),
    "inexact": Fault(
        "intervals and the largest numbers left a query as others",
        "pipelines/release/query.py",
        "            check_types(relation.columns, relation.types)\n",
        "",
        "tests/release/test_query.py::"
        "test_a_value_that_would_come_out_as_another_is_refused_with_its_cast",
    ),
    "footer": Fault(
        "a Parquet file whose footer contradicts itself ended the process",
        "pipelines/common/untrusted.py",
        "closing(worker.stream(batches, str(path.absolute()), most, limits=limits))",
        "closing(batches(str(path.absolute()), most))",
        "tests/io/test_parquet_statistics.py::test_a_footer_that_contradicts_itself_ends_no_process",
    ),
    "statistics": Fault(
        "statistics of a table hid its rows from queries",
        "pipelines/common/isolation/parquet_file.py",
        "        if self.low is None:\n",
        "        if self.low is None or self.ends:\n",
        "tests/io/test_parquet_statistics.py::test_statistics_that_hide_rows_are_told",
    ),
    "texts": Fault(
        "the Python of a list or an object was asked, or read as the answer",
        "pipelines/common/mapping.py",
        "    if isinstance(value, str) or not isinstance(value, Iterable):\n",
        "    if value is not None:\n",
        "tests/ingest/test_texts.py::test_the_python_of_a_list_or_an_object_is_never_asked",
    ),
}
