"""Servers of an installed release of PostgreSQL, such as a distribution packages it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from connectors.postgres.server.programs import give, identity, server_user

INSTALLED = Path("/usr/lib/postgresql")
NO_SETTINGS: Mapping[str, str] = {}


@contextmanager
def older_server(release: str, settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[str]:
    """The maintenance database of a server of an installed release.

    It is no server of root's, is in no folder of root's, and sorts texts as people do.
    """
    programs = INSTALLED / release / "bin"
    if not (programs / "initdb").exists():
        pytest.skip(f"PostgreSQL {release} is not installed here")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    if os.geteuid() == 0:
        give(folder, server_user())

    def call(name: str, *arguments: str) -> None:
        command = [str(programs / name), "-D", str(folder), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **identity(folder))

    locale = ("--locale=C", "--locale-provider=icu", "--icu-locale=de")
    call("initdb", "--auth=trust", "-U", "postgres", "--encoding=UTF8", *locale, "--no-sync")
    given = " ".join(f"-c {name}={value}" for name, value in settings.items())
    options = f"-k {folder} -h '' -F {given}"
    call("pg_ctl", "start", "--wait", "--silent", "-l", f"{folder}/log", "-o", options)
    try:
        yield f"postgresql://postgres:@/postgres?host={folder}&port=5432"
    finally:
        call("pg_ctl", "stop", "--wait", "--silent", "--mode=immediate")
        shutil.rmtree(folder)
