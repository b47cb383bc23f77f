"""Where a provider is: its address, and the name under which its answers are shared."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from routeyard.pipelines.errors import RecipeError
from routeyard.pipelines.io.environment import expanded, missing
from routeyard.schemas.recipe.pool import Provider


def address_of(provider: Provider) -> str:
    """The address to call, with `$NAME` read from the environment. Never to be shown.

    Raises:
        RecipeError: a variable is not set, or what it holds is no address.
    """
    name = missing(provider.base_url)
    where = f"pool.providers, {provider.name}"
    if name is not None:
        raise RecipeError(
            f"the address of provider {provider.name!r} needs the environment variable "
            f"{name}, which is not set",
            where=where,
            next_step=f"export {name}=https://… and run the same command",
        )
    address = expanded(provider.base_url).rstrip("/")
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and not any(sign.isspace() or not sign.isprintable() for sign in address)
        named = parts.username is not None or parts.password is not None
    except ValueError:
        usable = named = False
    if named:
        raise RecipeError(
            f"the address of provider {provider.name!r} holds a user name or a password",
            where=where,
            next_step="take them out of the address; a key is read from the environment variable "
            "that the provider's `api_key_env` names",
        )
    if not usable:
        raise RecipeError(
            f"the address of provider {provider.name!r} ({provider.base_url}) is no http(s) URL",
            where=where,
            next_step="it must look like https://host/v1",
        )
    return address


def identity_of(provider: Provider) -> str:
    """What identifies the provider in a request's hash: its address, whatever it is called.

    A loopback address that a recipe leaves to the environment changes its port at
    each start of the server; such a one is known by the provider's name.
    """
    if "$" in provider.base_url and missing(provider.base_url) is not None:
        return provider.name
    address = address_of(provider)
    parts = urlsplit(address)
    host = (parts.hostname or "").lower()
    if "$" in provider.base_url:
        if _loopback(host):
            return provider.name
        # A path from the environment may hold a token: only its digest is kept.
        import hashlib

        return "sha256:" + hashlib.sha256(_normal(address).encode()).hexdigest()
    return _normal(address)


def is_loopback(identity: str) -> bool:
    """Whether an identity is an address on this machine, whose port may be another tomorrow."""
    return "://" in identity and _loopback(urlsplit(identity).hostname or "")


def on_loopback(provider: Provider) -> bool:
    """Whether a provider is on this machine, also where its address is left to the environment."""
    if "$" in provider.base_url and missing(provider.base_url) is not None:
        return False
    return _loopback(urlsplit(address_of(provider)).hostname or "")


def _normal(address: str) -> str:
    parts = urlsplit(address)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
