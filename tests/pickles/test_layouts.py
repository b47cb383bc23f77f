"""Frames and arrays as several versions of pandas and NumPy wrote them."""

from __future__ import annotations

import datetime
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from routeyard.pipelines.common.pickles import Frame, load, read
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import

WRITTEN = Path(__file__).parent / "written"


@pytest.mark.parametrize("path", sorted(WRITTEN.glob("*.pkl")), ids=lambda path: path.stem)
def test_frames_that_older_versions_of_pandas_wrote(path):
    # Every kind of column that they knew; written by the versions in the files' names.
    found = load(path)
    assert isinstance(found, Frame)
    columns = dict(found.columns)
    assert np.isnan(columns["x"][1])
    columns["x"][1] = None
    columns.pop("sa", None)  # needs pyarrow, which the oldest did not have
    assert columns == {
        "sample_id": ["a", "b", None],
        "n": [1, 2, 3],
        "x": [0.5, None, 1.0],
        "ok": [True, False, True],
        "o": [1.5, None, "t"],
        "c": ["u", "v", "u"],
        "s": ["u", None, "u"],
        "i8": [1, None, 3],
        "t": [datetime.datetime(2020, 1, 1)] * 3,
    }


@pytest.mark.parametrize("path", sorted(WRITTEN.glob("*.pkl")), ids=lambda path: path.stem)
def test_the_limited_process_hands_over_what_it_read(path, tmp_path):
    for found, expected in zip(read(path).rows(), load(path).rows(), strict=True):
        assert repr(found) == repr(expected)
    content = {
        "scores": np.arange(6.0).reshape(2, 3).T,
        ("a", 1): [b"\xff", 2**80, float("nan"), None, (1j, "\ud800"), {}],
        "n": np.float32(3),
        "when": np.array(["2020-01-01"], "M8[ns]"),
        "none": np.zeros((0, 3), np.int8),
        "frame": pd.DataFrame({"a": [1]}),
    }
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(content))
    found, expected = read(tmp_path / "x.pkl"), load(tmp_path / "x.pkl")
    assert repr(found) == repr(expected)
    assert [type(value) for value in found.values()] == [type(v) for v in expected.values()]
    with pytest.raises(ValueError, match="read-only"):
        found["scores"][0] = 1


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_frames_of_this_pandas(tmp_path, protocol):
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x", None], "c": [True, False], "d": [1, 2]})
    frame["e"] = frame["b"].astype("category")
    frame["f"] = frame["b"].astype("object")
    frame["g"] = pd.Series([np.float64(0.25), "1"], dtype=object)
    frame["h"] = np.array(["é", "ü"], dtype=object)
    frame["i"] = pd.array([7, None], dtype="Int64")
    path = tmp_path / "x.pkl"
    content = {
        "frame": frame,
        "array": np.eye(2),
        "n": np.float32(3),
        "names": np.array(["m", "n"]),
        "sets": [frozenset("ab"), {1, 2}, bytearray(b"x")],
    }
    path.write_bytes(pickle.dumps(content, protocol))
    found = load(path)
    rows = list(found["frame"].rows())
    assert rows[0] == {
        "a": 1.5, "b": "x", "c": True, "d": 1, "e": "x", "f": "x", "g": 0.25, "h": "é", "i": 7,
    }  # fmt: skip
    assert [rows[1][name] for name in "begi"] == [None, None, "1", None]
    assert found["array"].tolist() == [[1, 0], [0, 1]]
    assert found["n"] == 3
    assert found["names"].tolist() == ["m", "n"]
    assert found["sets"] == [{"a", "b"}, {1, 2}, b"x"]


@pytest.mark.parametrize("kind", [float, object, "U3", "float32"])
def test_the_layout_of_an_array_does_not_change_its_rows(tmp_path, kind):
    given = np.asfortranarray(np.arange(6).reshape(2, 3).astype(kind))
    for protocol in (2, 5):
        (tmp_path / "x.pkl").write_bytes(pickle.dumps(given, protocol))
        found = load(tmp_path / "x.pkl")
        assert [list(row) for row in found] == given.tolist()
    turned = pd.DataFrame(given.T, columns=["a", "b"])
    turned.to_pickle(tmp_path / "y.pkl")
    assert load(tmp_path / "y.pkl").columns["b"] == list(turned["b"])


def test_an_array_is_not_copied_and_cannot_be_written(tmp_path):
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(np.arange(10)))
    with pytest.raises(ValueError, match="read-only"):
        load(tmp_path / "x.pkl")[0] = 1


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_routerbench_with_its_scores_as_objects(tmp_path, protocol):
    frame = pd.DataFrame(
        {
            "sample_id": ["mmlu.val.1", "gsm.dev.2"],
            "prompt": ["['1+1?']", "['2+2?']"],
            "eval_name": ["mmlu", "gsm"],
            "gpt-4": np.array([np.float64(1.0), 0.0], dtype=object),
            "gpt-4|model_response": ["['2']", "['5']"],
            "gpt-4|total_cost": np.array([0.5, 0.25]),
        }
    )
    frame.to_pickle(tmp_path / "routerbench_0shot.pkl", protocol=protocol)
    done = run_import(IMPORTERS.get("routerbench"), tmp_path, tmp_path / "out")
    assert done.answers == 2
