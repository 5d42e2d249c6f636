"""What is remembered between the stages saves work, and never changes what becomes of a row."""

import hashlib
import io
import json
import random
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from connectors.files.disk.spool import Spooled, read_spool, spool_path, write_spool
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import read_profile
from connectors.forms import form_of_code
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.batches.staging import copy_binary, copy_staged
from connectors.postgres.bulk.binary_copy import Texts
from connectors.settings import Limits
from flows.stages.apply import apply
from flows.stages.check import check
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.sequence import import_delivery, run_batch
from flows.stages.stage import stage
from flows.stages.workspace import Workspace
from flows.steps.validate.check import check as judge_cells
from flows.steps.validate.field_errors import empty_texts
from flows.steps.validate.key_filter import MOST_KEYS_OF_CHUNK, TENANT_BITS, KeyFilter, gather
from flows.steps.validate.rows import Positions, all_rows, identities, staged_rows
from schemas.derived.sql_names import staged_columns
from schemas.millionths import in_millionths, plain_rows
from schemas.tables import PAYMENT, PAYMENT_PLAN_DETAIL, TABLES
from tests.stages.payments import HEADER, line, write

SEED = 5
SMALL = Limits(block_bytes=16 * 1024, strict_bytes=0)
AMOUNTS = ["0", "-0.0", "12.50", "-123456789.123456", "0.000001", "1000", "00012.10", "-7.0", "1e2"]


def with_small_blocks(workspace: Workspace) -> Workspace:
    return replace(workspace, settings=replace(workspace.settings, limits=SMALL))


def keys_with_repeats() -> list[int]:
    chance = random.Random(SEED)
    keys = list(range(1, 1500))
    chance.shuffle(keys)
    return keys + chance.sample(keys, 40) + [-3, -3]


def judged(rows: Any) -> list[tuple[object, ...]]:
    return [
        *rows("SELECT extract_id, record_number, state, error_data FROM staged_row ORDER BY 1, 2"),
        *rows('SELECT * FROM payment ORDER BY "Id"'),
    ]


def forget_spool(workspace: Workspace) -> None:
    shutil.rmtree(workspace.settings.home / "spool")


def damage_spool(workspace: Workspace) -> None:
    for path in (workspace.settings.home / "spool").rglob("*-*"):
        if path.is_file():
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(content)


def cut_some_of_spool(workspace: Workspace) -> None:
    paths = sorted(p for p in (workspace.settings.home / "spool").rglob("*-*") if p.is_file())
    for path in paths[::2]:
        path.write_bytes(path.read_bytes()[:100])


def forget_clues(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        connection.execute("UPDATE receipt SET clues = NULL")


def of_an_earlier_version(workspace: Workspace) -> None:
    """Hints without a form, and a spool with other columns, whole by the hash that they tell."""
    with workspace.database.connect() as connection:
        receipts = connection.execute(
            "SELECT batch_id, extract_id, chunk, clues FROM receipt WHERE clues IS NOT NULL"
        ).fetchall()
        for batch, extract, chunk, text in receipts:
            (clues,) = json.loads(text).values()
            path = spool_path(workspace.settings, batch, extract, chunk)
            if not path.exists():
                continue  # Its batch has ended.
            rows = pl.read_ipc(path.read_bytes())
            content = io.BytesIO()
            rows.select(pl.first().alias("another"), pl.last().cast(pl.String)).write_ipc(content)
            path.write_bytes(content.getvalue())
            clues["payment"]["spool"] = hashlib.sha256(content.getvalue()).hexdigest()
            clues["payment"]["span"] = "of another shape"
            connection.execute(
                "UPDATE receipt SET clues = %s "
                "WHERE extract_id = %s AND chunk = %s AND stage = 'stage'",
                [json.dumps(clues), extract, chunk],
            )


def forget_first_clues(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        connection.execute("UPDATE receipt SET clues = NULL WHERE chunk = 0")


LOSSES: list[Callable[[Workspace], None]] = [
    forget_spool,
    damage_spool,
    cut_some_of_spool,
    forget_clues,
    forget_first_clues,
    of_an_earlier_version,
]


def deliver(workspace: Workspace, folder: Path, lose: Callable[[Workspace], None] | None) -> None:
    """Two files of one batch that repeat keys within and across, onto rows that are there."""
    keys = keys_with_repeats()
    folder.mkdir()
    import_delivery(
        workspace,
        [write(folder / "before.csv", *(line(key, amount="5.5", day=10) for key in keys[5:30]))],
        DEFAULT,
    )
    half = len(keys) // 2
    lines = [
        line(key, amount="ten" if place % 97 == 0 else f"{place % 7}.5", day=10 + place % 3)
        for place, key in enumerate(keys)
    ]
    paths = [
        write(folder / "one.csv", *lines[:half]),
        write(folder / "two.csv", *lines[half:]),
    ]
    received = receive(workspace, paths, StatedTerms())
    with (
        workspace.database.connect() as connection,
        hold_batch(connection, received.batch_id) as lease,
    ):
        stage(workspace, lease)
        receipts = ledger.list_receipts(connection, received.batch_id, "stage")
        assert len(receipts) > 4
        assert all(receipt.clues["payment"]["spool"] for receipt in receipts)
        if lose:
            lose(workspace)
        check(workspace, lease)
        apply(workspace, lease)
    ended = run_batch(workspace, received.batch_id)
    assert all(chain.ties for chain in ended.report.chains)


def wipe(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        names = "payment staged_payment receipt outcome before_image note extract batch"
        for table in names.split():
            connection.execute(f"TRUNCATE {table} RESTART IDENTITY CASCADE")
    # No number of a batch whose report is there is given again.
    shutil.rmtree(workspace.settings.reports, ignore_errors=True)


@pytest.mark.long
def test_what_was_lost_between_the_stages_changes_nothing(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    workspace = with_small_blocks(workspace)
    deliver(workspace, tmp_path / "whole", None)
    whole = judged(rows)
    assert {row[2] for row in whole if len(row) == 4} == {
        *("inserted", "updated", "unchanged", "rejected", "conflict", "superseded")
    }
    for lose in LOSSES:
        wipe(workspace)
        deliver(workspace, tmp_path / lose.__name__, lose)
        assert judged(rows) == whole, lose.__name__
        assert not list((workspace.settings.home / "spool").rglob("*-*"))


COUNTED: list[tuple[dict[str, Any], str]] = [
    (
        {"comment": "#", "leave_out": {"Status": ["pending"]}},
        f"{HEADER},Status\n# a\n{line(1)},settled\n{line(2)},pending\n# b\n",
    ),
    # Nothing of it is read, and so somebody has to decide.
    ({"comment": "#", "budget": {"read": 0.5}}, f"{HEADER}\n# a\n# b\n"),
]


@pytest.mark.long
@pytest.mark.parametrize(("keys", "text"), COUNTED, ids=["left out", "comments alone"])
def test_what_is_no_record_or_left_out_is_told_by_another_version_too(
    workspace: Workspace, rows: Any, tmp_path: Path, keys: dict[str, Any], text: str
) -> None:
    """A batch that was staged before an upgrade, or before a record kind was defined."""
    profile = read_profile({"feed": "list", "record": "payment", **keys})
    path = tmp_path / "payments.csv"
    path.write_text(text)
    told = []
    for form in (form_of_code(), "0123456789abcdef"):
        wipe(workspace)
        batch = receive(workspace, [str(path)], StatedTerms(profile)).batch_id
        with workspace.database.connect() as connection, hold_batch(connection, batch) as lease:
            stage(workspace, lease)
            connection.execute(
                "UPDATE receipt SET clues = replace(clues, %s, %s)", [form_of_code(), form]
            )
        ended = run_batch(workspace, batch)
        told.append(
            (
                ended.batch.held_because,
                rows("SELECT code, field, value, rows, record_number FROM note"),
            )
        )
    assert told[1] == told[0]
    assert any(told[0])


@pytest.mark.long
def test_a_missing_reference_is_told_the_same_without_clues(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    told: list[Any] = []
    for lose in (lambda _: None, forget_clues):
        wipe(workspace)
        paths = [write(tmp_path / f"p{len(told)}.csv", *(line(key) for key in range(1, 40)))]
        received = receive(workspace, paths, StatedTerms())
        with (
            workspace.database.connect() as connection,
            hold_batch(connection, received.batch_id) as lease,
        ):
            stage(workspace, lease)
            lose(workspace)
            check(workspace, lease)
        told.append(rows("SELECT record_number, code, value, rows, message FROM note"))
    assert told[0] == told[1]
    assert told[0]


@pytest.mark.long
@pytest.mark.parametrize("record", ["payment", "currency_rate"])
@pytest.mark.parametrize(
    "widest",
    [
        *AMOUNTS,
        "9999.9999",
        "-10000",
        "10000.00001",
        "99999999.5",
        "100000000",
    ],
)
def test_binary_and_text_store_the_same(
    workspace: Workspace, rows: Any, record: str, widest: str
) -> None:
    table = TABLES[record]
    chance = random.Random(SEED)
    choices = {
        "Id": ["1", "-9223372036854775808", "9223372036854775807"],
        "EffectiveDate": ["2026-01-01", "1999-12-31T23:59:59.999999", "0002-01-01T00:00:00+14:00"],
        "PaymentDate": ["2026-01-01T00:00:00Z", "1969-07-20T20:17:40.123-05:30"],
    }
    amounts = [one for one in AMOUNTS if abs(float(one)) <= abs(float(widest))] + [widest]
    texts = {
        field.name: [
            chance.choice(
                choices.get(field.name, amounts if field.kind.value == "double" else ["7", "-12"])
            )
            for _ in range(300)
        ]
        for field in table.delivered
    }
    checked = judge_cells(table, pl.DataFrame(texts, dict.fromkeys(texts, pl.String)))
    assert not checked.errors
    source = "".join(f"row {'é' * (number % 5)} {number}\n" for number in range(300)).encode()
    ends = [place for place, byte in enumerate(source) if byte == ord("\n")]
    starts = [0, *(end + 1 for end in ends[:-1])]
    frame = pl.DataFrame(
        {
            "record_number": range(1, 301),
            "first_line": range(2, 302),
            "last_line": range(2, 302),
            "byte_start": [start + 1000 for start in starts],
            "byte_end": [end + 1000 for end in ends],
            "data": [source[a:b].decode() for a, b in zip(starts, ends, strict=True)],
        }
    )
    staged = staged_rows(
        table,
        1,
        1,
        all_rows(checked, Positions(frame, empty_texts(frame.height))),
        identities(table, checked.typed, 1, frame["record_number"]),
    ).frame
    plain = staged.filter(plain_rows(table, staged))
    assert plain.height > 200
    exact = in_millionths(table, plain.drop("data"))
    places = [exact[name].to_numpy() - 1000 for name in ("byte_start", "byte_end")]
    binary = copy_binary(table, exact, Texts(np.frombuffer(source, np.uint8), *places))
    ask = f"SELECT {', '.join(map(quote, staged_columns(table)))} FROM staged_{record} ORDER BY 3"
    found = []
    for copy in (
        copy_staged(table, plain),
        binary,
    ):
        with workspace.database.connect() as connection:
            copy.send(connection)
        found.append([[*map(str, row)] for row in rows(ask)])
        with workspace.database.connect() as connection:
            connection.execute(f"TRUNCATE staged_{record}")
    assert found[0] == found[1]
    assert len(found[0]) == plain.height


def quote(name: str) -> str:
    return f'"{name}"'


def frame(keys: list[int]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "Id": pl.Series(keys, dtype=pl.Int64),
            "TenantsId": pl.Series([key % 3 for key in keys], dtype=pl.Int32),
            "CurrencyRatesId": pl.Series([abs(key) % 5 for key in keys], dtype=pl.Int64),
        }
    )


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_no_repeated_key_escapes_the_sieve(size: int) -> None:
    keys = keys_with_repeats()
    sieve, told = KeyFilter(), []
    for begin in range(0, len(keys), size):
        rows = frame(keys[begin : begin + size])
        told.append(({"payment": rows.height}, {"payment": sieve.add(PAYMENT, rows)}))
    known = gather(told)["payment"]
    counts: dict[int, int] = defaultdict(int)
    for key in keys:
        counts[key] += 1
    repeated = {key for key, number in counts.items() if number > 1}
    assert known.keys is not None
    assert repeated <= {key[0] for key in known.keys}
    assert len(known.keys) < 100, "the sieve lets too much through"
    values = known.values["CurrencyRatesId"]
    assert values is not None
    assert {tuple(value) for value in values} == {(abs(k) % 5, k % 3) for k in keys}
    assert len(values) == 15
    lost = gather(told[1:])
    assert all(
        one.keys is None and one.values.get("CurrencyRatesId") is None for one in lost.values()
    )


@pytest.mark.parametrize(("second", "apart"), [([8, 9], True), ([7, 8], False)])
def test_the_keys_of_two_filters_lie_apart_or_nothing_is_known(
    second: list[int], apart: bool
) -> None:
    """A run that goes on begins a filter of its own, which has not seen the rows before."""
    told = []
    for chunk, keys in enumerate(([6, 7], second)):
        rows = frame(keys)
        told.append(({"payment": 2}, {"payment": KeyFilter().add(PAYMENT, rows, (1, chunk))}))
    assert gather(told)["payment"].keys == ([] if apart else None)


def test_too_many_repeats_are_left_to_the_database() -> None:
    rows = frame([1] * (MOST_KEYS_OF_CHUNK + 2))
    clue = KeyFilter().add(PAYMENT, rows)
    assert clue["keys"] is None
    assert gather([({"payment": rows.height}, {"payment": clue})])["payment"].keys is None


ENDS = 2 ** (63 - TENANT_BITS)


@pytest.mark.parametrize(
    "values",
    [[0, 1, -1, 5, 5], [ENDS - 1, -ENDS, 0], [ENDS, 1, 1], [-ENDS - 1, 2, 2], [-(2**63), 7]],
)
@pytest.mark.parametrize("tenants", [[1], [0, 2**TENANT_BITS - 1], [2**TENANT_BITS, 1], [-1, 1]])
def test_values_of_a_reference_are_told_with_their_tenants(
    values: list[int], tenants: list[int]
) -> None:
    rows = pl.DataFrame(
        {
            "Id": range(len(values)),
            "CurrencyRatesId": values,
            "TenantsId": (tenants * 5)[: len(values)],
        },
        {"Id": pl.Int64, "CurrencyRatesId": pl.Int64, "TenantsId": pl.Int32},
    )
    told = KeyFilter().add(PAYMENT, rows)["values"]["CurrencyRatesId"]
    pairs = zip(rows["CurrencyRatesId"], rows["TenantsId"], strict=True)
    assert [tuple(one) for one in told] == sorted(set(pairs))


def test_a_key_of_text_is_sieved_by_its_hash() -> None:
    rows = pl.DataFrame({"identity": ["ab" * 16, "cd" * 16, "ab" * 16], "PaymentsId": [1, None, 2]})
    clue = KeyFilter().add(PAYMENT_PLAN_DETAIL, rows)
    assert clue["keys"] == [["ab" * 16]]
    assert clue["values"] == {"PaymentsId": [[1, None], [2, None]]}


def test_a_spool_is_what_was_written_or_nothing(tmp_path: Path) -> None:
    one, other = (
        frame([key]).with_columns(batch_id=1, extract_id=1, record_number=key) for key in (1, 2)
    )
    path = tmp_path / "deep" / "1-0"
    sha256 = write_spool(path, [one, other])
    assert sha256 is not None
    whole = read_spool(Spooled(path, sha256, 1, 2, 2))
    assert whole is not None
    assert whole.equals(one.vstack(other).drop("batch_id", "extract_id"))
    assert read_spool(Spooled(path, sha256, 1, 3, 3)) is None
    assert read_spool(Spooled(path, "0" * 64, 1, 2, 2)) is None
    assert read_spool(Spooled(tmp_path / "absent", sha256, 1, 2, 2)) is None
    assert write_spool(path / "below a file", [one]) is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (range(10, 20), range(20, 30)),
        (range(10, 20), range(1, 10)),
        (range(10, 20), range(19, 25)),
        (range(10, 20, 3), range(11, 19, 3)),
        (range(-20, -10), range(-12, 2)),
        (range(0), range(5)),
    ],
)
def test_rows_below_among_and_above_what_is_known(
    workspace: Workspace, rows: Any, tmp_path: Path, before: range, after: range
) -> None:
    for name, keys in (("a.csv", before), ("b.csv", after)):
        ended = import_delivery(
            workspace, [write(tmp_path / name, *(line(key) for key in keys))], DEFAULT
        )
    found = dict(
        rows(
            "SELECT state, count(*) FROM staged_row WHERE batch_id = %s GROUP BY 1",
            [ended.batch.id],
        )
    )
    same = len(set(before) & set(after))
    expected = {"unchanged": same, "inserted": len(after) - same}
    assert found == {state: number for state, number in expected.items() if number}
