"""Golden files: what is rendered, byte for byte; RECON_GOLDEN=write writes them anew."""

import os
import re
from pathlib import Path


def hold(path: Path, rendered: bytes) -> None:
    """The rendering is that of the file."""
    if os.environ.get("RECON_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(rendered)
    assert path.is_file(), f"{path.name} is missing; RECON_GOLDEN=write writes it"
    assert rendered == path.read_bytes(), f"{path.name} differs; RECON_GOLDEN=write rewrites it"


def without_lines_of(rendered: bytes, *sources: Path) -> bytes:
    """A page without those lines of its style and script that stand in files of ours."""
    ours = {line for path in sources for line in path.read_text().split("\n")}
    parts = re.split(
        r"(<style>.*?</style>|<script>.*?</script>)", rendered.decode(), flags=re.DOTALL
    )
    for place in range(1, len(parts), 2):
        parts[place] = "\n".join(line for line in parts[place].split("\n") if line not in ours)
    return "".join(parts).encode()
