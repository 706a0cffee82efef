"""The room on a disk that a command which nobody was asked about leaves to others."""

import os
from pathlib import Path

_MOST = 2 << 30
_SHARE = 20
"""One part in so many of the disk."""


class DiskFloor:
    """The least room to leave on a folder's disk: 2 GiB, 5 % of it, or half of what is free now, whatever is less."""

    def __init__(self, folder: Path) -> None:
        """Blocking."""
        self._folder = folder
        disk = os.statvfs(folder)
        self.bytes = min(_MOST, disk.f_blocks * disk.f_frsize // _SHARE, self._free() // 2)

    def is_reached(self) -> bool:
        """Blocking, for microseconds."""
        return self._free() <= self.bytes

    def _free(self) -> int:
        disk = os.statvfs(self._folder)
        return disk.f_bavail * disk.f_frsize
