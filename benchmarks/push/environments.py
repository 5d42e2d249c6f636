"""Environments of the peers and of the server: made once under the cache folder."""

import subprocess
import sys
import venv
from pathlib import Path

PEERS = {
    "server": ("httptools", "uvloop"),
    "httpx": ("httpx==0.28.1", "sniffio"),
    "httpx_aiohttp": ("httpx==0.28.1", "httpx-aiohttp", "sniffio"),
    "aiohttp": ("aiohttp",),
}
SHOWN = ("httptools", "uvloop", "httpx", "httpcore", "h11", "httpx-aiohttp", "aiohttp")


def peer_python(name: str, cache: Path) -> Path:
    """The interpreter of an environment, which is made when it is not there yet."""
    folder = cache / f"environment-push-{name}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"making the environment for {name} in {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", *PEERS[name]]
        done = subprocess.run(install, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"pip cannot make the environment for {name}:\n{done.stderr}")
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
    return {name: installed[name] for name in SHOWN if name in installed}
