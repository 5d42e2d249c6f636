"""Whom a record names as its writer is believed only where a delivered row says so too."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sources import gather_sources
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.rules.rules import Rules
from tests.conftest import Once
from tests.push.conftest import towards
from tests.service.faulty_server import FaultyServer, Reply
from tests.stages.payments import line, write

AS_OF = date(2026, 1, 31)
OURS = Scope(feeds=("bank",))
RULES = Rules(references=())
REGISTRATIONS = "EMail,FirstName,LastName,Password,ConfirmPassword,Company,PartnerUserID,Roles\n"


def told(place: Workspace, scope: Scope = OURS, *, service: bool = False) -> list[tuple[str, str]]:
    with place.database.connect() as connection:
        gathered = gather_sources(place, connection, scope, {})
    breaks = reconcile_sources(gathered.sources, RULES, AS_OF, service=service).breaks
    of_records = breaks.filter(breaks["code"].str.contains("INV_|PLAN_").not_())
    return sorted(of_records.select("code", "key").iter_rows())


def bend(place: Workspace, statement: str) -> None:
    with place.database.connect() as connection:
        assert connection.execute(statement).rowcount == 1  # type: ignore[call-overload]


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    """Payments 1 to 3 of feed bank, 2 of which feed shop has changed since; 4 is of shop alone."""

    def build() -> None:
        for feed, lines in (
            ("bank", (line(1), line(2), line(3))),
            ("shop", (line(2, amount="20", day=2), line(3), line(4))),
        ):
            path = write(tmp_path / f"{feed}.csv", *lines)
            import_delivery(workspace, [path], replace(DEFAULT, feed=feed))
        assert told(workspace) == []

    return once(build)


WRITER = '(batch_id, extract_id, record_number) = ({}) WHERE "Id" = {}'
NAMED = {
    "another record": "2, 2, 3",
    "a row that wrote nothing": "2, 2, 2",
    "a row that is not there": "2, 2, 99",
    "a batch that is not there": "99, 99, 1",
    "its own": "1, 1, 1",
}


@pytest.mark.long(but=("1-another record",))
@pytest.mark.parametrize("writer", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("number", [1, 3])
def test_no_record_leaves_a_scope_by_its_own_word(
    place: Workspace, writer: str, number: int
) -> None:
    bend(place, f'UPDATE payment SET "PaidAmount" = 5, {WRITER.format(writer, number)}')
    assert told(place) == [("AMOUNT", f"{number}/7")]
    assert told(place, Scope()) == [("AMOUNT", f"{number}/7")]


@pytest.mark.long
def test_what_another_feed_wrote_has_left(place: Workspace) -> None:
    bend(place, 'UPDATE payment SET "PaidAmount" = 5 WHERE "Id" = 2')
    assert told(place) == []
    assert told(place, Scope(feeds=("shop",))) == [("AMOUNT", "2/7")]


@pytest.mark.long
def test_nor_does_one_that_names_no_tenant(workspace: Workspace, tmp_path: Path) -> None:
    """Of a scope of tenants, it is of whoever delivered it."""
    for tenant, name in ((7, "ann"), (8, "bo")):
        path = tmp_path / f"{tenant}.csv"
        path.write_text(f"{REGISTRATIONS}{name}@example.com,{name},Li,secret,secret,Acme,1,\n")
        import_delivery(workspace, [str(path)], replace(DEFAULT, tenant=tenant))
    of_seven = Scope(tenants=(7,))
    assert told(workspace, of_seven) == []
    bend(
        workspace,
        """UPDATE client_registration SET "LastName" = 'Lee', batch_id = 2, extract_id = 2
        WHERE "EMail" = 'ann@example.com'""",
    )
    assert told(workspace, of_seven) == [("VALUE", "ann@example.com")]


@pytest.mark.long
def test_nor_does_one_that_the_service_refused(workspace: Workspace, tmp_path: Path) -> None:
    refused = Reply(status=400, body={"ResponseStatus": {"ErrorCode": "Bad", "Message": "no"}})
    with FaultyServer(lambda seen: refused if '"Id":1,' in seen.body else Reply()) as server:
        place = towards(workspace, server.url)
        for feed, lines in (("bank", (line(1), line(2))), ("shop", (line(1), line(3)))):
            path = write(tmp_path / f"{feed}.csv", *lines)
            import_delivery(place, [path], replace(DEFAULT, push=True, feed=feed))
    bend(place, f"UPDATE payment SET {WRITER.format('2, 2, 2', 1)}")
    assert told(place, service=True) == [("REFUSED", "1/7")]
