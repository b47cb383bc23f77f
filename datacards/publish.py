"""Publishing to a dataset hub: the card, the files, and a tag that marks the version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeyard.schemas.errors import BadInput, RouteyardError


class HubError(RouteyardError):
    """The hub refused, or could not be reached."""


@dataclass(frozen=True, slots=True)
class HubUpload:
    """Where a release went; `sent` lists its files, `dry_run` says that nothing went.

    `asked`: whether the hub could be asked what is there; a dry run does without.
    """

    url: str
    tag: str
    sent: tuple[str, ...]
    dry_run: bool
    asked: bool = True


def publish_hub(
    release: Path,
    repository: str,
    *,
    version: str,
    names: Sequence[str],
    private: bool = False,
    dry_run: bool = False,
) -> HubUpload:
    """Upload a release to `org/name` as a dataset and tag it `v<version>`.

    The tag comes last: a version without its tag was cut off and is continued
    by the same call, which sends only what the hub lacks. The token is read
    from the environment (`HF_TOKEN`) by the client and is kept nowhere else.

    Args:
        names: Files to send, relative to `release`; the last is the manifest, which seals them.

    Where the tag is there already with the same manifest, nothing is sent.

    Raises:
        BadInput: the tag is there already, with other content.
        HubError: any answer of the hub that stops the upload.
    """
    from huggingface_hub import HfApi, HfFileSystem
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    api = HfApi()
    tag = f"v{version}"
    url = f"{api.endpoint}/datasets/{repository}"
    try:
        try:
            refs = api.list_repo_refs(repository, repo_type="dataset")
        except RepositoryNotFoundError:
            refs = None
        if refs is not None and tag in {result.name for result in refs.tags}:
            there = HfFileSystem().cat_file(f"datasets/{repository}@{tag}/{names[-1]}")
            if there == (release / names[-1]).read_bytes():
                return HubUpload(url, tag, (), dry_run)
            raise BadInput(
                f"{repository} holds version {version} with other content",
                where=f"{url}/tree/{tag}",
                next_step="build a new version; a published one is never changed",
            )
        if dry_run:
            return HubUpload(url, tag, tuple(names), dry_run=True)
        if refs is None:
            api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        # The hub's own index holds one version; a file that left the release leaves the hub.
        _upload(api, release, repository, version, names)
        api.create_tag(repository, tag=tag, repo_type="dataset", tag_message=f"Release {version}")
    except RouteyardError:
        raise
    except Exception as error:
        lost = _unreached(error)
        if lost and dry_run:
            return HubUpload(url, tag, tuple(names), dry_run=True, asked=False)
        if lost or isinstance(error, HfHubHTTPError | OSError | ValueError | RuntimeError):
            raise _refused(error, url, lost) from error
        raise
    return HubUpload(url, tag, tuple(names), dry_run=False)


def _upload(api: Any, release: Path, repository: str, version: str, names: Sequence[str]) -> None:
    api.upload_folder(
        repo_id=repository,
        repo_type="dataset",
        folder_path=str(release),
        allow_patterns=[_literal(name) for name in names],
        delete_patterns=["data/*", "plots/*", "*.duckdb", "*.sha256", "*.sig", "YANKED.json"],
        commit_message=f"Release {version}",
    )


def _literal(name: str) -> str:
    """A file name as a pattern that matches nothing else."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


def _unreached(error: Exception) -> bool:
    """Whether no answer came: no network, no such host, `HF_HUB_OFFLINE`, a cut connection."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    if isinstance(error, HfHubHTTPError | LocalTokenNotFoundError):
        return False
    # The client's transport has its own tree of errors.
    transport = ("httpx", "httpx2", "httpcore", "httpcore2", "requests")
    return isinstance(error, ConnectionError | TimeoutError) or (
        type(error).__module__.split(".")[0] in transport
    )


def _refused(error: Exception, url: str, lost: bool) -> HubError:
    first = str(error).strip().splitlines()
    said = first[0][:300] if first else type(error).__name__
    status = getattr(getattr(error, "response", None), "status_code", 401)
    what, mend = "stopped the upload", "correct what it names"
    if lost:
        what, mend = "does not answer", "see to the network (and that HF_HUB_OFFLINE is not set)"
    elif status in (401, 403, 404):  # to those without a right to it, a repository is not there
        mend = "set HF_TOKEN to a token that may write"
    elif status == 429 or status >= 500:
        mend = "wait until the hub is well again"
    again = "and run the same command: what has arrived is not sent again"
    return HubError(f"the hub {what}: {said}", where=url, next_step=f"{mend}, {again}")
