"""Side E is tied to its receipts: whatever is bent is named."""

import hashlib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.digests import (
    NUMBERED,
    Digest,
    differing,
    kept_digests,
    row_digests,
)
from connectors.postgres.batches.ledger import list_extracts
from connectors.postgres.query import one_value
from connectors.postgres.runs import sources as truths
from flows.stages.pull import PROFILE
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.tied import altered, staged_digests
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.derived.sql_names import staged_columns
from schemas.operations import PUSHES
from schemas.tables import EXTRACTS
from tests.stages.payments import line, write

SAMPLES = Path(__file__).parents[2] / "data_samples" / "clean"


def run(workspace: Workspace) -> Reconciled:
    return reconcile(workspace, Asked(Scope(), date(2026, 1, 31), Rules(references=())))


@pytest.fixture
def delivered(workspace: Workspace, tmp_path: Path, once: Any) -> Workspace:

    def build() -> None:
        lines = [line(1), line(2), line(2), line(3, amount="x"), line(5)]
        import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)
        import_delivery(workspace, [write(tmp_path / "b.csv", line(6), line(7))], DEFAULT)

    return once(build)  # type: ignore[no-any-return]


def bend(workspace: Workspace, statement: str) -> None:
    """Change the ledger as only its owner can, whatever refuses it."""
    with workspace.database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement)  # type: ignore[call-overload]


@pytest.mark.long
def test_as_it_was_taken_in_it_ties(delivered: Workspace) -> None:
    cover = run(delivered).report.cover
    assert cover.verdict == "NOT_RECONCILED", cover.because
    assert not any("taken in" in one for one in cover.because)
    assert [(one.name, one.rows) for one in cover.inputs] == [("a.csv", 5), ("b.csv", 2)]


@pytest.mark.long
def test_what_could_have_been_compared_and_was_not_is_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Answers are missed for what is sent to the service, and for nothing else."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    import_delivery(workspace, [str(SAMPLES / "avatars.csv")], DEFAULT)
    told = {one.record: one for one in run(workspace).report.cover.truths}
    assert {record: "A" in one.missing for record, one in told.items()} == {
        record: record in PUSHES for record in told
    }
    assert {record in PUSHES for record in told} == {True, False}


@pytest.mark.long(but=("statements12-told12",))
@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (
            [
                'DELETE FROM staged_payment WHERE "Id" = 1',
                'DELETE FROM outcome WHERE record_number = 1',
                'DELETE FROM payment WHERE "Id" = 1',
            ],
            ["a.csv of batch 1", "4 rows, and 5 were read (-1)", "2 rows inserted, and"],
        ),
        (
            ['UPDATE staged_payment SET "PaidAmount" = 1 WHERE "Id" = 1'],
            ["a.csv of batch 1", "PaidAmount of 32.5 in currency 1, and it was 42"],
        ),
        (
            ['UPDATE staged_payment SET "Id" = 9 WHERE "Id" = 1'],
            ["a hash total of keys of 21, and it was 13"],
        ),
        (
            ['UPDATE staged_payment SET "CurrenciesId" = 2 WHERE "Id" = 6'],
            ["b.csv of batch 2", "in currency 2, and it was 0"],
        ),
        (["DELETE FROM outcome WHERE verdict = 'superseded'"], ["4 rows inserted", "say 3"]),
        (
            ["INSERT INTO outcome (batch_id, extract_id, record_number, verdict) "
             "VALUES (2, 2, 1, 'superseded')"],
            ["b.csv of batch 2", "1 row inserted, and its receipts say 2"],
        ),
        (
            ["UPDATE outcome SET record_number = 1 WHERE verdict = 'superseded'"],
            ["batch 1: the outcomes of its rows (table outcome) are not what link"],
        ),
        (["DELETE FROM receipt WHERE stage = 'stage' AND extract_id = 2"], ["0 were read (+2)"]),
        (["DELETE FROM receipt WHERE stage LIKE 'apply%' AND extract_id = 2"], ["b.csv"]),
        (["DELETE FROM batch WHERE id = 2"], ["batch 2 is gone"]),
        (
            ["DELETE FROM batch WHERE id = 2", "DELETE FROM extract WHERE id = 2",
             "DELETE FROM receipt WHERE batch_id = 2",
             "DELETE FROM staged_payment WHERE batch_id = 2"],
            ["batch 2 is gone, and the ledger tells of it"],
        ),
        (["DELETE FROM extract WHERE id = 2"], ["extract 2 of batch 2 is gone"]),
        (
            ["UPDATE extract SET refused = 'x' WHERE id = 2",
             """UPDATE staged_payment SET "PaidAmount" = 900 WHERE "Id" = 6""",
             """UPDATE payment SET "PaidAmount" = 900 WHERE "Id" = 6"""],
            ["b.csv of batch 2 counts as refused, and 2 rows of it are there"],
        ),
        (
            ["DELETE FROM extract WHERE id = 2", "DELETE FROM receipt WHERE extract_id = 2"],
            ["extract 2 is gone, and 2 rows of it are there"],
        ),
        (
            ["""UPDATE batch SET profile = replace(profile, '"tenant": null', '"tenant": 7')"""],
            ["batch 1: its feed profile (table batch) is not what link", "batch 2: its feed"],
        ),
        (
            ["UPDATE batch SET service = 'http://x' WHERE id = 2"],
            ["batch 2: the service it goes to (table batch) is not what link"],
        ),
        (
            ["UPDATE extract SET name = 'x' WHERE id = 2"],
            ["batch 2: the files that were delivered (table extract) are not what link"],
        ),
        (
            ["INSERT INTO outcome VALUES (1, 1, 4, 'corrected', NULL)"],
            ["record 4 of a.csv of batch 1 counts as corrected, and no row that was applied"],
        ),
    ],
)  # fmt: skip
def test_what_was_bent_is_named(
    delivered: Workspace, statements: list[str], told: list[str]
) -> None:
    for statement in statements:
        bend(delivered, statement)
    cover = run(delivered).report.cover
    assert cover.verdict == "INCOMPLETE"
    because = "\n".join(cover.because)
    for word in told:
        assert word in because, because


@pytest.mark.long
def test_a_corrected_batch_ties(delivered: Workspace, tmp_path: Path, rows: Any) -> None:
    import_delivery(delivered, [write(tmp_path / "c.csv", line(3))], DEFAULT, corrects=1)
    words = ("taken in", "gone", "corrected")
    because = run(delivered).report.cover.because
    assert not any(word in one for one in because for word in words), because
    # One with the same key that says which row it repairs is nothing that was matched.
    bend(delivered, "UPDATE outcome SET error_data = NULL WHERE verdict = 'corrected'")
    because = run(delivered).report.cover.because
    assert any("record 4 of a.csv of batch 1 counts as corrected" in one for one in because)


BATCH_ROWS = [
    "Data,HasError,Merged,BatchId,Jsondata,ErrorData",
    '"{""Id"":1,""TenantsId"":7,""DebtsId"":3,""InvoiceUrl"":""u""}",,,1,,',
    "some text,,,1,,",
]
PLAN = [
    "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId",
    "1,2026-01-05T00:00:00Z,10.50,1,1,1",
]


def text_file(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines) + "\n")
    return str(path)


BENT = [
    *(
        (
            f"UPDATE staged_payment SET {change} WHERE extract_id = 1 AND record_number = {row}",
            "a.csv of batch 1, payment: the 5 rows that are kept do not hash to",
        )
        for row, change in [
            (1, """ "PaymentDate" = "PaymentDate" + interval '1 microsecond' """),
            (1, '"PaymentDate_offset" = 0'),
            (1, '"DebtsId" = 3'),
            (1, '"CurrencyRatesId" = NULL'),
            (1, "data = data || ' '"),
            (5, "byte_start = byte_start + 1"),
            (4, "error_data = replace(error_data, 'PaidAmount', 'ActionsId')"),
        ]
    ),
    (
        "UPDATE receipt SET sha256 = '0 0' WHERE stage = 'keep payment' AND batch_id = 2",
        "batch 2: the receipts with the hashes of its staged rows are not those",
    ),
    ("DELETE FROM receipt WHERE stage = 'keep payment'", "batch 1: the receipts with the hashes"),
    ("UPDATE staged_insert_batch_data SET data = data || 'x'", "rows.csv of batch 3, insert"),
    ("DELETE FROM staged_insert_batch_data", "the 0 rows that are kept do not hash to what the 1"),
    (
        "UPDATE staged_invoice_file SET data = replace(data, 'u', 'v')",
        "rows.csv of batch 3, invoice",
    ),
    (
        'UPDATE staged_payment_plan_detail SET "PaymentsId" = 6 WHERE batch_id = 4',
        "plan.csv of batch 4",
    ),
    (
        'UPDATE staged_payment_plan_detail SET "StatusCodesId" = 6 WHERE batch_id = 5',
        "listed.csv of batch 5",
    ),
]
"""Changes that no sum, count or hash total of keys tells of, in any kind of row."""


def to_correct(place: Workspace) -> list[str]:
    """Files of rows to be corrected that a new run writes."""
    folder = place.settings.reports / run(place).run.folder / "corrections"
    return [path.name for path in folder.glob("*")]


def test_every_value_of_every_row_is_tied(delivered: Workspace, tmp_path: Path, rows: Any) -> None:
    inner = replace(DEFAULT, inner_record="invoice_file")
    import_delivery(delivered, [text_file(tmp_path / "rows.csv", BATCH_ROWS)], inner)
    import_delivery(delivered, [text_file(tmp_path / "plan.csv", PLAN)], DEFAULT)
    import_delivery(delivered, [text_file(tmp_path / "listed.csv", PLAN)], PROFILE)
    with delivered.database.connect() as connection:
        batches = [one for (one,) in connection.execute("SELECT id FROM batch ORDER BY id")]
        extracts = [one for batch in batches for one in list_extracts(connection, batch)]

        def told() -> str:
            now = staged_digests(connection, EXTRACTS, batches)
            return "\n".join(one for one, _ in altered(connection, now, batches, extracts))

        assert batches == [1, 2, 3, 4, 5]
        assert not told()
        for statement, expected in BENT:
            with connection.transaction(force_rollback=True):
                connection.execute("SET LOCAL session_replication_role = replica")
                assert connection.execute(statement).rowcount  # type: ignore[call-overload]
                assert expected in told(), (statement, told())
        assert not told()
    assert "payment.csv" in to_correct(delivered)
    bend(delivered, BENT[0][0])
    cover = run(delivered).report.cover
    assert cover.verdict == "INCOMPLETE"
    assert BENT[0][1] in "\n".join(cover.because)
    # What is no row as it was delivered is given to nobody to be corrected.
    assert "payment.csv" not in to_correct(delivered)
    bend(delivered, BENT[-1][0])
    assert "listed.csv of batch 5" in "\n".join(run(delivered).report.cover.because)


EXCHANGED = """UPDATE staged_payment s SET {0} = o.{0} FROM staged_payment o
    WHERE (s.record_number, o.record_number) IN ((1, 2), (2, 1))"""


@pytest.mark.long
def test_values_that_rows_exchange_are_not_what_was_staged(
    workspace: Workspace, tmp_path: Path
) -> None:
    """What fields hash to adds up to the same, half the time, whichever row has which value."""
    payment = EXTRACTS["payment"]
    rows = [line(n, amount=f"{n}.25", tenant=n, day=n) for n in range(1, 3)]
    import_delivery(workspace, [write(tmp_path / "a.csv", *rows)], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        types = dict(
            connection.execute(
                "SELECT attname, atttypid::regtype::text FROM pg_attribute "
                "WHERE attrelid = 'staged_payment'::regclass AND attnum > 0"
            ).fetchall()
        )
        for name in staged_columns(payment):
            if name in NUMBERED:
                continue
            column, exchanged = f'"{name}"', 0
            for number in range(6):
                told = f"record_number * {number + 1}"
                if types[name] == "text":
                    told = f"({told})::text"
                elif types[name].startswith("timestamp"):
                    told = f"now() + {told} * interval '1s'"
                if name != "record_number":
                    connection.execute(f"UPDATE staged_payment SET {column} = {told}")  # type: ignore[call-overload]
                before = row_digests(connection, payment, [1])
                connection.execute(EXCHANGED.format(column))  # type: ignore[call-overload]
                exchanged += row_digests(connection, payment, [1]) != before
            assert exchanged == 6, f"{name}: {6 - exchanged} of 6 exchanges change no digest"


def test_what_an_earlier_version_hashed_is_held_against_that(delivered: Workspace) -> None:
    payment = EXTRACTS["payment"]
    with delivered.database.connect() as connection:
        names = [name for name in staged_columns(payment) if name not in NUMBERED]
        form = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        columns = ", ".join(f's."{name}"' for name in names)
        connection.execute(
            f"""UPDATE receipt SET sha256 = '{form} ' || (
                SELECT sum(hash_record_extended(ROW({columns}), 0)) FROM staged_payment s
                WHERE batch_id = 1) WHERE stage = 'keep payment' AND batch_id = 1"""  # type: ignore[call-overload]
        )
        then = kept_digests(connection, [1, 2])
        assert dict(differing(then, row_digests(connection, payment, [1, 2]))) == {}
        connection.execute("SET session_replication_role = replica")
        connection.execute('UPDATE staged_payment SET "DebtsId" = 77 WHERE record_number = 2')
        now = row_digests(connection, payment, [1, 2])
        assert [of for of, _ in differing(then, now)] == [(1, "payment"), (2, "payment")]


@pytest.mark.long
def test_several_processes_of_the_server_hash_a_large_batch(
    workspace: Workspace, tmp_path: Path
) -> None:
    rows = [line(n) for n in range(1, 80_001)]
    import_delivery(workspace, [write(tmp_path / "a.csv", *rows)], DEFAULT)
    with workspace.database.connect() as connection:
        launched = (
            "SELECT parallel_workers_launched FROM pg_stat_database "
            "WHERE datname = current_database()"
        )
        told = "SELECT pg_stat_force_next_flush()"
        connection.execute(told)
        before = one_value(connection.execute(launched))
        (digest,) = row_digests(connection, EXTRACTS["payment"], [1]).values()
        connection.execute(told)
        assert one_value(connection.execute(launched)) > before
    assert digest.rows == len(rows)


@pytest.mark.long
def test_a_batch_that_was_undone_is_claimed_by_nobody(delivered: Workspace) -> None:
    undo_batch(delivered, 2, by="ann", reason="a test")
    bend(delivered, 'UPDATE staged_payment SET "DebtsId" = 9 WHERE batch_id = 2')
    bend(delivered, "DELETE FROM outcome WHERE batch_id = 2")
    cover = run(delivered).report.cover
    assert cover.verdict == "NOT_RECONCILED", cover.because
    bend(delivered, "DELETE FROM batch WHERE id = 2")
    assert "batch 2 is gone, and the ledger tells of it" in run(delivered).report.cover.because


@pytest.mark.long
def test_what_an_earlier_version_took_in_is_tied_by_its_receipts(delivered: Workspace) -> None:
    bend(delivered, "DELETE FROM receipt WHERE stage LIKE 'keep%'")
    bend(delivered, "UPDATE event SET detail = NULL")
    cover = run(delivered).report.cover
    assert cover.verdict == "NOT_RECONCILED", cover.because
    # Columns that a later version adds are another form, which says nothing of the rows.
    assert not any("hash to" in one for one in cover.because)


@pytest.mark.long
def test_rows_that_were_hashed_over_other_columns_are_counted(delivered: Workspace) -> None:
    with delivered.database.connect() as connection:
        connection.execute("UPDATE receipt SET sha256 = 'f 1' WHERE stage LIKE 'keep%'")
        told = kept_digests(connection, [1, 2])
    assert set(told.values()) == {Digest(5, None), Digest(2, None)}
    assert not any("hash to" in one for one in run(delivered).report.cover.because)


@pytest.mark.long
def test_a_delivery_that_is_imported_meanwhile_is_no_break(
    delivered: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sides are read as they were at one moment; the next run tells of the other delivery."""
    before = run(delivered).report
    read = truths.extract_rows

    def meanwhile(*arguments: Any) -> Any:
        import_delivery(delivered, [write(tmp_path / "c.csv", line(8))], DEFAULT)
        return read(*arguments)

    monkeypatch.setattr(truths, "extract_rows", meanwhile)
    during = run(delivered).report
    monkeypatch.setattr(truths, "extract_rows", read)
    assert (len(during.breaks), during.cover.verdict) == (len(before.breaks), before.cover.verdict)
    assert [one.batch_id for one in during.cover.inputs] == [1, 2]
    assert [one.batch_id for one in run(delivered).report.cover.inputs] == [1, 2, 3]
