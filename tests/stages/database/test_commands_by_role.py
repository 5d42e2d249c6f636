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
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.command_rights import refuse_without_right
from connectors.postgres.jobs import order_job
from connectors.sandbox import Sandbox, SandboxOptions, User
from flows.__main__ import COMMANDS, build_app
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.guards.commands import BEGUN, ROLE_OF, marking_function
from schemas.guards.roles import CONTROLLER, LOADER, MERGER, READER
from schemas.jobs import JobKind
from tests.accounts.people import TESSA, add
from tests.stages.payments import line, write

ROLES = (LOADER, MERGER, READER, CONTROLLER)
HOLDERS = {
    READER: ROLES,
    LOADER: (LOADER, MERGER),
    MERGER: (MERGER,),
    CONTROLLER: (CONTROLLER,),
}
"""Role -> the roles that may do what it may."""

LINES = (
    # Every command of `ROLE_OF`, in an order in which each finds what it needs.
    "status",
    "jobs",
    "breaks list",
    "report",
    "audit list",
    "audit verify",
    "audit witness",
    "acceptance list",
    "archive verify",
    "sends 1",
    "row 1 first.csv --line 3",
    "rejects 1 --out {home}/rejects",
    "housekeeping",
    "housekeeping --remove",
    "import {home}/new.csv",
    "watch {home}/watched --once --settle 0",
    "rerun 4",
    "job 1",
    "jobs --watch --once",
    "release 2 --reason agreed",
    "discard 3 --reason wrong",
    "undo 4 --reason wrong",
    "push 1",
    "restored --unsent unsent --reason moved",
    "resolve 1 --as resend --reason no --state refused",
    "pull avatars",
    "breaks assign --state open --owner ann",
    "breaks propose --state open --until 2030-01-01 --reason agreed",
    "breaks comment --state open --text asked",
    "breaks accept --state open --until 2030-01-01 --reason agreed",
    "breaks reopen --state accepted --reason wrong",
    "breaks resolve --state open --at source --reason fixed",
    "acceptance propose --code AMOUNT --currency 978 --each 1 --total 2 --until 2030-01-01 "
    "--reason agreed",
    "acceptance approve 1",
    "acceptance withdraw 1 --reason agreed",
    "sign prepare",
    "sign approve",
    "compare {url}&table=recon.payment {url}&table=recon.payment --key Id,TenantsId",
    "report mail",
    "reconcile --as-of 2026-07-01 --batch 1",
)
ELSEWHERE = {"check", "profile", "demo", "fields", "sandbox", "up", "down", "deploy"} | {
    "login", "logout", "whoami", "user", "desk", "records"
}  # fmt: skip
"""Commands that ask no database, or one of their own, or whose right is an account's."""


def named(line: str) -> str:
    """The command of the table that a line runs."""
    return max((one for one in ROLE_OF if f"{line} ".startswith(f"{one} ")), key=len)


def test_no_command_is_left_out() -> None:
    assert {command.split()[0] for command in ROLE_OF} | ELSEWHERE == set(COMMANDS)
    assert {named(line) for line in LINES} == set(ROLE_OF)


def test_the_documentation_says_exactly_this_table() -> None:
    text = (Path(__file__).parents[3] / "docs" / "production.md").read_text()
    said = {
        row[0].strip("`"): tuple(cell == "yes" for cell in row[1:])
        for row in re.findall(
            r"^\| (`[a-z -]+`) \|" + r" (yes|no) \|" * 4 + "$", text, re.MULTILINE
        )
    }
    assert said == {
        command: tuple(one in HOLDERS[role] for one in ROLES) for command, role in ROLE_OF.items()
    }


@pytest.mark.long
def test_a_role_is_refused_what_the_table_does_not_give_it(
    granted: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked before anything is done, so that no batch has to be there."""
    for role in ROLES:
        with member(granted, role, monkeypatch) as url:
            user = url.partition("//")[2].partition("@")[0]
            for line in LINES:
                command = named(line)
                least = ROLE_OF[command]
                if role in HOLDERS[least] or role in HOLDERS[BEGUN.get(command, least)]:
                    continue
                code, said = run(line.format(home=granted.settings.home, url=url).split())
                told = f"The role {user} lacks a right: `recon {command}` takes {least}."
                assert (code, said[: len(told)]) == (2, told), line
                assert said.endswith("Nothing was changed."), line


def test_who_owns_the_schema_may_run_each_command(granted: Workspace) -> None:
    """Also where nobody is a superuser, or a member of a role."""
    owner = f"owner_{uuid.uuid4().hex[:8]}"
    url = str(granted.settings.database_url)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in (
            "CREATE ROLE {} LOGIN",
            "ALTER SCHEMA recon OWNER TO {}",
            *(
                f"ALTER FUNCTION recon.{marking_function(role)} OWNER TO {{}}"
                for role in (LOADER, MERGER, CONTROLLER)
            ),
        ):
            connection.execute(sql.SQL(statement).format(sql.Identifier(owner)))
        try:
            with psycopg.connect(url.replace("//postgres:@", f"//{owner}@")) as theirs:
                for command in ROLE_OF:
                    refuse_without_right(theirs, command)
        finally:
            connection.execute(
                sql.SQL("REASSIGN OWNED BY {} TO postgres").format(sql.Identifier(owner))
            )
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(owner)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(owner)))


@pytest.fixture
def granted(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, with_roles: str) -> Workspace:
    """A database that the roles are granted on, and nothing in it."""
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))
    monkeypatch.setenv("RECON_DATABASE_URL", str(workspace.settings.database_url))
    return workspace


@pytest.fixture
def state(granted: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """One batch in every state that a command asks for, a service, and a reconciliation."""
    workspace, url = granted, str(granted.settings.database_url)
    home = workspace.settings.home
    options = SandboxOptions(port=0, users=(User("demo", "demo", ("Client", "Admin", "Partner")),))
    with Sandbox(options, url).running() as service:
        for name, value in {
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
        for command in LINES:
            words = [one.format(home=state.settings.home, url=url) for one in command.split()]
            code, said = run(words)
            denied = "lacks a right" in said or "permission denied" in said
            if os.environ.get("SHOW"):
                print(f"{role:18} {command:60} {code} {said.strip()[-160:]!r}")
            may = role in HOLDERS[ROLE_OF[named(command)]]
            if denied == may or (denied and user not in said):
                wrong.append((command, code, said[-300:]))
    assert wrong == []


SHOWN_BY_LOGIN = ("status", "breaks list", "report", "jobs --json", "audit list", LINES[-3])
"""Commands that would say that there is nothing."""


def test_nothing_is_answered_to_who_is_shown_nothing(
    granted: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once an account is bound to tenants, a reader is shown no row without a login."""
    add(granted, TESSA)
    monkeypatch.setenv("RECON_LOGIN_FILE", str(tmp_path / "login"))
    (tmp_path / "login").write_text("of-a-login-that-ended")
    with member(granted, READER, monkeypatch) as url:
        for command in SHOWN_BY_LOGIN:
            code, said = run(command.format(url=url).split())
            assert code == 2, (command, said)
            assert re.search("[Nn]obody is logged in", said), (command, said)
        assert "logged in" not in run(["audit", "witness"])[1]


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
