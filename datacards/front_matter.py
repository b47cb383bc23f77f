"""The YAML head of a card: what a dataset hub and `datasets.load_dataset` read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import yaml

from routeyard.schemas.split_files import SPLITS, config_name, folder_names, split_file
from routeyard.schemas.stored import StoredTable, register
from routeyard.schemas.untrusted_text import visible

#: The hub's size categories of fewer than 10³, 10⁴, … rows.
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
#: SPDX ids the hub writes the same way, in lower case.
_HUB_LICENSES = frozenset(
    {"apache-2.0", "mit", "bsd-3-clause", "cc0-1.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0"}
    | {"cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "odc-by", "gpl-3.0"}
    | {"pddl", "openrail"}
)
_HUB_NAMES = {"odc-by-1.0": "odc-by", "noassertion": "unknown"}


def front_matter(tables: Mapping[str, pa.Table | StoredTable], facts: Mapping[str, Any]) -> str:
    """YAML between two `---` lines.

    `configs` names one configuration per table, and for `outcomes` one per split scheme, so that
    `datasets.load_dataset(<folder>, "outcomes", split="test")` loads it, also without a network.
    `datasets` caches a folder under a hash of `configs` and `dataset_info` and the folder's last
    name, a version: the fingerprint in the descriptions keeps releases apart.
    """
    release = facts["recipe"].get("release") or {}
    # `datasets` cannot load a table without rows, so such a table is no configuration.
    tables = {name: table for name, table in tables.items() if table.num_rows}
    # What router authors load first comes first.
    first = next((name for name in ("outcomes", "labels") if name in tables), None)
    tables = {name: tables[name] for name in sorted(tables, key=lambda name: name != first)}
    configs = _configs(tables, facts.get("files") or {})
    licence, name = hub_license(
        release.get("license"), [source.get("license") for source in facts["sources"]]
    )
    head: dict[str, Any] = {
        "pretty_name": release.get("title") or facts["name"],
        "license": licence,
    }
    if name:
        head["license_name"] = name
    head |= {
        "language": list(release.get("languages") or ["en"]),
        "task_categories": ["text-classification", "question-answering"],
        "annotations_creators": annotators(tables),
        "source_datasets": _sources(facts["sources"]),
        "tags": sorted({"llm-routing", "routeyard", *(release.get("tags") or [])}),
        "size_categories": [size_category(max(t.num_rows for t in tables.values()))],
        "configs": [
            {
                "config_name": config,
                "data_files": [{"split": split, "path": path} for split, path in files.items()],
                **({"default": True} if config == first else {}),
            }
            for config, files in configs.items()
        ],
        "dataset_info": [
            {
                "config_name": config,
                "description": f"{facts['name']} {facts['version']}, content {facts['content']}",
                # No byte sizes: `datasets` does not need them.
                "features": [
                    _feature(field.name, field.type)
                    for field in tables[config.partition("__")[0]].schema
                ],
            }
            for config in configs
        ],
    }
    if release.get("doi"):
        head["doi"] = release["doi"]
    text = yaml.safe_dump(_visible(head), sort_keys=False, allow_unicode=True, width=100)
    return f"---\n{text}---\n"


def _configs(
    tables: Mapping[str, pa.Table | StoredTable], files: Collection[str]
) -> dict[str, dict[str, str]]:
    """Configuration → split → file; a table but `outcomes` is one split, `train`."""
    schemes = outcome_configs(tables, files)
    whole = {name: {"train": f"data/{name}.parquet"} for name in tables}
    return {**whole, **schemes}


def outcome_configs(
    tables: Mapping[str, pa.Table | StoredTable], files: Collection[str]
) -> dict[str, dict[str, str]]:
    """Configuration of `outcomes` → split → its file: `outcomes` for the usual scheme.

    What `datasets` calls the split `all` is every split of a configuration together.
    Empty without a split.
    """
    splits = tables.get("splits")
    if "outcomes" not in tables or splits is None:
        return {}
    rows = splits.read(["scheme"]) if isinstance(splits, StoredTable) else splits
    schemes = set(rows.column("scheme").to_pylist())
    found = {}
    for scheme, folder in folder_names(schemes).items():
        paths = {split: split_file(folder, split) for split in SPLITS}
        if there := {split: path for split, path in paths.items() if path in files}:
            found[config_name(scheme, folder, schemes)] = there
    return found


def _visible(value: Any) -> Any:
    """The same with no sign in any text that turns it around or hides in it."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_visible(key): _visible(one) for key, one in value.items()}
    return [_visible(one) for one in value] if isinstance(value, list | tuple) else value


def annotators(tables: Mapping[str, pa.Table | StoredTable]) -> list[str]:
    """Who made the labels, in the hub's words: `machine-generated`, and `expert-generated`
    where people decided some by hand."""
    if "labels" not in tables:
        return ["no-annotation"]
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        register(connection, "labels", tables["labels"])
        kinds = connection.execute(
            "SELECT DISTINCT decided_by LIKE 'human:%' FROM labels WHERE decided_by IS NOT NULL"
        ).fetchall()
    by_hand = {bool(kind) for (kind,) in kinds}
    names = [(False, "machine-generated"), (True, "expert-generated")]
    return [name for kind, name in names if kind in by_hand] or ["no-annotation"]


def _sources(sources: Sequence[Mapping[str, Any]]) -> list[str]:
    """`original`, and `extended|<hub id>` for every source that is on a hub."""
    hub = sorted({str(s["hub_id"]) for s in sources if s.get("hub_id")})
    own = [] if hub and all(s.get("hub_id") for s in sources) else ["original"]
    return [*own, *(f"extended|{name}" for name in hub)]


def hub_license(own: str | None, of_sources: Sequence[str | None]) -> tuple[str, str | None]:
    """The hub's licence id, and a name for the card when the id is `other`.

    A release without its own licence takes its sources' when they agree;
    nothing stated is `unknown`, never a guess.
    """
    stated = own if own and own != "NOASSERTION" else None
    if stated is None:
        found = {licence or "NOASSERTION" for licence in of_sources}
        if len(found) != 1:
            return ("other", "licences-of-the-sources") if found else ("unknown", None)
        stated = found.pop()
    plain = stated.lower()
    plain = _HUB_NAMES.get(plain, plain)
    if plain in _HUB_LICENSES or plain == "unknown":
        return plain, None
    return "other", re.sub(r"[^a-z0-9.]+", "-", plain).strip("-") or "other"


def size_category(rows: int) -> str:
    """The hub's size category of a number of rows."""
    return next((name for k, name in enumerate(_SIZES, 3) if rows < 10**k), "n>1B")


def _feature(name: str, kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_fixed_size_list(kind):
        item = {"list": _dtype(kind.value_type), "length": kind.list_size}
        return {"name": name, **item}
    if pa.types.is_list(kind):
        return {"name": name, "list": _dtype(kind.value_type)}
    return {"name": name, "dtype": _dtype(kind)}


def _dtype(kind: pa.DataType) -> str:
    names = {"double": "float64", "float": "float32"}
    return names.get(str(kind), str(kind))
