"""Pickles are programs: none of these runs."""

from __future__ import annotations

import importlib
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipelines.errors import SourceError, Unsafe
from pipelines.ingest.importers import IMPORTERS
from pipelines.ingest.importers.unpickle import load
from pipelines.ingest.importers.write import run_import


class _Runs:
    def __init__(self, call: object, *arguments: object) -> None:
        self.call = (call, arguments)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call  # type: ignore[return-value]


def _evil(mark: Path) -> dict[str, object]:
    import builtins
    import subprocess

    code = f"open({str(mark)!r}, 'w').close()"
    return {
        "os.system": _Runs(os.system, f"touch {mark}"),
        "eval": _Runs(builtins.eval, code),
        "exec": _Runs(builtins.exec, code),
        "subprocess": _Runs(subprocess.Popen, ["touch", str(mark)]),
        "open": _Runs(open, str(mark), "w"),
        "getattr": _Runs(getattr, "os", "system"),
        "import": _Runs(__import__, "os"),
        "importlib": _Runs(importlib.import_module, "os"),
        "pandas": _Runs(pd.read_pickle, str(mark)),
        "pandas eval": _Runs(pd.eval, "1"),
    }


@pytest.mark.parametrize("name", list(_evil(Path("x"))))
def test_a_malicious_pickle_runs_nothing(tmp_path, name):
    mark = tmp_path / "ran"
    path = tmp_path / "routerbench_0shot.pkl"
    path.write_bytes(pickle.dumps({"frame": _evil(mark)[name]}))
    with pytest.raises(Unsafe) as error:
        run_import(IMPORTERS.get("routerbench"), path, tmp_path / "imports" / "routerbench")
    assert error.value.exit_code == 2
    assert str(path) in str(error.value)
    assert not mark.exists()
    assert not (tmp_path / "imports" / "routerbench").exists()


def test_a_pickle_inside_a_numpy_scalar_is_not_opened(tmp_path):
    mark = tmp_path / "ran"
    inner = pickle.dumps(_Runs(os.system, f"touch {mark}"))

    class Scalar:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return np._core.multiarray.scalar, (np.dtype("O"), inner)

    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(Scalar()))
    with pytest.raises(Unsafe):
        load(path)
    assert not mark.exists()


def test_stack_global_with_a_dotted_name_is_refused(tmp_path):
    # Protocol 4 resolves `DataFrame.eval` by attribute; the list knows whole names only.
    def short(text: bytes) -> bytes:
        return b"\x8c" + struct.pack("B", len(text)) + text

    body = short(b"pandas.core.frame") + short(b"DataFrame.eval") + b"\x93."
    path = tmp_path / "x.pkl"
    path.write_bytes(b"\x80\x04" + body)
    with pytest.raises(Unsafe, match=r"DataFrame\.eval"):
        load(path)


def test_data_frames_and_arrays_are_read(tmp_path):
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x", None], "c": [True, False], "d": [1, 2]})
    frame["e"] = frame["b"].astype("category")
    frame["f"] = frame["b"].astype("object")
    for protocol in (2, 4, 5):
        path = tmp_path / f"{protocol}.pkl"
        path.write_bytes(
            pickle.dumps({"frame": frame, "array": np.eye(2), "n": np.float32(3)}, protocol)
        )
        found = load(path)
        pd.testing.assert_frame_equal(found["frame"], frame)
        assert found["array"].tolist() == [[1, 0], [0, 1]]
        assert found["n"] == 3


def test_a_cut_pickle_is_named(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps({"a": np.arange(1000)})[:-100])
    with pytest.raises(SourceError, match="cannot be read"):
        load(path)
