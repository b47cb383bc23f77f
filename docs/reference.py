"""Makes the reference pages, the tour and the pages kept beside the code while MkDocs builds.

None is typed twice: references come from code, and a page that a package keeps beside its code
(schedule, large data, results) is copied from there.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

# Prefect reads the flows' docstrings when they are defined, with the library that also
# renders these pages and would report them as warnings of ours: so they are defined first.
import routeyard.flows.build
import routeyard.flows.deploy  # noqa: F401


def on_files(files: Files, config: Any) -> Files:
    """Add `reference/<page>.md` for each page below."""
    for name, page in PAGES.items():
        text = "\n".join(page())
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    files.append(File.generated(config, "tour.md", content="\n".join(tour())))
    for page, path in CARRIED.items():
        files.append(File.generated(config, page, content=carried(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links of a page lead to files of the repository, so that they work in a checkout; here
    they lead to the page that is made of the file."""
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def led(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        path = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else ""
        there = _PAGE_OF.get(path)
        return link[0] if there is None else f"]({os.path.relpath(ROOT / 'docs' / there, folder)})"

    return re.sub(r"\]\(([^)#\s:]+)\)", led, markdown)


def carried(path: Path) -> str:
    """A page of a package; its links lead into the repository, so only their words are kept."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^!\[.*?\]\([^)]*\)\n", "", text, flags=re.M)
    return re.sub(r"(?<!\!)\[([^\]\n]+)\]\((?!https?:|#)[^)\n]*\)", r"\1", text)


def tour() -> Iterator[str]:
    """The notebook-style script `tour.py` as a page: its cells as text and code."""
    source = (Path(__file__).parent / "tour.py").read_text(encoding="utf-8")
    for cell in source.split("# %%")[1:]:
        kind, _, body = cell.partition("\n")
        if kind.strip() == "[markdown]":
            yield "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.split("\n"))
        else:
            yield f"```python\n{body.strip()}\n```\n"


def commands() -> Iterator[str]:
    """Every command with its help and options."""
    import typer

    from routeyard.flows.cli.tree import command_of
    from routeyard.flows.cli.tree import commands as all_commands

    yield "# Commands\n"
    yield "`routeyard COMMAND --help` shows the same.\n"
    for name, one in all_commands().items():
        command = command_of(name)
        yield f"## routeyard {name}\n\n{one.line}\n"
        yield f"```text\n{inspect.cleandoc(command.help or one.line)}\n```\n"
        yield "| option | default | meaning |\n| --- | --- | --- |"
        with typer.Context(command) as context:
            for option in command.params:
                if option.name == "help" or getattr(option, "hidden", False):
                    continue
                shown = option.get_help_record(context)
                names = ", ".join(option.opts) if shown else str(option.name).upper()
                default = "" if option.default is None else f"`{option.default}`"
                text = getattr(option, "help", "") or (shown[1] if shown else "")
                yield f"| `{names}` | {default} | {_cell(text)} |"
        yield ""


def recipe() -> Iterator[str]:
    """Every key of a recipe."""
    from routeyard.schemas.recipe.reference import reference

    yield reference()


def mappings() -> Iterator[str]:
    """What a mapping of a source may say, with an example each."""
    from routeyard.pipelines.ingest.queries import page

    yield page()


def tables() -> Iterator[str]:
    """Every table of a release, column by column."""
    from routeyard.schemas import CONTRACTS

    yield "# Tables\n"
    yield "Null never means wrong, zero or free.\n"
    for contract in CONTRACTS.values():
        yield f"## {contract.name}\n\nKey: {', '.join(f'`{one}`' for one in contract.key)}\n"
        yield "| column | type | unit | may be null | says |\n| --- | --- | --- | --- | --- |"
        for one in contract.columns:
            null = "yes" if one.nullable else ""
            kind = str(one.type).replace("|", "\\|")
            says = _cell(one.full_description)
            yield f"| `{one.name}` | {kind} | {one.unit or ''} | {null} | {says} |"
        yield ""


def scorers() -> Iterator[str]:
    """Every scorer with its instruction and reading."""
    from routeyard.pipelines.label.scorers import SCORERS

    yield "# Scorers\n"
    for name in sorted(SCORERS.builtin):
        scorer = SCORERS.get(name)
        yield f"## {name}\n\n{_words(inspect.getmodule(scorer.read))}\n"
        yield f"- version: {scorer.version}"
        if scorer.threshold is not None:
            yield f"- correct from a score of {scorer.threshold:g}"
        yield f"- the model's instruction: {scorer.instruction or 'nothing'}\n"


def rules() -> Iterator[str]:
    """Every curation rule with its parameters."""
    from routeyard.pipelines.curate import RULES

    yield "# Curation rules\n"
    for name in sorted(RULES.builtin):
        rule = RULES.get(name)
        yield f"## {name}\n\n```text\n{inspect.cleandoc(rule.apply.__doc__ or '')}\n```\n"
        yield "| parameter | default |\n| --- | --- |"
        for key, one in rule.parameters.model_fields.items():
            default = "needed" if one.is_required() else f"`{one.default}`"
            yield f"| `{key}` | {_cell(default)} |"
        yield ""


def metrics() -> Iterator[str]:
    """Every metric with direction, unit and source, when it is computed, and why."""
    from routeyard.pipelines.evaluate.metrics import METRICS

    yield "# Metrics\n"
    yield "| metric | computed | read by | better | unit | source | says |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in sorted(METRICS.builtin):
        one = METRICS.get(name)
        when = ("by default", one.read_by) if one.default else ("with `--all`", "none of ours")
        row = (*when, one.direction, one.unit, one.source, one.says)
        yield f"| `{name}` | {' | '.join(map(_cell, row))} |"


def routers() -> Iterator[str]:
    """Every router with what its class says, and under the first of a file what the file says."""
    from routeyard.pipelines.routers import ROUTERS

    yield "# Routers\n"
    told = set()
    for name in sorted(ROUTERS.builtin):
        made = ROUTERS.get(name)
        words = [inspect.cleandoc(made.__doc__ or "")]
        if made.__module__ not in told:
            words.append(_words(inspect.getmodule(made)))
        told.add(made.__module__)
        said = "\n\n".join(words)
        yield f"## {name}\n\n```text\n{said}\n```\n"


def sources() -> Iterator[str]:
    """Every entry of the catalogue."""
    from routeyard.pipelines.ingest.catalog import entry, names

    yield "# Sources\n"
    yield "| name | domain | dataset | scorer | licence | unconfirmed columns |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in names():
        one = entry(name)
        source, doubt = one.source, ", ".join(one.unconfirmed)
        row = (source.domain, source.hub_id or source.path, source.scorer, source.license, doubt)
        yield f"| `{name}` | {' | '.join(_cell(str(cell or '')) for cell in row)} |"


def python() -> Iterator[str]:
    """Every name of `import routeyard`, from its own docstring."""
    import routeyard

    yield "# Functions and types\n"
    for name in routeyard.__all__:
        if name in routeyard._WHERE:
            found = getattr(routeyard, name)
            yield f"## {name}\n\n::: {found.__module__}.{found.__qualname__}\n"


def _words(module: Any) -> str:
    return inspect.cleandoc(module.__doc__ or "") if module else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


ROOT = Path(__file__).parents[1]
#: Page of the documentation → its path in the repository.
CARRIED = {
    "howto/schedule.md": "flows/MAINTENANCE.md",
    "howto/large.md": "flows/SCALE.md",
    "howto/preferences.md": "pipelines/curate/ENTAILMENT.md",
    "security.md": "SECURITY.md",
    "contributing.md": "CONTRIBUTING.md",
    "architecture.md": "ARCHITECTURE.md",
    "changelog.md": "CHANGELOG.md",
    "results/benchmarks.md": "benchmarks/FLOORS.md",
    "results/papers.md": "pipelines/evaluate/studies/README.md",
    "results/studies.md": "pipelines/evaluate/studies/RESULTS.md",
    "results/methods.md": "pipelines/evaluate/studies/METHODS.md",
    **{
        f"results/zoo_{path.stem}.md": str(path.relative_to(ROOT))
        for path in sorted((ROOT / "pipelines/evaluate/zoo/results").glob("*.md"))
    },
}

#: File of the repository → the page that is made of it.
_PAGE_OF = {path: page for page, path in CARRIED.items()} | {
    "docs/tour.py": "tour.md",
    "flows/recipes/recipe.schema.json": "reference/recipe.md",
    "pipelines/evaluate/README.md": "reference/metrics.md",
    "pipelines/ingest/mappings.md": "reference/mappings.md",
    "pipelines/ingest/catalog/README.md": "reference/sources.md",
    "pipelines/routers/README.md": "reference/routers.md",
    "pipelines/label/scorers/README.md": "reference/scorers.md",
    "schemas/__init__.py": "reference/tables.md",
}
PAGES = {
    page.__name__: page
    for page in (
        commands,
        recipe,
        mappings,
        tables,
        scorers,
        rules,
        metrics,
        routers,
        sources,
        python,
    )
}
