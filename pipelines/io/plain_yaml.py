"""YAML from strangers: plain values, each key once, nothing that grows or nests without end."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import yaml

from routeyard.pipelines.errors import RecipeError

#: Levels of lists and mappings in one another.
DEEPEST = 60
_OPEN = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_CLOSE = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)


#: The parser in C takes a tenth of the time; not every build of the library has it.
if TYPE_CHECKING:
    from yaml import SafeLoader as _Parser
else:
    _Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):
    """Safe, and a key that occurs twice in one mapping is an error: which one counts?"""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} occurs twice", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_text(text: str, *, where: str) -> Any:
    """The one document in `text`.

    Raises:
        RecipeError: not YAML; an alias, a tag that makes objects, a key that occurs
            twice, a number that is not finite, or more than `DEEPEST` levels.
    """
    try:
        _flat(text, where)
        content = yaml.load(text, Loader=_Loader)  # noqa: S506  a safe one
        _finite(content, (), where)
    except (yaml.YAMLError, RecursionError) as error:
        raise RecipeError(
            f"the file is not valid YAML: {error}", where=where, next_step="correct the syntax"
        ) from error
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError) as error:
        # What the library's own makers of numbers, truths and dates raise.
        raise RecipeError(
            f"the file holds a value that is not what it says it is: {error}",
            where=where,
            next_step="write dates as YYYY-MM-DD and texts in quotes",
        ) from error
    return content


def _flat(text: str, where: str) -> None:
    """Refuse aliases and nesting while the text is scanned, before anything is made of it."""
    depth = 0
    for token in yaml.scan(text, Loader=_Parser):
        if isinstance(token, yaml.AliasToken):
            raise RecipeError(
                "YAML aliases (*name) are not read",
                where=where,
                next_step="write the value out where it is used",
            )
        depth += isinstance(token, _OPEN) - isinstance(token, _CLOSE)
        if depth > DEEPEST:
            raise RecipeError(
                f"lists and mappings are nested more than {DEEPEST} levels deep",
                where=f"{where}:{token.start_mark.line + 1}",
                next_step="write it flatter",
            )


def _finite(value: Any, place: tuple[str, ...], where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise RecipeError(
            f"{value} is no number to count with",
            where=f"{where}: {'.'.join(place)}",
            next_step="give a finite number, or leave the key out where there is no limit",
        )
    if isinstance(value, dict):
        for key, one in value.items():
            _finite(one, (*place, str(key)), where)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            _finite(one, (*place, str(number)), where)
