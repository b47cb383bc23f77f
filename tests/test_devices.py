"""Where models are computed: placement, batches and fingerprints, with a stand-in for a GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.tasks.curate import embed_queries, inputs_of
from routeyard.flows.workspace import BuildContext, StageResult
from routeyard.pipelines.common import encoders, machine
from routeyard.pipelines.common.encoders import embed
from routeyard.pipelines.common.errors import BadInput
from routeyard.schemas.recipe import CurationRule, Embed
from tests.entailment.conftest import LABELS, save_nli
from tests.scorers.test_bartscore import make as tiny_bart
from tests.tuning.conftest import tiny_encoder

torch = pytest.importorskip("torch")
from tests.support.stand_in_gpu import StandIn, stand_in_gpu  # noqa: E402  # it imports torch

#: Tokens that the tiny encoder reads.
WINDOW = 32
WORDS = ["red", "green", "blue", "one", "two", "three"]
TEXTS = [" ".join(WORDS[: 1 + k % 6] * (1 + k % 9)) + f" {k}" for k in range(700)]


def questions(texts: list[str] = TEXTS) -> pa.Table:
    names = [f"q{k}" for k in range(len(texts))]
    return pa.table({"query_id": names, "question": texts, "choices": [[]] * len(texts)})


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_encoder(tmp_path_factory.mktemp("encoders") / "tiny", dropout=0.0))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandIn]:
    with stand_in_gpu(monkeypatch, tmp_path) as mode:
        yield mode


def vectors(table: pa.Table) -> np.ndarray:
    return np.array(table["vector"].to_pylist(), dtype=np.float64)


def test_without_a_driver_no_torch_is_imported_and_auto_is_the_cpu() -> None:
    code = (
        "import sys; from routeyard.pipelines.common.machine import device_of; "
        "print(device_of(), device_of('cpu'), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cpu", "cpu", "False"]


def test_a_device_that_is_missing_is_named_with_those_that_are_there() -> None:
    with pytest.raises(BadInput, match=r"there is no device 'cuda:7' here"):
        machine.device_of("cuda:7")


def test_openvino_refuses_another_device_and_takes_the_cpu_by_itself(gpu: StandIn) -> None:
    assert encoders.device_for("minilm@openvino") == "cpu"
    with pytest.raises(BadInput, match="OpenVINO computes on the CPU"):
        encoders.device_for("minilm@openvino", "cuda")


def test_a_gpu_gets_texts_of_like_length_within_its_tokens(
    gpu: StandIn, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SentenceTransformer

    monkeypatch.setattr(encoders, "AT_ONCE", 1024)
    batches: list[list[int]] = []
    own = SentenceTransformer.preprocess

    def seen(self, texts, *args, **how):
        batches.append([len(text) for text in texts])
        return own(self, texts, *args, **how)

    on_cpu = embed(questions(), encoder=tiny, cache=tmp_path / "cache", device="cpu")
    monkeypatch.setattr(SentenceTransformer, "preprocess", seen)
    placed = gpu.placed.total()
    done: list[tuple[int, int]] = []
    on_gpu = embed(
        questions(), encoder=tiny, cache=tmp_path / "cache", on_progress=lambda *n: done.append(n)
    )
    assert gpu.placed.total() > placed
    assert done == [(512, 700), (700, 700)]
    assert sum(map(len, batches)) == 700
    for lengths in batches:
        assert len(lengths) * min(WINDOW, max(lengths) + 2) <= 1024
        assert lengths == sorted(lengths, reverse=True)
    # Of two files of the cache, each cut as on the CPU, under a folder of the device.
    assert on_gpu["query_id"] == on_cpu["query_id"]
    assert on_gpu["encoder"] == on_cpu["encoder"]
    assert on_gpu["seen_chars"] == on_cpu["seen_chars"]
    assert (vectors(on_gpu) * vectors(on_cpu)).sum(axis=1).min() > 1 - 1e-5
    folders = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert len(folders) == 2
    assert folders[1] == f"{folders[0]}-cuda"


def test_a_batch_that_memory_is_too_small_for_is_halved(
    gpu: StandIn, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SentenceTransformer

    own, most = SentenceTransformer.encode, 5

    def small(self, texts, **how):
        if how["batch_size"] > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return own(self, texts, **how)

    whole = embed(questions(TEXTS[:40]), encoder=tiny, cache=tmp_path / "a")
    monkeypatch.setattr(SentenceTransformer, "encode", small)
    parts = embed(questions(TEXTS[:40]), encoder=tiny, cache=tmp_path / "b")
    assert np.abs(vectors(whole) - vectors(parts)).max() < 1e-6
    most = 0
    with pytest.raises(encoders.SourceError, match="the memory of cuda is too small"):
        embed(questions(TEXTS[:40]), encoder=tiny, cache=tmp_path / "c")


def test_bfloat16_is_used_where_the_encoder_is_named_so_and_nowhere_else(
    tiny: str, tmp_path: Path
) -> None:
    plain = embed(questions(TEXTS[:20]), encoder=tiny, cache=tmp_path)
    half = embed(questions(TEXTS[:20]), encoder=f"{tiny}@bf16", cache=tmp_path)
    assert set(plain["encoder"].to_pylist()) == {f"{tiny}:float32"}
    assert set(half["encoder"].to_pylist()) == {f"{tiny}:bfloat16"}
    cosines = (vectors(plain) * vectors(half)).sum(axis=1)
    assert 0.99 < cosines.min() < 1 - 1e-7
    assert np.abs(np.linalg.norm(vectors(half), axis=1) - 1).max() < 1e-6


def test_device_and_precision_are_figures_of_the_stage_and_its_fingerprint_knows_the_device(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "routeyard.flows.tasks.curate.read", lambda done, name: questions(TEXTS[:9])
    )
    queries = StageResult(
        stage="ingest", fingerprint="f", folder=str(tmp_path / "q"), reused=True, figures={}
    )
    context = BuildContext("b", tmp_path, tmp_path)

    def stage(device: str, encoder: str = tiny):
        return embed_queries(context, embed=Embed(encoder=encoder, device=device), queries=queries)

    cpu = stage("auto")
    assert cpu.parameters == {"encoder": tiny}  # as where nobody knows of devices
    assert cpu.parameters == stage("cpu").parameters
    with stand_in_gpu(monkeypatch, tmp_path):
        gpu = stage("auto")
        assert gpu.parameters == {"encoder": tiny, "device": "cuda"}
        assert stage("cpu").parameters == cpu.parameters
        figures = gpu.make(tmp_path)
    assert figures == {
        "embeddings": 9, "truncated": 1, "device": "cuda", "precision": "float32",
    }  # fmt: skip
    assert stage("cpu", f"{tiny}@bf16").make(tmp_path)["precision"] == "bfloat16"


def test_language_models_cross_encoders_and_bartscore_are_placed_too(
    gpu: StandIn, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    from routeyard.pipelines.curate.entailment import CrossEncoderEntailment, Pair
    from routeyard.pipelines.evaluate.signals import load, negative_log_likelihoods, pooled
    from routeyard.pipelines.label.scorers.bartscore import SCORER
    from routeyard.pipelines.label.scorers.scorer import ScoringInput
    from tests.signals.conftest import save_tokenizer

    def moved(work) -> int:
        before = gpu.placed.total()
        work()
        return gpu.placed.total() - before

    size = len(save_tokenizer(tmp_path / "gpt2"))
    GPT2LMHeadModel(
        GPT2Config(vocab_size=size, n_positions=64, n_embd=16, n_layer=1, n_head=2)
    ).save_pretrained(tmp_path / "gpt2")
    assert moved(lambda: load(str(tmp_path / "gpt2"), device="cpu")) == 0
    local = load(str(tmp_path / "gpt2"))
    assert local.device == "cuda"
    assert moved(lambda: pooled(local, ["What is 2 + 2?", "Paris"])) > 0
    assert moved(lambda: negative_log_likelihoods(local, ["Paris is the capital."])) > 0

    nli = str(save_nli(tmp_path / "nli", LABELS))
    pair = Pair("what is the capital of france", "paris", "london")
    assert moved(lambda: CrossEncoderEntailment(nli).entails([pair])) > 0
    assert moved(lambda: CrossEncoderEntailment(nli, device="cpu").entails([pair])) == 0
    rule = CurationRule(rule="preference", backend={"name": "cross_encoder", "model": nli})
    assert inputs_of([rule])["entailment.0.device"] == "cuda"

    bart = str(tiny_bart(tmp_path / "bart"))
    read = {
        device: SCORER.read(
            ScoringInput("", ("dog",), options={"model": bart, "device": device}), "cat sat"
        )
        for device in ("cpu", "cuda")
    }
    assert read["cuda"].score == pytest.approx(read["cpu"].score, abs=1e-6)
    assert read["cuda"].reason.endswith(" on cuda")


def test_memory_of_vectors_does_not_grow_with_the_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from routeyard.pipelines.common import arrays

    monkeypatch.setattr(arrays, "LARGE", 1)
    monkeypatch.setattr(
        encoders,
        "load",
        lambda *_: (
            lambda texts: (
                np.eye(1, 8, dtype=np.float32).repeat(len(texts), 0),
                [None] * len(texts),
            )
        ),
    )
    todo = encoders.lacking(questions(), encoder="e", cache=tmp_path, device="cpu")
    held = pa.total_allocated_bytes()
    assert todo.num_rows == 700
    assert len(set(todo["text"].to_pylist())) == 700
    table = embed(questions(), encoder="e", cache=tmp_path, device="cpu")
    assert table.num_rows == 700
    assert pa.total_allocated_bytes() - held < 200_000
