"""The contract of every table that a release can hold; `contracts.yaml` declares them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from routeyard.schemas.contract import Contract, columns, rules

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _declared() -> Iterator[Contract]:
    made: dict[str, Contract] = {}
    text = Path(__file__).with_name("contracts.yaml").read_text(encoding="utf-8")
    for name, told in yaml.load(text, _LOADER).items():  # noqa: S506  a safe loader
        for column, one in told["columns"].items():
            if isinstance(one, dict):
                other = made.get(one.get("as_in", ""))
                told["columns"][column] = other[column] if other else (one["is"], one["values"])
        told |= {"columns": columns(**told["columns"]), "rules": rules(**told.get("rules", {}))}
        made[name] = Contract(name, **told)
        yield made[name]


#: By name, in the order in which a release lists them.
CONTRACTS = {contract.name: contract for contract in _declared()}
