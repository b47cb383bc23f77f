"""Recipes that a stranger wrote to do harm: each must be refused by an error that says where."""

from __future__ import annotations

import json
from typing import Any

KEY = "sk-live-0123456789abcdef0123456789abcdef"
_SOURCE: dict[str, Any] = {
    "name": "s",
    "path": "q.jsonl",
    "scorer": "numeric",
    "fields": {"question": "question", "references": "answer"},
}
_MODEL: dict[str, Any] = {"model_id": "m"}
_PRICED = _MODEL | {"price_in": 1, "price_out": 1, "price_date": "2026-01-01"}
_PROVIDER: dict[str, Any] = {"name": "p", "base_url": "http://127.0.0.1:9/v1"}
GOOD: dict[str, Any] = {
    "name": "tiny",
    "version": "1.0.0",
    "sources": [_SOURCE],
    "pool": {"models": [_MODEL], "providers": [_PROVIDER]},
}


def changed(**keys: Any) -> str:
    return json.dumps(GOOD | keys)


def source(**keys: Any) -> str:
    return changed(sources=[_SOURCE | keys])


def question(template: str) -> str:
    return source(fields=_SOURCE["fields"] | {"question": template})


def model(**keys: Any) -> str:
    return changed(pool={"models": [_MODEL | keys], "providers": [_PROVIDER]})


def provider(**keys: Any) -> str:
    return changed(pool={"models": [_MODEL], "providers": [_PROVIDER | keys]})


def collect(**keys: Any) -> str:
    return changed(collect=keys)


def raw(key: str, value: str) -> str:
    """A value that JSON has no sign for."""
    return changed(**{key: "PLACE"}).replace('"PLACE"', value)


def priced(value: str) -> str:
    text = model(price_in="PLACE", price_out=1, price_date="2026-01-01")
    return text.replace('"PLACE"', value)


_TEXT = json.dumps(GOOD)
HOSTILE: dict[str, str | bytes] = {
    # YAML
    "not closed": "name: [unclosed",
    "a list": "- a list",
    "empty": "",
    "remarks only": "# nothing\n",
    "two documents": f"{_TEXT}\n---\n{_TEXT}\n",
    "a tag that runs code": "!!python/object/apply:os.system ['touch /tmp/was-here']",
    "a tag that makes an object": "name: !!python/name:os.system ''",
    "a tag of its own": "name: !secret x",
    "aliases": "a: &x [1]\nb: *x",
    "aliases that explode": "a: &a [1,1]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)},*{chr(97 + i)}]\n" for i in range(9)),
    "a merge of keys": "base: &b {name: x}\nmore:\n  <<: *b\n",
    "nested fifty thousand deep": "[" * 50_000,
    "mappings fifty thousand deep": "{a: " * 50_000,
    "keys that stand twice": "name: other\n"
    + "\n".join(f"{key}: {json.dumps(value)}" for key, value in GOOD.items()),
    "keys that are lists": "? [name]\n: x\n",
    "keys that are numbers": "1: x\n2: y\n",
    "not UTF-8": b"name: \xff\xfe",
    "UTF-16 without its mark": _TEXT.encode("utf-16-le"),
    "a sign of nothing": _TEXT.replace("tiny", "ti\\u0000ny"),
    "six million bytes": "#" + "x" * 6_000_000,
    # names that become files
    **{
        f"the name {name!r}"[:40]: changed(name=name)
        for name in (
            "../out",
            "/abs",
            "a/b",
            "..",
            ".",
            "",
            "a\\b",
            "x" * 300,
            "a\nb",
            "\x1b[2Jx",
            "\u202egnp",
            "-rf",
            "$HOME",
            "a b",
            "*",
            None,
            7,
            ["x"],
        )
    },
    **{
        f"the version {version!r}": changed(version=version)
        for version in ("../1.0.0", "1.0", "1.0.0/..", "1.0.0\n", "v1", "", 1.0, "9" * 400)
    },
    # numbers
    "a temperature without end": raw("collect", "{temperature: .inf}"),
    "a temperature that is no number": raw("collect", "{temperature: .nan}"),
    "a budget without end": raw("collect", "{budget: {usd: .inf}}"),
    "a budget that is no number": raw("collect", "{budget: {usd: .nan}}"),
    "a negative budget": collect(budget={"usd": -1}),
    "a budget for nobody": collect(budget={"models": {"m7": 1}}, max_tokens=5),
    "a deadline without end": raw("collect", "{deadline_s: .inf}"),
    "no calls at once": collect(limits={"concurrency": 0}),
    "a billion calls at once": collect(limits={"concurrency": 10**9}),
    "a billion attempts": collect(retry={"attempts": 10**9}),
    "negative tokens": collect(max_tokens=-1),
    "tokens beyond any number": raw("collect", "{max_tokens: " + "9" * 500 + "}"),
    "a negative price": model(price_in=-1, price_out=1, price_date="2026-01-01"),
    "a price that is no number": model(
        price_in="PLACE", price_out=1, price_date="2026-01-01"
    ).replace('"PLACE"', ".nan"),
    "a price without end": model(price_in="PLACE", price_out=1, price_date="2026-01-01").replace(
        '"PLACE"', ".inf"
    ),
    "a price without a day": model(price_in=1),
    "splits beyond the whole": changed(split={"train": 0.9, "validation": 0.9, "test": 0.9}),
    "a negative split": changed(split={"train": -1, "validation": 1, "test": 1}),
    "a split that is no number": raw("split", "{train: .nan, validation: 0.1, test: 0.1}"),
    "a threshold that is no number": raw("curate", "[{rule: dedup, threshold: .nan}]"),
    # parts that do not exist
    "an unknown key": changed(run="rm -rf /"),
    "an unknown key deep inside": source(exec="id"),
    "a rule that is a path": changed(curate=[{"rule": "os:system"}]),
    "a scorer that is a path": source(scorer="os:system"),
    "a scorer of another folder": source(scorer="../../evil"),
    "a rule's parameter that is none": changed(curate=[{"rule": "dedup", "__class__": 1}]),
    "a catalogue entry of another folder": changed(
        sources=[{"name": "s", "catalog": "../../../etc/passwd"}]
    ),
    "two models of one name": changed(pool={"models": [_MODEL, _MODEL]}),
    "a model without a name": model(model_id=""),
    "a pool file of the system": changed(pool={"file": "/etc/passwd"}),
    "a pool file that is a folder": changed(pool={"file": "/"}),
    # addresses and keys
    "an address that is a file": provider(base_url="file:///etc/passwd"),
    "an address that is a script": provider(base_url="javascript:alert(1)"),
    "an address of another kind": provider(base_url="ftp://127.0.0.1/"),
    "an address without a host": provider(base_url="http://"),
    "an address that does not end": provider(base_url="http://[::1"),
    "an address of two lines": provider(base_url="http://a/\r\nX-Key: 1"),
    "a password in an address": provider(base_url="http://me:secret@127.0.0.1/v1"),
    "a key in a header": provider(headers={"Authorization": f"Bearer {KEY}"}),
    "a key in another header": provider(headers={"X-Custom": KEY}),
    "a header of two lines": provider(headers={"X-A": "b\r\nX-C: d"}),
    "a key for the name of a variable": provider(api_key_env=KEY),
    "a key in an address": provider(base_url=f"http://127.0.0.1/v1?key={KEY}"),
    # files
    "a source that is a device": source(path="/dev/zero", format="jsonl"),
    "a source that never ends": source(path="/dev/urandom", format="csv"),
    "a source that is a folder": source(path="/etc"),
    "a source of no known kind": source(path="/etc/passwd"),
    "a source that is a memory": source(path="/proc/self/mem", format="jsonl"),
    "a source behind a secret": source(path="${FAULTS_SECRET}/q.jsonl"),
    # mappings
    "a mapping that climbs classes": question("{{ ''.__class__.__mro__[1].__subclasses__() }}"),
    "a mapping that reads a file": question("{% include '/etc/passwd' %}"),
    "a mapping that imports": question("{{ cycler.__init__.__globals__.os.popen('id').read() }}"),
    "a mapping that takes all memory": question("{{ 'a' * 10 ** 10 }}"),
    "a mapping that pads": question("{{ '%1000000000d' | format(1) }}"),
    "a mapping that counts for ever": question(
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    ),
    "a mapping of a great power": question("{{ 9 ** 9 ** 9 }}"),
    "a mapping that calls itself": question(
        "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}"
    ),
    "a mapping that is not closed": question("{{ question "),
    "a filter without end": source(where={"question": {"matches": "(a+)+$"}}),
}
