"""Environments of the peers: made once under the cache folder, never mixed with ours."""

import subprocess
import sys
import venv
from pathlib import Path

PEERS = {
    "dlt": ("dlt[postgres]==1.31.0", "adbc-driver-manager", "adbc-driver-postgresql", "pyarrow"),
    "duckdb": ("duckdb",),
    "server": ("httptools", "uvloop"),  # What requests are pushed to.
    "httpx": ("httpx==0.28.1", "sniffio"),
    "httpx_aiohttp": ("httpx==0.28.1", "httpx-aiohttp", "sniffio"),
    "aiohttp": ("aiohttp",),
    "datacompy": ("datacompy==1.1.0", "polars"),
    "reladiff": ("reladiff[postgresql]==0.6.0", "psycopg2-binary"),
    "validator": ("google-pso-data-validator==8.10.1",),
}
LISTED = (
    "dlt", "adbc-driver-postgresql", "pyarrow", "psycopg2-binary", "duckdb",
    "httptools", "uvloop", "httpx", "httpcore", "h11", "httpx-aiohttp", "aiohttp",
    "datacompy", "polars", "reladiff", "sqeleton",
    "google-pso-data-validator", "ibis-framework", "pandas",
)  # fmt: skip


class NotInstalled(SystemExit):
    """pip cannot make the environment of a peer here; ends a run that cannot leave it out."""


def peer_python(name: str, cache: Path) -> Path:
    """The interpreter of a peer's environment, which is made when it is not there yet."""
    folder = cache / f"environment-{name}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"making the environment for {name} in {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", *PEERS[name]]
        done = subprocess.run(install, check=False, capture_output=True, text=True)
        if done.returncode:
            raise NotInstalled(f"pip cannot make the environment for {name}:\n{done.stderr[-500:]}")
        (folder / "complete").touch()
    return python


def versions(python: Path) -> dict[str, str]:
    """What is installed there of the packages that matter."""
    program = (
        "import importlib.metadata as m\n"
        "for d in m.distributions():\n"
        "    print(d.metadata['Name'].lower(), d.version)"
    )
    output = subprocess.run([python, "-c", program], check=True, capture_output=True, text=True)
    installed = dict(line.split() for line in output.stdout.splitlines())
    return {name: installed[name] for name in LISTED if name in installed}
