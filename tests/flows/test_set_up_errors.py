"""What a person sees of a wrong key, address, model, network or disk: six lines, and what to do."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import run
from tests.faults.yard import write
from tests.silent.test_wrong_key import Reply, Server, refused, said

PAGE = "<!DOCTYPE html><html><head><title>Not here</title></head><body>...</body></html>"
#: What is wrong → what the server says (without one: nobody is there), exit code, and what the
#: error has to say, the next step among it.
WRONG: dict[str, tuple[Reply | None, int, tuple[str, ...]]] = {
    "key": (
        refused(401, "Incorrect API key provided: sk-0000.", code="invalid_api_key"),
        3,
        ("http_401: Incorrect API key", "sk-0000; correct the key in KEY_TRIED", "command again"),
    ),
    "model": (
        refused(404, "The model `m0` does not exist or you have no access."),
        3,
        ("local/m0, m1, m2: 72", "'endpoint_model'", "same command again"),
    ),
    "path": ((404, PAGE), 3, ("http_404", "correct 'base_url' (http://127.0.0.1", "again")),
    "web page": ((200, PAGE), 1, ("no JSON", "'base_url' (http://127.0.0.1", "/v1", "again")),
    "port": (None, 1, ("nobody answers", "start the server", "'base_url'", "again")),
    "batch": (None, 1, ("nobody answers", "start the server", "'base_url'", "again")),
    "network": (None, 1, ("https://api.nowhere.invalid/v1", "check the network", "again")),
    "no key": (None, 2, ("KEY_TRIED is not set", "export KEY_TRIED=")),
    "disk": (
        said("4"),
        1,
        ("files of 0.1 MB", "have to be left", "free some space", "same command"),
    ),
}


def lines_of(text: str) -> list[str]:
    """The lines of the error as a terminal of 100 columns shows them."""
    error = text[text.index("\nerror: ") + 1 :]
    return [part for line in error.splitlines() for part in textwrap.wrap(line, 100)]


@pytest.fixture
def server() -> Any:
    with Server() as running:
        yield running


@pytest.mark.parametrize("name", WRONG)
def test_an_error_of_six_lines_says_what_to_do(
    name: str, server: Server, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    reply, code, expected = WRONG[name]
    address = server.base_url
    if reply is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    else:
        server.replies = lambda model, prompt, key: reply
    if name == "network":
        address = "https://api.nowhere.invalid/v1"
    provider = {"name": "local", "base_url": address, "api_key_env": "KEY_TRIED"}
    models = [{"model_id": model} for model in ("m0", "m1", "m2")]
    collect = {"max_tokens": 64, "retry": {"attempts": 2, "first_wait_s": 0.01}}
    changes = {"pool": {"providers": [provider], "models": models}, "collect": collect}
    if name == "batch":
        collect["transport"] = "batch"
    recipe = write(tmp_path, {**changes, "label": {}, "curate": []})
    monkeypatch.setenv("KEY_TRIED", "" if name == "no key" else "sk-0123456789")
    words = ["build", str(recipe), "--workspace", str(tmp_path / "yard"), "--until", "collect"]
    if name == "disk":
        limited = ["sh", "-c", 'ulimit -f 200; exec "$@"', "-", sys.executable, "-m", "routeyard"]
        done = subprocess.run([*limited, *words], capture_output=True, text=True)
        ended, told = done.returncode, done.stderr
    else:
        ended, told = run(words), capsys.readouterr().err
    assert ended == code, told
    assert "Traceback" not in told
    # Folders of tests have long names.
    assert len(lines_of(told.replace(str(tmp_path), "here"))) <= 6, told
    for part in expected:
        assert part in told, told
