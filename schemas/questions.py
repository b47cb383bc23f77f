"""Questions that are one: near-equal texts, groups, and tests that are also in train."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from routeyard.schemas.contracts import StoredTable, statements
from routeyard.schemas.release import WITHHELD

# Questions that are one but for their spelling: near-equal texts, found without vectors.

Codes = NDArray[np.int64]

#: Key of `queries.metadata` that holds the value of `fields.group`.
GROUP = "question_group"

#: Numbers, words, and signs of formulas.
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|[-+*/=<>^%$\\]", re.UNICODE)
_ASCII_WORD = re.compile(r"[a-z]+|[0-9]+(?:[.,][0-9]+)*|[-+*/=<>^%$\\]")
#: Words that change a question when they are added, or taken away.
_TELLING = frozenset({
    "not", "no", "never", "none", "without", "except", "least", "most", "more", "less", "false",
    "true", "incorrect", "correct",
})  # fmt: skip
#: Words in which two texts may differ, at one place.
_MOST = 2
#: Texts of one candidate bucket that are compared with one another.
_BUCKET = 60
#: Words of a text in which a spelling may differ.
_LONG = 20
#: Share of the texts from which a word that they hold tells nothing.
_SHARE = 0.2
#: Fewest words of a text that is compared at all.
_FEWEST = 8
#: Hash of the last texts and groups → what was found: stages of a build ask the same, and between
#: them the audit asks in its own order.
_FOUND: dict[bytes, Codes] = {}
_NEAR_KEPT = 2


def words_of(text: str) -> list[str]:
    """Words, numbers and signs of formulas of a text in lower case, without punctuation."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def near_equal(a: Sequence[str], b: Sequence[str], *, long: bool | None = None) -> bool:
    """Whether two texts, as words, differ in spelling only: at one place, by two words at most.

    Spaces within words never count. In texts of 20 words and more, a small word more or less and a
    letter more, less or other in a word of five letters do not count either; a number, a negation,
    a sign or another word make another question. In short texts they may name something else
    (Austria, Australia).

    Args:
        long: whether the texts are that long; by default by all of their words.

    >>> near_equal("find the data set".split(), "find the dataset".split())
    True
    >>> near_equal("the capital of austria".split(), "the capital of australia".split())
    False
    """
    if abs(len(a) - len(b)) > _MOST or a == b:
        return a == b
    start = 0
    shortest = min(len(a), len(b))
    while start < shortest and a[start] == b[start]:
        start += 1
    end = 0
    while end < shortest - start and a[-1 - end] == b[-1 - end]:
        end += 1
    left, right = a[start : len(a) - end], b[start : len(b) - end]
    if "".join(left) == "".join(right):
        return True
    if max(len(left), len(right)) > _MOST or not (shortest >= _LONG if long is None else long):
        return False
    if any(not word.isalpha() or word in _TELLING for word in (*left, *right)):
        return False
    if not left or not right:
        # A word more or less that says nothing alone.
        return all(len(word) <= 3 for word in (*left, *right))
    return len(left) == len(right) and all(map(_misspelt, left, right))


def _misspelt(a: str, b: str) -> bool:
    """One letter more, less, other, or two exchanged, in words of five letters or more."""
    if a == b:
        return True
    if min(len(a), len(b)) < 5 or abs(len(a) - len(b)) > 1:
        return False
    k = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    same = (a[k + 1 :] == b[k + 1 :], a[k + 1 :] == b[k:], a[k:] == b[k + 1 :])
    return any(same) or (a[k + 2 :] == b[k + 2 :] and a[k : k + 2] == b[k : k + 2][::-1])


def same_question(texts: Sequence[str | None], groups: Codes) -> Codes:
    """(n,) groups joined where a text of one is near-equal to a text of another.

    Words that a fifth of the texts hold, as those of an instruction, make no text long.
    Candidates share their first or their last half, word for word: two texts that differ at one
    place do. Linear in the texts; of a bucket of more than 60 texts, neighbours are compared.

    Args:
        groups: (n,) number of the group of equal texts that each is in.
    """
    asked = blake2b(groups.tobytes())
    for text in texts:
        asked.update((text or "").encode("utf-8", "surrogatepass") + b"\xff")
    if (key := asked.digest()) not in _FOUND:
        while len(_FOUND) >= _NEAR_KEPT:
            del _FOUND[next(iter(_FOUND))]
        _FOUND[key] = _joined(texts, groups)
    return _FOUND[key].copy()


def _joined(texts: Sequence[str | None], groups: Codes) -> Codes:
    firsts = np.unique(groups, return_index=True)[1]
    words = {int(k): words_of(texts[k] or "") for k in firsts}
    often = Counter[str]()
    for own in words.values():
        often.update(set(own))
    common = {word for word, count in often.items() if count > max(_SHARE * len(words), 3)}

    @cache
    def long(k: int) -> bool:
        return len(words[k]) - sum(map(common.__contains__, words[k])) >= _LONG

    buckets: dict[tuple[int, int], list[int]] = defaultdict(list)
    for k, own in words.items():
        if len(own) < _FEWEST:
            continue
        half = len(own) // 2
        for length in {half, half - 1, half - 2}:
            buckets[0, hash(tuple(own[:length]))].append(k)
            buckets[1, hash(tuple(own[-length:]))].append(k)
    parent = np.arange(int(groups.max(initial=0)) + 1)

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = int(parent[k])
        return k

    for members in buckets.values():
        if len(members) < 2:
            continue
        order = sorted(members, key=lambda k: (words[k], k))
        reach = len(order) if len(order) <= _BUCKET else 4
        for at, k in enumerate(order):
            for other in order[at + 1 : at + 1 + reach]:
                a, b = root(int(groups[k])), root(int(groups[other]))
                if a != b and near_equal(words[k], words[other], long=long(k) and long(other)):
                    parent[max(a, b)] = min(a, b)
    joined = np.array([root(k) for k in range(len(parent))], dtype=np.int64)
    return np.asarray(np.unique(joined[groups], return_inverse=True)[1].astype(np.int64))


def looked_for_duplicates(recipe: Mapping[str, Any]) -> bool:
    """Whether a recipe looks for near-duplicates; else an empty table of them says nothing."""
    rules = recipe.get("curate")  # of a stranger's manifest: any value
    result = rules if isinstance(rules, Sequence) else ()
    return any(isinstance(rule, Mapping) and rule.get("rule") == "dedup" for rule in result)


def same_words(text: str) -> str:
    """A question's words: case and space put aside, in Unicode's composed form.

    Punctuation stays: `2+3` and `2-3` are different questions.

    >>> same_words("What  is\\nA?") == same_words("what is a?")
    True
    """
    return " ".join(unicodedata.normalize("NFC", text).split()).casefold()


def group_of(duplicates: pa.Table) -> dict[str, str]:
    """query_id → its group; what any encoder or threshold links is linked."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for query, group in zip(
        *(duplicates.column(c).to_pylist() for c in ("query_id", "group_id")), strict=True
    ):
        a, b = sorted((root(f"q|{query}"), root(f"g|{group}")))
        parent[b] = a
    return {name[2:]: root(name) for name in list(parent) if name.startswith("q|")}


def marks_of(texts: pa.Array) -> pa.Array:
    """16 bytes for each text, equal where `same_words` are; a null is as empty text."""
    words = (same_words(text or "").encode() for text in texts.to_pylist())
    return pa.array([blake2b(own, digest_size=16).digest() for own in words], pa.binary(16))


def leaked_tests(
    queries: pa.Table | StoredTable, splits: pa.Table, groups: Mapping[str, str] | None
) -> list[dict[str, Any]]:
    """Per scheme: test questions, and how many of them are also in train.

    Args:
        queries: of those on disk only a part is in memory.
        groups: query_id → group of near-duplicates; None when nobody looked, and
            `near_duplicates` is then null.

    Returns:
        Rows of `RESULTS["leaks"]`. `verbatim` counts test questions with the same
        words as a train question, and is null where texts are withheld;
        `near_duplicates` those in a group with one.
    """
    import duckdb

    columns = ["query_id", "prompt"]
    if isinstance(queries, StoredTable):
        parts: Iterable[pa.RecordBatch] = queries.batches(columns)
    else:
        parts = queries.select(columns).to_batches()
    schema = pa.schema({"query_id": pa.string(), "mark": pa.binary(16), "withheld": pa.bool_()})
    marked = [
        pa.record_batch(
            [ids.cast(pa.string()), marks_of(prompts), pc.equal(prompts, WITHHELD)], schema=schema
        )
        for ids, prompts in (part.columns for part in parts)
    ]
    pairs: list[Any] = [*(groups or {}).items()] or [(None, None)]
    linked = pa.table([*zip(*pairs, strict=True)], ["query_id", "named"])
    sql = statements(Path(__file__).with_suffix(".sql"))["leaks"]
    with duckdb.connect() as connection:
        connection.register("questions", pa.Table.from_batches(marked, schema))
        connection.register("splits", splits.select(["query_id", "scheme", "split"]))
        connection.register("linked", linked)
        rows: Any = connection.sql(sql, params={"looked": groups is not None}).to_arrow_table()
        return list(rows.to_pylist())
