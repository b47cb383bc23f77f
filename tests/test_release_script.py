"""`.ci/release` stops where version, changelog or tree are not those of a release."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = (".ci/release", "pyproject.toml", "CITATION.cff", "CHANGELOG.md")
DATED = "## 0.1.0 (2026-01-31)"


def run(folder: Path) -> str:
    done = subprocess.run(
        ["bash", ".ci/release", "0.1.0"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the script reads, as of a release; never clean, so that it ends before the tests."""
    (tmp_path / ".ci").mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    for name, line in (
        ("pyproject.toml", 'version = "0.1.0"'),
        ("CITATION.cff", "version: 0.1.0"),
        ("CHANGELOG.md", DATED),
    ):
        text = (tmp_path / name).read_text(encoding="utf-8")
        kind = "## " if name == "CHANGELOG.md" else re.escape(line.split("0")[0])
        text = re.sub(rf"^{kind}.*$", line, text, count=1, flags=re.M)
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_a_release_gets_as_far_as_its_tree(tree: Path) -> None:
    assert "there are uncommitted changes" in run(tree)


@pytest.mark.parametrize(
    ("name", "there", "put", "says"),
    [
        ("CHANGELOG.md", DATED, "## 0.1.0 (unreleased)", "no dated section 0.1.0"),
        ("CHANGELOG.md", DATED, "## 0.1.01 (2026-01-31)", "no dated section 0.1.0"),
        ("CITATION.cff", "version: 0.1.0", "version: 0.1.01", "CITATION.cff has another version"),
        ("pyproject.toml", '"0.1.0"', '"0.1.0rc1"', "pyproject.toml has another version"),
    ],
)
def test_another_version_stops_it(tree: Path, name: str, there: str, put: str, says: str) -> None:
    text = (tree / name).read_text(encoding="utf-8")
    assert there in text
    (tree / name).write_text(text.replace(there, put), encoding="utf-8")
    assert says in run(tree)
