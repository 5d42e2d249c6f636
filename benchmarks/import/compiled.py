"""What the compiled loops cost to load and make, and what they save; no database.

    python benchmarks/import/compiled.py --rows 1000000

Every line is a process of its own. The first one makes the machine code, the others find it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT))

from connectors.files.chunks.reader import first_place, read_chunks  # noqa: E402
from connectors.files.layout.header import read_header  # noqa: E402
from connectors.files.profiles.profile import DEFAULT  # noqa: E402
from connectors.files.text.content import open_content  # noqa: E402
from connectors.postgres.batches.ledger import Extract  # noqa: E402
from connectors.settings import MOST, Limits  # noqa: E402
from flows.stages.chunks.write_out import write_out  # noqa: E402

EXTRACT = Extract(1, 1, "payments.csv", None, None, None, None, None, None, None)
CACHE = Path.home() / ".cache" / "recon-benchmarks"
WAYS = {
    "first run: numba loaded, code made": "0",
    "second run: code found, without numba": "0",
    "compiled": "0",
    "strict": str(MOST),
}


def main() -> None:
    """Measure each line in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--cache", type=Path, default=CACHE)
    asked = parser.parse_args()
    from extracts import make_extracts  # noqa: PLC0415

    asked.cache.mkdir(parents=True, exist_ok=True)
    path = make_extracts(asked.cache.resolve() / "extracts", asked.rows).clean
    print(f"{'':42}{'load':>8}{'split':>8}{'write':>8}   CPU seconds, {asked.rows:,} rows")
    with tempfile.TemporaryDirectory() as folder:
        known = os.environ | {"NUMBA_CACHE_DIR": folder}
        for title, strict_bytes in WAYS.items():
            command = [sys.executable, __file__, "--child", str(path), strict_bytes]
            done = subprocess.run(command, env=known, capture_output=True, text=True, check=True)
            print(f"{title:42}" + "".join(f"{float(one):8.2f}" for one in done.stdout.split()))


def child(path: Path, strict_bytes: int) -> None:
    """Load, split, and type and write out one file, the loops being loaded before the last."""
    limits = Limits()
    content = open_content(path)
    header = read_header(content, None, DEFAULT, limits)
    begun = time.process_time()
    chunks = list(read_chunks(content, header, first_place(header), limits.block_bytes))
    split = time.process_time() - begun
    begun = time.process_time()
    write_out(chunks[0], header, DEFAULT, EXTRACT, strict_bytes=strict_bytes)
    first = time.process_time() - begun
    begun = time.process_time()
    for chunk in chunks[1:]:
        write_out(chunk, header, DEFAULT, EXTRACT, strict_bytes=strict_bytes)
    every = (time.process_time() - begun) * len(chunks) / (len(chunks) - 1)
    print(first - every / len(chunks), split, every)


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
