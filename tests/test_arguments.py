"""Wrong arguments: one line that says what is wrong and where to read what a command takes."""

import pytest

from flows.__main__ import main

WRONG = [
    (["undo"], "`recon undo` needs BATCH (Number of the batch"),
    (["undo", "1"], "`recon undo` needs --reason (Why; kept in the audit trail)."),
    (["breaks", "accept"], "`recon breaks accept` needs --reason"),
    (["reconcile", "--as-of", "31.03.2026"], 'a day written as 2026-03-31, not "31.03.2026".'),
    (["row", "x", "a.csv"], 'BATCH takes a whole number, not "x".'),
    (["import", "--max-errors", "ten"], '--max-errors takes a whole number, not "ten".'),
    (["import", "a", "--max-error-rate", "few"], '--max-error-rate takes a number, not "few".'),
    (["acceptance", "approve", "9" * 20], "Must be from"),
    (["acceptance", "withdraw", "9" * 20, "--reason", "r"], "Must be from"),
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


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["row", "1", "a.csv", "--line", "1", "--record", "1"], "--line and --record"),
        (["user", "limit", "--above", "5", "--none"], "--above and --none"),
        (["user", "change", "ann", "--tenant", "7", "--all-tenants"], "--tenant and --all-tenants"),
    ],
)
def test_of_two_options_that_contradict_none_counts(
    arguments: list[str], options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert (ended.value.code, capsys.readouterr().err) == (2, f"recon: Give one of {options}.\n")


def test_a_template_is_that_of_one_record(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fields", "--template"])
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert "Name it: action_document, avatar" in told.err
