"""`routeyard zoo show`: all that a router says about itself."""

from __future__ import annotations

from routeyard.flows.cli.results import Output


def command(
    name: str,
) -> Output:
    """Show what a router is: paper, task, loss, rule, settings, and constants with their places.

    Examples:

        routeyard zoo show routerdc

    Args:
        name: Router, as `routeyard zoo list` names it.
    """
    import inspect

    from routeyard.pipelines.routers import ROUTERS
    from routeyard.pipelines.routers.described import described

    made, row = ROUTERS.get(name), described(name)
    text = inspect.getdoc(made) or ""
    shown = {
        key: row[key]
        for key in ("paper", "loss", "selection", "scale", "stochastic", "online", "cost", "extra")
        if row[key] not in ("", None)
    }
    shown |= {"needs": ", ".join(row["needs"]) or "nothing"}
    shown |= {"architectures": len(row["architectures"])}
    lines = [
        f"{name}: {made.__module__}\n\n{text}\n",
        *(f"{key:<14} {value}" for key, value in shown.items()),
        *(f"  {one or 'defaults'}" for one in row["architectures"]),
        *(
            f"preset {preset}: {setting} {one['value']} ({one['of']}: {one['at']})"
            for preset, constants in row["presets"].items()
            for setting, one in constants.items()
        ),
    ]
    return Output({**row, "module": made.__module__, "says": inspect.getdoc(made)}, lines)
