"""Texts of a recipe that look like keys: refused by their place, and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_KEY = re.compile(
    r"\b(?:sk|pk|rk|xai|pplx|glpat)-[A-Za-z0-9_-]{16,}|\b(?:hf|gsk|r8|gh[pousr])_[A-Za-z0-9]{16,}"
    r"|\bgithub_pat_\w{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|\bBearer\s+\S{12,}|-----BEGIN [A-Z ]{0,30}PRIVATE KEY"
)
_HEADER = re.compile(
    r"(?:proxy-)?authorization|(?:x-)?api[-_ ]?key|cookie|password|client[-_]secret"
    r"|access[-_]token",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"\$\{?\w*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)", re.IGNORECASE)
#: Keys of a recipe whose `$NAME` is filled in and may be shown as a place.
_PATHS = frozenset({"path", "file", "template", "prices", "tokenizer", "images_in"})
_DEEPEST = 40


def looks_like_a_key(text: str) -> bool:
    """Whether a text holds something in the form of a provider's key."""
    return _KEY.search(text) is not None


def secrets_in(data: Any) -> Iterator[tuple[str, str]]:
    """(place, why) of everything in a recipe that looks like a secret."""
    yield from _walk(data, (), "")


def refuse_secrets(data: Any) -> Any:
    """The data as it is.

    Raises:
        ValueError: something in it looks like a secret; says where, and not what.
    """
    for place, why in secrets_in(data):
        raise ValueError(
            f"{place}: {why}; keys come from the environment: put the key into a variable, and the "
            "variable's name into the provider's 'api_key_env'"
        )
    return data


def check_name(name: str | None) -> str | None:
    """The name of an environment variable.

    Raises:
        ValueError: it is no name, or looks like the key itself.
    """
    if name is None:
        return None
    mixed = all(re.search(kind, name) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or looks_like_a_key(name):
        raise ValueError("'api_key_env' is the name of a variable, not the key itself")
    if mixed and len(name) >= 20:
        raise ValueError("'api_key_env' looks like a key; write the name of the variable it is in")
    return name


def _walk(data: Any, place: tuple[str, ...], key: str) -> Iterator[tuple[str, str]]:
    where = ".".join(place) or "the recipe"
    if len(place) > _DEEPEST:
        return
    if isinstance(data, str):
        if looks_like_a_key(data):
            yield where, "this looks like a key"
        elif key in _PATHS and _SECRET_NAME.search(data):
            yield where, "a path would show the secret that this variable holds"
    elif isinstance(data, dict):
        for name, value in data.items():
            inner = (*place, "(a key)" if looks_like_a_key(str(name)) else str(name))
            if looks_like_a_key(str(name)):
                yield ".".join(inner), "this looks like a key"
            elif _HEADER.fullmatch(str(name)) and isinstance(value, str) and value:
                yield ".".join(inner), "this header holds a secret"
            yield from _walk(value, inner, str(name))
    elif isinstance(data, list | tuple):
        for number, value in enumerate(data):
            yield from _walk(value, (*place, str(number)), key)
