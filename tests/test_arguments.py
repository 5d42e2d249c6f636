"""Wrong arguments: one line that says what is wrong and where to read what a command takes."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import get_args

import pytest
from cyclopts import App, Argument, CycloptsError, MissingArgumentError, Token

from flows.__main__ import COMMANDS, build_app, main
from flows.commands.arguments import with_values

WRONG = [
    (["undo"], "`recon undo` needs BATCH (Number of the batch"),
    (["undo", "1"], "`recon undo` needs --reason (Why you decide so; kept in the audit trail)."),
    (["breaks", "accept"], "`recon breaks accept` needs --reason"),
    (["reconcile", "--as-of", "31.03.2026"], 'a day written as 2026-03-31, not "31.03.2026".'),
    (["row", "x", "a.csv"], 'BATCH takes a whole number, not "x".'),
    (["import", "--max-errors", "ten"], '--max-errors takes a whole number, not "ten".'),
    (["import", "a", "--max-error-rate", "few"], '--max-error-rate takes a number, not "few".'),
    (["acceptance", "approve", "9" * 20], "Must be from"),
    (["acceptance", "withdraw", "9" * 20, "--reason", "r"], "Must be from"),
    (
        ["undo", "1", "--reason"],
        "--reason (Why you decide so; kept in the audit trail) stands without a value.",
    ),
    (["undo", "1", "--reason", "--by", "anna"], "is written --reason=VALUE."),
    (["undo", "1", "--reason", "x", "-y"], "Unknown option: -y."),
    (["check", "- a.csv"], "Unknown option: - a.csv."),
    *(
        (["user", "limit", f"--above={above}"], "Must be an amount from 0 on, with at most 20")
        for above in ("-5", "NaN", "Infinity", "1e30", "1e-19")
    ),
    (["staus"], 'Did you mean "status"?'),
    (["status", "--foo"], "Unknown option: --foo."),
    (["sandbox", "--style", "foo"], 'Choose from: "pascal-5", "camel-core".'),
]


@pytest.mark.parametrize(("arguments", "told"), WRONG, ids=[" ".join(one) for one, _ in WRONG])
def test_one_line_says_what_is_wrong_and_where_to_read(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("recon: ")
    assert told in line
    assert " --help` shows what it takes." in line


def test_a_side_without_a_name_is_not_the_folder_it_runs_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", "", "b.csv", "--key", "Id"])
    assert ended.value.code == 2
    assert "The left side '' is no path." in capsys.readouterr().err


ODD = "\x1b[2J\n\u202ea"
"""Clears a screen, begins a line, turns the writing round."""


@pytest.mark.parametrize(
    "arguments",
    [
        [ODD],
        ["undo", ODD, "--reason", "r"],
        ["status", f"--{ODD}"],
        ["status", "--most", ODD],
        ["sandbox", "--style", ODD],
        ["check", "a.csv", "--profile", ODD],
        ["compare", ODD, "b.csv", "--key", "Id"],
        ["sandbox", "--users", ODD],
    ],
)
def test_what_was_typed_is_told_in_one_line_and_moves_no_cursor(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()


def test_what_was_typed_is_shown_as_far_as_it_helps(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["undo", "7" * 5000 + "x", "--reason", "r"])
    line = capsys.readouterr().err
    assert "BATCH takes a whole number" in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["row", "1", "a.csv", "--line", "1", "--record", "1"], "--line or --record"),
        (["user", "limit", "--above", "5", "--none"], "--above or --none"),
        (["user", "change", "ann", "--tenant", "7", "--all-tenants"], "--tenant or --all-tenants"),
    ],
)
def test_of_two_options_that_contradict_none_counts(
    arguments: list[str], options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    told = f"recon: Give either {options}, not both.\n"
    assert (ended.value.code, capsys.readouterr().err) == (2, told)


def test_a_limit_of_a_currency_is_set_or_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["user", "limit", "--currency", "978"])
    told = "recon: Say what to set for --currency 978: add --above AMOUNT or --none.\n"
    assert (ended.value.code, capsys.readouterr().err) == (2, told)


def test_a_template_is_that_of_one_record(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fields", "--template"])
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert "Name it: action_document, avatar" in told.err


def every_argument() -> Iterator[tuple[tuple[str, ...], Argument, Argument]]:
    """Every argument with a value, of every command, and the one it is a part of, or itself."""
    for name in COMMANDS:
        command = build_app([])[name]
        parts = [(name, part) for part in command if not part.startswith("-")] or [(name,)]
        for chain in parts:
            app = build_app([])
            _, apps, _ = app.parse_commands(chain)
            with app.app_stack(apps):
                arguments = apps[-1].assemble_argument_collection()
            whole = {
                id(part): one for one in reversed(arguments) for part in one.children_recursive
            }
            for argument in arguments:
                if argument.token_count()[0] and not argument.children:
                    yield chain, argument, whole.get(id(argument), argument)


def text_options() -> Iterator[tuple[tuple[str, ...], str]]:
    """Every option of every command that takes a text, or a path."""
    for chain, argument, _ in every_argument():
        if argument.field_info.is_keyword_only:
            yield chain, argument.name


NO_VALUES = {
    int: ("1.4", "2.0", "0x2", "0b1", "1_0", "\N{FULLWIDTH DIGIT TWO}", " 2", "none", "null", ""),
    date: ("2026-W01", "2026-W13-2", "none", "null", ""),
    Path: ("",),
    float: ("1_0", "\N{FULLWIDTH DIGIT TWO}", "none", "null", ""),
    Decimal: ("1_0", "\N{FULLWIDTH DIGIT TWO}", "none", "null", ""),
}
"""What is written like no number, day or path, or is what a script says of one it has not got."""


def test_nothing_is_rounded_guessed_or_left_out_of_what_was_given() -> None:
    """A batch 11.6 was batch 12, and `--tenant null` was every tenant."""
    taken, refused = [], 0
    for chain, argument, whole in every_argument():
        for kind in {argument.hint, *get_args(argument.hint)} & {*NO_VALUES}:  # As of int | None.
            for value in NO_VALUES[kind]:
                argument.tokens = [Token(keyword=argument.name, value=value)]
                try:
                    taken.append((*chain, argument.name, value, whole.convert_and_validate()))
                except CycloptsError as error:
                    refused += error.argument is argument
            argument.tokens = []
    assert taken == []
    assert refused > 500


def bound(app: App, words: list[str]) -> str | None:
    """What keeps a command from being called, which is nothing that is wrong with an option."""
    try:
        app.parse_args(words, exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        return error.keyword
    except CycloptsError as error:
        return str(error)
    return None


@pytest.mark.long
def test_a_value_may_begin_with_a_dash() -> None:
    """A reason that is a list, standard input, a column that is called so."""
    texts = ("--reason", "--by", "--comment", "--key", "--ignore", "--users", "--feed", "--restate")
    seen = set()
    for chain, options in groupby(text_options(), itemgetter(0)):
        app, names = build_app([]), [name for _, name in options]
        for value in ("-", "- wrong month", "-5 EUR"):
            given = [word for name in names for word in (name, value)]
            joined = [f"{name}={value}" for name in names]
            assert with_values(app, [*chain, *given]) == [*chain, *joined]
            for name in {*texts}.intersection(names):
                assert bound(app, [*chain, f"{name}={value}"]) is None, (chain, name)
                seen.add(name)
    assert seen == {*texts}


def test_behind_two_dashes_nothing_is_a_value() -> None:
    given = ["import", "--record", "payment", "--", "--record", "- a.csv"]
    assert with_values(build_app([]), given) == given


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ann:canary-7:Chief\n", "line 1 of --users"),
        ("# nobody\n\nann:canary-7:Client,\nbo:canary-7:,\n", "line 4 of --users"),
        ("# nobody yet\n", "it names no user. Write one NAME:PASSWORD:ROLE"),
        ("", "it names no user"),
    ],
)
def test_accounts_of_the_sandbox_have_roles_that_it_knows(
    tmp_path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It took any role, and the account that everybody knows where a file had none."""
    (tmp_path / "users").write_text(text)
    with pytest.raises(SystemExit) as ended:
        # A database that would be asked next, if that were taken.
        main(["sandbox", "--users", str(tmp_path / "users"), "--database", "mysql://h/d"])
    err = capsys.readouterr().err
    assert (ended.value.code, told in err, "canary" in err) == (2, True, False)
