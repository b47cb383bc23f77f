"""Hidden states: right means, whole shards, resumable runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate import signals as hidden_states
from routeyard.pipelines.evaluate.signals import ABOUT, fingerprint, pooled, write_hidden_states
from routeyard.schemas import CONTRACTS

PROMPTS = ["What is 2 + 2?", "fox", "The capital of France is Paris. " * 3, "B", "long " * 200]


def queries(prompts=PROMPTS):
    return pa.table({"query_id": [f"q{i}" for i in range(len(prompts))], "prompt": prompts})


def read(folder):
    files = sorted(folder.glob("part-*.parquet"))
    return CONTRACTS["hidden_states"].check(pa.concat_tables([pq.read_table(f) for f in files]))


def test_pooled_equals_one_prompt_at_a_time(loaded):
    import torch

    found = pooled(loaded, PROMPTS, batch_size=5)
    assert found.shape == (5, 3, 16)
    for i, prompt in enumerate(PROMPTS):
        ids = loaded.tokenizer(prompt)["input_ids"][: loaded.max_length]
        with torch.inference_mode():
            states = loaded.model(torch.tensor([ids]), output_hidden_states=True).hidden_states
        expected = np.stack([s[0].mean(0).numpy() for s in states])
        np.testing.assert_allclose(found[i], expected, rtol=1e-4, atol=1e-5)


def test_a_chat_model_reads_prompts_as_it_is_served_them(loaded, tmp_path):

    plain = write_hidden_states(queries(), loaded, tmp_path / "plain", identity={}, shard_size=9)
    template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>"
    loaded.tokenizer.chat_template = template
    try:
        chat = write_hidden_states(queries(), loaded, tmp_path / "chat", identity={}, shard_size=9)
        found = pooled(loaded, PROMPTS[:1])
    finally:
        loaded.tokenizer.chat_template = None
    assert (plain.form, chat.form) == ("plain", "chat")
    wrapped = pooled(loaded, [f"<|user|>{PROMPTS[0]}<|assistant|>"])
    np.testing.assert_allclose(found, wrapped, rtol=1e-4, atol=1e-5)
    assert not np.allclose(found, pooled(loaded, PROMPTS[:1]))
    with pytest.raises(BadInput):  # states of two forms are not mixed
        write_hidden_states(queries(), loaded, tmp_path / "chat", identity={}, shard_size=9)


def test_every_layer_of_any_causal_model(loaded_llama, llama, tmp_path):
    said = write_hidden_states(
        queries(), loaded_llama, tmp_path, identity={"model": fingerprint(str(llama))}, shard_size=2
    )
    assert (said.written, said.reused, said.layers, said.width) == (3, 0, 3, 8)
    assert said.truncated == 1
    table = read(tmp_path)
    assert table.num_rows == 5 * 4
    assert table.column("layer").to_pylist()[:4] == [0, 1, 2, 3]
    assert set(table.column("model_id").to_pylist()) == {"tiny-llama"}


def test_a_stopped_run_goes_on_with_the_next_shard(loaded, tmp_path, monkeypatch):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    write_hidden_states(queries(), loaded, whole, identity={}, shard_size=2)

    real, calls = hidden_states.pooled, []

    def interrupted(*arguments, **keywords):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **keywords)

    monkeypatch.setattr(hidden_states, "pooled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_hidden_states(queries(), loaded, stopped, identity={}, shard_size=2)
    assert len(list(stopped.glob("*.parquet"))) == 1
    said = write_hidden_states(queries(), loaded, stopped, identity={}, shard_size=2)
    assert (said.written, said.reused) == (2, 1)
    assert len(calls) == 4  # the finished shard was not computed again
    for file in whole.iterdir():
        assert (stopped / file.name).read_bytes() == file.read_bytes()


def test_another_run_does_not_mix_into_the_folder(loaded, tmp_path):
    write_hidden_states(queries(), loaded, tmp_path, identity={"model": "a"})
    with pytest.raises(BadInput, match="model was 'a', now 'b'"):
        write_hidden_states(queries(), loaded, tmp_path, identity={"model": "b"})
    with pytest.raises(BadInput, match="queries"):
        write_hidden_states(queries(PROMPTS[:2]), loaded, tmp_path, identity={"model": "a"})
    (tmp_path / ABOUT).unlink()
    with pytest.raises(BadInput, match="holds shards"):
        write_hidden_states(queries(), loaded, tmp_path, identity={"model": "a"})


def test_fingerprint_follows_the_files(gpt2, llama):
    assert fingerprint(str(gpt2)) == fingerprint(str(gpt2)) != fingerprint(str(llama))
    assert fingerprint("owner/model") == "owner/model"
