"""`bartscore` with a tiny random BART made here: likelihoods, not quality."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.label.scorers.bartscore import bartscore, read
from routeyard.pipelines.label.scorers.scorer import ScoringInput


def make(folder: Path) -> Path:
    """A BART of one layer and eight words, its weights drawn at random."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<s>", "<pad>", "</s>", "<unk>", "cat", "dog", "sat", "ran"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        unk_token="<unk>",
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=len(words), d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, max_position_embeddings=32, bos_token_id=0, pad_token_id=1,
        eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    transformers.BartForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    return make(tmp_path_factory.mktemp("bart"))


@pytest.mark.slow
def test_the_score_is_the_mean_token_likelihood_of_the_best_reference(tiny: Path) -> None:
    one, other = (bartscore("cat sat", reference, str(tiny)) for reference in ("dog ran", "sat"))
    assert one < 0
    assert other < 0
    asked = ScoringInput("", ("dog ran", "sat"), options={"model": str(tiny)})
    assert read(asked, "cat sat").score == pytest.approx(math.exp(max(one, other)))
    assert read(asked, " ").outcome == "abstain"
    # Longer than the model's positions: cut, not a crash.
    assert read(asked, "cat " * 500).outcome in ("correct", "incorrect")


@pytest.mark.slow
def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be loaded"):
        bartscore("x", "y", str(tmp_path / "absent"))
