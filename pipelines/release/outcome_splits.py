"""`outcomes` once more, one Parquet file for each split of each scheme.

`datasets`, polars and DuckDB read a split as a file. The files of a scheme hold every row of
`outcomes` once; a split without rows has no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.release.fingerprint import Content
from routeyard.pipelines.release.tables import ROWS_PER_GROUP, GroupWriter
from routeyard.schemas import OUTCOMES
from routeyard.schemas.split_files import SPLITS, UNASSIGNED, folder_names, split_file


class OutcomeSplits:
    """Where each row of `outcomes` goes, by the number of its query.

    Args:
        splits: SPLITS of all schemes.
        query_ids: All ids in released order.
    """

    def __init__(self, splits: pa.Table, query_ids: pa.Array) -> None:
        names = folder_names(set(splits.column("scheme").to_pylist()))
        places = pc.index_in(splits.column("query_id"), value_set=query_ids)
        codes = pc.index_in(splits.column("split"), value_set=pa.array(SPLITS))
        #: Folder → for each query, which of `SPLITS` it is in.
        self._split_of: dict[str, Ints] = {}
        for scheme, folder in names.items():
            here = pc.and_(pc.equal(splits.column("scheme"), scheme), pc.is_valid(places))
            split_of = np.full(len(query_ids), SPLITS.index(UNASSIGNED))
            split_of[places.filter(here).to_numpy()] = codes.filter(here).to_numpy()
            self._split_of[folder] = split_of

    def parts(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """(path in the release, rows of it) of some rows, at most a row group at a time."""
        for start in range(0, rows.num_rows, ROWS_PER_GROUP):
            some = rows.slice(start, ROWS_PER_GROUP)
            numbers = some.column("query_no").to_numpy()
            for folder, split_of in self._split_of.items():
                found = split_of[numbers]
                for code in np.unique(found):
                    yield split_file(folder, SPLITS[code]), some.filter(pa.array(found == code))


class SplitWriter(ExitStack):
    """Writes the files of `OutcomeSplits`. Use as a context manager."""

    def __init__(self, splits: OutcomeSplits, release: Path) -> None:
        super().__init__()
        self._splits, self._release = splits, release
        self._writers: dict[str, GroupWriter] = {}

    def write(self, rows: pa.Table) -> None:
        for name, part in self._splits.parts(rows):
            if name not in self._writers:
                path = self._release / name
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = GroupWriter(path, OUTCOMES.schema, counting=["query_no"])
                self._writers[name] = self.enter_context(writer)
            self._writers[name].write(part)


class SplitContents:
    """Fingerprints of what the files of `OutcomeSplits` have to say."""

    def __init__(self, splits: OutcomeSplits) -> None:
        self._splits = splits
        self._contents: dict[str, Content] = {}

    def update(self, rows: pa.Table) -> None:
        for name, part in self._splits.parts(rows):
            self._contents.setdefault(name, Content(OUTCOMES.schema)).update(part)

    def digests(self) -> dict[str, str]:
        """Path in the release → fingerprint."""
        return {name: content.hexdigest() for name, content in self._contents.items()}
