"""The contract of every table of a release (`contracts.yaml`), and the columns of results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from routeyard.schemas.contract import Contract, columns, rules

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _read(name: str) -> dict[str, Any]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.load(text, _LOADER)  # noqa: S506  a safe loader
    return found


def _declared() -> Iterator[Contract]:
    made: dict[str, Contract] = {}
    for name, told in _read("contracts.yaml").items():
        for column, one in told["columns"].items():
            if isinstance(one, dict):
                other = made.get(one.get("as_in", ""))
                told["columns"][column] = other[column] if other else (one["is"], one["values"])
        told |= {"columns": columns(**told["columns"]), "rules": rules(**told.get("rules", {}))}
        made[name] = Contract(name, **told)
        yield made[name]


#: By name, in the order in which a release lists them.
CONTRACTS = {contract.name: contract for contract in _declared()}
#: Arrow schemas of the tables of results beside a release, by name.
RESULTS = {
    name: pa.schema([one.to_field() for one in columns(**told)])
    for name, told in _read("results.yaml").items()
}
