"""What the pages name is there: commands, options, settings, other pages and their headings."""

import ast
import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import fields
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from connectors.postgres.accounts import acting
from connectors.postgres.database import open_database
from connectors.settings import Limits, ServiceSettings, Settings, read_settings
from connectors.witness.keys import make_key
from flows.__main__ import COMMANDS, build_app, main
from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, add, logged_in
from tests.recon import run

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKING = sorted({*PAGES, *ROOT.glob("*.md"), *(ROOT / "benchmarks").rglob("*.md")})
SPAN = re.compile(r"`(recon [^`]+)`|^(recon [^#\n]+)", re.MULTILINE)
PARTS = ("acceptance", "archive", "breaks", "profile", "records", "sign", "audit", "user")
"""Commands with commands of their own."""
SOURCE = "\n".join(
    path.read_text()
    for folder in ("flows", "connectors", "schemas", "benchmarks", "tests")
    for path in (ROOT / folder).rglob("*.py")
)


def spans(page: Path) -> list[str]:
    return [" ".join((one or other).split()) for one, other in SPAN.findall(page.read_text())]


@cache
def help_of(*command: str) -> str:
    if len(command) == 1 and command[0] in (*PARTS, "report"):
        # Each is one object: wherever all commands were looked at before, it has another text.
        said = run("", Path(), *command, "--help")
        assert said.returncode == 0, said.stderr
        return said.stdout
    with redirect_stdout(io.StringIO()) as shown, pytest.raises(SystemExit) as end:
        main([*command, "--help"])
    assert end.value.code == 0, command
    return shown.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_of_a_page_is_there(page: Path) -> None:
    for span in spans(page):
        words = span.split()[1:]
        if not words[0].isalpha():
            continue
        assert words[0] in COMMANDS, span
        command = tuple(words[:2]) if words[0] in PARTS and words[1:] else (words[0],)
        text = help_of(*command)
        for option in re.findall(r"(?<=\s)--[a-z][a-z-]*", span):
            assert option in text, (span, option)


def messages(path: Path) -> Iterator[str]:
    """Texts of a module that are no docstring; VALUE stands for what a text is filled with.

    None of one that names no command.
    """
    code = path.read_text()
    for node in ast.walk(ast.parse(code)) if "`recon" in code else ():
        if isinstance(node, ast.Expr):
            continue
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.JoinedStr):
                parts = (
                    one.value if isinstance(one, ast.Constant) else "VALUE" for one in child.values
                )
                yield "".join(map(str, parts))
            elif isinstance(child, ast.Constant) and not isinstance(node, ast.JoinedStr):
                yield re.sub(r"{[a-z_.]+}", "VALUE", str(child.value))


@cache
def needed(*command: str) -> tuple[set[str], int]:
    """The options a command ends without, and how many arguments it has to have before them."""
    _, apps, _ = build_app([]).parse_commands(command)
    required = [one for one in apps[-1].assemble_argument_collection() if one.required]
    options = {one.name for one in required if one.index is None}
    return options, len(required) - len(options)


@pytest.mark.long
def test_every_command_that_a_message_names_is_there_with_all_it_needs() -> None:
    """One that only has commands of its own prints its help, which is no next step.

    A command that is only named may be looked up; one with an argument or an option is typed.
    """
    named = {
        (*words.split(),)
        for folder in ("flows", "connectors", "schemas")
        for path in (ROOT / folder).rglob("*.py")
        for text in messages(path)
        for words in re.findall(r"`recon ([a-z]+[^`]*)`", text)
    }
    assert len(named) > 20
    for words in named:
        parts = 2 if words[0] in PARTS and words[1:] else 1
        help_of(*words[:parts])
        assert parts == 2 or words[0] not in PARTS, words
        if given := words[parts:]:
            options, arguments = needed(*words[:parts])
            assert options <= {*given}, words
            before = [*takewhile(lambda word: not word.startswith("--"), given)]
            assert len(before) >= arguments, words


def test_help_shows_a_default_that_says_something() -> None:
    """A zero does; an empty text, and a flag that is off, do not."""
    assert "[default: 0]" in help_of("sandbox")
    assert "[default: viewer]" in help_of("user", "add")
    assert "[default: ]" not in help_of("sign", "approve")
    assert "[default: False]" not in help_of("undo")
    for command in ("prepare", "approve"):
        assert "the latest, if one scope was reconciled" in " ".join(
            help_of("sign", command).replace("│", " ").split()
        )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_says_what_it_does(command: str) -> None:
    """So does one with commands of its own."""
    said = help_of(command).partition("╭")[0].partition("\n\n")[2]
    assert said.strip(), command
    assert command != "report" or "Exit code 0" in said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_setting_of_a_page_is_read_somewhere(page: Path) -> None:
    for name in set(re.findall(r"\bRECON_[A-Z][A-Z_]*[A-Z]\b", page.read_text())):
        ending = re.sub(r"^RECON_(LIMIT_|SERVICE_)?", "", name)
        assert name in SOURCE or f'"{ending}"' in SOURCE or f" {ending.lower()}: " in SOURCE, name


@pytest.mark.long
def test_every_setting_is_in_the_table_of_its_kind() -> None:
    """Of those that are read by the names of fields too, each with its default."""
    kinds = (
        ("RECON_LIMIT_", Limits, "operations.md"),
        ("RECON_SERVICE_", ServiceSettings, "push.md"),
    )
    for prefix, settings, page in kinds:
        row = re.compile(r"^\| `(\w+)`.*? \| .*? \| (.*?) \|", re.MULTILINE)
        told = dict(row.findall((ROOT / "docs" / page).read_text()))
        for one in fields(settings):
            name = f"{prefix}{one.name.upper()}"
            assert name in told, name
            if one.default and isinstance(one.default, int | float):
                assert told[name].partition(":")[0] == str(one.default).removesuffix(".0"), name
    others = (ROOT / "docs" / "commands.md").read_text()
    named = {
        name
        for folder in ("flows", "connectors", "schemas")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"\bRECON_[A-Z][A-Z_]*[A-Z]\b", path.read_text())
    }
    for name in named:
        assert f"`{name}" in others or name.startswith(tuple(kind[0] for kind in kinds)), name


def headings(page: Path) -> set[str]:
    """As a link names them."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line).lower() for line in lines]
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or target.suffix != ".md" or heading in headings(target), link


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_folder_of_the_machine_that_it_was_written_on(page: Path) -> None:
    """A script that measures told where its extracts are, in the middle of the figures."""
    assert not re.findall(r"/(?:root|home|Users)/\.?\w\S*", page.read_text())


@pytest.mark.long
def test_a_backup_of_the_embedded_database_is_restored_and_lets_nobody_in(tmp_path: Path) -> None:
    page, *_ = (ROOT / "docs" / "upgrade.md").read_text().partition("\n## Upgrade\n")
    of_page = re.findall(r"^ *(python -m .+tools \w+ .*|python -m .+ psql)$", page, re.MULTILINE)
    dump, roles, restore, end_logins = of_page
    home, other = Settings(tmp_path / "home"), Settings(tmp_path / "other")
    place = Workspace(home, open_database(home))
    add(place, ANNA)
    token = logged_in(place, ANNA).database.login
    in_shell(dump, tmp_path, home)
    for command in (roles, restore):
        in_shell(command, tmp_path, other)
    assert who_acts(other, token) == "anna"
    in_shell(end_logins, tmp_path, other)
    assert who_acts(other, token) is None
    in_shell("recon audit verify", tmp_path, other)


def in_shell(command: str, folder: Path, settings: Settings) -> None:
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    place = {"RECON_HOME": str(settings.home), "PATH": tools, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, shell=True, check=True, cwd=folder, env=place)


def who_acts(settings: Settings, token: str | None) -> str | None:
    with open_database(settings).as_login(token).connect() as connection:
        person = acting(connection)
    return person and person.name


def test_a_backup_of_the_home_leaves_the_key_of_witnesses_out(tmp_path: Path) -> None:
    (command,) = re.findall(r"^tar .+", (ROOT / "docs" / "upgrade.md").read_text(), re.MULTILINE)
    home = tmp_path / "home"
    audit = read_settings({"RECON_HOME": str(home)}).audit
    make_key(audit)
    (home / "archive").mkdir()
    place = {"RECON_HOME": str(home), "PATH": os.environ["PATH"]}
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=place)
    with tarfile.open(tmp_path / "recon-home.tar") as backup:
        kept = {Path(name) for name in backup.getnames()}
    assert kept == {Path(), Path("archive"), audit.public_key.relative_to(home)}
