"""Turns that a period may take: batches taken back, rules changed, days signed and restated.

Each is told to the model of periods as well, and every place has to say what that says.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from flows.stages.workspace import Workspace
from tests.desk.browser import Browser, desk_of
from tests.governance.conftest import Ran
from tests.governance.period_facts import Payment, Row, Rules
from tests.governance.period_places import Places

ONE = Payment(1, 7, 1, datetime(2024, 12, 1, 12, tzinfo=UTC), Decimal(100), Decimal(0), 1)
OTHER = ONE._replace(id=9)
MORE, MUCH = ONE._replace(paid=Decimal("100.50")), ONE._replace(paid=Decimal(200))
SECOND = ONE._replace(action=2)


class Told(Places):
    """A story that is told step by step, and draws nothing."""

    def bring(
        self, *payments: Payment, bad: Payment | None = None, corrects: int | None = None,
        hold: bool = False,
    ) -> None:  # fmt: skip
        rows = [Row(one) for one in payments] + ([Row(bad, "amount")] if bad else [])
        self.deliver_rows(rows, corrects, hold=hold)

    def put(self, one: Payment | None) -> None:
        """Somebody writes what the target has of `ONE`."""
        self.write(ONE.key, one)

    def take_back(self, batch: int) -> None:
        self.undo_batch(batch)


def withdrawn(story: Told) -> None:
    """What was delivered before counts again: the difference is gone by what is delivered."""
    story.bring(ONE, OTHER)
    story.bring(MORE)
    story.put(MUCH)
    story.reconcile()
    story.take_back(2)
    story.reconcile()


def discarded(story: Told) -> None:
    """The target is as it was all the time."""
    story.bring(ONE, OTHER)
    story.bring(MORE, bad=ONE._replace(id=2), hold=True)
    story.reconcile()
    story.settle("discard")
    story.reconcile()


def released(story: Told) -> None:
    story.bring(OTHER)
    story.bring(ONE, bad=ONE._replace(id=2), hold=True)
    story.reconcile()
    story.settle("release")
    story.reconcile()
    story.close()


def put_right_across_the_day(story: Told) -> None:
    """A record is dated after the day where it was delivered, and looked at all the same."""
    story.day = date(2024, 12, 10)
    late, early = (datetime(2024, 12, day, 12, tzinfo=UTC) for day in (20, 5))
    story.bring(ONE._replace(at=late), OTHER)
    story.put(MUCH._replace(at=early))
    story.reconcile()
    story.put(ONE._replace(at=early))
    story.reconcile()
    story.put(ONE._replace(at=late))
    story.reconcile()


def left_out_and_gone(story: Told) -> None:
    """A signed record that the rules leave out is told neither other nor gone."""
    story.bring(SECOND, OTHER)
    story.reconcile()
    story.close()
    story.rules = Rules(out=2)
    story.put(MUCH._replace(action=2))
    story.reconcile()
    story.close()
    story.put(None)
    story.reconcile()
    story.rules = Rules()
    story.reconcile()


def left_out_and_later(story: Told) -> None:
    """Nobody delivered it, and the day that it is dated now is after that of the run."""
    story.rules = Rules(out=2)
    story.bring(OTHER)
    story.put(SECOND)
    story.reconcile()
    story.close()
    story.put(SECOND._replace(at=ONE.at + timedelta(60)))
    story.reconcile()
    story.put(ONE._replace(at=ONE.at + timedelta(60)))
    story.reconcile()


def late_and_taken_back(story: Told) -> None:
    story.bring(OTHER)
    story.reconcile()
    story.close()
    story.bring(ONE)
    story.reconcile()
    story.close()
    story.take_back(2)
    story.reconcile()
    story.bring_back()
    story.reconcile()
    story.close()


def let_pass_and_looked_at_again(story: Told) -> None:
    """An acceptance stays with what a tolerance lets pass, and ends on its day."""
    story.bring(ONE, OTHER)
    story.put(MORE)
    story.reconcile()
    story.close()
    for days, tolerance in ((0, 1), (1, 0), (99, 1), (0, 0)):
        story.day += timedelta(days)
        story.rules = Rules(tolerance=tolerance)
        story.reconcile()
    story.close()


def let_pass_and_taken_back(story: Told) -> None:
    story.bring(OTHER)
    story.bring(ONE)
    story.put(MORE)
    story.reconcile()
    story.rules = Rules(tolerance=1)
    story.reconcile()
    story.take_back(2)
    story.reconcile()
    story.rules = Rules()
    story.reconcile()
    story.bring_back()
    story.reconcile()


def accepted_and_corrected(story: Told) -> None:
    """The correction is taken back, and comes again with another amount."""
    story.bring(OTHER, bad=ONE)
    story.reconcile()
    story.close()
    story.bring(ONE, corrects=1)
    story.reconcile()
    story.close()
    story.take_back(2)
    story.reconcile()
    story.close()
    story.bring(MORE, corrects=1)
    story.reconcile()


def waited_for(story: Told) -> None:
    story.bring(ONE, OTHER)
    story.put(None)
    story.reconcile()
    story.rules = Rules(window=40)
    story.reconcile()
    story.day += timedelta(80)
    story.reconcile()


def offsets(story: Told) -> None:
    story.bring(ONE, OTHER)
    story.put(ONE._replace(at=ONE.at.astimezone(timezone(timedelta(hours=1)))))
    for offset in ("differs", "equal", "told", "equal"):
        story.rules = Rules(offset=offset)
        story.reconcile()
    story.put(ONE)
    story.reconcile()


def restated(story: Told) -> None:
    """A signed day is reported again, by other rules and with less; what was signed stays."""
    first = story.day
    story.bring(ONE, OTHER)
    story.bring(ONE._replace(id=3))
    story.reconcile()
    story.close()
    story.day += timedelta(5)
    story.reconcile()
    story.take_back(2)
    story.rules = Rules(tolerance=1)
    story.reconcile(first)
    story.close(first)
    story.put(MUCH)
    story.reconcile(first)
    story.reconcile()
    story.close()
    story.reconcile(first)


TURNS = (withdrawn, discarded, released, put_right_across_the_day, left_out_and_gone,
         left_out_and_later, late_and_taken_back, let_pass_and_looked_at_again,
         let_pass_and_taken_back, accepted_and_corrected, waited_for, offsets,
         restated)  # fmt: skip


@pytest.mark.long(but=("discarded",))
@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.__name__)
def test_every_place_says_the_same(
    workspace: Workspace, recon: Callable[..., Ran], turn: Callable[[Told], None]
) -> None:
    with desk_of(workspace) as url:
        page = Browser(url)
        story = Told(0, workspace, recon, page)
        story.rules = Rules()
        turn(story)
        story.end()
        page.client.close()
