"""Questions about pictures: what models are sent, what a release says, what `verify` finds."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import routeyard
from routeyard.datacards.site.shards import questions
from routeyard.flows.build import run_build
from routeyard.flows.cli import run
from routeyard.flows.demo.server import IMAGE_TOKENS, PicturePool, routes
from tests.loopback import in_thread


@pytest.fixture(scope="module")
def pictures() -> PicturePool:
    return PicturePool()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, pictures: PicturePool) -> tuple[Path, Path]:
    yard = tmp_path_factory.mktemp("yard")
    with in_thread(routes(pictures)) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROUTEYARD_PICTURES_URL", f"{url}/v1")
        done = run_build("image_demo", str(yard))
        again = run_build("image_demo", str(yard))
    assert again["release"]["status"] == "unchanged"
    return yard, Path(done["release"]["path"])


def rows(release: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(release / f"data/{table}.parquet").to_pylist()
    return found


def test_each_model_is_sent_each_picture_once_and_whole(
    built: tuple[Path, Path], pictures: PicturePool
) -> None:
    yard, _ = built
    # Two builds, and nothing asked twice.
    assert pictures.asked == {"sim-reader": 96, "sim-squint": 96, "sim-eye": 96}
    files = sorted((yard / "demo/pictures/pictures").iterdir())
    sent = [
        base64.b64decode(part["image_url"]["url"].removeprefix("data:image/png;base64,"))
        for content in pictures.content
        if isinstance(content, list)
        for part in content
        if part["type"] == "image_url"
    ]
    assert sorted(sent) == sorted(2 * [path.read_bytes() for path in files])
    # The picture comes before its question, whose text has no mark left.
    example = next(content for content in pictures.content if isinstance(content, list))
    assert [part["type"] for part in example] == ["image_url", "text"]
    assert example[1]["text"].startswith("Picture ")
    assert all(
        "[image:" not in json.dumps(one) for one in pictures.content if isinstance(one, list)
    )
    # A model of texts gets the mark, so that it is told that something is missing.
    blind = [content for content in pictures.content if isinstance(content, str)]
    assert len(blind) == 96
    assert all(text.startswith("[image:") for text in blind)


def test_tokens_of_images_are_metered_and_paid(built: tuple[Path, Path]) -> None:
    answers = rows(built[1], "responses")
    by_model: dict[str, list[int]] = {}
    for row in answers:
        by_model.setdefault(row["model_id"], []).append(row["prompt_tokens"])
    difference = sum(by_model["sim-eye"]) - sum(by_model["sim-reader"])
    # The mark that only the model of texts reads has some tokens as well.
    assert 0.6 * 96 * IMAGE_TOKENS < difference < 96 * IMAGE_TOKENS
    eye = next(row for row in answers if row["model_id"] == "sim-eye")
    price = (eye["prompt_tokens"] * 2.5 + eye["completion_tokens"] * 10) / 1e6
    assert eye["cost_usd"] == pytest.approx(price)


def test_the_release_names_images_and_who_did_not_see_them(built: tuple[Path, Path]) -> None:
    shown = rows(built[1], "images")
    assert len({row["sha256"] for row in shown}) == len(shown) == 96
    assert {row["license"] for row in shown} == {"Apache-2.0"}
    assert not list(built[1].rglob("*.png"))[len(list(built[1].glob("plots/*.png"))) :]
    card = (built[1] / "README.md").read_text()
    assert "96 questions have 96 images" in card
    assert "saw no image" in card
    assert "Sent the texts only, without images: sim-reader." in card


def test_verify_compares_files_with_their_hashes(
    built: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    yard, release = built
    folder = yard / "demo/pictures"
    one = folder / "pictures/05.png"
    kept = one.read_bytes()
    one.write_bytes(kept + b"x")
    (folder / "pictures/06.png").rename(tmp_path / "06.png")
    try:
        assert run(["verify", str(release), "--images", str(folder)]) == 3
        told = capsys.readouterr().out
        assert "2 of 96 images are not files in " in told
        assert "05.png is another file" in told
        assert "06.png is missing" in told
    finally:
        one.write_bytes(kept)
        (tmp_path / "06.png").rename(folder / "pictures/06.png")
    assert run(["verify", str(release), "--images", str(tmp_path / "nowhere")]) == 2


def test_evaluate_says_that_no_router_saw_them(built: tuple[Path, Path]) -> None:
    done = routeyard.evaluate(built[1], ["random"], cache=None, resamples=100, pair_routers=False)
    assert [
        line for line in done.facts["missing"] if line.startswith("48 of 48 questions have images")
    ]


def test_pages_name_an_image_with_its_hash_and_licence(built: tuple[Path, Path]) -> None:
    first = min(rows(built[1], "images"), key=lambda row: str(row["query_id"]))
    with routeyard.open_release(built[1]) as release:
        ids, models = [first["query_id"]], ["sim-eye"]
        (text,) = questions(
            release.sql, ids, models, has=["images"], longest=100, longest_prompt=2_000
        )
    shown = json.loads(text)
    named = f"{first['reference']}: image/png, {first['width']} × {first['height']} pixels"
    assert named in shown["prompt"]
    assert f"SHA-256 {first['sha256']}, licence Apache-2.0" in shown["prompt"]
    assert shown["length"] == len(shown["prompt"])
