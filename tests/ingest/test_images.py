"""Images that sources name: what is read of a file, what is refused, what a question becomes."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.demo.server import look, png
from routeyard.pipelines.collect.plan import ModelPrompts, plan
from routeyard.pipelines.collect.request import RequestSettings
from routeyard.pipelines.common import image_files
from routeyard.pipelines.common.encoders import text_of, unseen_of
from routeyard.pipelines.common.errors import BadInput, RecipeError, SourceError
from routeyard.pipelines.common.image_files import describe_image
from routeyard.pipelines.curate.dedup import dedup
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.images import images_table
from routeyard.schemas import EMBEDDINGS
from routeyard.schemas.images import images_of
from routeyard.schemas.recipe import Collect, Pool, Source

RED, BLUE = png("red", 1, 40), png("blue", 2, 41)
FIELDS = {"id": "id", "question": "q", "references": "a", "images": "image"}


def source(**more: Any) -> Source:
    said = {"name": "s", "path": "q.jsonl", "scorer": "em", "fields": FIELDS, "license": "CC0-1.0"}
    return Source.model_validate({**said, "images_in": "pics", "task": "t", **more})


def write(folder: Path, *images: Any, question: str = "What is this?") -> Path:
    (folder / "pics").mkdir(exist_ok=True)
    (folder / "pics" / "red.png").write_bytes(RED)
    (folder / "pics" / "blue.png").write_bytes(BLUE)
    rows = [{"id": n, "q": question, "a": "x", "image": one} for n, one in enumerate(images)]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def queries(folder: Path, **more: Any) -> pa.Table:
    return ingest([source(**more)], base=folder, images=folder / "kept").queries


def jpeg(width: int, height: int) -> bytes:
    # A comment first, whose bytes look like a size: segments have to be stepped over.
    comment = b"\xff\xfe" + struct.pack(">H", 8) + b"\xff\xc0\x00\x11\x08\x00"
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + b"\0" * 10
    return b"\xff\xd8" + comment + frame


def webp(form: bytes, payload: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 12 + len(payload)) + b"WEBP" + form + b"\0" * 4 + payload


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png("red", 1, 70)[:33].replace(struct.pack(">II", 70, 70), struct.pack(">II", 70, 50)),
         "image/png"),
        (b"GIF89a" + struct.pack("<HH", 70, 50), "image/gif"),
        (jpeg(70, 50), "image/jpeg"),
        (webp(b"VP8 ", b"\0" * 6 + struct.pack("<HH", 70 | 0x4000, 50)), "image/webp"),
        (webp(b"VP8L", b"\x2f" + struct.pack("<I", 69 | 49 << 14)), "image/webp"),
        (webp(b"VP8X", b"\0" * 4 + b"\x45\0\0\x31\0\0"), "image/webp"),
    ],
)  # fmt: skip
def test_kind_and_size_come_from_the_header(data: bytes, kind: str) -> None:
    assert describe_image(data, "here") == (kind, 70, 50)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "expected a PNG"),
        (b"", "expected a PNG"),
        (b"\x89PNG\r\n\x1a\n", "expected a PNG"),
        (b"\xff\xd8\xff" + b"\xff" * 50, "expected a PNG"),
        (b"RIFF\0\0\0\0WAVEfmt ", "expected a PNG"),
        # A few bytes that would be 40 GB once they are decoded.
        (b"GIF89a" + struct.pack("<HH", 65535, 65535), "pixels"),
        (b"GIF89a" + struct.pack("<HH", 0, 7), "pixels"),
    ],
)
def test_what_is_no_image_of_a_usual_size_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(SourceError, match=says):
        describe_image(data, "here")


def test_a_question_names_its_images_and_marks_them(tmp_path: Path) -> None:
    stated = {"path": "blue.png", "license": "MIT", "sha256": hashlib.sha256(BLUE).hexdigest()}
    table = queries(write(tmp_path, "red.png", [stated, "red.png"], None))
    one, two, none = table.to_pylist()
    (red,) = images_of(one["metadata"])
    digest = hashlib.sha256(RED).hexdigest()
    assert (red.reference, red.sha256, red.bytes) == ("red.png", digest, len(RED))
    assert (red.media_type, red.width, red.height, red.license) == ("image/png", 40, 40, "CC0-1.0")
    assert one["question"] == f"[image:{digest[:20]}]\nWhat is this?"
    assert one["prompt"].startswith(one["question"])
    assert [image.license for image in images_of(two["metadata"])] == ["MIT", "CC0-1.0"]
    assert "image" not in none["question"]
    assert (tmp_path / "kept" / digest).read_bytes() == RED
    shown = [row for row in images_table(table).to_pylist() if row["query_id"] == two["query_id"]]
    named = [(row["place"], row["reference"]) for row in shown]
    assert named == [(0, "blue.png"), (1, "red.png")]


def test_images_go_where_the_question_names_them(tmp_path: Path) -> None:
    folder = write(
        tmp_path, ["red.png", "blue.png"], question="Is <image 2> darker than <image 3>?"
    )
    (row,) = queries(folder).to_pylist()
    red, blue = (image.mark for image in images_of(row["metadata"]))
    # The first is named nowhere and comes first; there is no third.
    assert row["question"] == f"{red}\nIs {blue} darker than <image 3>?"


def test_without_images_nothing_changes(tmp_path: Path) -> None:
    plain = write(tmp_path, None)
    with_field = queries(plain)
    without = queries(plain, fields={k: v for k, v in FIELDS.items() if k != "images"})
    assert with_field.equals(without)
    model = Pool.model_validate({"models": [{"model_id": "m", "image_tokens": 85}]}).models[0]
    (message,) = ModelPrompts(with_field, model, Collect()).messages(0)
    assert message == {"role": "user", "content": with_field.column("prompt")[0].as_py()}


def test_bytes_of_a_column_are_images_too(tmp_path: Path) -> None:
    # As the hub's data sets store them.
    write(tmp_path, None)
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    image = pa.array([{"bytes": RED, "path": "1.png"}, {"bytes": BLUE, "path": None}], kind)
    columns = {"id": ["1", "2"], "q": ["What?"] * 2, "a": ["x"] * 2, "image": image}
    pq.write_table(pa.table(columns), tmp_path / "q.parquet")
    table = queries(tmp_path, path="q.parquet", images_in=None)
    assert images_table(table).column("reference").to_pylist().count(None) == 1
    assert sorted(path.read_bytes() for path in (tmp_path / "kept").iterdir()) == sorted(
        [RED, BLUE]
    )


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("missing.png", "cannot be read: No such file"),
        ("../q.jsonl", "leads out of"),
        ("/etc/passwd", "leads out of"),
        ("out.png", "leads out of"),
        ("a\0b", "leads out of"),
        ("", None),
        ("text.png", "expected a PNG"),
        ("pipe.png", "no plain file"),
        (".", "no plain file"),
        ({"path": "red.png", "sha256": "0" * 64}, "its row states"),
        ("ftp://host/a.png", "neither a path nor an address"),
        ("https://user:pw@host/a.png", "neither a path nor an address"),
        ("data:image/png;base64,AA", "neither a path nor an address"),
        (7, "found int"),
        ({"name": "red.png"}, "found dict"),
    ],
)
def test_a_wrong_image_stops_with_its_place(tmp_path: Path, image: Any, says: str | None) -> None:
    folder = write(tmp_path, image)
    (folder / "pics" / "text.png").write_text("not a picture")
    (folder / "pics" / "out.png").symlink_to(folder / "q.jsonl")
    os.mkfifo(folder / "pics" / "pipe.png")
    if says is None:
        assert "image" not in queries(folder).column("question")[0].as_py()
        return
    with pytest.raises(SourceError, match=says) as stopped:
        queries(folder)
    assert stopped.value.where
    assert stopped.value.next_step


def test_an_oversize_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_files, "MOST_BYTES", len(RED) - 1)
    with pytest.raises(SourceError, match="at most"):
        queries(write(tmp_path, "red.png"))


@pytest.mark.parametrize(("folder", "says"), [(None, "no folder of images"), ("nil", "no folder")])
def test_a_path_needs_a_folder(tmp_path: Path, folder: str | None, says: str) -> None:
    with pytest.raises(SourceError, match=says):
        queries(write(tmp_path, "red.png"), images_in=folder)


def test_an_address_is_named_and_never_fetched(tmp_path: Path) -> None:
    (row,) = queries(write(tmp_path, "https://example.org/a.png")).to_pylist()
    (image,) = images_of(row["metadata"])
    assert (image.sha256, image.bytes, image.reference) == (None, None, "https://example.org/a.png")
    model = Pool.model_validate({"models": [{"model_id": "m", "image_tokens": 85}]}).models[0]
    (message,) = ModelPrompts(pa.Table.from_pylist([row]), model, Collect()).messages(0)
    assert message["content"][0].sent()["image_url"]["url"] == "https://example.org/a.png"


def test_questions_about_other_images_are_no_duplicates(tmp_path: Path) -> None:
    # One text, one vector: only the images tell them apart.
    table = queries(write(tmp_path, "red.png", "blue.png", "red.png"))
    assert len(set(table.column("query_id").to_pylist())) == 3
    asked = table.select(["question", "choices"]).to_pylist()
    texts = {text_of(row["question"], row["choices"]) for row in asked}
    assert texts == {"[image]\nWhat is this?"}
    rows = [
        {"query_id": query, "encoder": "e", "vector": np.array([1.0], np.float32),
         "seen_chars": len(text_of(row["question"], []))}
        for query, row in zip(table.column("query_id").to_pylist(), asked, strict=True)
    ]  # fmt: skip
    embeddings = EMBEDDINGS.from_rows(rows)
    done = dedup({"queries": table, "embeddings": embeddings})
    assert (done.kept["queries"].num_rows, done.removed.num_rows) == (2, 1)
    assert all(unseen_of(row["question"], []) for row in asked)


def pool(**model: Any) -> Pool:
    provider = {"name": "p", "base_url": "http://127.0.0.1:9/v1"}
    return Pool.model_validate({"models": [{"model_id": "m", **model}], "providers": [provider]})


def test_what_a_model_makes_of_images_has_to_be_said(tmp_path: Path) -> None:
    table = queries(write(tmp_path, "red.png", None))
    with pytest.raises(RecipeError, match="1 questions have images") as stopped:
        plan(table, pool(), Collect(), None)
    assert "image_tokens" in str(stopped.value.next_step)
    with pytest.raises(RecipeError, match="batches"):
        plan(table, pool(image_tokens=85), Collect(transport="batch"), None)
    framed = pool(image_tokens=85, prompt="{{ question[30:] }}").models[0]
    with pytest.raises(RecipeError, match="leaves out the image"):
        ModelPrompts(table, framed, Collect()).messages(0)


def test_images_count_in_plans_and_budgets(tmp_path: Path) -> None:
    table = queries(write(tmp_path, ["red.png", "blue.png"], None))
    price = {"price_in": 1.0, "price_out": 1.0, "price_date": "2026-01-01"}
    settings = Collect(max_tokens=10)
    seen, blind = (
        plan(table, pool(image_tokens=count, **price), settings, None).models[0].estimate
        for count in (1000, 0)
    )
    assert seen.prompt_tokens - blind.prompt_tokens == 2000
    assert seen.worst_cost_usd is not None
    assert blind.worst_cost_usd is not None
    assert seen.worst_cost_usd - blind.worst_cost_usd == pytest.approx(2000e-6)


def test_a_request_is_known_by_its_image_and_not_by_its_name(tmp_path: Path) -> None:
    folder = write(tmp_path, "red.png", "copy.png", "blue.png")
    (folder / "pics" / "copy.png").write_bytes(RED)
    asks = ModelPrompts(queries(folder), pool(image_tokens=85).models[0], Collect())
    settings = RequestSettings("p", "/chat/completions", "m", {})
    one, same, other = (settings.request_hash(asks.messages(row)) for row in range(3))
    assert one == same != other


def test_a_changed_file_is_never_sent(tmp_path: Path) -> None:
    table = queries(write(tmp_path, "red.png"))
    model = pool(image_tokens=85).models[0]
    (message,) = ModelPrompts(table, model, Collect(), tmp_path / "kept").messages(0)
    part = message["content"][0]
    assert part.sent()["image_url"]["url"].startswith("data:image/png;base64,")
    (tmp_path / "kept" / hashlib.sha256(RED).hexdigest()).write_bytes(BLUE)
    with pytest.raises(BadInput, match="changed there"):
        part.sent()


def test_the_demo_draws_what_it_reads() -> None:
    assert look(png("green", 3, 50)) == ("green", 3)
