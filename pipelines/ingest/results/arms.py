"""Which column, key or part of the path names the arm; columns of models become rows."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.mapping import compile_field, is_column
from routeyard.pipelines.ingest.results.values import (
    FAMILY,
    FIGURE_NAMES,
    FIGURE_VALUES,
    LANGUAGES,
    ROLES,
    Column,
    ReadingNote,
    amount,
    candidates,
    column_of,
    constant,
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
    vocabulary,
)
from routeyard.schemas.errors import BadInput

# Tables with columns for each model, as one row per answer.

#: Roles that a column of one model can have.
FIELDS = ("score", "text", "cost", "prompt_tokens", "completion_tokens", "latency", "status",
          "error")  # fmt: skip
_SIGNS = r"[\s:|/.\-_]+"
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
    scored = _scored_models(table)
    patterned = all(item["score"] != model for model, item in scored.items())
    known = [model for model in scored if FAMILY.search(model)]
    columns = [item["score"] for item in scored.values()]
    flat = patterned and len(known) == len(scored) and not any("." in column for column in columns)
    if len(scored) < 2 or not (flat or _beside_one_another(table, columns)):
        return {}, False
    if not known and _has_own_score(table, scored):
        return {}, False
    several = all(len(item) >= 2 for item in scored.values())
    if patterned or several or 2 * len(known) >= len(scored):
        return scored, bool(known) or patterned
    return ({}, False) if _are_metrics(list(scored)) else (scored, False)


def _scored_models(table: pa.Table) -> dict[str, dict[str, str]]:
    """Model → field → column, of models with scores."""
    fields, bare = _fields_of_models(table)
    scored = {
        model: result for model, result in fields.items()
        if "score" in result and _are_scores(table.column(result["score"]))
    }  # fmt: skip
    return scored or {name: {"score": name} for name in bare if len(bare) >= 2}


def _are_scores(column: Column) -> bool:
    """Whether values can be scores, or are all missing."""
    result = numbers(column)
    return result is not None and (
        bool((result != result).all()) or scale_of(result, "rate") is not None
    )


def _has_own_score(table: pa.Table, models: dict[str, dict[str, str]]) -> bool:
    """Whether a row has its own score beside nested figures, which are then parts of it."""
    used = {column for fields in models.values() for column in fields.values()}
    nested = all("." in model["score"] for model in models.values())
    own = [n for n in table.column_names if n not in used and "." not in n and n[:1] != "("]
    return nested and any(
        (rank_of(n, "score") or 99) < 20 and _are_scores(table.column(n)) for n in own
    )


def _beside_one_another(table: pa.Table, names: Sequence[str]) -> bool:
    """Whether some row has two of these columns: records of several kinds have one each."""
    there = [table.column(name).is_valid().cast(pa.int32()) for name in names]
    total = there[0]
    for item in there[1:]:
        total = pc.add(total, item)
    return (pc.max(total).as_py() or 0) >= 2


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
    bare = _without_figures(table, _named_with_model(table, fields, bare))
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
        if role not in (None, "score") and _is_of(table.column(name), role or ""):
            fields[model].setdefault(str(role), name)
        if scored or role is not None or looks_like_money(rest):
            figures.add(name)
    return [name for name in bare if name in scored or name not in figures]


def _without_figures(table: pa.Table, bare: list[str]) -> list[str]:
    """Columns of models without a further figure of each (`m-1 effort`, `m-2 effort` of 0.3).

    Another model may be called so (`m-1`, `m-1-chat`): a figure is beside every model that has
    verdicts of 0 and 1, and holds no such.
    """
    models = {name.lower(): name for name in bare}
    held = {name: result for name in bare if (result := model_in(name, models))}
    base = {name for name in bare if name not in held}
    if len(base) < 2 or not all(is_right_or_wrong(table.column(name)) for name in base):
        return bare
    of: dict[str, dict[str, str]] = defaultdict(dict)
    for name, (model, rest) in held.items():
        of[plain(rest)][name] = model
    figures = set()
    for named in of.values():
        verdicts = any(is_right_or_wrong(table.column(name)) for name in named)
        if {*named.values()} == base and not verdicts:
            figures |= {*named}
    return [name for name in bare if name not in figures]


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


def _is_of(column: Column, role: str) -> bool:
    """Whether values can be those of a role: amounts, but for texts, a status and an error."""
    return role in ("text", "status", "error") or numbers(column, amount) is not None


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


def _are_metrics(names: Sequence[str]) -> bool:
    """Whether columns are several scores of one answer: their names are those of metrics."""
    return 2 * sum(rank_of(name, "score") is not None for name in names) >= len(names)


def unpivot(table: pa.Table, models: dict[str, dict[str, str]]) -> pa.Table:
    """One row per question and model; the columns of models become `score`, `text`, …

    The model is `(model)`; other columns are repeated.
    """
    used = {column for fields in models.values() for column in fields.values()}
    rest = [name for name in table.column_names if name not in used]
    shared = table.select(rest)
    n = table.num_rows
    wanted = sorted({role for fields in models.values() for role in fields})
    parts = []
    for model, fields in models.items():
        part = shared.append_column("(model)", pa.array([model] * n, pa.string()))
        for role in wanted:
            column = fields.get(role)
            values = (
                pa.nulls(n)
                if column is None
                else _in_units(table.column(column), _rest(column, model), role)
            )
            part = part.append_column(f"({role})", values)
        parts.append(_of_its_files(part, [f"({role})" for role in wanted]))
    return pa.concat_tables(same_types(parts), promote_options="permissive")


def _rest(column: str, model: str) -> str:
    """A column's name without its model's, which may hold a dot."""
    result = model_in(column, {model.lower(): model})
    return column if result is None else result[1]


def _of_its_files(part: pa.Table, fields: Sequence[str]) -> pa.Table:
    """A model's rows without those of files that say nothing of it, which lack its columns."""
    if "(at)" not in part.column_names:
        return part
    there = part.column(fields[0]).is_valid()
    for name in fields[1:]:
        there = pc.or_(there, part.column(name).is_valid())
    files = pc.replace_substring_regex(part.column("(at)"), r"(?:, row \d+|\[\d+\])$", "")
    return part.filter(pc.is_in(files, value_set=pc.unique(files.filter(there))))


def _in_units(column: Column, name: str, field: str) -> Column:
    """A column in USD or seconds, where its name states another unit."""
    by = factor(name, field)
    values = None if by == 1 else numbers(column, amount)
    return column if values is None else pa.array(values * by, from_pandas=True)


@dataclass(slots=True)
class Assigned:
    """A group's table, and role → column.

    Attributes:
        others: Further columns of scores.
        keys: Names of columns that are keys of maps.
        per_question: Rows are questions, and models were columns.
        used: Columns that were read and have no role.
        of_status: Column of a status whose words were taken for the score.
    """

    table: pa.Table
    roles: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    notes: list[ReadingNote] = field(default_factory=list)
    per_question: bool = False
    of_status: str | None = None
    used: set[str] = field(default_factory=set)

    def unique(self, role: str) -> int:
        """Number of different values of a role's column; 0 where none has it."""
        name = self.roles.get(role)
        return 0 if name is None else len(pc.unique(self.table.column(name).drop_null()))

    def note(self, kind: str, says: str, about: str = "", rows: int = 0) -> None:
        """Add what a person should know."""
        self.notes.append(ReadingNote(kind, says, rows, (), about))  # type: ignore[arg-type]

    def derive(self, role: str, values: Column, used: Iterable[str] = ()) -> None:
        """Give a role a column `(role)` that is made of others."""
        self.table = self.table.append_column(f"({role})", values)
        self.roles[role] = f"({role})"
        self.used |= {*used}

    def free(self, without: Iterable[str] = ()) -> list[str]:
        """The source's own columns that have no role yet."""
        held = {*self.roles.values(), *self.others, *without}
        return [n for n in self.table.column_names if n not in held and n[:1] != "("]


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
        if role == "models":
            models = {name.strip(): {"score": name.strip()} for name in column.split(",")}
            if missing := next((name for name in models if name not in names), None):
                return missing
            for name in names:
                held = None if name in models else model_in(name, {m.lower(): m for m in models})
                if held is not None and (field := _field(held[1])) is not None:
                    models[held[0]].setdefault(field, name)
            _unpivoted(done, models, sure=True)
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
    return None


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


def find_arm(done: Assigned, around: set[str]) -> None:
    """Give the arm a column; without one that names models, a table with columns of models rows."""
    table = done.table
    named, sure = _named(table)
    if (name := named if sure else _key_of_models(table)) is not None:
        done.roles["arm"] = name
        return
    own = [n for n in table.column_names if n not in around and not n.startswith("(")]
    if named is None and (name := _by_values(table, around, blank=True)) is not None:
        done.roles["arm"] = name
        return
    models, known = model_columns(table.select(own))
    if models and known:
        _unpivoted(done, models, sure=True)
    elif (path := _path_of_models(table)) is not None:
        _from_path(done, *path, "the model is named only in the path of the file")
    elif models and not candidates(table, "score", frozenset(around)):
        _unpivoted(done, models, sure=False)
    elif named is not None:
        done.roles["arm"] = named
    elif (name := _by_values(table, around)) is not None:
        done.roles["arm"] = name
        done.note("question", f"{name!r} is taken for the model by its values", "arm")
    elif (part := _any_path(table)) is not None:
        why = "no column names the model; the name of the file or folder is taken"
        _from_path(done, part, "question", why)


def _key_of_models(table: pa.Table) -> str | None:
    """The first key of a map whose values look like names of models."""
    keys = (name for name in table.column_names if name.startswith("(key"))
    return next((name for name in keys if _family(table, name) >= 0.5), None)


def _by_values(table: pa.Table, around: set[str], *, blank: bool = False) -> str | None:
    """The first column of short texts of which most look like models, that no judge is named in.

    Args:
        blank: Only a column without a name, as data frames write their index.
    """
    for name in table.column_names:
        column = table.column(name)
        if name.startswith("(") or name in around or is_judges(name) or constant(column):
            continue
        if blank and plain(name) not in vocabulary("index"):
            continue
        short = pa.types.is_string(column.type) and all(len(v) <= 80 for v in some(column, 300))
        if short and _family(table, name) >= 0.5:
            return str(name)
    return None


def _paths(table: pa.Table) -> tuple[list[str], list[str]]:
    """Parts of the path, and those of them that vary."""
    paths = [name for name in table.column_names if name.startswith("(path")]
    return paths, [name for name in paths if not constant(table.column(name))]


def _path_of_models(table: pa.Table) -> tuple[str, Literal["choice", "question"]] | None:
    """The part of the path that looks like names of models, and whether a person has to look."""
    paths, varied = _paths(table)
    like = (name for name in varied or paths if _family(table, name) >= 0.5)
    name = next(like, None)
    return None if name is None else (name, "choice" if varied else "question")


def _any_path(table: pa.Table) -> str | None:
    """The part of the path that names the model where nothing else does."""
    paths, varied = _paths(table)
    crossing = [name for name in varied if _crosses(table, name)]
    return next(iter(crossing or varied or paths), None)


def _named(table: pa.Table) -> tuple[str | None, bool]:
    """The column that is named best for an arm, and whether it surely holds names of models.

    `(model)` of a wide table comes first, then names, then keys and paths that look like models.
    """
    named = [c for c in candidates(table, "arm") if not _is_count(table, c.column)]
    likes = {c.column: _family(table, c.column) for c in named}
    best = min(
        named, key=lambda c: (c.rank + (0 if likes[c.column] else 12), c.column), default=None
    )
    if best is None:
        return None, False
    return best.column, best.rank < 12 or likes[best.column] > 0


def _from_path(done: Assigned, name: str, kind: str, why: str) -> None:
    """Take a part of the files' paths for the arm, and say so."""
    done.roles["arm"] = name
    names = sorted({str(v) for v in some(done.table.column(name), 50)})
    done.note(kind, f"{why} ({', '.join(names[:3])})", "arm")


def _is_count(table: pa.Table, name: str) -> bool:
    return not pa.types.is_string(table.column(name).type)


def _crosses(table: pa.Table, name: str) -> bool:
    """Whether rows of one value of a path have the ids that rows of another have."""
    ids = candidates(table, "question")
    if not ids:
        return False
    pairs = pa.table({"a": table.column(name), "b": texts(table.column(ids[0].column))})
    unique = pairs.group_by(["a", "b"]).aggregate([]).num_rows
    return bool(unique > 1.5 * len(pc.unique(pairs.column("b"))))


def _unpivoted(done: Assigned, models: dict[str, dict[str, str]], *, sure: bool) -> None:
    if not sure:
        done.note(
            "question",
            f"the columns {', '.join(list(models)[:5])} are taken for models, one score each",
            "arm",
        )
    done.table = unpivot(done.table, models)
    done.per_question = True
    done.roles["arm"] = "(model)"
    done.roles |= {role: f"({role})" for role in FIELDS if f"({role})" in done.table.column_names}


# Whether a group's records are figures of many questions each, and no answers.

_SPREAD = re.compile(
    r"(?:std_?err|stderr|std|_ci|ci_(?:low|high)|stddev|variance)(?:,\w+)?$", re.IGNORECASE
)


def why_pairs(table: pa.Table) -> str:
    """Why rows are battles of two models, which have no score each; empty where they are not."""
    sides: dict[str, list[str]] = {}
    for name in table.column_names:
        if match := pattern("side").match(snake_case(name)):
            labels = pa.types.is_string(table.column(name).type)
            if labels and numbers(table.column(name)) is None:
                sides.setdefault(match["stem"], []).append(name)
    pair = next((names for names in sides.values() if len(names) == 2), None)
    if pair is None:
        return ""
    return (
        f"{pair[0]!r} and {pair[1]!r} name the two models of a battle: rows say which answer was "
        "preferred, and no answer has its own score (`routeyard import` reads alpaca_eval)"
    )


def why_aggregate(done: Assigned, around: set[str]) -> str:
    """Why each row is of many questions; empty where rows are answers."""
    table = done.table
    if table.num_rows == 0:
        return ""
    names = [n for n in table.column_names if not n.startswith("(") and n not in around]
    if spread := [] if "text" in done.roles else _spreads(table, names):
        return f"{spread[0]!r} states how far many scores spread"
    counting = candidates(table, "aggregate", frozenset(around))
    counts = [c.column for c in counting if "." not in c.column]
    for name in counts:
        values = numbers(table.column(name))
        if values is not None and _of_many(done, values):
            return f"{name!r} says that a row is of {int(np.nanmax(values)):,} questions"
    arm, question = done.roles.get("arm"), done.roles.get("question")
    if arm is not None and done.per_question:
        return _figures_of_suites(done)
    if arm is None:
        return ""
    if question is None:
        return _model_figures(done, arm, names)
    if _task_figures(done, question):
        tasks = len(pc.unique(table.column(question)))
        return f"{question!r} names {tasks} tasks, with one figure each"
    return ""


def _spreads(table: pa.Table, names: Sequence[str]) -> list[str]:
    """Columns of numbers that say how far scores spread; `stderr` is a stream of a program, too."""
    result = ((n, numbers(table.column(n))) for n in names if _SPREAD.search(n))
    return [n for n, values in result if values is not None and not np.isnan(values).all()]


def _figures_of_suites(done: Assigned) -> str:
    """Why each row of a table with columns of models is a whole suite; else empty."""
    table, arms = done.table, done.unique("arm")
    if done.roles.get("question") != "(row)" or {"text", "prompt"} & done.roles.keys():
        return ""
    if "score" not in done.roles or not _figures(table.column(done.roles["score"])):
        return ""
    for candidate in candidates(table, "suite"):
        suites = len(pc.unique(table.column(candidate.column)))
        if suites * arms == table.num_rows and suites <= 200:
            return f"{candidate.column!r} names {suites} suites, with one figure of each model"
    return ""


def _model_figures(done: Assigned, arm: str, names: Sequence[str]) -> str:
    """Why each row is a whole model, where no column names a question; else empty."""
    table = done.table
    if table.num_rows < 2 or len(pc.unique(table.column(arm))) <= 0.9 * table.num_rows:
        return ""
    figures = [n for n in names if n != arm and _figures(table.column(n))]
    if len(figures) < 2 and "score" not in done.roles:
        return ""
    return f"each row is one model with {len(figures)} figures, such as {', '.join(figures[:3])}"


def _of_many(done: Assigned, values: np.ndarray) -> bool:
    there = values[~np.isnan(values)]
    if len(there) < 0.5 * len(values) or "text" in done.roles:
        return False
    return bool(np.median(there) >= 10 and np.all(there == np.floor(there)))


def _figures(column: pa.ChunkedArray) -> bool:
    values = numbers(column)
    if values is None:
        return False
    there = values[~np.isnan(values)]
    return bool(len(there)) and not set(np.unique(there)) <= {0.0, 1.0}


def _task_figures(done: Assigned, question: str) -> bool:
    """Whether the only name of a question is that of a task, with fractions as scores."""
    named = rank_of(question, "suite") is not None and rank_of(question, "question") is not None
    score = done.roles.get("score")
    if score is None or not named or "text" in done.roles:
        return False
    values = numbers(done.table.column(score))
    labels = some(pa.chunked_array([texts(done.table.column(question)).unique()]), 300)
    if values is None or len(labels) > 200:
        return False
    there = values[~np.isnan(values)]
    return not set(np.unique(there)) <= {0.0, 0.5, 1.0}


# Tables with a row per figure (question, model, metric, value) as a row per answer.

#: Most kinds of figures that become columns.
_MOST = 40


def unmelted(table: pa.Table) -> tuple[pa.Table, list[ReadingNote]]:
    """The table with a column per metric, where its rows are figures of several kinds.

    Only where one column names figures, of which some are scores, and the other columns say of
    several rows that they are of one answer.
    """
    metric, value = _column(table, FIGURE_NAMES), _column(table, FIGURE_VALUES)
    if metric is None or value is None or not _are_figures(table, metric, value):
        return table, []
    rest = [n for n in table.column_names if n not in (metric, value) and n[:1] != "("]
    kinds = _kinds(table, metric)
    if not rest or set(rest) & set(kinds):
        return table, []
    rows = pa.table({name: texts(table.column(name)) for name in rest}).to_pandas()
    answer = rows.groupby(rest, dropna=False, sort=False).ngroup().to_numpy()
    first = np.unique(answer, return_index=True)[1]
    cell = table.column(metric).combine_chunks().dictionary_encode()
    code = np.asarray(cell.indices.fill_null(-1))
    pairs = np.unique(answer * (len(kinds) + 1) + code)
    if len(pairs) < table.num_rows or table.num_rows < 1.5 * len(first):
        return table, []
    made = table.select([n for n in table.column_names if n not in (metric, value)]).take(first)
    for number, kind in enumerate(cell.dictionary.to_pylist()):
        own = np.flatnonzero(code == number)
        place = np.full(len(first), -1)
        place[answer[own]] = own
        made = made.append_column(kind, table.column(value).take(pa.array(place, mask=place < 0)))
    says = f"each row is one figure: the {len(kinds)} values of {metric!r} are taken for columns"
    return made, [ReadingNote("choice", says, 0, (), "score")]


def _kinds(table: pa.Table, metric: str) -> list[str]:
    return [item for item in pc.unique(table.column(metric)).to_pylist() if item]


def _are_figures(table: pa.Table, metric: str, value: str) -> bool:
    """Whether a column names figures of answers, scores among them, and another holds them."""
    if metric == value or not pa.types.is_string(table.column(metric).type):
        return False
    kinds = _kinds(table, metric)
    scores = any(rank_of(kind, "score") is not None for kind in kinds)
    return scores and 2 <= len(kinds) <= _MOST and bool(some(table.column(value), 1))


def _column(table: pa.Table, names: tuple[str, ...]) -> str | None:
    return next((n for want in names for n in table.column_names if plain(n) == want), None)
