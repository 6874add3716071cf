"""Which journal SQLite may keep: a write-ahead log needs memory that all writers share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

JournalMode = Literal["wal", "delete"]

MOUNTS = Path("/proc/self/mountinfo")

# File systems that several machines may write. SQLite: "WAL does not work over a network
# filesystem" (https://www.sqlite.org/wal.html).
NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|afs|9p|ceph|lustre|gpfs|beegfs|orangefs|pvfs2|ocfs2|gfs2"
    r"|fuse\.(?!fuse-overlayfs|snapfuse).*"
)


def journal_for(folder: Path, mounts: Path = MOUNTS) -> JournalMode:
    """`wal`, or `delete` where `folder` lies on a network file system."""
    return "delete" if NETWORK.fullmatch(filesystem_of(folder, mounts)) else "wal"


def filesystem_of(folder: Path, mounts: Path = MOUNTS) -> str:
    """The type of the file system that holds `folder`; empty where the system does not say."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    path = folder.resolve()
    best, found = -1, ""
    for line in lines:
        place, _, rest = line.partition(" - ")
        fields = place.split(" ")
        if len(fields) < 5 or not rest:
            continue
        mount = Path(_unescape(fields[4]))
        # Of two mounts on one point the later one hides the earlier.
        if path.is_relative_to(mount) and len(mount.parts) >= best:
            best, found = len(mount.parts), rest.split(" ")[0]
    return found


def _unescape(field: str) -> str:
    """Spaces and the like stand as octal in mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)
