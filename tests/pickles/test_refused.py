"""Pickles are programs: none of these runs."""

from __future__ import annotations

import importlib
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from routeyard.pipelines.common.errors import SourceError, Unsafe
from routeyard.pipelines.common.pickles import load
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import


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


@pytest.mark.parametrize(
    "body",
    [
        b"Pname\n.",  # a persistent id
        b"\x82\x01.",  # an extension of `copyreg`
        b"\x80\x04K\x05)R.",  # a call of a number
        b"\x80\x04]K\x05b.",  # the state of a list
        b"\x80\x04]N}\x92.",  # a list as a class
        b"(cos\nsystem\nS'true'\no.",
        b"(S'true'\nios\nsystem\n.",
    ],
)
def test_what_lies_outside_and_what_is_no_name_is_not_called(tmp_path, body):
    path = tmp_path / "x.pkl"
    path.write_bytes(body)
    with pytest.raises((Unsafe, SourceError)):
        load(path)


def test_every_opcode_of_this_python_has_been_looked_at():
    # The machine of the standard library does what an opcode says unless ours says otherwise: one
    # that a later version adds is read by whoever changes this number.
    assert len(pickle._Unpickler.dispatch) == 68
    assert pickle.HIGHEST_PROTOCOL == 5


def test_a_cut_pickle_is_named(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps({"a": np.arange(1000)})[:-100])
    with pytest.raises(SourceError, match="cannot be read"):
        load(path)


def _in_a_process_of_its_own(path: Path) -> subprocess.CompletedProcess[str]:
    """What reading does, told apart from a crash of the interpreter that reads."""
    code = (
        "import sys; from pathlib import Path\n"
        "from routeyard.pipelines.common.errors import RouteyardError\n"
        "from routeyard.pipelines.common.pickles import load\n"
        "try: print(repr(load(Path(sys.argv[1]))))\n"
        "except RouteyardError as error: print('refused:', type(error).__name__)\n"
    )
    words = [sys.executable, "-c", code, str(path)]
    return subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[2])


def _record_with_a_pointer() -> bytes:
    """A dtype V8 with an object field whose flags deny it, over eight bytes of the file."""

    def short(text: str) -> bytes:
        return b"\x8c" + bytes([len(text)]) + text.encode()

    kind = short("numpy") + short("dtype") + b"\x93" + short("O8") + b"\x89\x88\x87R"
    fields = b"}" + short("f") + kind + b"K\x00\x86s"
    state = b"(K\x03" + short("|") + b"N" + short("f") + b"\x85" + fields
    state += b"K\x08K\x01K\x00t"  # itemsize, alignment, flags 0: "no objects in here"
    record = (
        short("numpy") + short("dtype") + b"\x93" + short("V8") + b"\x89\x88\x87R" + state + b"b"
    )
    pointer = b"C\x08" + struct.pack("<Q", 0x4141414141414141)
    call = short("numpy._core.numeric") + short("_frombuffer") + b"\x93"
    return b"\x80\x04" + call + b"(" + pointer + record + b"K\x01\x85" + short("C") + b"tR."


def test_bytes_of_the_file_are_never_followed_as_pointers(tmp_path):
    # NumPy itself follows them: the array's only element is an object at 0x4141414141414141.
    path = tmp_path / "x.pkl"
    path.write_bytes(_record_with_a_pointer())
    done = _in_a_process_of_its_own(path)
    assert (done.returncode, done.stdout) == (0, "refused: Unsafe\n"), done


@pytest.mark.parametrize("offsets", [(0, 1 << 20), (-64, 4), (4, 0), (0, 5)])
def test_offsets_of_an_arrow_column_stay_inside_its_buffer(tmp_path, offsets):
    class Buffer:
        def __init__(self, data: bytes):
            self.data = data

        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return pa.py_buffer, (self.data,)

    class Column:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            buffers = [None, Buffer(struct.pack("<2q", *offsets)), Buffer(b"text")]
            parts = (pa.large_string(), 1, 0, 0, buffers, [], None)
            return pa.lib._restore_array, (parts,)

    class Frame:
        def __reduce__(self) -> tuple[object, ...]:
            return pd.arrays.ArrowStringArray, (), {"_pa_array": Column()}

    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(Frame(), protocol=4))
    with pytest.raises(SourceError, match="Arrow column"):
        load(path)


@pytest.mark.parametrize(
    ("name", "data"),
    {
        "a key nested 200,000 deep": b"\x80\x04}" + b")" + b"\x85" * 200_000 + b"Ns.",
        "a list nested 200,000 deep": b"\x80\x04" + b"]" * 200_000 + b"a" * 199_999 + b".",
        "a value that doubles a thousand times": b"\x80\x04)" + b"2\x86" * 1000 + b".",
        "a list that holds itself": b"\x80\x04]2a.",
        "a memo at four billion": b"\x80\x04Nr\xff\xff\xff\xff\x8e" + b"\xff" * 7 + b"\x7f.",
        "a text of exabytes": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        "a number of a million digits": b"\x80\x04I" + b"9" * 1_000_000 + b"\n.",
        "nothing": b"",
        "only an end": b".",
    }.items(),
)
def test_shapes_that_exhaust_a_reader_are_refused(tmp_path, name, data):
    path = tmp_path / "x.pkl"
    path.write_bytes(data)
    done = _in_a_process_of_its_own(path)
    assert done.returncode == 0, (name, done.stderr[-400:])
    assert done.stdout.startswith("refused:"), name


def test_columns_that_share_their_bytes_cannot_fill_memory(tmp_path, monkeypatch):
    shared = np.zeros(10_000)
    path = tmp_path / "x.pkl"
    column = pd.Series(shared)
    path.write_bytes(pickle.dumps([pd.Series(column.array, copy=False) for _ in range(30)]))
    monkeypatch.setattr("routeyard.pipelines.common.pickles.MAX_CELLS", 100_000)
    with pytest.raises(SourceError, match="more than 100,000 cells"):
        load(path)
