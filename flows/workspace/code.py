"""The code that a stage's function can reach, with a hash of each module.

The reach is computed, never listed by hand. From the stage's function the imports
are followed: inside it, in the functions of `routeyard.flows.tasks` that it calls, and
through every module of the packages below. What a registry names by a string is not
followed (else every question would depend on every scorer): a stage names the
parts it uses. Comments, docstrings and layout do not enter a hash.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, NamedTuple

#: Packages whose code decides what a stage's tables hold.
PACKAGES = ("routeyard.schemas", "routeyard.pipelines", "routeyard.datacards")
#: Parts of flows that do: the stages themselves. The rest only reads, shows and tracks.
_STAGES = "routeyard.flows.tasks"
#: The module that writes a release's card, from its templates.
CARD = "routeyard.datacards.card"
#: Where nodes hold statements; an expression that holds some, there is not.
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_PROGRAM = re.compile(r"[\"'](routeyard\.pipelines\.[\w.]+)[\"']")
_NAMED = re.compile(r"Path\(__file__\)(\.with_name\(|\.with_suffix\(|\.parent / )'([^']+)'\)?")
_LOADED = re.compile(r"PackageLoader\('([^']+)', '([^']+)'\)")


def made_by(make: Callable[..., Any], uses: Iterable[str] = ()) -> dict[str, str]:
    """Module → hash of its code, for everything that a stage's function can reach.

    Args:
        make: The stage's function, or one defined inside it.
        uses: Modules of registered parts that the stage uses, e.g. of its scorers;
            a module outside the packages is hashed, and not followed.
    """
    outer = make.__qualname__.partition(".")[0]
    modules: set[str] = set()
    hashes: dict[str, str] = {}
    _function(make.__module__, outer, modules, hashes, set())
    modules |= set(uses)
    for name in sorted(reach(frozenset(modules))):
        hashes[name] = module_hash(name)
    return dict(sorted(hashes.items()))


@cache
def reach(modules: frozenset[str]) -> frozenset[str]:
    """The modules themselves and all that they import, directly or not."""
    found: set[str] = set()
    waiting = set(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting |= _module(name).imports - found
    return frozenset(found)


def module_hash(name: str) -> str:
    """16 hex digits over a module's code and the files that it reads beside itself."""
    return _module(name).hash


class _Module(NamedTuple):
    hash: str
    imports: frozenset[str]


@cache
def _module(name: str) -> _Module:
    """What is needed of a module, read at once: syntax trees are too large to keep."""
    path, tree = _parsed(name)
    return _Module(_hash(path, tree), _imports(name, path, tree))


def _hash(path: Path, tree: ast.Module) -> str:
    hashed = hashlib.sha256((_plain(path) if path.suffix == ".py" else _normal(tree)).encode())
    for file in sorted({one for place in _read_by(tree, path) for one in _files(place)}):
        content = _plain(file).encode() if file.suffix == ".py" else file.read_bytes()
        hashed.update(f"{file.parent.name}/{file.name}".encode() + b"\0" + content)
    return hashed.hexdigest()[:16]


def reached_code(module: str) -> str:
    """Hash of all code that a module can reach, itself included."""
    hashes = "".join(f"{name}={module_hash(name)}\n" for name in sorted(reach(frozenset({module}))))
    return hashlib.sha256(hashes.encode()).hexdigest()[:16]


def _read_by(tree: ast.AST, path: Path) -> set[Path]:
    """Files and folders that a module reads beside itself.

    Named are those of `Path(__file__).with_name("…")`, `.with_suffix("…")`, `.parent / "…"` and
    `PackageLoader("package", "…")`; where `__file__` is used otherwise, its whole folder.
    """
    found: set[Path] = set()
    named = 0
    if not re.search("__file__|PackageLoader", _source(path)):
        return found
    nodes = list(ast.walk(tree))
    for node in nodes:
        text = ast.unparse(node) if isinstance(node, ast.Call | ast.BinOp) else ""
        if match := _NAMED.fullmatch(text):
            how, name = match.groups()
            found.add(path.with_suffix(name) if how == ".with_suffix(" else path.parent / name)
            named += 1
        elif match := _LOADED.fullmatch(text):
            found.add(_parsed(match[1])[0].parent / match[2])
    uses = sum(isinstance(node, ast.Name) and node.id == "__file__" for node in nodes)
    return found | ({path.parent} if uses > named else set())


def _files(place: Path) -> Iterator[Path]:
    inside = place.rglob("*") if place.is_dir() else [place]
    return (one for one in inside if one.is_file() and one.suffix not in (".pyc", ".md"))


def _function(
    module: str, name: str, modules: set[str], hashes: dict[str, str], seen: set[str]
) -> None:
    """Collect what one function of a flow's module reaches."""
    if (key := f"{module}:{name}") in seen:
        return
    seen.add(key)
    _, tree = _parsed(module)
    outside = _bound(tree.body, module)
    definitions = _definitions(tree)
    if (node := definitions.get(name)) is None:
        return
    hashes[key] = hashlib.sha256(_normal(node).encode()).hexdigest()[:16]
    inside = _bound(list(ast.walk(node)), module)
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    for local, (source, attribute) in {**outside, **inside}.items():
        if local not in used and local not in inside:
            continue
        target = _module_of(source, attribute)
        if target.startswith(tuple(f"{package}." for package in PACKAGES)) or target in PACKAGES:
            modules.add(target)
        elif target == _STAGES or target.startswith(f"{_STAGES}."):
            _function(target, attribute, modules, hashes, seen)
    for local in sorted(used & definitions.keys()):
        _function(module, local, modules, hashes, seen)


def _definitions(tree: ast.Module) -> dict[str, ast.AST]:
    found: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {one.id: node for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


def _bound(nodes: Iterable[ast.AST], module: str) -> dict[str, tuple[str, str]]:
    """Local name → (module, attribute or "") of `import` and `from … import` statements."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                found[one.asname or one.name] = (node.module, one.name)
        elif isinstance(node, ast.Import):
            for one in node.names:
                found[one.asname or one.name.partition(".")[0]] = (one.name, "")
    return found


def _imports(name: str, path: Path, tree: ast.Module) -> frozenset[str]:
    """Modules of the packages that a module imports, starts as a program, or is inside of."""
    if _package(name) not in PACKAGES:
        return frozenset()
    parts = name.split(".")
    found = {".".join(parts[:n]) for n in range(1, len(parts))}
    # `python -m pipelines.…`: a separate process.
    found |= {one for one in _PROGRAM.findall(_source(path)) if _is_module(one)}
    for node in _statements(tree, typing=False):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {_module_of(node.module, one.name) for one in node.names}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return frozenset(one for one in found if _package(one) in PACKAGES)


def _statements(tree: ast.AST, *, typing: bool = True) -> Iterator[ast.AST]:
    """All statements, and what else holds some; expressions, nine nodes of ten, are left out.

    Args:
        typing: Those under `if TYPE_CHECKING:` too.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in _BLOCKS:
            inside = getattr(node, name, ())
            waiting += [one for one in inside if typing or not _for_typing(one)]


def _for_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def _module_of(module: str, attribute: str) -> str:
    return f"{module}.{attribute}" if _is_module(f"{module}.{attribute}") else module


@cache
def _is_module(name: str) -> bool:
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    if _package(name) not in (*PACKAGES, "routeyard.flows"):
        return False
    return _spec(name) is not None


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


def _parsed(name: str) -> tuple[Path, ast.Module]:
    spec = _spec(name)
    if spec is None or spec.origin is None:
        if _package(name) in PACKAGES:
            raise ModuleNotFoundError(name)
        return Path(), ast.parse("")
    path = Path(spec.origin)
    return path, _tree(path)


@lru_cache(maxsize=32)
def _tree(path: Path) -> ast.Module:
    return ast.parse(_source(path))


@cache
def _plain(path: Path) -> str:
    return _normal(_tree(path))


@lru_cache(maxsize=32)
def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.suffix == ".py" else ""


def _normal(tree: ast.AST) -> str:
    """The code as text, without comments, docstrings and layout."""
    for node in _statements(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = body[0] if body else None
            docstring = first.value if isinstance(first, ast.Expr) else None
            if isinstance(docstring, ast.Constant) and isinstance(docstring.value, str):
                node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
