"""A tiny random transformer as an encoder; questions in which the order of two words decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.schemas import LABELS, MODELS, QUERIES, SPLITS

FILLER = ("tree", "river", "castle", "king", "treaty", "limit", "stone", "cloud", "garden")
#: Whichever of these two comes first decides who is right.
DECIDE = ("alpha", "omega")


def tiny_encoder(folder: Path, *, hidden: int = 32, layers: int = 2, dropout: float = 0.1) -> Path:
    """A BERT of random weights that averages its last states, as sentence-transformers reads it."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from routeyard.pipelines.common.encoders import as_encoder

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *DECIDE, *FILLER]
    raw = Tokenizer(models.WordLevel({w: k for k, w in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", model_max_length=32,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(words), hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=2 * hidden, max_position_embeddings=32, pad_token_id=0,
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(config)
    as_encoder(model, tokenizer, folder, pooling="mean", window=32)
    return folder


def planted(folder: Path, n: int = 360, seed: int = 0) -> Path:
    """A release: `left` is right when alpha comes first, `right` when omega does, `weak` rarely."""
    rng = np.random.default_rng(seed)
    names = ("left", "right", "weak")
    ids = [f"q{seed}{i:019x}" for i in range(n)]
    texts, right = [], np.empty((n, 3), dtype=bool)
    for i in range(n):
        first = int(rng.integers(0, 2))
        filler = rng.choice(FILLER, int(rng.integers(2, 7))).tolist()
        at = sorted(rng.choice(len(filler) + 1, 2).tolist())
        filler.insert(at[0], DECIDE[first])
        filler.insert(at[1] + 1, DECIDE[1 - first])
        texts.append(" ".join(filler))
        right[i] = rng.random(3) < (0.95 - 0.9 * first, 0.05 + 0.9 * first, 0.1)
    parts = ("train", "train", "train", "validation", "test", "train")
    tables = {
        "queries": QUERIES.from_rows(
            {
                "query_id": q, "source": "s", "source_id": q, "task": "order", "domain": "general",
                "question": text, "prompt": f"Say: {text}", "choices": [], "references": ["1"],
                "scorer": "em", "metadata": "{}",
            }
            for q, text in zip(ids, texts, strict=True)
        ),
        "models": MODELS.from_rows(
            {"model_id": m, "kind": "real", "simulated": True, "params_b": 1.0 + k}
            for k, m in enumerate(names)
        ),
        "labels": LABELS.from_rows(
            {
                "query_id": q, "model_id": m, "score": float(right[i, k]),
                "correct": bool(right[i, k]), "decided_by": "em", "contested": False,
                "n_samples": 1,
            }
            for i, q in enumerate(ids)
            for k, m in enumerate(names)
            # One model has not answered one question in nine: masked, never wrong.
            if (i % 9, k) != (0, 2)
        ),
        "splits": SPLITS.from_rows(
            {"scheme": "dense", "query_id": q, "split": parts[i % 6]} for i, q in enumerate(ids)
        ),
    }  # fmt: skip
    (folder / "data").mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(pa.table(table), folder / "data" / f"{name}.parquet")
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("encoders") / "tiny")


@pytest.fixture(scope="session")
def still(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without dropout: sums over pieces of a batch are those over the whole."""
    return tiny_encoder(tmp_path_factory.mktemp("encoders") / "still", dropout=0.0)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("release") / "order" / "1.0.0")
