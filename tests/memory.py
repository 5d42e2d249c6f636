"""Where the files of tests are made: hundreds of thousands, most of them by CREATE DATABASE."""

import os
import shutil
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from connectors.settings import MIB

MEMORY, ROOM = Path("/dev/shm"), 6 * 1024 * MIB
"""Where files are made in memory; a whole run takes less than this room there."""


def has_room(folder: Path) -> bool:
    """Whether the temporary files of a run find room in this file system of the memory.

    Some of them are programs.
    """
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return min(shutil.disk_usage(folder).free, psutil.virtual_memory().available) > ROOM
