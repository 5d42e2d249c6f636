"""Naming the result files of a comparison: a report is only ever beside its own files."""

import os
from collections.abc import Mapping
from pathlib import Path

from connectors.compare.unreadable import NAME as UNREADABLE
from connectors.errors import SidesRefused
from connectors.files.disk.atomic import PRIVATE_FILE, place_files, private_folder

REPORT = "report.html"
RESULTS = ("differences.csv", "differences.parquet", UNREADABLE, "summary.json", REPORT)


def check_names(folder: Path) -> None:
    """Raise SidesRefused if a result could not have its name in the folder."""
    if folder.exists() and not folder.is_dir():
        raise SidesRefused(f"{folder} is not a folder. Name one for --out.")
    for name in RESULTS:
        if (folder / name).is_dir():
            raise SidesRefused(
                f"{folder / name} is a folder, and a result is to have its name. Move it away, or "
                "name another folder with --out."
            )


def place_results(finished: Mapping[str, Path], folder: Path) -> None:
    """Move finished files, by the names of RESULTS, into a folder on the same disk.

    The report comes last: if it is there, so are all other files of its comparison.
    """
    for file in finished.values():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
        # Files that polars wrote have the mode of the umask.
        file.chmod(PRIVATE_FILE)
    check_names(private_folder(folder))
    place_files(folder, {name: finished[name] for name in RESULTS})
