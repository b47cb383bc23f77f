"""Tiny, randomly initialised causal language models, saved where real ones would lie."""

from __future__ import annotations

import pytest

TEXT = [
    "What is the capital of France? Paris is the capital of France.",
    "2 + 2 = 4, and 3 * 3 = 9; the answer is 9.",
    "Answer: B. The quick brown fox jumps over the lazy dog, 17 times.",
]


def save_tokenizer(folder):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", bos_token="<|end|>", model_max_length=64
    )
    fast.save_pretrained(folder)
    return fast


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory):
    """Folder of a GPT-2 with 2 layers of width 16 and 64 positions."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("gpt2") / "tiny-gpt2"
    size = len(save_tokenizer(folder))
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=size, n_positions=64, n_embd=16, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0, initializer_range=0.5,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def llama(tmp_path_factory):
    """Folder of a Llama with 3 layers of width 8: another architecture through the same code."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("llama") / "tiny-llama"
    size = len(save_tokenizer(folder))
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=size, hidden_size=8, intermediate_size=16, num_hidden_layers=3,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
        bos_token_id=0, eos_token_id=0, pad_token_id=0, initializer_range=0.5,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def loaded(gpt2):
    from routeyard.pipelines.evaluate.signals import load

    return load(str(gpt2), device="cpu")


@pytest.fixture(scope="session")
def loaded_llama(llama):
    from routeyard.pipelines.evaluate.signals import load

    return load(str(llama), device="cpu")
