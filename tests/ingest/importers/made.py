"""Files in the layouts of public repositories, and what importers make of them."""

from __future__ import annotations

import copy
import csv
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import ImportReport, run_import

LAYOUTS = yaml.safe_load(Path(__file__).with_name("layouts.yaml").read_text("utf-8"))
RECORDS: dict[str, dict[str, Any]] = LAYOUTS["records"]


def imported(name: str, path: Path, folder: Path) -> tuple[ImportReport, list[dict], list[dict]]:
    """The report, the questions and the answers of an import."""
    done = run_import(IMPORTERS.get(name), path, folder / "yard" / "imports" / name)
    tables = (pq.read_table(done.folder / f"{one}.parquet") for one in ("queries", "responses"))
    questions, answers = (table.to_pylist() for table in tables)
    return done, questions, answers


def changed(record: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A record with other values at some paths of keys; `gone` takes the key away."""
    result = copy.deepcopy(dict(record))
    for path, value in changes.items():
        *outer, name = path.split(".") if path not in record else [path]
        place = result
        for key in outer:
            place = place[key]
        place.pop(name, None) if value == "gone" else place.update({name: value})
    return result


def write(path: Path, importer: str, content: Any, packed: str | None = None) -> Path:
    """A file of rows, each the importer's record with changes, in the form of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        value: Any = [
            row if isinstance(row, str) else changed(RECORDS[importer], row) for row in content
        ]
    elif "header" in content:
        value = changed(LAYOUTS["headers"][importer], content["header"])
        if "rows" in content:
            rows = [changed(RECORDS[importer], row) for row in content["rows"]]
            value[LAYOUTS["under"][importer]] = rows
    elif "states" in content:
        states = [changed(LAYOUTS["headers"][importer], one) for one in content["states"]]
        value = {"request_states": states}
    else:
        value = content.get("document")
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(value), path)
    elif path.suffix == ".csv":
        write_csv(path, value)
    elif path.suffix == ".zip":
        zipped(path, {f"{path.stem}.json": json.dumps(value).encode()}, packed)
    elif path.suffix == ".eval":
        samples = value.pop("samples")
        files = {"_journal/start.json": {"version": 2, "eval": value["eval"]}, "summaries.json": []}
        files |= {f"samples/{one['id']}_epoch_1.json": one for one in samples}
        files["header.json"] = value
        zipped(path, {name: json.dumps(one).encode() for name, one in files.items()}, packed)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in value), encoding="utf-8")
    else:
        text = content["text"] if "text" in content else json.dumps(value, indent=2)
        path.write_text(text, encoding="utf-8")
    return path


def write_case(name: str, folder: Path) -> Path:
    """What the importer of a case reads."""
    case = LAYOUTS["cases"][name]
    for path, content in case["files"].items():
        write(folder / path, case["importer"], content, case.get("packed"))
    return folder / case.get("read", "")


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def zipped(
    path: Path, files: dict[str, bytes], packed: str | None = None, *, size: int | None = None
) -> None:
    """A zip; with `zstd` packed as newer Inspect packs its logs."""
    if packed is None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return
    body, directory = b"", b""
    for name, content in files.items():
        data = pa.compress(content, codec=packed, asbytes=True)
        shared = struct.pack(
            "<HHHHHIIIHH",
            *(63, 0, 93, 0, 33, zlib.crc32(content), len(data), size or len(content)),
            *(len(name), 0),
        )
        place = len(body)
        body += b"PK\x03\x04" + shared + name.encode() + data
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + shared
        directory += struct.pack("<HHHII", 0, 0, 0, 0, place) + name.encode()
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + end)
