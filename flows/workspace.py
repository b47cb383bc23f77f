"""The folder a build works in: where everything is stored, and the hash of the code."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from routeyard.flows.tracking import counts, log
from routeyard.pipelines.common import machine as memory
from routeyard.pipelines.common.files import names, sha256
from routeyard.pipelines.common.registry import Registry
from routeyard.pipelines.common.staging import (
    alone,
    forget_lock,
    place,
    staging,
    temporary_path,
    write_json,
)
from routeyard.schemas import CONTRACTS, VERDICTS
from routeyard.schemas.errors import BadInput

if TYPE_CHECKING:
    from routeyard.schemas.recipe import Recipe

# The code that a stage's function can reach, with a hash of each module.
#
# The reach is computed, never listed by hand. From the stage's function the imports
# are followed: inside it, in the functions of `routeyard.flows.tasks` that it calls, and
# through every module of the packages below. What a registry names by a string is not
# followed (else every question would depend on every scorer): a stage names the
# parts it uses.

#: Packages whose code decides what a stage's tables hold.
PACKAGES = ("routeyard.schemas", "routeyard.pipelines", "routeyard.datacards")
#: Parts of flows that do: the stages themselves. The rest only reads, shows and tracks.
_STAGES = "routeyard.flows.tasks"
#: The module that writes a release's card, from its templates.
CARD = "routeyard.datacards.card"
_FOR_TYPING = re.compile(r"^if TYPE_CHECKING:\n(?: .*\n|\n)+", re.MULTILINE)
_IMPORT = re.compile(r"^ *(?:from ([\w.]+) )?import (?:\(([^)]*)\)|([^(\n]+))", re.MULTILINE)
_PROGRAM = re.compile(r"[\"'](routeyard\.pipelines\.[\w.]+)[\"']")
_FILE = re.compile(r"(?<!['\"])__file__")
_NAMED = re.compile(r'Path\(__file__\)(\.with_name\(|\.with_suffix\(|\.parent / )"([^"]+)"')
_LOADED = re.compile(r'PackageLoader\("([^"]+)", "([^"]+)"\)')


def made_by(make: Callable[..., Any], uses: Iterable[str] = ()) -> dict[str, str]:
    """Module → hash of its code, for everything that a stage's function can reach.

    Args:
        make: The stage's function, or one defined inside it.
        uses: Modules of registered parts that the stage uses, e.g. of its scorers;
            a module outside the packages is hashed, and not followed.
    """
    modules, hashes = set(uses), dict[str, str]()
    seen, waiting = set(), [(make.__module__, make.__qualname__.partition(".")[0])]
    while waiting:
        key = waiting.pop()
        if key in seen or (node := _bound(key[0]).get(key[1])) is None:
            continue
        seen.add(key)
        code = ast.unparse(node)
        if not isinstance(node, ast.Import | ast.ImportFrom):
            hashes[":".join(key)] = _short(code.encode())
            used = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
            waiting += [(key[0], name) for name in used]
        for source, attribute in _imported(code):
            target = _module_of(source, attribute)
            if _package(target) in PACKAGES:
                modules.add(target)
            elif target.startswith(_STAGES):
                waiting.append((target, attribute))
    hashes |= {name: module_hash(name) for name in reach(frozenset(modules))}
    return dict(sorted(hashes.items()))


@cache
def _bound(module: str) -> dict[str, ast.stmt]:
    """Name → the statement of a module that defines it, or that imports it alone."""
    result: dict[str, ast.stmt] = {}
    for node in ast.parse(_source(_origin(module))).body:
        for item in getattr(node, "names", ()):
            one = {**vars(node), "names": [item]}
            result[(item.asname or item.name).partition(".")[0]] = type(node)(**one)
        values = getattr(node, "targets", [getattr(node, "target", None)])
        for name in (getattr(node, "name", None), *(getattr(item, "id", None) for item in values)):
            result |= {name: node} if isinstance(name, str) else {}
    return result


@cache
def reach(modules: frozenset[str]) -> frozenset[str]:
    """The modules themselves and all that they import, directly or not."""
    results: set[str] = set()
    waiting = set(modules)
    while waiting:
        name = waiting.pop()
        results.add(name)
        waiting |= _imports(name) - results
    return frozenset(results)


@cache
def module_hash(name: str) -> str:
    """16 hex digits over a module's code and the files that it reads beside itself."""
    path = _origin(name)
    content = _source(path).encode()
    for file in sorted({item for where in _read_by(path) for item in _files(where)}):
        content += f"\n{file.parent.name}/{file.name}\0".encode() + file.read_bytes()
    return _short(content)


def reached_code(module: str) -> str:
    """Hash of all code that a module can reach, itself included."""
    names = sorted(reach(frozenset({module})))
    return _short("".join(f"{name}={module_hash(name)}\n" for name in names).encode())


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _read_by(path: Path) -> set[Path]:
    """Files and folders that a module reads beside itself.

    Named are those of `Path(__file__).with_name("…")`, `.with_suffix("…")`, `.parent / "…"` and
    `PackageLoader("package", "…")`; where `__file__` is used otherwise, its whole folder.
    """
    code = _source(path)
    named = _NAMED.findall(code)
    paths = {
        path.with_suffix(name) if "suffix" in how else path.parent / name for how, name in named
    }
    paths |= {_origin(package).parent / name for package, name in _LOADED.findall(code)}
    return paths | ({path.parent} if len(_FILE.findall(code)) > len(named) else set())


def _files(place: Path) -> Iterator[Path]:
    inside = place.rglob("*") if place.is_dir() else [place]
    return (item for item in inside if item.is_file() and item.suffix not in (".pyc", ".md"))


@cache
def _imports(name: str) -> frozenset[str]:
    """Modules of the packages that a module imports, starts as a program, or is inside of."""
    if _package(name) not in PACKAGES:
        return frozenset()
    code, parts = _source(_origin(name)), name.split(".")
    imports = {".".join(parts[:n]) for n in range(1, len(parts))}
    # `python -m pipelines.…`: a separate process.
    imports |= {item for item in _PROGRAM.findall(code) if _spec(item) is not None}
    imports |= {_module_of(*item) for item in _imported(_FOR_TYPING.sub("", code))}
    return frozenset(item for item in imports if _package(item) in PACKAGES)


def _imported(code: str) -> Iterator[tuple[str, str]]:
    """(module, attribute or "") of the imports in code."""
    for module, several, one in _IMPORT.findall(code):
        for word in re.findall(r"(?:^|,)\s*([\w.]+)", re.sub("#.*", "", several or one)):
            yield (module, word) if module else (word, "")


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def _module_of(module: str, attribute: str) -> str:
    """A module that a name is imported from, or that it is."""
    whole = f"{module}.{attribute}"
    ours = attribute.isidentifier() and _package(whole) in (*PACKAGES, "routeyard.flows")
    return whole if ours and _spec(whole) is not None else module


@cache
def _spec(name: str) -> ModuleSpec | None:
    """The file of a module. Its packages are not imported, as `find_spec` of `importlib` would."""
    parent = name.rpartition(".")[0]
    try:
        if not parent:
            return importlib.util.find_spec(name)
        above = _spec(parent)
        inside = above.submodule_search_locations if above else None
        return None if inside is None else PathFinder.find_spec(name, list(inside))
    except (ModuleNotFoundError, ValueError):  # `__main__` has none
        return None


def _origin(name: str) -> Path:
    """The file of a module; no file for one that is elsewhere and cannot be found."""
    spec = _spec(name)
    if (spec is None or spec.origin is None) and _package(name) in PACKAGES:
        raise ModuleNotFoundError(name)
    return Path(spec.origin) if spec is not None and spec.origin is not None else Path()


@cache
def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.suffix == ".py" else ""


# What a recipe needs around it: files and servers behind environment variables that are not set.
#
# A recipe may leave a path or an address to the environment (`${NAME}`). Where the
# variable is not set and somebody registered a maker for it, the maker is entered for
# as long as the recipe is worked on, e.g. a local server that plays a provider.

#: Variable → function (workspace folder) → context manager that gives the variable's value.
MAKERS = Registry(
    kind="fixture",
    group="routeyard.fixtures",
    builtin={
        "ROUTEYARD_DEMO_BANK": "routeyard.flows.demo.server:bank_file",
        "ROUTEYARD_DEMO_URL": "routeyard.flows.demo.server:served_pool",
        "ROUTEYARD_HOPS": "routeyard.flows.demo.server:hops_file",
        "ROUTEYARD_HOPS_URL": "routeyard.flows.demo.server:served_agents",
        "ROUTEYARD_PICTURES": "routeyard.flows.demo.server:picture_folder",
        "ROUTEYARD_PICTURES_URL": "routeyard.flows.demo.server:served_eyes",
        "ROUTEYARD_REAL_URL": "routeyard.flows.demo.real:served_model",
    },
)


@contextmanager
def fixtures(recipe: Recipe, root: Path, *, serve: bool = True) -> Iterator[None]:
    """Make what the recipe's variables point to; one that is set is used as it is.

    Args:
        serve: Also make what providers' addresses name; a plan asks nothing and needs none.
    """
    texts = [str(source.path or "") for source in (*recipe.sources, *recipe.compared_with)]
    if serve:
        served = [item.provider for item in (*recipe.label.verifiers, *recipe.label.judges)]
        texts += [provider.base_url for provider in (*recipe.pool.providers, *served)]
    wanted = {name: None for text in texts for name in names(text)}
    with ExitStack() as made:
        for name in wanted:
            if not os.environ.get(name) and name in MAKERS.targets:
                os.environ[name] = made.enter_context(MAKERS.get(name)(root))
                made.callback(os.environ.pop, name, None)
        yield


# How much memory a build, a verification and an audit work on: said before they begin.
#
# The figures are four fifths of peaks of anonymous memory (`flows/SCALE.md`): an estimate that is
# too
# high would refuse what fits.

#: Bytes: of the libraries, of each answer in a build, of each letter of a recorded file, of each
#: label that is verified in blocks and the most that all of them take, of each answer of a release
#: and each letter of a file that is audited.
BASE, ANSWER, LETTER = 150_000_000, 900, 3
LABEL, LABELS = 350, 3_200_000_000
AUDITED_ANSWER, AUDITED_LETTER = 1_800, 6


def check_build(answers: int, files: Iterable[Path] = ()) -> None:
    """Stop a build that does not fit, before anything is asked or imported.

    Args:
        answers: Questions × models × samples.
        files: Recorded answers that it reads.

    Raises:
        OutOfMemory: as `memory.check` does.
    """
    need = BASE + ANSWER * answers + LETTER * sum(map(_size, files))
    memory.check(
        f"a build of {answers:,} answers",
        need,
        next_step="build where there is more memory, or fewer questions or models: `limit:` of a "
        "source, `--scale 0.1`, a smaller pool",
    )


def check_audit(path: Path) -> None:
    """Stop an audit of results that do not fit.

    Raises:
        OutOfMemory: as `memory.check` does.
    """
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    letters = sum(map(_size, files))
    memory.check(f"an audit of {letters / 1e6:,.0f} MB", BASE + AUDITED_LETTER * letters)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # whoever reads it says so


# The workspace: where stage outputs are stored, under the fingerprint of what made them.
#
#     <workspace>/ledger/                       answers that were paid for
#     <workspace>/stages/<stage>/<fingerprint>/ tables and stage.json of one stage
#     <workspace>/cache/embeddings/             vectors by encoder and text
#     <workspace>/releases/<name>/<version>/    releases
#     <workspace>/runs/<name>.json              the last build of each benchmark
#
# A stage folder appears whole or not at all: it is written beside and renamed. One that was
# damaged since is made again.

# Whether a stage's folder holds what its stage wrote: sizes and SHA-256 of its files.
#
# A file kept on a disk for months can lose a file, end early or have a bit flipped. A folder that
# does not match its seal counts as not made, so that the stage is run again; nothing in it was
# paid for that the ledger does not hold.

RECORD = "stage.json"


def sealed(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a finished stage with its files, and with a hash over all of it."""
    files = {
        path.relative_to(folder).as_posix(): [path.stat().st_size, sha256(path)]
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    whole = {**record, "files": files}
    return {**whole, "seal": digest(whole)}


def intact(folder: Path, *, thoroughly: bool = True) -> dict[str, Any] | None:
    """The record of a stage's folder; None where the record is missing or damaged.

    Args:
        thoroughly: Read every file; else their sizes are compared.
    """
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        seal = record.pop("seal")
        if seal != digest(record):
            return None
        for name, (size, checksum) in record["files"].items():
            path = folder / name
            if path.stat().st_size != size or (thoroughly and sha256(path) != checksum):
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return dict(record)


def clear(folder: Path) -> bool:
    """Take a damaged folder out of the way; True when there was one.

    Of a link only the link is taken: what it leads to, if anything, is somebody else's.
    """
    if not os.path.lexists(folder):
        return False
    aside = temporary_path(folder)
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return False  # another process was faster
    if aside.is_symlink():
        aside.unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    return True


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What every stage of a build is given beside its sections of the recipe.

    Attributes:
        benchmark: The recipe's name.
        root: The workspace.
        base: Folder that the recipe's paths start from.
        jobs: Worker processes.
        shards: Parts that each model's questions, and the embedding, are cut into.
    """

    benchmark: str
    root: Path
    base: Path
    jobs: int = 1
    shards: int = 1


@dataclass(frozen=True, slots=True)
class StageWork:
    """What a stage's output is made of, and the function that makes it.

    Attributes:
        parameters: JSON-ready; all that steers the stage.
        inputs: Name → fingerprint of each input.
        make: Writes tables into a folder and returns JSON-ready figures. The code that it and
            the function around it can reach enters the fingerprint.
        uses: Modules of registered parts that it uses (`Registry.modules`).
    """

    parameters: Mapping[str, Any]
    inputs: Mapping[str, str]
    make: Callable[[Path], Mapping[str, Any]]
    uses: Iterable[str] = ()

    def made_of(self, stage: str) -> dict[str, Any]:
        """What is hashed: stage, parameters, inputs and the code's modules, JSON-ready."""
        content = {
            "stage": stage,
            "parameters": dict(self.parameters),
            "inputs": dict(self.inputs),
            "code": made_by(self.make, self.uses),
        }
        # Canonical JSON once, so that what is compared later equals what was hashed.
        return dict(json.loads(json.dumps(content)))


@dataclass(frozen=True, slots=True)
class PendingAnswers:
    """Answers of models that a stage still lacks; nothing is sent before `ask` is called.

    Attributes:
        count: Missing answers.
        ask: Asks for them, and returns the stage's work.
    """

    count: int
    ask: Callable[[], StageWork]


class StageResult(BaseModel):
    """A finished stage: where its tables are stored, and whether they were already there."""

    model_config = ConfigDict(frozen=True)

    stage: str
    fingerprint: str
    folder: str
    reused: bool
    figures: dict[str, Any]

    def path(self, table: str) -> Path:
        """Parquet file of one of the stage's tables."""
        return Path(self.folder) / f"{table}.parquet"

    def parts(self, table: str) -> list[Path]:
        """Parquet files of a table that is written in parts, in name order."""
        return sorted((Path(self.folder) / table).glob("*.parquet"))


def digest(content: Any) -> str:
    """SHA-256 over canonical JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def find_stage(
    root: Path, made_of: Mapping[str, Any], *, thoroughly: bool = True
) -> StageResult | None:
    """The stored output of a stage; None where it is missing or damaged.

    A lock that a killed process left beside it goes.

    Args:
        made_of: See `StageWork.made_of`.
        thoroughly: Read every file; else only sizes are compared.
    """
    folder = _folder(root, made_of)
    record = intact(folder, thoroughly=thoroughly)
    if record is None:
        return None
    forget_lock(folder)
    return _result(made_of, folder, record["figures"], reused=True)


def complete_stage(
    stage: str,
    function: Callable[..., StageWork | PendingAnswers],
    context: BuildContext,
    given: Mapping[str, Any],
    shard: tuple[int, int] | None = None,
) -> StageResult:
    """Output of a stage's function: asked for what is missing, stored, or reused."""
    work = function(context, **given)
    if isinstance(work, PendingAnswers):
        work = work.ask()
    return run_stage(context.root, stage, work, benchmark=context.benchmark, shard=shard)


def run_stage(
    root: Path,
    stage: str,
    work: StageWork,
    *,
    benchmark: str = "",
    shard: tuple[int, int] | None = None,
) -> StageResult:
    """Output of `work.make`, which runs unless it is stored already.

    Args:
        benchmark, shard: For the log only; (number from 1, how many) where there are several.
    """
    made_of = work.made_of(stage)
    if (stored := find_stage(root, made_of)) is not None:
        log(benchmark, stage, f"unchanged: {counts(stored.figures)}", shard=shard)
        return stored
    folder = _folder(root, made_of)
    with alone(folder, lambda: _note(f"{stage}: waiting for another build that makes it")):
        # What another build finished meanwhile is its and ours: only what is damaged is cleared.
        if (stored := find_stage(root, made_of)) is not None:
            log(benchmark, stage, f"made by another build: {counts(stored.figures)}", shard=shard)
            return stored
        if clear(folder):
            _note(f"{stage} is made again: {folder} was damaged")
        log(benchmark, stage, "begins", shard=shard)
        begun = time.monotonic()
        with staging(folder) as unfinished:
            figures = dict(work.make(unfinished))
            record = {**made_of, "fingerprint": folder.name, "figures": figures}
            write_json(unfinished / RECORD, sealed(unfinished, record))
            try:
                place(unfinished, folder)
            except OSError:
                if intact(folder, thoroughly=False) is None:
                    raise
                # Another process was faster, without a lock; the content is the same.
    log(benchmark, stage, f"{counts(figures)}, in {time.monotonic() - begun:.1f} s", shard=shard)
    return _result(made_of, folder, json.loads(json.dumps(figures)), reused=False)


def _result(
    made_of: Mapping[str, Any], folder: Path, figures: dict[str, Any], *, reused: bool
) -> StageResult:
    return StageResult(
        stage=made_of["stage"], fingerprint=folder.name, folder=str(folder), reused=reused,
        figures=figures,
    )  # fmt: skip


def _note(text: str) -> None:
    from routeyard.flows import console

    console.line("note", text)


def _folder(root: Path, made_of: Mapping[str, Any]) -> Path:
    return root / "stages" / str(made_of["stage"]) / digest(made_of)[:24]


def write_table(table: Any, path: Path) -> None:
    """Parquet, zstd, in the table's own order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", row_group_size=100_000)


# Reading and joining the tables that stages left in the workspace.


def read(done: StageResult, table: str) -> pa.Table:
    """One table of a finished stage, in contract form."""
    return read_shards([done.path(table)], table)


def read_shards(shards: Iterable[Path], table: str) -> pa.Table:
    """Shard files of one table, one after the other in file order."""
    contract = CONTRACTS[table]
    parts = [contract.conform(pq.read_table(path), where=str(path)) for path in shards]
    return pa.concat_tables(parts) if parts else contract.empty()


def read_all(folder: Path) -> dict[str, pa.Table]:
    """Every contract table that a stage folder holds."""
    files = sorted(folder.glob("*.parquet"))
    key = tuple((str(item), item.stat().st_mtime_ns, item.stat().st_size) for item in files)
    if _kept is None or key not in _kept:
        tables = {f.stem: read_shards([f], f.stem) for f in files if f.stem in CONTRACTS}
        if _kept is None:
            return tables
        _kept.clear()
        _kept[key] = tables
    return dict(_kept[key])


#: Files → the tables of the folder that was last read whole, while they are kept.
_kept: dict[tuple[tuple[str, int, int], ...], dict[str, pa.Table]] | None = None


@contextmanager
def keeping() -> Iterator[None]:
    """Tables of the folder that `read_all` read last are kept: several stages ask for the same."""
    global _kept
    before, _kept = _kept, {}
    try:
        yield
    finally:
        _kept = before


def of_models(table: pa.Table, models: pa.Table) -> pa.Table:
    """Rows about some models, by `model_id`; the table itself where all of them are."""
    wanted = pc.is_in(table.column("model_id"), models.column("model_id"))
    # Texts are copied only where a row is left out.
    return table if pc.all(wanted, min_count=0).as_py() else table.filter(wanted)


def last_builds(root: Path) -> dict[str, dict[str, Any]]:
    """Benchmark → the record of its last build, in the order in which they were built."""
    result: dict[str, dict[str, Any]] = {}
    for path in sorted((root / "runs").glob("*.json"), key=lambda item: item.stat().st_mtime):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BadInput(
                f"the record of the last build is damaged: {error}",
                where=str(path),
                next_step="remove the file; nothing but `status` needs it",
            ) from error
        if "stages" in record:  # beside them are what providers listed, and what was published
            result[path.stem] = record
    return result


def content(paths: Iterable[Path]) -> str:
    """Fingerprint of some files by what they hold."""
    return digest([[path.name, sha256(path)] for path in sorted(paths)])[:24]


def slug(name: str) -> str:
    """A model id as a file name; the digest keeps different ids apart."""
    plain = "".join(c if c.isalnum() or c in "-." else "_" for c in name)
    return f"{plain[:60]}-{digest(name)[:8]}"


# Decisions of people on a benchmark's answers, one file per session.
#
# <workspace>/reviews/<benchmark>/*.parquet    verdicts of `human:<name>`

_FOLDER = "reviews"


def review_files(workspace: Path, benchmark: str) -> list[Path]:
    """Reviews of a benchmark, oldest first."""
    return sorted((workspace / _FOLDER / benchmark).glob("*.parquet"))


def reviews(workspace: Path, benchmark: str) -> pa.Table:
    """All decisions of people on a benchmark, as verdicts."""
    return read_shards(review_files(workspace, benchmark), "verdicts")


def keep_review(workspace: Path, benchmark: str, verdicts: pa.Table, *, at: str) -> Path:
    """Add decisions; files are never changed, a later decision counts instead."""
    scorer = verdicts.column("scorer")[0].as_py().partition(":")[2]
    stamp = "".join(c for c in at if c.isalnum())
    path = workspace / _FOLDER / benchmark / f"{stamp}-{scorer}.parquet"
    write_table(VERDICTS.check(verdicts), path)
    return path
