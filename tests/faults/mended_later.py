"""More mended faults: the list of smaller ones, and what an attack from outside found later."""

from __future__ import annotations

from tests.faults.mended import Fault

_SHOWN = "tests/schemas/test_shown.py"
_YAML = "tests/io/test_plain_yaml.py::test_what_is_refused"
_STRANGERS = "tests/ingest/importers/test_strangers_folders.py"
#: The "Smaller" list.
SMALLER: dict[str, Fault] = {
    "infinity": Fault(
        "smaller",
        "a budget of `.inf` was none",
        "pipelines/io/plain_yaml.py",
        "    if isinstance(value, float) and not math.isfinite(value):",
        "    if value == 'never':",
        _YAML,
    ),
    "address": Fault(
        "smaller",
        "an address held a user and a password",
        "schemas/recipe/pool.py",
        "        if parts.username or parts.password or parts.query:",
        "        if parts.username == 'never':",
        "tests/calls/test_secrets.py::test_a_base_url_holds_no_credentials",
    ),
    "long names": Fault(
        "smaller",
        "a name was longer than a file's may be",
        "schemas/recipe/base.py",
        "    if size > LONGEST_NAME:",
        "    if size < 0:",
        "tests/io/test_plain_yaml.py::test_a_strangers_recipe_is_answered_in_words",
    ),
    "flipped pages": Fault(
        "smaller",
        "a bit flipped in the ledger was read as an answer",
        "pipelines/ledger/sqlite.py",
        "        if not missing and checksum != _checksum(values):",
        "        if checksum == 'never':",
        "tests/ledger/test_ledgers.py::test_a_flipped_bit_is_an_error_and_no_answer",
    ),
    "flipped index": Fault(
        "smaller",
        "a bit flipped in its index gave a question another's answer",
        "pipelines/ledger/sql.py",
        "                if (attempt.request_hash, attempt.sample) != key:",
        "                if key == 'never':",
        "tests/ledger/test_ledgers.py::test_an_index_that_leads_to_another_request_gives_no_answer",
    ),
    "read-only": Fault(
        "smaller",
        "a read-only workspace was a traceback",
        "flows/cli/__init__.py",
        '        errno.EROFS: ("the file system is read-only", place),\n',
        "",
        "tests/flows/test_stopped.py::test_what_the_file_system_refuses_is_no_traceback",
    ),
    "terminal": Fault(
        "smaller",
        "names of models and titles acted on the terminal",
        "schemas/untrusted_text.py",
        '    return _UNSEEN.sub("�", text)',
        "    return text",
        f"{_SHOWN}::test_signs_that_act_become_visible",
    ),
    "markup": Fault(
        "smaller",
        "they made links and images in the card",
        "schemas/untrusted_text.py",
        '    return re.sub(r"([\\\\|<>`\\[\\]])", r"\\\\\\1", one_line(text))',
        "    return one_line(text)",
        f"{_SHOWN}::test_markdown_holds_no_markup_of_its_own",
    ),
    "formulas": Fault(
        "smaller",
        "exported cells were formulas of a spreadsheet",
        "schemas/untrusted_text.py",
        """        return text if _NUMBER.fullmatch(text) else f"'{text}\"""",
        "        return text",
        f"{_SHOWN}::test_formulas_get_an_apostrophe",
    ),
    "keys twice": Fault(
        "smaller",
        "of two equal keys in a recipe the last counted",
        "pipelines/io/plain_yaml.py",
        "                if key in seen:",
        "                if key is seen:",
        _YAML,
    ),
    "brackets": Fault(
        "smaller",
        "50,000 brackets were a traceback",
        "pipelines/io/plain_yaml.py",
        "        if depth > DEEPEST:",
        "        if depth < 0 and not token:",
        _YAML,
    ),
    "mappings": Fault(
        "smaller",
        "a filter of a mapping could grow without end beside us",
        "pipelines/mapping/limits.py",
        "        return node.name in _PLAIN_FILTERS and _fixed(node)",
        "        return node.name in _PLAIN_FILTERS",
        "tests/mapping/test_jinja.py::test_only_what_cannot_grow_runs_beside_us",
    ),
    "stopped": Fault(
        "smaller",
        "Ctrl-C did not say what was kept",
        "flows/cli/__init__.py",
        "    said = progress.kept() if progress is not None else None",
        "    said = None",
        "tests/flows/test_stopped.py::test_ctrl_c_says_what_is_kept",
    ),
    "diff": Fault(
        "smaller",
        "`diff` did not see verdicts",
        "pipelines/release/diff.py",
        '        ("verdicts",),\n        """WITH other AS (',
        '        ("no such table",),\n        """WITH other AS (',
        "tests/release/test_diff.py::test_verdicts_are_compared_at_their_newest",
    ),
}
#: What an attack from outside found afterwards.
LATER: dict[str, Fault] = {
    "emptied": Fault(
        "8",
        "a program that emptied its arguments and returned nothing passed",
        "pipelines/isolation/jail/examiner.py",
        "            self.changed = self.changed or used",
        '            self.changed = self.changed or reply.get("value") is not None',
        "tests/scorers/test_vacuous.py::"
        "test_arguments_changed_in_place_are_seen_and_are_no_way_out",
    ),
    "emptied before": Fault(
        "8",
        "a program that emptied an argument when nothing was asked passed when it was given again",
        "pipelines/isolation/jail/examiner.py",
        "                self.left.meets(name, given)",
        "                pass",
        "tests/scorers/test_vacuous.py::"
        "test_arguments_changed_in_place_are_seen_and_are_no_way_out",
    ),
    "inexact": Fault(
        "7",
        "intervals and the largest numbers left a query as others",
        "pipelines/release/query/sql.py",
        "            check_types(relation.columns, relation.types)\n",
        "",
        "tests/release/test_query.py::"
        "test_a_value_that_would_come_out_as_another_is_refused_with_its_cast",
    ),
    "two hosts": Fault(
        "9",
        "the pages on loopback believed the first of two `Host` headers",
        "flows/web/local_server.py",
        "    return len(named) == 1 and",
        "    return len(named) > 0 and",
        "tests/flows/test_site_command.py::"
        "test_the_server_answers_this_machine_only_and_lists_nothing",
    ),
    "links": Fault(
        "9",
        "an import followed links out of a stranger's folder",
        "pipelines/ingest/importers/reading.py",
        "    if not any(target.is_relative_to(one) for one in own):",
        "    if not own:",
        f"{_STRANGERS}::test_a_link_that_leads_out_of_the_folder_is_refused",
    ),
    "gzip": Fault(
        "6",
        "a source of a few megabytes unfolded to gigabytes",
        "pipelines/io/files.py",
        "        if self._unfolded > self._most:",
        "        if self._unfolded < 0:",
        "tests/io/test_files.py::test_a_gzip_file_that_unfolds_to_more_than_text_would_is_refused",
    ),
    "parquet": Fault(
        "6",
        "a Parquet file of some hundred bytes unfolded to gigabytes",
        "pipelines/isolation/parquet_file.py",
        "    if found + more > most:",
        "    if found + more < 0:",
        "tests/io/test_parquet.py::test_what_unfolds_to_more_than_a_person_writes_is_refused",
    ),
    "footer": Fault(
        "9",
        "a Parquet file whose footer contradicts itself ended the process",
        "pipelines/io/untrusted.py",
        "closing(worker.stream(batches, str(path.absolute()), most, limits=limits))",
        "closing(batches(str(path.absolute()), most))",
        "tests/io/test_parquet_statistics.py::test_a_footer_that_contradicts_itself_ends_no_process",
    ),
    "statistics": Fault(
        "9",
        "statistics of a table hid its rows from queries",
        "pipelines/isolation/parquet_file.py",
        "        if self.low is None:\n",
        "        if self.low is None or self.ends:\n",
        "tests/io/test_parquet_statistics.py::test_statistics_that_hide_rows_are_told",
    ),
    "texts": Fault(
        "smaller",
        "the Python of a list or an object was asked, or read as the answer",
        "pipelines/mapping/texts.py",
        "    if isinstance(value, str) or not isinstance(value, Iterable):\n",
        "    if value is not None:\n",
        "tests/ingest/test_texts.py::test_the_python_of_a_list_or_an_object_is_never_asked",
    ),
}
