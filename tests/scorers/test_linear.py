"""No output takes a scorer more than a second, however repetitive."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from pipelines.scorers import SCORERS
from pipelines.scorers.scorer import Asked

sys.path.insert(0, str(Path(__file__).parent))
import adversarial

ASKED = {
    "mcq": Asked("?", ("A",), ("Rome", "Paris, the city", "New York")),
    "superglue_copa": Asked("?", ("1",), ("it rained", "it snowed")),
    "superglue_cb": Asked("?", ("neutral",)),
}


def _slowest(name: str, size: int, every: int = 1) -> tuple[float, str]:
    read = SCORERS.get(name).read
    asked = ASKED.get(name, Asked("what percent?", ("18",)))
    worst = (0.0, "")
    for piece, output in adversarial.outputs(size)[::every]:
        began = time.process_time()
        read(asked, output)
        worst = max(worst, (time.process_time() - began, piece))
    return worst


@pytest.mark.parametrize("name", ["mcq", "numeric", "math", "em", "f1", "superglue_cb"])
def test_fourteen_thousand_characters(name: str) -> None:
    seconds, piece = _slowest(name, 14_000, every=5)
    assert seconds < 1, f"{name} took {seconds:.2f} s on {piece!r}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mcq", "numeric", "math", "em", "f1"])
def test_a_million_characters(name: str) -> None:
    seconds, piece = _slowest(name, 1_000_000)
    assert seconds < 1, f"{name} took {seconds:.2f} s on {piece!r}"


@pytest.mark.parametrize("name", ["rouge_l", "meteor"])
def test_whole_texts_of_ten_thousand_words(name: str) -> None:
    read = SCORERS.get(name).read
    text = "the cat sat on a mat while many dogs ran " * 1_000
    read(Asked("", ("warm up",)), "warm up")  # WordNet is loaded once
    began = time.process_time()
    assert read(Asked("", (text,)), text).outcome == "correct"
    assert time.process_time() - began < 2
