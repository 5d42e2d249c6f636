"""What is shown of a row is proven: each value that the database has, and what became of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import EvidenceBroken
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.digests import SPAN
from flows.stages.rows.locate import locate
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.spots import Spot
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from tests.conftest import Once
from tests.push.conftest import deliver, towards
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import line, write

OTHER = {
    "text": "coalesce({0}, '') || '9'",
    "boolean": "NOT coalesce({0}, FALSE)",
    **{
        f"timestamp with{zone} time zone": "coalesce({0}, '2020-01-01') + interval '1 day'"
        for zone in ("", "out")
    },
}
"""SQL for another value of a column, by its type; of a number, one more."""
NUMBERED = ("batch_id", "extract_id", "record_number")
"""Columns of which another value is another row."""


def show(workspace: Workspace, record: int, connection: psycopg.Connection | None = None) -> Any:
    if connection is None:
        with workspace.database.connect() as opened:
            return show(workspace, record, opened)
    (row,) = locate(workspace, connection, 1, "a.csv", Spot(record=record))
    return row


def clear_away(workspace: Workspace) -> None:
    later = datetime.now(UTC) + timedelta(days=100)
    sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)


def alter(connection: psycopg.Connection, statement: str) -> None:
    """What the owner of the database can do, with triggers off."""
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        assert connection.execute(statement).rowcount, statement  # type: ignore[call-overload]


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path, once: Once, keep: str, kept: bool) -> Workspace:
    """Two good rows and one with an error, in a batch that was undone where its file is gone."""

    def build() -> None:
        lines = line(1), line(2, amount="20.50"), line(3, amount="x")
        import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], replace(DEFAULT, keep=keep))

    build.__qualname__ += f" {keep}"
    once(build)
    if not kept:
        undo_batch(workspace, 1, by=None, reason="test")
        clear_away(workspace)
    return workspace


@pytest.mark.long(but=("reference-kept",))
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "removed"])
@pytest.mark.parametrize("keep", ["text", "reference"])
def test_no_value_of_a_row_can_be_altered_unnoticed(place: Workspace) -> None:
    with place.database.connect() as connection:
        connection.execute("CREATE TABLE public.before AS SELECT * FROM staged_payment")
        types = connection.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = 'staged_payment'"
        ).fetchall()
        for name, of in types:
            if name in NUMBERED:
                continue
            other = OTHER.get(of, "coalesce({0}, 0) + 1").format(f's."{name}"')
            told, back = (
                f'UPDATE staged_payment s SET "{name}" = {value} FROM public.before b '
                "WHERE s.record_number = 2 AND b.record_number = 2"
                for value in (other, f'b."{name}"')
            )
            alter(connection, told)
            with pytest.raises(EvidenceBroken, match="of batch 1"):
                pytest.fail(f"{name} is shown: {show(place, 2, connection)}")
            alter(connection, back)
        assert show(place, 2, connection).record_number == 2


@pytest.mark.long(but=("outcome-text-True",))
@pytest.mark.parametrize(("keep", "kept"), [("text", True)])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE receipt SET verdict = 'stale' WHERE stage = 'apply payment'",
        "INSERT INTO outcome VALUES (1, 1, 2, 'stale', NULL)",
        "INSERT INTO outcome VALUES (1, 1, 3, 'corrected', NULL)",
        "UPDATE extract SET header = '[]'",
    ],
    ids=["receipt", "outcome", "corrected", "extract"],
)
def test_what_became_of_a_row_is_not_shown_once_it_was_altered(
    place: Workspace, statement: str
) -> None:
    with place.database.connect() as connection:
        alter(connection, statement)
        with pytest.raises(EvidenceBroken, match=r"what became of batch 1.*Put back"):
            show(place, 2, connection)


@pytest.mark.long
def test_the_answer_to_a_row_is_not_shown_once_it_was_altered(
    workspace: Workspace, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        deliver(towards(workspace, server.url), write(tmp_path / "a.csv", line(1)))
    assert show(workspace, 1).sent == "acknowledged"
    with workspace.database.connect() as connection:
        alter(connection, "UPDATE send SET state = 'refused'")
        with pytest.raises(EvidenceBroken, match="answers of the service"):
            show(workspace, 1, connection)


def test_a_row_is_proven_by_the_rows_around_it(workspace: Workspace, tmp_path: Path) -> None:
    """Whoever looks at rows of a large file does not wait each time until all are hashed."""
    rows = SPAN + 10
    path = write(tmp_path / "a.csv", *(line(number) for number in range(1, rows + 1)))
    import_delivery(workspace, [str(path)], DEFAULT)
    altered = f'UPDATE staged_payment SET "PaidAmount" = 0 WHERE record_number = {SPAN + 2}'
    with workspace.database.connect() as connection:
        alter(connection, altered)
        assert "staged with it proves the rest" in show(workspace, SPAN - 1, connection).proof
        for near in (SPAN + 1, SPAN + 2, rows):
            with pytest.raises(EvidenceBroken, match=f"around record {near} are not those that"):
                show(workspace, near, connection)


@pytest.mark.parametrize(
    ("keep", "kept", "hashed", "told"),
    [
        ("text", True, True, "The kept file proves its text and place; the hash of the rows that"),
        ("text", True, False, "The kept file proves its text and place; nothing proves the rest."),
        ("text", False, True, "The hash of the rows that were staged with it proves it. House"),
        ("text", False, False, "Nothing proves it. Housekeeping removed the kept file on"),
    ],
)
def test_what_proves_a_row_is_said(place: Workspace, hashed: bool, told: str) -> None:
    """An earlier version said nothing of the rows that it staged."""
    with place.database.connect() as connection:
        if not hashed:
            alter(connection, "UPDATE event SET detail = NULL WHERE what = 'batch staged'")
        assert show(place, 1, connection).proof.startswith(told)


@pytest.mark.long(but=("text-text-True",))
@pytest.mark.parametrize(("keep", "kept"), [("text", True)])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE staged_payment SET data = replace(data, '3,7', '9,7') WHERE record_number = 3",
        "UPDATE receipt SET verdict = 'stale' WHERE stage = 'apply payment'",
        "INSERT INTO outcome VALUES (1, 1, 3, 'corrected', NULL)",
    ],
    ids=["text", "receipt", "corrected"],
)
def test_no_row_is_given_to_be_corrected_that_is_not_the_one_delivered(
    place: Workspace, tmp_path: Path, statement: str
) -> None:
    """Whoever corrects its amount would import the key that somebody else wrote there."""
    rejects = partial(write_rejects, place, 1, with_secrets=False)
    (path,) = rejects(tmp_path / "before")
    assert "\n1:3,3,7," in path.read_text()
    with place.database.connect() as connection:
        alter(connection, statement)
    with pytest.raises(EvidenceBroken, match=r"altered .*Put back"):
        rejects(tmp_path / "after")
    assert not (tmp_path / "after").exists()
