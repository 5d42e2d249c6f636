"""What references cost and come to, whatever the sizes of the two sides."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.findings import notes
from connectors.postgres.batches.lease import hold_batch
from flows.stages.check import check
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.sequence import import_delivery
from flows.stages.stage import stage
from flows.stages.workspace import Workspace
from tests.stages.payments import HEADER

RATES = 60_000
SECONDS = 4
"""Of one statement, which takes a tenth of one; each row held against all rates took 10."""


def payment(number: int, rate: int, tenant: int = 7) -> str:
    return f"{number},{tenant},1,2,2026-01-01T10:00:00Z,1.5,0,1,{rate}"


@pytest.mark.long(but=("database-reject",))
@pytest.mark.parametrize(("place", "policy"), [("database", "reject"), ("delivery", "flag")])
def test_a_thousand_dangling_references_are_looked_up_at_once(
    place: str,
    policy: str,
    workspace: Workspace,
    tmp_path: Path,
    rows: Callable[..., list[tuple[Any, ...]]],
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    body = [payment(n, RATES + n) for n in range(1, 1000)]
    body += [payment(1000, 5), payment(1001, 5, tenant=8), payment(1002, 6, tenant=8)]
    (folder / "payments.csv").write_text("\n".join([HEADER, *body]) + "\n")
    if place == "database":
        with workspace.database.connect() as connection:
            connection.execute(
                f"INSERT INTO currency_rate SELECT n, 7, 1, 2, 1.5, '2026-01-01', 0, 0, 0, 0 "
                f"FROM generate_series(1, {RATES}) n"
            )
    else:
        written = (f"{n},7,1,2,1.5,2026-01-01T00:00:00" for n in range(1, RATES + 1))
        head = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
        (folder / "currency_rates.csv").write_text("\n".join([head, *written]) + "\n")
    received = receive(workspace, [str(folder)], StatedTerms(replace(DEFAULT, reference=policy)))
    with (
        workspace.database.connect() as connection,
        hold_batch(connection, received.batch_id) as lease,
    ):
        stage(workspace, lease)
        connection.execute(f"SET statement_timeout = '{SECONDS}s'")
        check(workspace, lease)
    if policy == "flag":
        found = rows("SELECT code, count(*), sum(rows) FROM note GROUP BY code ORDER BY code")
        assert found == [("ReferenceMissing", 999, 999), ("ReferenceTenant", 2, 2)]
    else:
        found = rows(
            "SELECT error_data::json -> 0 ->> 'ErrorCode', count(*) FROM outcome "
            "WHERE verdict = 'rejected' GROUP BY 1 ORDER BY 1"
        )
        assert found == [("ReferenceMissing", 999), ("ReferenceTenant", 2)]


@pytest.mark.long
def test_what_was_noted_is_shown_without_a_search_for_each_row(
    workspace: Workspace, tmp_path: Path, rows: Callable[..., list[tuple[Any, ...]]]
) -> None:
    """Nothing tells the planner how many notes there are; it thinks of one."""
    body = [payment(number, number) for number in range(1, 2001)]
    (tmp_path / "payments.csv").write_text("\n".join([HEADER, *body, ""]))
    batch = import_delivery(workspace, [str(tmp_path / "payments.csv")], DEFAULT).batch

    def searches() -> int:
        rows("SELECT pg_stat_force_next_flush()")
        (found,) = rows(
            "SELECT sum(idx_scan + seq_scan) FROM pg_stat_user_tables WHERE relname = %s",
            ["staged_payment"],
        )
        return int(found[0])

    before = searches()
    with workspace.database.connect() as connection:
        found = notes(connection, batch.id, 10_000)
        connection.execute("SELECT pg_stat_force_next_flush()")
    assert [(note.value, note.rows, note.line) for note in found[:3]] == [
        ("1", 1, 2), ("10", 1, 11), ("100", 1, 101)
    ]  # fmt: skip
    assert len(found) == 2000
    assert searches() - before < 10
