"""Which records wait for an answer of the service: those that some batch was to send."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.stages.workspace import Workspace
from tests.push.conftest import PUSHED, sandbox_at, towards
from tests.reconcile.test_listings import NEVER, Home, batch_rows, because
from tests.stages.payments import HEADER, line


@pytest.fixture
def home(workspace: Workspace, database_url: str, tmp_path: Path) -> Iterator[Home]:
    with sandbox_at(database_url) as (sandbox, url):
        yield Home(towards(workspace, url), sandbox, tmp_path)


def payments(*lines: str) -> str:
    return "\n".join([HEADER, *lines]) + "\n"


def not_sent(home: Home, *batches: int) -> list[str]:
    done = home.run(*batches)
    return [one.key for one in done.report.breaks if one.code == "NOT_SENT"]


def test_what_goes_to_the_database_alone_is_not_to_be_sent(home: Home) -> None:
    assert PUSHED.push
    one = home.deliver("payments", payments(line(1), line(2)))
    two = home.deliver("payments2", payments(line(2), line(3)), push=False)
    three = home.deliver("payments3", payments(line(4)))
    for scope in ((), (one,), (two,), (three,), (one, two), (two, three)):
        assert not_sent(home, *scope) == [], scope
    chain = [line for line in home.run().report.chain if line.record == "payment"]
    assert [(one.rows, one.rows_change, one.residual_rows) for one in chain[-2:]] == [
        (4, 0, 0),
        (3, -1, 0),
    ]


def test_what_was_sent_and_written_over_in_the_database_alone_is_not_sent(home: Home) -> None:
    """The service has another version of the record than the one that counts."""
    home.deliver("payments", payments(line(1), line(2)))
    home.deliver("payments2", payments(line(2, amount="99", day=2), line(3)), push=False)
    assert not_sent(home) == ["2/7"]


def test_batch_rows_of_the_database_alone_need_no_listing_for_others_that_are_sent(
    home: Home,
) -> None:
    home.deliver("insert_batch_data", batch_rows(1), push=False)
    home.deliver("payments", payments(line(1)))
    assert because(home.run()) == []
    home.deliver("insert_batch_data2", batch_rows(2))
    assert because(home.run()) == [NEVER.format("insert batch data", "insert_batch_data")]
