"""`outcomes` by split: names of the Parquet files of a release, and of the configs of its card."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

#: Scheme of the split that a source published.
PUBLISHED = "upstream"
#: Folder of the files in a release.
FOLDER = "data/outcomes"
#: Rows of questions that are in no split of the scheme.
UNASSIGNED = "unassigned"
#: Splits in the order in which `datasets` joins them as `split="all"`.
SPLITS = ("train", "validation", "test", UNASSIGNED)


def usual_scheme(schemes: Collection[str]) -> str:
    """The scheme used where none is named: the published one, else `dense`, else the first."""
    usual = (name for name in (PUBLISHED, "dense") if name in schemes)
    return next(usual, None) or min(schemes)


def folder_names(schemes: Collection[str]) -> dict[str, str]:
    """Scheme → its name as part of a path: `ood:not math` is `ood-not-math`.

    Names that would be one file, also where files have no case, end in a digest of the scheme.
    """
    plain = {name: re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] for name in schemes}
    taken = [short.lower() for short in plain.values()]
    return {
        name: short
        if short and taken.count(short.lower()) == 1
        else f"{short or 'scheme'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        for name, short in sorted(plain.items())
    }


def split_file(folder: str, split: str) -> str:
    """Path in a release of one split's outcomes."""
    return f"{FOLDER}/{folder}/{split}.parquet"


def config_name(scheme: str, folder: str, schemes: Collection[str]) -> str:
    """Name of the config of a scheme: `outcomes` for the usual one, else `outcomes__<folder>`."""
    return "outcomes" if scheme == usual_scheme(schemes) else f"outcomes__{folder}"
