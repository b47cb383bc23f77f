"""Pickles of data frames and arrays, read without running anything they ask for.

A pickle is a program. This reader knows only the constructors that pandas and
NumPy need to put arrays together; any other name, and any NumPy array of
objects that carries its own pickle, is refused before it is looked up.
"""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

from pipelines.errors import SourceError, Unsafe

MAX_BYTES = 8_000_000_000

#: module → names. Old spellings are read as the new ones.
_ALLOWED: dict[str, frozenset[str]] = {
    "builtins": frozenset({"slice", "complex", "set", "frozenset", "bytearray"}),
    "collections": frozenset({"OrderedDict"}),
    "numpy": frozenset({"ndarray", "dtype"}),
    "numpy._core.multiarray": frozenset({"_reconstruct", "scalar"}),
    "numpy._core.numeric": frozenset({"_frombuffer"}),
    "pandas": frozenset(
        {"Categorical", "CategoricalDtype", "DataFrame", "Index", "NA", "RangeIndex", "StringDtype"}
    ),
    "pandas.arrays": frozenset({"ArrowStringArray", "StringArray"}),
    "pandas.core.frame": frozenset({"DataFrame"}),
    "pandas.core.series": frozenset({"Series"}),
    "pandas.core.internals.managers": frozenset({"BlockManager", "SingleBlockManager"}),
    "pandas.core.internals.blocks": frozenset({"new_block"}),
    "pandas._libs.internals": frozenset({"_unpickle_block", "BlockPlacement"}),
    "pandas.core.indexes.base": frozenset({"_new_Index", "Index"}),
    "pandas.core.indexes.range": frozenset({"RangeIndex"}),
    "pandas.core.arrays.string_": frozenset({"StringDtype", "StringArray"}),
    "pandas.core.arrays.string_arrow": frozenset({"ArrowStringArray"}),
    "pandas.core.arrays.numpy_": frozenset({"NumpyExtensionArray"}),
    "pandas.core.dtypes.dtypes": frozenset({"NumpyEADtype"}),
    "pandas._libs.arrays": frozenset({"__pyx_unpickle_NDArrayBacked"}),
    "pyarrow.lib": frozenset(
        {"type_for_alias", "_restore_array", "py_buffer", "chunked_array", "_reconstruct_table"}
    ),
}
_RENAMED = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "numpy.core.numeric": "numpy._core.numeric",
    "pandas.core.indexes.numeric": "pandas.core.indexes.base",
}
_INDEX_NAMES = {"Int64Index", "Float64Index", "UInt64Index", "NumericIndex"}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        module = _RENAMED.get(module, module)
        if module == "pandas.core.indexes.base" and name in _INDEX_NAMES:
            name = "Index"
        if (module, name) == ("_codecs", "encode"):
            return _latin1
        if name not in _ALLOWED.get(module, frozenset()):
            raise Unsafe(
                f"the pickle asks for {module}.{name}, which data do not need",
                next_step="do not open this file with anything else: it may run code; "
                "get the data as Parquet, CSV or JSON",
            )
        if (module, name) == ("numpy._core.multiarray", "scalar"):
            return _scalar
        return getattr(importlib.import_module(module), name)

    def persistent_load(self, pid: Any) -> Any:
        raise Unsafe("the pickle refers to things outside itself")


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    """How protocol 2 writes bytes."""
    if encoding != "latin1":
        raise Unsafe(f"the pickle asks for the codec {encoding!r}")
    return text.encode("latin1")


def _scalar(dtype: Any, data: Any = None) -> Any:
    # NumPy would unpickle the bytes of an object scalar without any restriction.
    if getattr(dtype, "hasobject", True) or not isinstance(data, bytes):
        raise Unsafe("the pickle holds a NumPy scalar of objects")
    from numpy import frombuffer

    return frombuffer(data, dtype=dtype, count=1)[0]


def load(path: Path) -> Any:
    """The object in a pickle of data frames, arrays, dictionaries and lists.

    Raises:
        Unsafe: it asks for anything else.
        SourceError: it is damaged, or too large.
    """
    if path.stat().st_size > MAX_BYTES:
        raise SourceError("the pickle is too large", where=str(path))
    try:
        with path.open("rb") as stream:
            return _Restricted(stream).load()
    except Unsafe as error:
        raise Unsafe(error.what, where=str(path), next_step=error.next_step) from error
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a damaged pickle raises anything
        raise SourceError(
            f"the pickle cannot be read: {type(error).__name__}: {str(error)[:200]}",
            where=str(path),
            next_step="fetch the file again, or write it anew with a newer pandas",
        ) from error
