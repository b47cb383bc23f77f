"""Tables with columns for each model, as one row per answer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.columns import same_types
from routeyard.pipelines.ingest.results.roles import FAMILY, LANGUAGES, looks_like_money, rank_of
from routeyard.pipelines.ingest.results.values import (
    Column,
    amount,
    factor,
    is_right_or_wrong,
    numbers,
    plain,
    scale_of,
    snake_case,
)

#: Roles that a column of one model can have.
FIELDS = (
    "score",
    "text",
    "cost",
    "prompt_tokens",
    "completion_tokens",
    "latency",
    "status",
    "error",
)
_SIGNS = r"[\s:|/.\-_]+"
#: What is written before or after the model's name.
_WORDS = (
    r"(?:is[ _-]?)?(?:scores?|acc(?:uracy)?|correct|grades?|quality|performance|labels?|eval|"
    r"passed|resolved|success|reward|(?:total_?|model_?)?(?:response|answer|output|generation|cost|price|"
    r"latency|duration|tokens|error|status)(?:_usd|_cents?|_micro_?(?:usd|dollars)|_ms|_s|_sec(?:ond)?s)?|(?:input|prompt|output|completion)_tokens|"
    rf"{'|'.join(word for words in LANGUAGES.values() for word in words)})"
)
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
    patterned = all(found["score"] != model for model, found in scored.items())
    known = [model for model in scored if FAMILY.search(model)]
    columns = [one["score"] for one in scored.values()]
    flat = patterned and len(known) == len(scored) and not any("." in one for one in columns)
    if len(scored) < 2 or not (flat or _beside_one_another(table, columns)):
        return {}, False
    if not known and _has_own_score(table, scored):
        return {}, False
    several = all(len(found) >= 2 for found in scored.values())
    if patterned or several or 2 * len(known) >= len(scored):
        return scored, bool(known) or patterned
    return ({}, False) if _are_metrics(list(scored)) else (scored, False)


def _scored_models(table: pa.Table) -> dict[str, dict[str, str]]:
    """Model → field → column, of models with scores."""
    fields, bare = _fields_of_models(table)
    scored = {
        model: found for model, found in fields.items()
        if "score" in found and _are_scores(table.column(found["score"]))
    }  # fmt: skip
    return scored or {name: {"score": name} for name in bare if len(bare) >= 2}


def _are_scores(column: Column) -> bool:
    """Whether values can be scores, or are all missing."""
    found = numbers(column)
    return found is not None and (
        bool((found != found).all()) or scale_of(found, "rate") is not None
    )


def _has_own_score(table: pa.Table, models: dict[str, dict[str, str]]) -> bool:
    """Whether a row has its own score beside nested figures, which are then parts of it."""
    used = {column for fields in models.values() for column in fields.values()}
    nested = all("." in found["score"] for found in models.values())
    own = [n for n in table.column_names if n not in used and "." not in n and n[:1] != "("]
    return nested and any(
        (rank_of(n, "score") or 99) < 20 and _are_scores(table.column(n)) for n in own
    )


def _beside_one_another(table: pa.Table, names: Sequence[str]) -> bool:
    """Whether some row has two of these columns: records of several kinds have one each."""
    there = [table.column(name).is_valid().cast(pa.int32()) for name in names]
    total = there[0]
    for one in there[1:]:
        total = pc.add(total, one)
    return (pc.max(total).as_py() or 0) >= 2


def _fields_of_models(table: pa.Table) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Model → field → column by the columns' names, and columns that can be scores of a model."""
    fields: dict[str, dict[str, str]] = defaultdict(dict)
    bare: list[str] = []
    for name in table.column_names:
        model, field = _split(name, table.column_names)
        if model is not None and field is not None:
            fields[model].setdefault(field, name)
        elif ("." not in name or _ends_with_model(name)) and _is_score(table, name):
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
    scored = [model for model, found in fields.items() if "score" in found]
    models = {one.lower(): one for one in scored or bare}
    used = {column for one in scored for column in fields[one].values()}
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
    held = {name: found for name in bare if (found := model_in(name, models))}
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
    words = [found.span() for found in re.finditer(r"[^\W_]+", name)][:_WORDS_OF_NAME]
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
    found = FAMILY.search(name)
    return found is not None and re.search(r"\.[A-Za-z_]", name[found.end() :]) is None


def _without_parent(fields: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Models without the one key that all of them are under, as `results.gpt-4` does."""
    parents = {model.partition(".")[0] for model in fields}
    parent = next(iter(parents), "")
    inside = len(fields) >= 2 and len(parents) == 1 and not FAMILY.search(parent)
    short = {model.partition(".")[2]: found for model, found in fields.items()}
    whole = inside and "" not in short and len(short) == len(fields)
    return defaultdict(dict, short) if whole else fields


def _split(name: str, names: Sequence[str]) -> tuple[str | None, str | None]:
    """(model, field) that a column's name states."""
    before, _, leaf = name.rpartition(".")
    if before and (field := _field(leaf)) and not _field(before.rpartition(".")[2]):
        tops = {n.rpartition(".")[0] for n in names if n.rpartition(".")[2] == leaf}
        if len(tops) >= 2:
            return before, field
    for pattern in (_AFTER, _BEFORE):
        found = pattern.match(name)
        if found and (field := _field(found["field"] or found["inside"])):
            model = found["model"]
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


#: Names of figures of which less is better.
_LOWER = re.compile(
    r"(?:^|[\s_.:|/-])(?:rank(?:ing)?|position|place|loss|nll|ppl|perplexity|wer|cer|mae|mse|rmse|"
    r"errors?(?:[_ -]?rate)?)$", re.IGNORECASE,
)  # fmt: skip


def _is_score(table: pa.Table, name: str) -> bool:
    """Whether a column can be a model's scores: no id, no setting, no other known figure."""
    if _LOWER.search(name):
        return False
    column = table.column(name)
    found = numbers(column)
    if found is None or scale_of(found, "rate") is None:
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
    kept = table.select(rest)
    n = table.num_rows
    wanted = sorted({field for fields in models.values() for field in fields})
    parts = []
    for model, fields in models.items():
        part = kept.append_column("(model)", pa.array([model] * n, pa.string()))
        for field in wanted:
            column = fields.get(field)
            values = (
                pa.nulls(n)
                if column is None
                else _in_units(table.column(column), _rest(column, model), field)
            )
            part = part.append_column(f"({field})", values)
        parts.append(_of_its_files(part, [f"({field})" for field in wanted]))
    return pa.concat_tables(same_types(parts), promote_options="permissive")


def _rest(column: str, model: str) -> str:
    """A column's name without its model's, which may hold a dot."""
    found = model_in(column, {model.lower(): model})
    return column if found is None else found[1]


def _of_its_files(part: pa.Table, fields: Sequence[str]) -> pa.Table:
    """A model's rows without those of files that say nothing of it, which lack its columns."""
    if "(at)" not in part.column_names:
        return part
    there = part.column(fields[0]).is_valid()
    for field in fields[1:]:
        there = pc.or_(there, part.column(field).is_valid())
    files = pc.replace_substring_regex(part.column("(at)"), r"(?:, row \d+|\[\d+\])$", "")
    return part.filter(pc.is_in(files, value_set=pc.unique(files.filter(there))))


def _in_units(column: Column, name: str, field: str) -> Column:
    """A column in USD or seconds, where its name states another unit."""
    by = factor(name, field)
    values = None if by == 1 else numbers(column, amount)
    return column if values is None else pa.array(values * by, from_pandas=True)
