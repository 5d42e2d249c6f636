"""Every command as each database role: it works, or says which right the role lacks."""

import io
import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from connectors.errors import ReconError
from connectors.files.profile import DEFAULT
from connectors.postgres.jobs import order_job
from connectors.sandbox import Sandbox, SandboxOptions, User
from flows.__main__ import COMMANDS, build_app
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.guards.roles import CONTROLLER, LOADER, MERGER, READER, statements
from schemas.jobs import JobKind
from tests.stages.payments import line, write

ROLES = (LOADER, MERGER, READER, CONTROLLER)
L, M, C, R = (frozenset({role}) for role in (LOADER, MERGER, CONTROLLER, READER))
ROWS, ALL = L | M, L | M | C | R

WHO = {
    # command -> the roles it works as; every other role is told that it lacks a right
    "status": ALL,
    "jobs": ALL,
    "breaks list": ALL,
    "report": ALL,
    "audit list": ALL,
    "audit verify": ALL,
    "audit witness": ALL,
    "archive verify": ROWS,
    "sends 1": ROWS,
    "row 1 first.csv --line 3": ROWS,
    "rejects 1 --out {home}/rejects": ROWS,
    "housekeeping --remove": ROWS,
    "import {home}/new.csv": M,
    "watch {home}/watched --once --settle 0": M,
    "rerun 4": ROWS,
    "job 1": ROWS,
    "release 2 --reason agreed": M,
    "discard 3 --reason wrong": ROWS,
    "undo 4 --reason wrong": M,
    "push 1": M,
    "restored --unsent unsent --reason moved": M,
    "resolve 1 --as resend --reason no --state refused": M,
    "pull avatars": ROWS,
    "breaks assign --state open --owner ann": C,
    "breaks propose --state open --until 2030-01-01 --reason agreed": C,
    "breaks comment --state open --text asked": C,
    "breaks accept --state open --until 2030-01-01 --reason agreed": C,
    "breaks reopen --state accepted --reason wrong": C,
    "breaks resolve --state open --at source --reason fixed": C,
    "sign prepare": C,
    "compare {url}&table=recon.payment {url}&table=recon.payment --key Id,TenantsId": ALL,
    "reconcile --as-of 2026-07-01 --batch 1": M,
}
ELSEWHERE = {"check", "profile", "demo", "fields", "sandbox", "up", "down", "deploy"} | {
    "login", "logout", "whoami", "user", "desk", "acceptance", "records"
}  # fmt: skip
"""Commands that ask no database, or one of their own, or whose right is an account's."""


def test_no_command_is_left_out() -> None:
    assert {command.split()[0] for command in WHO} | ELSEWHERE == set(COMMANDS)


def test_the_documentation_says_exactly_this_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "production.md").read_text()
    told = {
        row[0].strip("`"): tuple(cell == "yes" for cell in row[1:])
        for row in re.findall(r"^\| (`[a-z ]+`) \|" + r" (yes|no) \|" * 4 + "$", text, re.MULTILINE)
    }
    groups = {"archive", "audit", "breaks", "sign"}
    ours = {
        " ".join(words[: 2 if words[0] in groups else 1]): tuple(role in who for role in ROLES)
        for words, who in ((command.split(), who) for command, who in WHO.items())
    }
    assert told == ours


@pytest.fixture
def state(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """One batch in every state that a command asks for, a service, and a reconciliation."""
    url, home = str(workspace.settings.database_url), workspace.settings.home
    with psycopg.connect(url, autocommit=True) as owner:
        for statement in statements():
            owner.execute(statement)  # type: ignore[call-overload]
    options = SandboxOptions(port=0, users=(User("demo", "demo", ("Client", "Admin", "Partner")),))
    with Sandbox(options, url).running() as service:
        for name, value in {
            "HOME": str(home),
            "DATABASE_URL": url,
            "SERVICE_URL": service,
            "SERVICE_USER": "demo",
            "SERVICE_PASSWORD": "demo",
        }.items():
            monkeypatch.setenv(f"RECON_{name}", value)
        tight = replace(DEFAULT, budget_errors=0)
        for number, profile in enumerate((DEFAULT, tight, tight, DEFAULT), 1):
            name = "first.csv" if number == 1 else f"{number}.csv"
            bad = line(number * 10 + 1, amount="x") if number < 4 else line(number * 10 + 1)
            import_delivery(workspace, [write(home / name, line(number * 10), bad)], profile)
        write(home / "new.csv", line(100))
        write(home / "watched" / "new.csv", line(101))
        assert run(["reconcile", "--as-of", "2026-07-01"])[0] == 1
        found = json.loads(run(["breaks", "list", "--json"])[1])["breaks"]
        with workspace.database.connect() as connection:
            order_job(connection, JobKind.RERUN, {"batch": 4}, None)
        terms = ["--until", "2030-01-01", "--reason", "agreed"]
        assert run(["breaks", "accept", found[0]["id"], *terms])[0] == 0
        yield workspace


@contextmanager
def member(
    workspace: Workspace, role: str | None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The commands connect as a user who is a member of this role, or of none."""
    user, url = f"user_{uuid.uuid4().hex[:8]}", str(workspace.settings.database_url)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(user)))
        if role:
            names = (sql.Identifier(role), sql.Identifier(user))
            owner.execute(sql.SQL("GRANT {} TO {}").format(*names))
        theirs = url.replace("//postgres:@", f"//{user}@")
        monkeypatch.setenv("RECON_DATABASE_URL", theirs)
        try:
            yield theirs
        finally:
            owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(user)))


def run(command: list[str]) -> tuple[int, str]:
    """Exit code and everything said."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            code = build_app(command)(command, result_action="return_value", exit_on_error=False)
        except ReconError as error:
            return error.exit_code, f"{said.getvalue()}{error}"
    return int(code or 0), said.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_each_command_as(role: str, state: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = []
    with member(state, role, monkeypatch) as url:
        user = url.partition("//")[2].partition("@")[0]
        for command, roles in WHO.items():
            words = [one.format(home=state.settings.home, url=url) for one in command.split()]
            code, said = run(words)
            denied = "lacks a right" in said or "permission denied" in said
            if os.environ.get("SHOW"):
                print(f"{role:18} {command:60} {code} {said.strip()[-160:]!r}")
            if denied == (role in roles) or (denied and user not in said):
                wrong.append((command, code, said[-300:]))
    assert wrong == []


@pytest.mark.long
def test_an_account_of_no_role_is_told_so(
    state: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with member(state, None, monkeypatch) as url:
        for command in (["status"], ["audit", "verify"]):
            code, said = run(command)
            assert code == 2
            assert url.partition("//")[2].partition("@")[0] in said
            assert "lacks a right" in said
