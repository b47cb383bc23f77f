"""Which kind of file system a path is on."""

from __future__ import annotations

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
#: Kinds that several hosts can mount at once; of `fuse` those whose name tells nothing else.
_NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs",
    "beegfs", "orangefs", "pvfs2", "ocfs2", "gfs2", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph",
    "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.beegfs", "fuse.moosefs",
})  # fmt: skip


def is_network(path: Path) -> bool:
    """Whether a path is on a file system that other hosts may have mounted too."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        where = path.resolve()
    except OSError:
        return False
    kind, depth = "", -1
    for line in lines:
        fields, _, rest = line.partition(" - ")
        words = fields.split()
        if len(words) < 5 or not rest:
            continue
        point = Path(_plain(words[4]))
        if where.is_relative_to(point) and len(point.parts) >= depth:  # a later mount covers
            kind, depth = rest.split()[0], len(point.parts)
    return kind in _NETWORK


def _plain(text: str) -> str:
    """A mount point without the escapes that the kernel writes."""
    for sign in " \t\n\\":
        text = text.replace(f"\\{ord(sign):03o}", sign)
    return text
