"""Data frames, series and columns of pandas, from the blocks that its pickles hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from routeyard.pipelines.pickles.arrow import strings
from routeyard.pipelines.pickles.machine import Made, Refused


@dataclass(frozen=True, slots=True)
class Frame:
    """A data frame: name of a column → its values, one per row; missing is None or NaN."""

    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary per row."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))


def listed(to: Any, value: Any) -> list[Any]:
    """The values of a column as Python objects.

    Raises:
        ValueError: it is no column, or a cell of it holds more than texts and numbers.
    """
    to.spend(len(value) if hasattr(value, "__len__") else 1)
    if not isinstance(value, (list, tuple)):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if not kind or value.ndim != 1:
            raise ValueError("a column that is no row of values")
        # Nanoseconds would come out as bare integers.
        return list((value.astype("M8[us]") if kind == "M" else value).tolist())
    cells = list(value)
    for cell in cells:
        if isinstance(cell, (list, tuple)) and not any(
            isinstance(part, (list, tuple, dict, Frame)) or hasattr(part, "dtype") for part in cell
        ):
            continue
        if cell is not None and not isinstance(cell, (bool, int, float, str, bytes, complex)):
            raise ValueError(f"a cell that holds a {type(cell).__name__}")
    return cells


def _frame(to: Any, value: Made) -> Frame:
    state = value.state
    if not isinstance(state, dict):
        raise ValueError("a data frame without its state")
    manager = state.get("_mgr", state.get("_data"))
    if not isinstance(manager, Made) or not manager.name.name.endswith("BlockManager"):
        raise ValueError("a data frame without blocks")
    blocks, axes = _blocks(to, manager)
    if len(axes) != 2:
        raise ValueError("a data frame without two axes")
    names, length = [str(name) for name in axes[0]], len(axes[1])
    found: dict[int, list[Any]] = {}
    for values, places in blocks:
        for place, column in zip(places, _rows_of(to, values, len(places)), strict=True):
            if not 0 <= place < len(names) or place in found or len(column) != length:
                raise ValueError("the blocks of a data frame do not fit its axes")
            found[place] = column
    if len(found) != len(names) or len(set(names)) != len(names):
        raise ValueError("a data frame lacks columns, or names two of them alike")
    return Frame({name: found[place] for place, name in enumerate(names)})


def _series(to: Any, value: Made) -> list[Any]:
    state = value.state
    manager = state.get("_mgr", state.get("_data")) if isinstance(state, dict) else None
    if not isinstance(manager, Made):
        raise ValueError("a series without its values")
    blocks, axes = _blocks(to, manager)
    values = listed(to, blocks[0][0])
    if len(blocks) != 1 or len(values) != len(axes[0]):
        raise ValueError("the values of a series do not fit its index")
    return values


def _blocks(to: Any, manager: Made) -> tuple[list[tuple[Any, list[int]]], list[list[Any]]]:
    """(values, places) of each block, and the labels of each axis."""
    state, arguments = manager.state, manager.arguments
    if isinstance(state, tuple) and len(state) >= 4 and isinstance(state[3], dict):
        # Before pandas 1.3: the state held everything.
        held = next(iter(state[3].values()))
        blocks = [(b["values"], b["mgr_locs"]) for b in held["blocks"]]
        axes = held["axes"]
    elif len(arguments) >= 2:
        given = arguments[0] if isinstance(arguments[0], (list, tuple)) else [arguments[0]]
        blocks = [block.arguments[:2] for block in given if _is_block(block)]
        axes = arguments[1]
        if len(blocks) != len(given):
            raise ValueError("not a block")
    else:
        raise ValueError("a data frame without blocks")
    labels = [listed(to, to.of(axis)) for axis in axes]
    return [(to.of(values), _places(to, place)) for values, place in blocks], labels


def _is_block(value: Any) -> bool:
    return isinstance(value, Made) and value.name.name in ("_unpickle_block", "new_block")


def _places(to: Any, value: Any) -> list[int]:
    if isinstance(value, Made) and value.name.name == "BlockPlacement":
        value = value.arguments[0]
    if isinstance(value, Made) and value.name.name == "slice":
        start, stop, step = (*value.arguments, None, None)[:3]
        places = range(*slice(start, stop, step).indices(1_000_000))
        return list(places)
    if isinstance(value, int):
        return [value]
    return [int(place) for place in listed(to, to.of(value))]


def _rows_of(to: Any, values: Any, count: int) -> list[list[Any]]:
    """The columns of a block: a block is an array of (columns × rows), or one column."""
    if isinstance(values, list) and (not values or isinstance(values[0], list)) and count != 1:
        return [listed(to, row) for row in values]
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
        return [listed(to, values[0])]
    if getattr(values, "ndim", 1) == 2:
        return [listed(to, row) for row in values]
    return [listed(to, values)]


def _index(to: Any, value: Made) -> list[Any]:
    """`_new_Index(class, {data, name})`, or a range of {start, stop, step}."""
    if len(value.arguments) != 2 or not isinstance(value.arguments[1], dict):
        raise ValueError("an index without its data")
    parts = value.arguments[1]
    if "data" in parts:
        return listed(to, to.of(parts["data"]))
    if not all(isinstance(parts.get(key), int) for key in ("start", "stop", "step")):
        raise Refused("the pickle holds an index of several levels, or of another kind")
    numbers = range(parts["start"], parts["stop"], parts["step"])
    to.spend(len(numbers))
    return list(numbers)


def _backed(to: Any, value: Made) -> Any:
    """`StringArray`, `Categorical`, `DatetimeArray`…: an array and what it means."""
    state = value.state
    if isinstance(state, tuple):
        parts = [part for part in state if _is_array(part)]
        kinds = [part for part in state if isinstance(part, Made) and not _is_array(part)]
        values = parts[0] if parts else None
        kind = kinds[0] if kinds else None
    elif isinstance(state, dict):
        values = state.get("_ndarray", state.get("_codes", state.get("_data")))
        kind = state.get("_dtype")
    else:
        values = kind = None
    if values is None:
        raise ValueError("a column without its values")
    if isinstance(kind, Made) and kind.name.name == "CategoricalDtype":
        categories = listed(to, to.of(_categories(kind)))
        codes = listed(to, to.of(values))
        if not all(isinstance(code, int) and -1 <= code < len(categories) for code in codes):
            raise ValueError("a category that does not exist")
        return [None if code < 0 else categories[code] for code in codes]
    return to.of(values)


def _is_array(value: Any) -> bool:
    return isinstance(value, Made) and value.name.name in ("_reconstruct", "_frombuffer")


def _categories(kind: Made) -> Any:
    if isinstance(kind.state, dict):
        return kind.state.get("categories")
    return kind.arguments[0] if kind.arguments else None


def _masked(to: Any, value: Made) -> list[Any]:
    """`IntegerArray`, `FloatingArray`, `BooleanArray`: values and where they are missing."""
    state = value.state if isinstance(value.state, dict) else {}
    data, mask = listed(to, to.of(state.get("_data"))), listed(to, to.of(state.get("_mask")))
    if len(data) != len(mask):
        raise ValueError("a column whose mask has another length")
    return [None if missing else item for item, missing in zip(data, mask, strict=True)]


def _arrow(to: Any, value: Made) -> list[Any]:
    state = value.state if isinstance(value.state, dict) else {}
    return strings(to, state.get("_pa_array", state.get("_data")))


KNOWN: dict[str, Callable[[Any, Made], Any]] = {
    "DataFrame": _frame,
    "Series": _series,
    "_new_Index": _index,
    "__pyx_unpickle_NDArrayBacked": _backed,
    "Categorical": _backed,
    "StringArray": _backed,
    "NumpyExtensionArray": _backed,
    "PandasArray": _backed,
    "IntegerArray": _masked,
    "FloatingArray": _masked,
    "BooleanArray": _masked,
    "ArrowStringArray": _arrow,
    "ArrowExtensionArray": _arrow,
}
