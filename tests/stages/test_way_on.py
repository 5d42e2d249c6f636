"""How stopped work goes on: what the outermost says counts, through every error made of another."""

import pytest

from flows.__main__ import _say_stopped
from flows.stages.way_on import SAME_COMMAND, goes_on_by, way_on


def stopped_in(*commands: str) -> KeyboardInterrupt:
    """What comes out of work within work, the first one within the others."""
    ended = KeyboardInterrupt()
    for command in commands:
        try:
            with goes_on_by(command):
                raise ended
        except KeyboardInterrupt as one:
            ended = one
    return ended


def made_of(first: BaseException, *, hidden: bool) -> BaseException:
    try:
        try:
            raise first
        except BaseException as error:
            if hidden:
                raise ValueError from None
            raise ValueError from error
    except ValueError as other:
        return other


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        ((), SAME_COMMAND),
        (("recon rerun 3",), "recon rerun 3"),
        (("recon rerun 3", "recon job 12"), "recon job 12"),
        (("recon rerun 3", SAME_COMMAND), SAME_COMMAND),
    ],
)
def test_the_outermost_work_says_how_it_goes_on(commands: tuple[str, ...], told: str) -> None:
    ended = stopped_in(*commands)
    assert way_on(ended) == told
    assert way_on(made_of(ended, hidden=True)) == told
    assert way_on(made_of(ended, hidden=False)) == told


NOTHING = "Nothing was kept or changed; run the same command again."
STANDS = "What was done before stands; run the same command again."


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("check a.csv", NOTHING),
        ("profile draft a.csv", NOTHING),
        ("report 7", NOTHING),
        ("report mail 7", STANDS),
        ("compare a.csv b.csv --key Id --out folder", STANDS),
        ("push 1 --max-rows 10", STANDS),
    ],
)
def test_nothing_was_kept_is_said_of_what_keeps_nothing(
    asked: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _say_stopped(KeyboardInterrupt(), asked.split())
    assert capsys.readouterr().err == f"recon: stopped. {told}\n"
