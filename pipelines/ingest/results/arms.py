"""Which column, key or part of the path names the arm; columns of models become rows."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.mapping import compile_field, is_column
from routeyard.pipelines.ingest.results.values import (
    FAMILY,
    LANGUAGES,
    ROLES,
    Column,
    ReadingNote,
    amount,
    candidates,
    column_of,
    factor,
    is_judges,
    is_right_or_wrong,
    looks_like_money,
    numbers,
    pattern,
    plain,
    rank_of,
    same_types,
    scale_of,
    snake_case,
    some,
    texts,
    told,
    vocabulary,
    word,
)
from routeyard.schemas.errors import BadInput

# Tables with columns for each model, as one row per answer.

#: Roles that a column of one model can have.
FIELDS = ("score", "text", "cost", "prompt_tokens", "completion_tokens", "latency", "status",
          "error")  # fmt: skip
_SIGNS = r"[\s:|/.\-_]+"
_ARM = frozenset(LANGUAGES["arm"])
#: What is written before or after the model's name.
_LANGUAGES = "|".join(word for words in LANGUAGES.values() for word in words)
_WORDS = rf"(?:is[ _-]?)?(?:{pattern('field').pattern}|{_LANGUAGES})"
#: Words of a column's name that are looked at for a model's.
_WORDS_OF_NAME = 24
_AFTER = re.compile(
    rf"^(?P<model>.*?\S)(?:{_SIGNS}(?P<field>{_WORDS})|\s*\((?P<inside>{_WORDS})\))$", re.IGNORECASE
)
_BEFORE = re.compile(rf"^(?P<field>{_WORDS})(?P<inside>){_SIGNS}(?P<model>\S.*)$", re.IGNORECASE)


def model_columns(table: pa.Table) -> tuple[dict[str, dict[str, str]], bool]:
    """Model → field → column, and whether the names are surely those of models.

    A column is a model's own score, or one of several fields that each model has (`m_response`,
    `score:m`, nested `m.score`). Two models at least; else empty.
    """
    fields, bare = _fields_of_models(table)
    scored = {
        model: item for model, item in fields.items()
        if "score" in item and _are_scores(table.column(item["score"]))
    }  # fmt: skip
    if not scored:
        scored = {name: {"score": name} for name in bare}
    if len(scored) < 2:
        return {}, False
    columns = [item["score"] for item in scored.values()]
    nested = ["." in column for column in columns]
    patterned = all(item["score"] != model for model, item in scored.items())
    known = [model for model in scored if FAMILY.search(model)]
    flat = patterned and len(known) == len(scored) and not any(nested)
    # Records of several kinds have one of the columns each: no row has two of them.
    there = np.sum([table.column(name).is_valid().to_numpy() for name in columns], axis=0)
    if not flat and there.max(initial=0) < 2:
        return {}, False
    return _judged(table, scored, known, all(nested), patterned)


def _judged(
    table: pa.Table, scored: dict[str, dict[str, str]], known: list[str], nested: bool,
    patterned: bool,
) -> tuple[dict[str, dict[str, str]], bool]:  # fmt: skip
    """The columns and whether they are surely of models; empty where they are parts or metrics."""
    used = {column for item in scored.values() for column in item.values()}
    own = [n for n in table.column_names if n not in used and "." not in n and n[:1] != "("]
    # Beside the row's score, nested figures are parts of it.
    if not known and nested and any(
        (rank_of(n, "score") or 99) < 20 and _are_scores(table.column(n)) for n in own
    ):  # fmt: skip
        return {}, False
    several = all(len(item) >= 2 for item in scored.values())
    if patterned or several or 2 * len(known) >= len(scored):
        return scored, bool(known) or patterned
    # Names of metrics are several scores of one answer.
    metrics = 2 * sum(rank_of(name, "score") is not None for name in scored) >= len(scored)
    return ({}, False) if metrics else (scored, False)


def _are_scores(column: Column) -> bool:
    """Whether values can be scores, or are all missing."""
    result = numbers(column)
    return result is not None and (
        bool((result != result).all()) or scale_of(result, "rate") is not None
    )


def _fields_of_models(table: pa.Table) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Model → field → column by the columns' names, and columns that can be scores of a model."""
    fields: dict[str, dict[str, str]] = defaultdict(dict)
    bare: list[str] = []
    for name in table.column_names:
        model, field = _split(name, table.column_names)
        if model is not None and field is not None:
            fields[model].setdefault(field, name)
        elif ("." not in name or _ends_with_model(name)) and is_score(table, name):
            bare.append(name)
    bare = _without_summaries(bare)
    bare = _without_figures(table, _named_with_model(table, fields, _without_amounts(table, bare)))
    fields = _without_parent(fields)
    for name in bare:
        if "score" not in fields.get(name, {}) and (FAMILY.search(name) or name in fields):
            fields[name]["score"] = name
    return fields, bare


def _named_with_model(
    table: pa.Table, fields: dict[str, dict[str, str]], bare: list[str]
) -> list[str]:
    """Add columns whose names hold a model's and a field, in any order (`cost ($) gpt-4o`).

    Returns those of `bare` that are no such columns (`usd_m`), and no other figure of a model whose
    score has a column (`m_probs`).
    """
    scored = [model for model, result in fields.items() if "score" in result]
    models = {item.lower(): item for item in scored or bare}
    used = {column for item in scored for column in fields[item].values()}
    figures = set()
    for name in table.column_names:
        held = None if name in used or name.startswith("(") else model_in(name, models)
        if held is None:
            continue
        model, rest = held
        role = _field(rest)
        fits = (
            role in ("text", "status", "error") or numbers(table.column(name), amount) is not None
        )
        if fits and role not in (None, "score"):
            fields[model].setdefault(str(role), name)
        if scored or role is not None or looks_like_money(rest):
            figures.add(name)
    return [name for name in bare if name in scored or name not in figures]


def _without_summaries(bare: list[str]) -> list[str]:
    """Columns of models without means and sums over them (`Mean`, `Total`), by their names."""
    models = [name for name in bare if plain(name) not in vocabulary("summaries")]
    return models if len(models) >= 2 else bare


def _without_amounts(table: pa.Table, bare: list[str]) -> list[str]:
    """Columns of models without another figure of each (`a_hit`, `a_paid`, `b_hit`, `b_paid`).

    The names are the same but for one word at their end or start; those with one word hold
    verdicts of 0 and 1, and none of those with the other does.
    """
    verdicts = {name for name in bare if is_right_or_wrong(table.column(name))}
    amounts: set[str] = set()
    for form in (
        rf"(?P<of>.*\S){_SIGNS}(?P<what>[^\W_]+)",
        rf"(?P<what>[^\W_]+){_SIGNS}(?P<of>.+)",
    ):
        named: dict[str, dict[str, str]] = defaultdict(dict)
        for name in bare:
            if match := re.fullmatch(form, name):
                named[match["what"].lower()][match["of"]] = name
        sets = [item for item in named.values() if len(item) >= 2]
        judged = [item.keys() for item in sets if verdicts >= {*item.values()}]
        for item in sets:
            if item.keys() in judged and not verdicts & {*item.values()}:
                amounts |= {*item.values()}
    return [name for name in bare if name not in amounts]


def _without_figures(table: pa.Table, bare: list[str]) -> list[str]:
    """Columns of models without a further figure of each (`m-1 effort`, `m-2 effort` of 0.3).

    Another model may be called so (`m-1`, `m-1-chat`): a figure is beside every model that has
    verdicts of 0 and 1, and holds no such.
    """
    models = {name.lower(): name for name in bare}
    held = {name: result for name in bare if (result := model_in(name, models))}
    verdicts = {name for name in bare if is_right_or_wrong(table.column(name))}
    base = {*bare} - {*held}
    if len(base) < 2 or base - verdicts:
        return bare
    of: dict[str, dict[str, str]] = defaultdict(dict)
    for name, (model, rest) in held.items():
        of[plain(rest)][name] = model
    beside = [n for n in of.values() if {*n.values()} == base and not verdicts & n.keys()]
    return [name for name in bare if not any(name in named for named in beside)]


def model_in(name: str, models: Mapping[str, str]) -> tuple[str, str] | None:
    """The longest model that is part of a column's name, whole words of it, and the rest of that.

    Args:
        models: Name in lower case → name.
    """
    words = [match.span() for match in re.finditer(r"[^\W_]+", name)][:_WORDS_OF_NAME]
    spans = [(first, last) for k, (first, _) in enumerate(words) for _, last in words[k:]]
    for first, last in sorted(spans, key=lambda span: span[0] - span[1]):
        model = models.get(name[first:last].lower())
        if model is not None and (first, last) != (0, len(name)):
            rest = f"{name[:first]} {name[last:]}"
            return model, rest if plain(rest) else snake_case(rest)
    return None


def _ends_with_model(name: str) -> bool:
    """Whether a nested column is a model's, and no figure below one (`gpt-4.metrics.mean`)."""
    match = FAMILY.search(name)
    return match is not None and re.search(r"\.[A-Za-z_]", name[match.end() :]) is None


def _without_parent(fields: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Models without the one key that all of them are under, as `results.gpt-4` does."""
    parents = {model.partition(".")[0] for model in fields}
    parent = next(iter(parents), "")
    inside = len(fields) >= 2 and len(parents) == 1 and not FAMILY.search(parent)
    short = {model.partition(".")[2]: result for model, result in fields.items()}
    whole = inside and "" not in short and len(short) == len(fields)
    return defaultdict(dict, short) if whole else fields


def _split(name: str, names: Sequence[str]) -> tuple[str | None, str | None]:
    """(model, field) that a column's name states."""
    before, _, leaf = name.rpartition(".")
    if before and (field := _field(leaf)) and not _field(before.rpartition(".")[2]):
        tops = {n.rpartition(".")[0] for n in names if n.rpartition(".")[2] == leaf}
        if len(tops) >= 2:
            return before, field
    for form in (_AFTER, _BEFORE):
        match = form.match(name)
        if match and (field := _field(match["field"] or match["inside"])):
            model = match["model"]
            if _field(model) is None or FAMILY.search(model):
                return model, field
    return None, None


def _field(name: str) -> str | None:
    """The role of the column that is called so, of those a model's column can have."""
    short = plain(name)
    if re.fullmatch(
        r"(?:is)?(?:scores?|accuracy|acc|correct|grades?|quality|performance|labels?|eval)", short
    ):
        return "score"
    ranked = [(rank, role) for role in FIELDS if (rank := rank_of(name, role)) is not None]
    return min(ranked)[1] if ranked else None


def is_score(table: pa.Table, name: str) -> bool:
    """Whether a column can be a model's scores: no id, no setting, no other known figure."""
    if pattern("lower").search(name):
        return False
    column = table.column(name)
    result = numbers(column)
    if result is None or scale_of(result, "rate") is None:
        return False
    others = ("question", "sample", "cost", "prompt_tokens", "completion_tokens", "latency",
              "attempt", "aggregate", "reference")  # fmt: skip
    return FAMILY.search(name) is not None or all(
        rank_of(name, role) is None for role in (*others, "score")
    )


def unpivot(table: pa.Table, models: dict[str, dict[str, str]]) -> pa.Table:
    """One row per question and model; the columns of models become `score`, `text`, …

    The model is `(model)`; other columns are repeated.
    """
    used = {column for fields in models.values() for column in fields.values()}
    shared, n = table.select([name for name in table.column_names if name not in used]), len(table)
    wanted = sorted({role for fields in models.values() for role in fields})
    parts = []
    for model, fields in models.items():
        part = shared.append_column("(model)", pa.array([model] * n, pa.string()))
        there = np.zeros(n, bool)
        for role in wanted:
            values = pa.nulls(n)
            if (column := fields.get(role)) is not None:
                values = table.column(column)
                there |= values.is_valid().to_numpy()
                # In USD or seconds; the name of the model may hold a dot.
                _, rest = model_in(column, {model.lower(): model}) or (model, column)
                by = factor(rest, role)
                amounts = None if by == 1 else numbers(values, amount)
                if amounts is not None:
                    values = pa.array(amounts * by, from_pandas=True)
            part = part.append_column(f"({role})", values)
        if "(at)" in part.column_names:
            # Files that say nothing of a model lack its columns.
            files = pc.replace_substring_regex(part.column("(at)"), r"(?:, row \d+|\[\d+\])$", "")
            known = pc.unique(files.filter(pa.array(there)))
            part = part.filter(pc.is_in(files, value_set=known))
        parts.append(part)
    return pa.concat_tables(same_types(parts), promote_options="permissive")


@dataclass(slots=True)
class Assigned:
    """A group's table, and role → column.

    Attributes:
        around: Columns that are true of a whole set, and not of a row.
        others: Further columns of scores.
        per_question: Rows are questions, and models were columns.
        used: Columns that were read and have no role.
        of_status: Column of a status whose words were taken for the score.
        known: What was found out about the table's columns.
    """

    table: pa.Table
    around: frozenset[str] = frozenset()
    roles: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    notes: list[ReadingNote] = field(default_factory=list)
    per_question: bool = False
    of_status: str | None = None
    used: set[str] = field(default_factory=set)
    known: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def replace(self, table: pa.Table) -> None:
        """Take another table with other rows."""
        self.table = table
        self.known.clear()

    def text(self, name: str) -> pa.ChunkedArray:
        """A column as texts."""
        return texts(self.table.column(name))

    def numbers(self, name: str) -> np.ndarray | None:
        """Values of a column as scores; None where it has no scores."""
        return self._once("numbers", name, numbers)  # type: ignore[no-any-return]

    def codes(self, name: str) -> np.ndarray:
        """(rows,) number of each different text of a column, as which a missing one counts."""
        return self._once("codes", name, lambda column: codes_of(texts(column)))  # type: ignore[no-any-return]

    def distinct(self, *columns: str | np.ndarray) -> int:
        """Number of different combinations of the values of columns, given by name or as codes."""
        codes = [self.codes(item) if isinstance(item, str) else item for item in columns]
        return int(combined(codes).max(initial=-1)) + 1

    def values(self, name: str) -> int:
        """Number of different values of a column."""
        return int(self._once("values", name, lambda column: len(pc.unique(column.drop_null()))))

    def _once(self, what: str, name: str, of: Callable[[Column], Any]) -> Any:
        if (what, name) not in self.known:
            self.known[what, name] = of(self.table.column(name))
        return self.known[what, name]

    def unique(self, role: str) -> int:
        """Number of different values of a role's column; 0 where none has it."""
        return self.values(self.roles[role]) if role in self.roles else 0

    def note(self, note: str, rows: int = 0, about: str = "", /, **values: Any) -> None:
        """Add what a person should know: a text of `notes.yaml`."""
        self.notes.append(told(note, rows, about, **values))

    def derive(self, role: str, values: Column, used: Iterable[str] = ()) -> None:
        """Give a role a column `(role)` that is made of others."""
        self.table = self.table.append_column(f"({role})", values)
        self.roles[role] = f"({role})"
        self.used |= {*used}

    @property
    def taken(self) -> frozenset[str]:
        """Columns that have a role."""
        return frozenset({*self.roles.values(), *self.others, "(at)"})

    def named(self, role: str, without: Iterable[str] = ()) -> list[str]:
        """Columns whose names and values fit a role, the best name first."""
        return [c.column for c in candidates(self.table, role, frozenset(without))]

    def fitting(self, role: str) -> list[str]:
        """Columns of rows that fit a role and have none yet."""
        return self.named(role, self.taken | self.around)

    def free(self) -> list[str]:
        """The source's own columns of rows of which nothing was read yet."""
        held = self.taken | self.around | self.used | {self.of_status}
        return [n for n in self.table.column_names if n not in held and n[:1] != "("]

    def below(self, before: str) -> list[str]:
        """The columns whose names begin so: `(path` for parts of the path, `(key` for keys."""
        return [n for n in self.table.column_names if n.startswith(before)]


def codes_of(column: pa.ChunkedArray) -> np.ndarray:
    """(rows,) number of each different text of a column, as which a missing one counts."""
    coded = column.fill_null("").dictionary_encode().combine_chunks()
    return np.asarray(coded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def combined(codes: Sequence[np.ndarray]) -> np.ndarray:
    """(rows,) number of each different combination of codes."""
    code = np.zeros(len(codes[0]), np.int64)
    for own in codes:
        code = np.unique(code * (own.max(initial=0) + 1) + own, return_inverse=True)[1]
    return code


def as_map(columns: Mapping[str, str]) -> str:
    """The options that say what was read from where; of columns of the source alone."""
    named = [f"{role}={columns[role]}" for role in ROLES if columns.get(role, "(")[0] != "("]
    given = [("--map", ",".join(named)), ("--models", columns.get("models"))]
    return " ".join(f"{option} {quoted(value)}" for option, value in given if value)


def quoted(text: str) -> str:
    """A word of a command line, as a person would quote it."""
    return f'"{text}"' if "'" in text and not re.search(r'["$`\\!]', text) else shlex.quote(text)


def impose(done: Assigned, mapping: Mapping[str, str]) -> str | None:
    """Give roles the columns that a person names; returns the first column that is not there."""
    for role, column in mapping.items():
        names = done.table.column_names
        column = _as_written(column, names)
        if role == "models":
            models = {name.strip(): {"score": name.strip()} for name in column.split(",")}
            if missing := next((name for name in models if name not in names), None):
                return missing
            for name in names:
                held = None if name in models else model_in(name, {m.lower(): m for m in models})
                if held is not None and (field := _field(held[1])) is not None:
                    models[held[0]].setdefault(field, name)
            _unpivoted(done, models)
        elif column in names:
            done.roles[role] = column
        elif column.startswith("="):
            done.derive(role, pa.array([column[1:]] * done.table.num_rows))
        elif is_column(column):
            return column
        else:
            value = compile_field(column, where=f"--map {role}")
            used = [n for n in names if re.search(rf"(?<!\w){re.escape(n)}(?!\w)", column)]
            done.derive(role, column_of([value(row) for row in done.table.to_pylist()]), used)
        if role == "status":
            _check_status(done, column)
        if role in _AMOUNTS:
            _check_amounts(done, role, column)
    return None


def _as_written(column: str, names: list[str]) -> str:
    """The header that a person means: blanks around it are not seen, nor typed."""
    if column in names:
        return column
    return {name.strip(): name for name in names}.get(column.strip(), column)


#: Roles whose values are numbers: how each text of them is read, and what it says.
_AMOUNTS: dict[str, tuple[Callable[[str], float | None], str]] = {
    "score": (word, "a score is a number, or a word for right or wrong (correct, pass, no, …)"),
    "cost": (amount, "a cost is an amount of USD"), "latency": (amount, "a latency is seconds"),
    "prompt_tokens": (amount, "tokens are a count"),
    "completion_tokens": (amount, "tokens are a count"),
}  # fmt: skip


def _check_amounts(done: Assigned, role: str, column: str) -> None:
    """Refuse a column without a single number: it would pass as one without values."""
    values = done.table.column(done.roles[role])
    read, is_what = _AMOUNTS[role]
    if numbers(values, read) is not None or pa.types.is_nested(values.type):
        return
    seen = [f"'{value[:40]}'" for value in sorted({str(value) for value in some(values, 2000)})]
    value = f"_row[{column!r}]" if is_column(column) else "…"
    mean = f"1 if {value} == {seen[0]} else 0" if role == "score" else f"… {value} …"
    raise BadInput(
        f"{is_what}; {column!r} says {', '.join(seen[:3])}{', …' * (len(seen) > 3)}",
        where=f"--map {role}",
        next_step=f'say what a value means: --map "{role}={{{{ {mean} }}}}"',
    )


def _check_status(done: Assigned, column: str) -> None:
    """Refuse a flag as a status: which of its values means that there is no answer?"""
    values = pc.unique(done.table.column(done.roles["status"])).drop_null().to_pylist()
    if values and {str(value).lower() for value in values} <= {*vocabulary("yes_or_no")}:
        name = column if column.isidentifier() else "COLUMN"
        raise BadInput(
            f"a status is a word (ok, error, refused, ungraded, …); {column!r} says "
            f"{' or '.join(sorted(map(repr, values))[:3])}",
            where="--map status",
            next_step=f"say what a value means: --map \"status={{{{ 'ungraded' if {name} == "
            f"{max(values, key=str)!r} else 'ok' }}}}\"",
        )


def _family(table: pa.Table, name: str) -> float:
    """Share of a column's different values that look like names of models."""
    seen = {str(v) for v in some(table.column(name), 2000)}
    return sum(bool(FAMILY.search(v)) for v in seen) / max(1, len(seen))


def find_arm(done: Assigned) -> None:
    """Give the arm a column; without one that names models, a table with columns of models rows."""
    table = done.table
    named, sure = _named(done)
    keys = (name for name in done.below("(key") if _family(table, name) >= 0.5)
    name = named if sure else next(keys, None)
    if name is None and named is None:
        name = _by_values(done, blank=True)
    if name is not None:
        done.roles["arm"] = name
        return
    own = [n for n in table.column_names if n not in done.around and not n.startswith("(")]
    _find_without_name(done, named, *model_columns(table.select(own)))


def _find_without_name(
    done: Assigned, named: str | None, models: dict[str, dict[str, str]], known: bool
) -> None:
    """Give the arm columns of models, a path, or a column by its values, whichever is surest."""
    paths = done.below("(path")
    varied = [name for name in paths if done.values(name) > 1]
    path = next((name for name in varied or paths if _family(done.table, name) >= 0.5), None)
    if models and known:
        _unpivoted(done, models)
    elif path is not None:
        _from_path(done, path, "model_in_path" if varied else "one_path")
    elif models and not done.named("score", done.around):
        done.note("columns_of_models", names=", ".join(list(models)[:5]))
        _unpivoted(done, models)
    elif named is not None:
        done.roles["arm"] = named
    elif (name := _by_values(done)) is not None:
        done.roles["arm"] = name
        done.note("by_values", name=name)
    elif paths:
        crossing = [name for name in varied if _crosses(done, name)]
        _from_path(done, (crossing or varied or paths)[0], "file_of_model")


def _by_values(done: Assigned, *, blank: bool = False) -> str | None:
    """The first column of short texts of which most look like models, that no judge is named in.

    Args:
        blank: Only a column without a name, as data frames write their index.
    """
    for name in done.table.column_names:
        column = done.table.column(name)
        if name.startswith("(") or name in done.around or is_judges(name):
            continue
        if (blank and plain(name) not in vocabulary("index")) or done.values(name) <= 1:
            continue
        short = pa.types.is_string(column.type) and all(len(v) <= 80 for v in some(column, 300))
        if short and _family(done.table, name) >= 0.5:
            return str(name)
    return None


def _named(done: Assigned) -> tuple[str | None, bool]:
    """The column that is named best for an arm, and whether it surely holds names of models.

    Names come first, then those that look like models.
    """
    table = done.table
    ranked = [
        (c.rank + 12 * (not likes), c.column, c.rank < 12 or likes > 0 or plain(c.column) in _ARM)
        for c in candidates(table, "arm")
        if pa.types.is_string(table.column(c.column).type)
        for likes in [_family(table, c.column)]
    ]
    return min(ranked)[1:] if ranked else (None, False)


def _from_path(done: Assigned, name: str, why: str) -> None:
    """Take a part of the files' paths for the arm, and say so."""
    done.roles["arm"] = name
    names = sorted({str(v) for v in some(done.table.column(name), 50)})
    done.note(why, some=", ".join(names[:3]))


def _crosses(done: Assigned, name: str) -> bool:
    """Whether rows of one value of a path have the ids that rows of another have."""
    ids = done.named("question")[:1]
    return bool(ids) and done.distinct(name, *ids) > 1.5 * done.values(ids[0])


def _unpivoted(done: Assigned, models: dict[str, dict[str, str]]) -> None:
    done.replace(unpivot(done.table, models))
    done.per_question = True
    done.roles["arm"] = "(model)"
    done.roles |= {role: f"({role})" for role in FIELDS if f"({role})" in done.table.column_names}


# Whether a group's records are figures of many questions each, and no answers.

_SPREAD = re.compile(
    r"(?:std_?err|stderr|std|_ci|ci_(?:low|high)|stddev|variance)(?:,\w+)?$", re.IGNORECASE
)


def why_pairs(table: pa.Table) -> str:
    """Why rows are battles of two models, which have no score each; empty where they are not."""
    sides: dict[str, list[str]] = defaultdict(list)
    for name in table.column_names:
        column = table.column(name)
        match = pattern("side").match(snake_case(name))
        if match and pa.types.is_string(column.type) and numbers(column) is None:
            sides[match["stem"]].append(name)
    pair = next((names for names in sides.values() if len(names) == 2), None)
    if pair is None:
        return ""
    return (
        f"{pair[0]!r} and {pair[1]!r} name the two models of a battle: rows say which answer was "
        "preferred, and no answer has its own score (`routeyard import` reads alpaca_eval)"
    )


def why_aggregate(done: Assigned) -> str:
    """Why each row is of many questions; empty where rows are answers."""
    table, n, roles = done.table, done.table.num_rows, done.roles
    if n == 0 or "text" in roles:
        return ""
    names = [m for m in table.column_names if not m.startswith("(") and m not in done.around]
    for name in (m for m in names if _SPREAD.search(m)):  # `stderr` is a stream of a program, too
        values = done.numbers(name)
        if values is not None and not np.isnan(values).all():
            return f"{name!r} states how far many scores spread"
    for name in (m for m in done.named("aggregate", done.around) if "." not in m):
        values = done.numbers(name)
        there = np.zeros(0) if values is None else values[~np.isnan(values)]
        whole = len(there) >= max(1, 0.5 * n) and bool(np.all(there == np.floor(there)))
        if whole and np.median(there) >= 10:
            return f"{name!r} says that a row is of {int(there.max()):,} questions"
    arm = roles.get("arm")
    return "" if arm is None else _why_by_roles(done, arm, names)


def _why_by_roles(done: Assigned, arm: str, names: list[str]) -> str:
    """Why each row is of many questions, by the columns of the arm, question and score."""
    n, roles = done.table.num_rows, done.roles
    question, score = roles.get("question"), roles.get("score")
    if done.per_question:
        if question == "(row)" and "prompt" not in roles and _figures(done, score):
            for name in done.named("suite"):
                suites = done.values(name)
                if suites * done.unique("arm") == n and suites <= 200:
                    return f"{name!r} names {suites} suites, with one figure of each model"
        return ""
    if question is None:
        figures = [m for m in names if m != arm and _figures(done, m)]
        if n < 2 or done.values(arm) <= 0.9 * n or (len(figures) < 2 and score is None):
            return ""
        shown = ", ".join(figures[:3])
        return f"each row is one model with {len(figures)} figures, such as {shown}"
    # The only name of a question is that of a task, with fractions as scores.
    named = all(rank_of(question, role) is not None for role in ("suite", "question"))
    tasks = done.values(question)
    if named and tasks <= 200 and _figures(done, score, (0.0, 0.5, 1.0)):
        return f"{question!r} names {tasks} tasks, with one figure each"
    return ""


def _figures(done: Assigned, name: str | None, verdicts: tuple[float, ...] = (0.0, 1.0)) -> bool:
    """Whether a column holds numbers that are not all verdicts."""
    values = None if name is None else done.numbers(name)
    return values is not None and bool({*values[~np.isnan(values)]} - {*verdicts})


# Tables with a row per figure (question, model, metric, value) as a row per answer.

#: Most kinds of figures that become columns.
_MOST = 40


def unmelted(table: pa.Table) -> tuple[pa.Table, list[ReadingNote]]:
    """The table with a column per metric, where its rows are figures of several kinds.

    Only where one column names figures, of which some are scores, and the other columns say of
    several rows that they are of one answer.
    """
    metric = _first_called(table, vocabulary("figure_names"))
    value = _first_called(table, vocabulary("figure_values"))
    rest = [n for n in table.column_names if n not in (metric, value) and n[:1] != "("]
    if metric is None or value is None or metric == value or not rest:
        return table, []
    cell = table.column(metric)
    kinds = [item for item in pc.unique(cell).to_pylist() if item]
    scores = pa.types.is_string(cell.type) and any(rank_of(k, "score") is not None for k in kinds)
    if not scores or not 2 <= len(kinds) <= _MOST or {*rest} & {*kinds}:
        return table, []
    first, answer = np.unique(
        combined([codes_of(texts(table.column(n))) for n in rest]),
        return_index=True, return_inverse=True,
    )[1:]  # fmt: skip
    first, answer = np.sort(first), np.argsort(np.argsort(first))[answer]
    again = len(np.unique(combined([answer, codes_of(cell)]))) < table.num_rows
    if again or table.num_rows < 1.5 * len(first) or not some(table.column(value), 1):
        return table, []
    made = table.drop_columns([metric, value]).take(first)
    for name in kinds:
        own = np.flatnonzero(np.asarray(pc.equal(cell, name).fill_null(False)))
        place = np.full(len(first), -1)
        place[answer[own]] = own
        made = made.append_column(name, table.column(value).take(pa.array(place, mask=place < 0)))
    return made, [told("figures", n=len(kinds), name=metric)]


def _first_called(table: pa.Table, names: Iterable[str]) -> str | None:
    """The column with the first of these names that any has."""
    return next((n for want in names for n in table.column_names if plain(n) == want), None)
