"""Servers nobody here wrote, asked through the same path.

`transformers serve` with a tiny random model made on the spot (needs accelerate,
fastapi and uvicorn), and the litellm proxy with mocked answers, which knows `n`
and answers 429. litellm drags other libraries back a major version, so it lives
in an environment of its own: ROUTEYARD_LITELLM names its executable.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.collect import collect, responses_table
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Collect, Retry
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.asking import table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(words: list[str], port: int, health: str, log: Path, **env: str) -> Iterator[str]:
    """Run a server until it answers; gives its base URL."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            words, stdout=out, stderr=out, env={**os.environ, "HF_HUB_OFFLINE": "1", **env}
        )
        try:
            deadline = time.monotonic() + 600
            while True:
                assert process.poll() is None, log.read_text()[-2000:]
                assert time.monotonic() < deadline, log.read_text()[-2000:]
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}{health}", timeout=5)
                    break
                except (urllib.error.URLError, OSError):
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def tiny_model(folder: Path) -> str:
    """A random two-layer Llama and a tokenizer of bytes; says nonsense at once."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<pad>", "<bos>", "<eos>"]
    vocabulary = {token: number for number, token in enumerate([*special, *letters])}
    bytes_ = Tokenizer(models.BPE(vocabulary, merges=[]))
    bytes_.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytes_, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>"
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


def test_transformers_serve(tmp_path: Path) -> None:
    for name in ("accelerate", "fastapi", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"`transformers serve` needs {name}, which is not installed")
    model = tiny_model(tmp_path / "tiny")
    port = free_port()
    command = Path(sys.executable).with_name("transformers")
    words = [str(command), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (
        serving(words, port, "/health", tmp_path / "log") as url,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        pool = Pool(
            models=[Model(model_id="tiny", endpoint_model=model)],
            providers=[Provider(name="transformers", base_url=url)],
        )
        for stream in (False, True):
            # The server always streams or never, as asked; the questions differ.
            questions = table([f"{'streamed' if stream else 'whole'} {i}" for i in range(4)])
            settings = Collect(max_tokens=12, temperature=0.7, deadline_s=300, stream=stream)
            made = plan(questions, pool, settings, ledger)
            collected = collect(made, ledger)
            rows = responses_table(made, ledger).to_pylist()
            assert collected.complete, (collected, rows, (tmp_path / "log").read_text()[-3000:])
            assert {row["status"] for row in rows} <= {"ok", "truncated"}
            assert all(row["text"] is not None for row in rows)
            assert all((row["ttft_s"] is not None) == stream for row in rows)
            assert plan(questions, pool, settings, ledger).missing == 0


def litellm() -> str:
    found = os.environ.get("ROUTEYARD_LITELLM") or shutil.which("litellm")
    if not found:
        pytest.skip("ROUTEYARD_LITELLM names no litellm executable (an environment of its own)")
    return found


PROXY = """
model_list:
  - model_name: mocked
    litellm_params: {model: openai/mocked, api_key: none, mock_response: "The answer is 42."}
  - model_name: limited
    litellm_params: {model: openai/limited, api_key: none, mock_response: "litellm.RateLimitError"}
  - model_name: broken
    litellm_params:
      {model: openai/broken, api_key: none, mock_response: "litellm.InternalServerError"}
litellm_settings: {num_retries: 0}
"""


def test_litellm_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = litellm()
    config = tmp_path / "config.yaml"
    config.write_text(PROXY)
    port = free_port()
    # It refuses to start without one; asked with the same, from the environment.
    monkeypatch.setenv("LITELLM_MASTER_KEY", f"sk-{secrets.token_hex(32)}")
    words = [executable, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with (
        serving(words, port, "/health/liveliness", tmp_path / "log") as url,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        pool = Pool(
            models=[Model(model_id=name) for name in ("mocked", "limited", "broken")],
            providers=[
                Provider(
                    name="litellm",
                    base_url=url,
                    api_key_env="LITELLM_MASTER_KEY",
                    supports_n=True,
                )
            ],
        )
        settings: dict[str, Any] = {
            "samples": 3,
            "temperature": 0.5,
            "logprobs": True,
            "retry": Retry(attempts=2, first_wait_s=0.05, pause_after=3),
        }
        made = plan(table([f"q{i}" for i in range(10)]), pool, Collect(**settings), ledger)
        collected = collect(made, ledger)
        rows = responses_table(made, ledger).to_pylist()
    mocked = [row for row in rows if row["model_id"] == "mocked"]
    assert len(mocked) == 30
    assert {row["text"] for row in mocked} == {"The answer is 42."}
    # One request gave three answers.
    assert collected.figures["models"]["mocked"]["attempts"] == 10
    assert "http_429" in collected.figures["models"]["limited"]["errors"]
    assert "http_500" in collected.figures["models"]["broken"]["errors"]
    assert set(collected.paused) == {"limited", "broken"}
