"""A disk that takes no more, whatever says so: what was paid for is kept, and never paid twice."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.calls.loopback import Do, Loopback, answer, completion

ROOT = Path(__file__).parents[2]
#: EDQUOT where a write would make the files of a folder larger than a quota: what SQLite then says
#: is "disk I/O error". No kernel is needed that has quotas.
QUOTA = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int over(int fd, off_t end) {
    const char *folder = getenv("QUOTA_FOLDER");
    char link[64], name[4096];
    struct stat file, one;
    if (!folder || fstat(fd, &file) || !S_ISREG(file.st_mode) || end <= file.st_size) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof name - 1);
    if (n < 0 || (name[n] = 0, strncmp(name, folder, strlen(folder)))) return 0;
    long long used = end - file.st_size;
    DIR *open = opendir(folder);
    for (struct dirent *at; open && (at = readdir(open));)
        if (!fstatat(dirfd(open), at->d_name, &one, 0) && S_ISREG(one.st_mode)) used += one.st_size;
    if (open) closedir(open);
    return used > atoll(getenv("QUOTA_BYTES"));
}
#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t at) {
    if (over(fd, at + n)) return errno = EDQUOT, -1;
    return REAL(pwrite64)(fd, b, n, at);
}
ssize_t pwrite(int fd, const void *b, size_t n, off_t at) { return pwrite64(fd, b, n, at); }
int posix_fallocate64(int fd, off64_t at, off64_t n) {
    return over(fd, at + n) ? EDQUOT : REAL(posix_fallocate64)(fd, at, n);
}
int posix_fallocate(int fd, off_t at, off_t n) { return posix_fallocate64(fd, at, n); }
"""


def recipe(folder: Path, url: str, questions: int, **collect: Any) -> Path:
    rows = [{"id": str(i), "q": f"What is {i} + 1?", "a": str(i + 1)} for i in range(questions)]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = {"id": "id", "question": "q", "references": "a"}
    source = {"name": "s", "path": "q.jsonl", "scorer": "numeric", "license": "CC0-1.0"}
    path = folder / "recipe.yaml"
    made = {
        "name": "b", "version": "1.0.0",
        "sources": [source | {"fields": fields}],
        "pool": {"providers": [{"name": "p", "base_url": url}], "models": [{"model_id": "m"}]},
        "collect": {"max_tokens": 64, "limits": {"concurrency": 24}} | collect,
        "release": {"license": "CC0-1.0"},
    }  # fmt: skip
    path.write_text(json.dumps(made))
    return path


def saying(size: int) -> Callable[[dict[str, Any], int], Do]:
    """Answers of so many bytes, a while later: some are always in flight."""

    def behave(body: dict[str, Any], seen: int) -> Do:
        text = random.Random(body["messages"][-1]["content"]).randbytes(size // 2).hex()
        return answer(completion(f"Answer: 3 {text}", model=body["model"]), delay=0.05)

    return behave


def stopped_and_went_on(
    call: Any, folder: Path, questions: int, size: int, **limited: Any
) -> tuple[int, str]:
    """Calls of a build that the disk stopped, and what it said; nothing of it is paid twice."""
    with Loopback(saying(size)) as server:
        path = recipe(folder, server.base_url, questions)
        words = ["build", path, "--until", "collect", "--workspace", folder / "yard"]
        command = [sys.executable, "-m", "routeyard", *map(str, words)]
        limited["env"] = os.environ | {"PYTHONPATH": str(ROOT)} | limited.pop("env", {})
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **limited)
        assert done.returncode == 1, done.stderr
        assert len(done.stderr.split("error: ")[1].splitlines()) <= 6
        asked = server.requests
        with sqlite3.connect(folder / "yard" / "ledger" / "ledger.sqlite") as ledger:
            ((kept,),) = ledger.execute("SELECT count(*) FROM attempts WHERE status = 'ok'")
        ledger.close()
        assert kept == asked
        assert call(*words).returncode == 0
        assert server.requests == questions
    return asked, done.stderr


def test_a_limit_on_the_size_of_files(call: Any, tmp_path: Path) -> None:
    # SQLite said "disk I/O error", and what was in flight was lost and paid again.
    most = 9_200_000

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    asked, said = stopped_and_went_on(call, tmp_path, 250, 80_000, preexec_fn=limit)
    assert 0 < asked < 250
    assert "ulimit -f" in said
    assert "9.2 MB" in said


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc on this machine")
def test_a_quota(call: Any, tmp_path: Path) -> None:
    # 143 calls for 120 answers.
    (tmp_path / "quota.c").write_text(QUOTA)
    library = str(tmp_path / "quota.so")
    made = ["gcc", "-shared", "-fPIC", "-o", library, str(tmp_path / "quota.c"), "-ldl"]
    subprocess.run(made, check=True)
    quota = {"LD_PRELOAD": library, "QUOTA_BYTES": "11000000"}
    quota["QUOTA_FOLDER"] = str(tmp_path / "yard" / "ledger")
    asked, said = stopped_and_went_on(call, tmp_path, 120, 40_000, env=quota)
    assert 24 < asked < 120
    assert "quota" in said
