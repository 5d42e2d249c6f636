"""`recon login`, `logout`, `whoami` and `recon user`, as they are typed."""

import io
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.stages.workspace import Workspace
from tests.accounts.people import PASSWORD
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.governance.runs import found, reconcile

NEW = "another pass phrase"


@pytest.fixture
def typed(recon: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Runs a command; `lines` are what standard input has."""
    monkeypatch.setenv("RECON_LOGIN_FILE", str(tmp_path / "private" / "login"))

    def run(*arguments: str, lines: tuple[str, ...] = ()) -> Any:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{one}\n" for one in lines)))
        return recon(*arguments)

    return run


def added(typed: Callable[..., Any], name: str, full_name: str, *roles: str) -> Any:
    options = [word for role in roles for word in ("--role", role)]
    return typed("user", "add", name, "--full-name", full_name, *options, lines=(PASSWORD,))


@pytest.mark.long
def test_a_login_that_ended_before_a_command_is_nobodys(
    workspace: Workspace, typed: Callable[..., Any], tmp_path: Path
) -> None:
    """What the account of the database may do, it may do on; what an account does is asked for."""
    run = reconcile(workspace, found())
    terms = ("--code", "AMOUNT", "--currency", "1", "--each", "1", "--total", "9", "--reason", "x")
    typed("acceptance", "propose", *terms, "--until", "2026-12-31", "--by", "ann")
    added(typed, "anna", "Anna Meyer", "preparer")
    typed("login", "anna", lines=(PASSWORD,))
    kept = tmp_path / "private" / "login"
    ended = kept.read_bytes()
    typed("logout")
    kept.write_bytes(ended)
    assert typed("whoami").stdout == "Nobody is logged in: `recon login NAME`.\n"
    assert "AMOUNT" in typed("acceptance", "list").stdout
    assert "Nobody is logged in" in typed("sign", "prepare", str(run.id)).stderr


def test_a_story_of_people(workspace: Workspace, typed: Callable[..., Any], tmp_path: Path) -> None:
    run = reconcile(workspace, found())
    assert "There are no accounts" in typed("whoami").stdout
    told = added(typed, "anna", "Anna Meyer", "preparer")
    assert "Anna Meyer (anna) is added as preparer." in told.stdout
    assert "the first account" in told.stdout
    assert "the first account" not in added(typed, "bo", "Bo Osei", "approver").stdout

    refused = typed("sign", "prepare", "--by", "Anna")
    assert refused.returncode == 2
    assert "Nobody is logged in" in refused.stderr
    assert "recon login" in refused.stderr

    assert typed("login", "anna", lines=("guess",)).returncode == 2
    told = typed("login", "anna", "--hours", "2", lines=(PASSWORD,))
    assert told.stdout == "Anna Meyer (anna) is logged in for 2 h as preparer.\n"
    kept = tmp_path / "private" / "login"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert typed("whoami").stdout == "Anna Meyer (anna): preparer\n"

    told = typed("sign", "prepare", str(run.id), "--by", "for the books")
    assert (told.returncode, "prepared by anna" in told.stdout) == (0, True)
    refused = typed("sign", "approve", str(run.id))
    assert "somebody else has to approve it" in refused.stderr
    assert typed("logout").stdout == "anna is logged out.\n"
    assert not kept.exists()
    assert typed("logout").stdout == "Nobody was logged in.\n"
    assert typed("whoami").stdout == "Nobody is logged in: `recon login NAME`.\n"

    typed("login", "bo", lines=(PASSWORD,))
    told = json.loads(typed("sign", "approve", str(run.id), "--json").stdout)
    assert told["approval"] == "APPROVED"
    assert {one["account"] for one in told["signatures"].values()} == {"anna", "bo"}
    listed = typed("audit", "list", "--json").stdout
    said = next(one for one in json.loads(listed)["events"] if one["what"] == "report prepared")
    assert json.loads(said["detail"])["said_by"] == "for the books"
    assert typed("audit", "verify").returncode == 0


def test_accounts_are_changed_disabled_and_listed(
    workspace: Workspace, typed: Callable[..., Any]
) -> None:
    added(typed, "anna", "Anna Meyer", "preparer")
    changed = typed("user", "change", "anna", "--role", "operator", "--tenant", "7")
    assert changed.stdout == "Anna Meyer (anna) is operator.\n"
    typed("user", "disable", "anna")
    refused = typed("login", "anna", lines=(PASSWORD,))
    assert "the account is disabled" in refused.stderr
    listed = json.loads(typed("user", "list", "--json").stdout)["accounts"]
    assert [(one["name"], one["roles"], one["tenants"], one["disabled"]) for one in listed] == [
        ("anna", ["operator"], [7], True)
    ]
    assert "disabled" in typed("user", "list").stdout
    typed("user", "enable", "anna")
    typed("user", "change", "anna", "--all-tenants")
    typed("login", "anna", lines=(PASSWORD,))
    assert typed("whoami").stdout == "Anna Meyer (anna): operator\n"
    told = typed("user", "password", "anna", lines=("guess", NEW))
    assert "This is not the password of anna" in told.stderr
    trail = json.loads(typed("audit", "list", "--json").stdout)["events"]
    assert [one["what"] for one in trail].count("login refused") == 1, "it stays in the trail"
    assert typed("user", "password", "anna", lines=(PASSWORD, NEW)).returncode == 0
    assert typed("login", "anna", lines=(PASSWORD,)).returncode == 2
    assert typed("login", "anna", lines=(NEW,)).returncode == 0


def test_whom_no_provider_shows_any_more_logs_in_with_a_password(
    workspace: Workspace, typed: Callable[..., Any]
) -> None:
    def known_as() -> object:
        (account,) = json.loads(typed("user", "list", "--json").stdout)["accounts"]
        return account["subject"]

    named = ("anna", "--full-name", "Anna Meyer", "--subject", "")
    assert typed("user", "add", *named, lines=(PASSWORD,)).returncode == 0
    assert known_as() is None
    typed("user", "change", "anna", "--subject", "proxy anna")
    assert (known_as(), typed("login", "anna", lines=(PASSWORD,)).returncode) == ("proxy anna", 2)
    refused = typed("user", "change", "anna", "--full-name", "")
    assert "No account can be 'anna', called ''" in refused.stderr
    typed("user", "change", "anna", "--subject", "")
    assert known_as() is None
    typed("user", "password", "anna", lines=(NEW,))
    assert typed("login", "anna", lines=(NEW,)).returncode == 0


CANNOT_BE: list[tuple[tuple[str, ...], tuple[str, ...], str]] = [
    # the command, what is typed, what is told
    (("user", "add", "Anna", "--full-name", "A"), (PASSWORD,), "No account can be 'Anna'"),
    (("user", "add", "anna", "--full-name", "A"), ("short",), "12 to 1024 characters"),
    (("user", "add", "anna", "--full-name", "A"), (), "ended before the new"),
    (("user", "add", "anna", "--full-name", "A"), ("",), "this one has 0"),
    (("user", "add", "anna", "--full-name", "A", "--role", "chief"), (), "--role"),
    (
        ("user", "add", "anna", "--full-name", " "),
        (PASSWORD,),
        "No account can be 'anna', called ' '",
    ),
    *(
        (("user", "add", "anna", "--full-name", "A", "--subject", one), (), 'or "proxy NAME"')
        for one in (
            *("4711", "anna@example.com", "OIDC https://id.example.com 4711", "proxy", "proxy "),
            *("oidc 4711", "oidc https://id.example.com ", "oidc  https://id.example.com 4711"),
            *("oidc https://id.example.com  4711", "proxy  anna", "proxy an\u200bna", "proxy a\n"),
        )
    ),
    (("user", "change", "eve"), (), "There is no account eve"),
    (("user", "disable", "eve"), (), "There is no account eve"),
    (("user", "password", "eve"), (PASSWORD,), "There is no account 'eve'"),
    (("login", "eve"), (), "ended before the password of eve"),
    (("user", "password", "eve"), (), "Type it at a terminal"),
    (("login", "eve"), (PASSWORD,), "Name or password is wrong"),
    (("login", "eve", "--hours", "13"), (PASSWORD,), "from 1 to 12"),
]


def test_what_cannot_be_is_told_in_one_line(typed: Callable[..., Any]) -> None:
    for arguments, lines, told in CANNOT_BE:
        ran = typed(*arguments, lines=lines)
        assert (ran.returncode, told in ran.stderr) == (2, True), (arguments, ran.stderr)
        assert PASSWORD not in ran.stderr
    assert typed("user", "list", "--json").stdout.count("name") == 0


def test_a_login_file_that_is_none_is_told(
    workspace: Workspace, typed: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    for content in (b"\xff\xfe", b"\0\0"):
        (tmp_path / "private" / "login").write_bytes(content)
        ran = typed("status")
        assert (ran.returncode, "cannot be read as a login" in ran.stderr) == (2, True)
    (tmp_path / "private" / "login").unlink()
    (tmp_path / "private" / "login").mkdir()
    for command in ("status", "logout"):
        ran = typed(command)
        assert (ran.returncode, "Remove" in ran.stderr) == (2, False)
        assert "RECON_LOGIN_FILE names another place" in ran.stderr
    (tmp_path / "private" / "login").rmdir()
    (tmp_path / "private" / "login").write_text("no token\n")
    assert typed("status").returncode == 0


@pytest.mark.long(but=("a file",))
@pytest.mark.parametrize("home", ["a file", "no folder"])
def test_without_a_home_folder_nobody_is_logged_in(
    typed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str
) -> None:
    """As in a container, and where a service runs; nothing but a login needs the folder."""
    monkeypatch.delenv("RECON_LOGIN_FILE")
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / home / "anna"))
    assert typed("status").returncode == 0
    assert typed("logout").stdout == "Nobody was logged in.\n"
    added(typed, "anna", "Anna Meyer", "preparer")
    ran = typed("login", "anna", lines=(PASSWORD,))
    none = home == "a file"
    assert (ran.returncode, "RECON_LOGIN_FILE names" in ran.stderr) == (2 * none, none)


def test_what_an_account_is_shown_is_chosen(typed: Callable[..., Any]) -> None:
    added(typed, "anna", "Anna Meyer", "preparer")
    told = typed("user", "show-as", "anna", "--dates", "dots", "--numbers", "point-comma")
    assert told.stdout == (
        "anna is shown dates as dots, numbers as point-comma and negatives as minus.\n"
    )
    told = typed("user", "show-as", "anna", "--negatives", "brackets")
    assert "dots, numbers as point-comma and negatives as brackets" in told.stdout
    refused = typed("user", "show-as", "bo", "--dates", "dots")
    assert "There is no account bo that you may see: `recon user list`." in refused.stderr
