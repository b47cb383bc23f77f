"""A tiny, randomly initialised NLI cross-encoder, saved where a real one would lie."""

from __future__ import annotations

import pytest

LABELS = ("contradiction", "neutral", "entailment")


def save_nli(folder, labels, seed=3):
    """A DeBERTa-v2 sequence classifier (the MNLI family) with a word-level tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import (
        DebertaV2Config,
        DebertaV2ForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *["what", "is", "the", "capital", "of", "france"]]
    words += [*["paris", "london", "rome", "it", "a", "city", "1", "2", "3", "4", "."], "?"]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        unk_token="[UNK]", model_max_length=32,
    )  # fmt: skip
    torch.manual_seed(seed)
    config = DebertaV2Config(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, type_vocab_size=2,
        initializer_range=1.0, id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    DebertaV2ForSequenceClassification(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def nli(tmp_path_factory):
    return save_nli(tmp_path_factory.mktemp("nli") / "tiny-nli", LABELS)
