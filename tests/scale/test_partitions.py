"""A delivery in partitions ends as it does without: rows, places, receipts, targets, reports."""

import json
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchHeldElsewhere, EvidenceBroken, SettingsError
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import EndedBatch, Lease
from data_samples.generate import write_payments
from flows.stages.partitions import (
    Partition,
    is_large,
    partitions,
    stage_in_partitions,
    stage_partition,
)
from flows.stages.sequence import import_delivery, run_batch
from flows.stages.stage import stage
from flows.stages.workspace import Workspace
from flows.steps.validate.key_filter import Known, gather
from flows.steps.validate.states import READY
from schemas.tables import PAYMENT
from tests.examples import ALL, in_long
from tests.scale.conftest import NewWorkspace
from tests.scale.workers import import_in_partitions, left_behind, processes, received
from tests.stages.payments import HEADER, line, write

SAMPLES = Path(__file__).parents[2] / "data_samples" / "dirty"
ROWS, SEED = 6_000 if ALL else 1_500, 23
LARGE = 200_000
RECEIPTS = ("receipt",)


@pytest.fixture
def delivery(tmp_path: Path) -> Path:
    write_payments(tmp_path / "delivery", ROWS, 0.03, SEED)
    return tmp_path / "delivery" / "payments.csv"


def without_partitions(workspace: Workspace, *paths: Path) -> dict[str, Any]:
    import_delivery(workspace, [str(path) for path in paths], DEFAULT)
    return left_behind(workspace)


def staged_chunks(lease: Lease) -> list[int]:
    return [one.chunk for one in ledger.list_receipts(lease.connection, lease.batch_id, "stage")]


@pytest.mark.long
@pytest.mark.parametrize("block_bytes", [3_000, 16 * 1024, 64 * 1024])
def test_the_samples(new_workspace: NewWorkspace, block_bytes: int) -> None:
    paths = sorted(SAMPLES.glob("*.csv"))
    whole, shared = new_workspace(block_bytes), new_workspace(block_bytes)
    expected = without_partitions(whole, *paths)
    import_in_partitions(shared, paths)
    assert left_behind(shared) == expected


RATES: dict[str, Any] = {
    "feed": "rates",
    "record": "currency_rate",
    "offset": "Z",
    "null": ["", "-"],
    "comment": "#",
    "constants": {"TenantsId": 7, "FromCurrenciesId": 978},
}
TABLE = {
    "unpivot": {"keep": ["EffectiveDate"], "name": "ToCurrenciesId", "value": "ExchangeRate"},
    "fields": {"Id": {"key": ["EffectiveDate", "FromCurrenciesId", "ToCurrenciesId"]}},
}
PAYMENTS: dict[str, Any] = {"feed": "payments", "record": "payment"}
ACCOUNTS = PAYMENTS | {"skip_lines": ["Debt (?P<DebtsId>[0-9]+)"]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("profile", "encoding", "once"),
    [
        (ACCOUNTS, "utf-8", True),
        (PAYMENTS, "utf-16", True),
        (PAYMENTS | {"skip_lines": ["Debt [0-9]+"]}, "utf-8", False),
    ],
)
def test_a_file_that_is_read_from_its_beginning_is_read_once(
    new_workspace: NewWorkspace,
    tmp_path: Path,
    profile: dict[str, Any],
    encoding: str,
    once: bool,
) -> None:
    """Each of its partitions would read all that is before it."""
    carried = profile is ACCOUNTS
    names = [name for name in PAYMENT.columns if name != "DebtsId" or not carried]
    values = dict.fromkeys(names, "7") | {"PaymentDate": "2026-01-02T03:04:05Z"}
    path, lines = tmp_path / "payments.csv", [",".join(names)]
    for number in range(1, 400):
        if number % 50 == 1 and encoding == "utf-8":
            lines.append(f"Debt {number}")
        lines.append(",".join((values | {"Id": str(number)})[name] for name in names))
    path.write_text("\n".join([*lines, ""]), encoding=encoding)
    whole, shared = new_workspace(1024), new_workspace(1024)
    import_delivery(whole, [str(path)], read_profile(profile))
    with received(shared, [path], read_profile(profile)) as lease:
        handed_out = [*partitions(shared, lease, 3)]
        for partition in handed_out:
            stage_partition(shared, lease.connection, partition)
        batch = lease.batch_id
    run_batch(shared, batch)
    assert left_behind(shared) == left_behind(whole)
    assert left_behind(shared)["staged_payment"][0] == 399
    assert (len(handed_out) == 1) == once


@pytest.mark.long
def test_the_run_refuses_a_file_whose_columns_change(
    new_workspace: NewWorkspace, tmp_path: Path
) -> None:
    swapped = HEADER.replace("PaidAmount,DiscountAmount", "DiscountAmount,PaidAmount")
    lines = [*map(line, range(1, 200)), swapped, *map(line, range(200, 400))]
    paths = [
        write(tmp_path / "a.csv", *lines),
        write(tmp_path / "b.csv", *map(line, range(400, 800))),
    ]
    shared = new_workspace(1024)
    with received(shared, [Path(path) for path in paths], DEFAULT) as lease:
        handed_out = [*partitions(shared, lease, 3)]
        assert len(handed_out) > 3
        for partition in handed_out:
            stage_partition(shared, lease.connection, partition)
        batch = lease.batch_id
    run_batch(shared, batch)
    found = left_behind(shared)
    assert (found["staged_payment"][0], found["payment"][0]) == (400, 400)


LINES = [
    # keys of the profile, header, a record, a line that is none, what is noted of it
    (
        {},
        "Id,EffectiveDate,ToCurrenciesId,ExchangeRate",
        "{0},2026-01-{0:02},1,2.5",
        "#",
        "Comment",
    ),
    (TABLE, "EffectiveDate,1,2", "2026-01-{0:02},2.5,-", "2026-02-01,-,-", "NoValue"),
    (TABLE, "EffectiveDate,1,2", "2026-01-{0:02},2.5,-", "#", "Comment"),
]


@pytest.mark.long
@pytest.mark.parametrize(("keys", "header", "row", "other", "code"), LINES)
def test_lines_of_blocks_that_have_nothing_else_are_counted(
    new_workspace: NewWorkspace,
    tmp_path: Path,
    keys: dict[str, Any],
    header: str,
    row: str,
    other: str,
    code: str,
) -> None:
    others, path = f"{other}\n" * (600 // len(other)), tmp_path / "rates.csv"
    path.write_text(
        f"{header}\n{others}"
        + "".join(f"{row.format(number)}\n{others}" for number in range(1, 10))
    )
    shared, profile = new_workspace(64), read_profile({**RATES, **keys})
    with received(shared, [path], profile) as lease:
        for partition in [*partitions(shared, lease, 2)]:
            with shared.database.connect() as connection:
                stage_partition(shared, connection, partition)
        batch = lease.batch_id
    ended = run_batch(shared, batch)
    (noted,) = (one for one in ended.report.notes if one.code == code)
    assert (noted.rows, noted.line) == (10 * others.count("\n"), 2)


@pytest.mark.long
def test_a_large_dirty_file(new_workspace: NewWorkspace, tmp_path: Path) -> None:
    write_payments(tmp_path / "large", LARGE, 0.03, SEED)
    path = tmp_path / "large" / "payments.csv"
    whole, shared = new_workspace(LARGE * 3), new_workspace(LARGE * 3)
    expected = without_partitions(whole, path)
    import_in_partitions(shared, [path])
    assert expected["staged_payment"][0] == LARGE
    assert left_behind(shared) == expected


@pytest.mark.long
@pytest.mark.parametrize("point", ["copy:2", "receipt:3", "chunk:3", "spool:2"])
def test_a_worker_is_killed_and_one_process_finishes(
    new_workspace: NewWorkspace, delivery: Path, point: str
) -> None:
    whole, shared = new_workspace(16 * 1024), new_workspace(16 * 1024)
    expected = without_partitions(whole, delivery)
    with received(shared, [delivery]) as lease:
        with (
            pytest.raises(BrokenProcessPool),
            processes(shared.settings, crash=point) as run,
        ):
            stage_in_partitions(shared, lease, run, chunks=8)
        left = staged_chunks(lease)
        assert 0 < len(left) < expected["receipt"][0]
        batch = lease.batch_id
    run_batch(shared, batch)
    assert left_behind(shared) == expected


def test_partitions_that_wait_are_told(
    new_workspace: NewWorkspace,
    delivery: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    workspace = new_workspace(16 * 1024)
    monkeypatch.setattr("flows.stages.partitions.QUIET_SECONDS", 0.05)
    told = threading.Event()
    caplog.handler.addFilter(lambda record: told.set() or True if "wait" in record.msg else True)
    with received(workspace, [delivery]) as lease:
        stage_in_partitions(workspace, lease, lambda _: int(told.wait(60)), chunks=3)
    (line, *_) = (one for one in caplog.messages if "none has ended since" in one)
    assert re.match(r"(\d+) of \1 partitions wait, and none has ended since \d{4}-.+ UTC", line)


def test_a_run_that_is_told_to_end_waits_for_no_partition(
    new_workspace: NewWorkspace, delivery: Path
) -> None:
    workspace, over = new_workspace(16 * 1024), threading.Event()
    main = threading.get_ident()

    def never_ends(_: Partition) -> int:
        signal.pthread_kill(main, signal.SIGINT)
        assert over.wait(60)
        return 0

    # Ignored by a process that was started in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with received(workspace, [delivery]) as lease, pytest.raises(KeyboardInterrupt):
            stage_in_partitions(workspace, lease, never_ends, at_once=1, give_up=over.set)
    finally:
        signal.signal(signal.SIGINT, before)
    assert over.is_set()


def test_partitions_that_nobody_has_begun_are_not_waited_for_when_one_failed(
    new_workspace: NewWorkspace, delivery: Path
) -> None:
    workspace, taken_back = new_workspace(16 * 1024), threading.Event()
    numbers = count(1)

    def first_fails(_: Partition) -> int:
        if next(numbers) == 1:
            raise EvidenceBroken("altered")
        assert taken_back.wait(20)
        return 0

    with received(workspace, [delivery]) as lease, pytest.raises(EvidenceBroken):
        stage_in_partitions(workspace, lease, first_fails, chunks=3, take_back=taken_back.set)
    assert taken_back.is_set()


@pytest.mark.long
def test_where_nothing_is_left_to_stage_no_worker_is_needed(
    new_workspace: NewWorkspace, delivery: Path
) -> None:
    """A run that goes on with a batch, or reports it again, would fail where no cluster is up."""
    workspace = new_workspace(4 * 1024)
    with received(workspace, [delivery]) as lease:
        assert is_large(workspace, lease)
        stage(workspace, lease)
        assert not is_large(workspace, lease)
    run_batch(workspace, lease.batch_id)
    with workspace.database.connect() as connection:
        assert not is_large(workspace, EndedBatch(connection, lease.batch_id))


def test_small_files_are_left_to_the_run(new_workspace: NewWorkspace, tmp_path: Path) -> None:
    """It stages many of them at once; a worker would take each by itself."""
    folder = tmp_path / "delivery"
    paths = [Path(write(folder / f"{n}.csv", line(n))) for n in range(1, 100)]
    made = new_workspace(2_000)
    limits = replace(made.settings.limits, strict_bytes=2_000)
    workspace = replace(made, settings=replace(made.settings, limits=limits))
    with received(workspace, paths) as lease:
        assert not is_large(workspace, lease)
        assert [*partitions(workspace, lease, 3)] == []
    around = [
        Path(write(folder / f"{place}-{n}.csv", line(n)))
        for place, numbers in (("a", range(100, 110)), ("c", range(600, 610)))
        for n in numbers
    ]
    large = Path(write(folder / "b.csv", *map(line, range(200, 600))))
    with received(workspace, [large, *around]) as lease:
        assert is_large(workspace, lease)
        handed_out = some_partitions(workspace, lease, slice(None))
        assert len(handed_out) > 3
        stage(workspace, lease)
        assert len(staged_chunks(lease)) == len(handed_out) + len(around)
        assert known_of(workspace, lease).keys is not None


def some_partitions(workspace: Workspace, lease: Lease, wanted: slice) -> list[int]:
    """Stage only these partitions, so that receipts have gaps; returns the chunks staged."""
    for partition in list(partitions(workspace, lease, 3))[wanted]:
        stage_partition(workspace, lease.connection, partition)
    return staged_chunks(lease)


@pytest.mark.long
@pytest.mark.parametrize("wanted", [slice(1, None, 2), slice(0, None, 2), slice(-1, None)])
def test_gaps_are_filled_either_way(
    new_workspace: NewWorkspace, delivery: Path, wanted: slice
) -> None:
    whole = new_workspace(16 * 1024)
    expected = without_partitions(whole, delivery)
    for in_partitions in (False, True):
        gaps = new_workspace(16 * 1024)
        with received(gaps, [delivery]) as lease:
            left = some_partitions(gaps, lease, wanted)
            assert left != list(range(len(left)))
        if in_partitions:
            import_in_partitions(gaps, [delivery])
        else:
            run_batch(gaps, lease.batch_id)
        assert left_behind(gaps) == expected, in_partitions


@pytest.mark.long
@pytest.mark.parametrize("block_bytes", [5_000, 40_000, 1_000_000])
def test_gaps_and_chunks_of_another_size(
    new_workspace: NewWorkspace, delivery: Path, block_bytes: int
) -> None:
    expected = without_partitions(new_workspace(16 * 1024), delivery)
    gaps = new_workspace(16 * 1024)
    with received(gaps, [delivery]) as lease:
        some_partitions(gaps, lease, slice(1, None, 2))
    limits = replace(gaps.settings.limits, block_bytes=block_bytes)
    run_batch(replace(gaps, settings=replace(gaps.settings, limits=limits)), lease.batch_id)
    found = left_behind(gaps)
    assert {k: v for k, v in found.items() if k not in RECEIPTS} == {
        k: v for k, v in expected.items() if k not in RECEIPTS
    }


@pytest.mark.long
def test_nothing_is_written_after_a_take_over(
    new_workspace: NewWorkspace, delivery: Path, database_url: str
) -> None:
    workspace = new_workspace(16 * 1024)
    with received(workspace, [delivery]) as lease:
        handed_out = list(partitions(workspace, lease, 3))
    with received(workspace, [delivery]) as lease:
        with workspace.database.connect() as late, pytest.raises(BatchHeldElsewhere):
            stage_partition(workspace, late, handed_out[1])
        assert staged_chunks(lease) == []
        stage(workspace, lease)


@pytest.mark.long
def test_a_worker_with_another_database_or_archive_writes_nothing(
    new_workspace: NewWorkspace, delivery: Path, tmp_path: Path
) -> None:
    here, there = new_workspace(16 * 1024), new_workspace(16 * 1024)
    without_partitions(there, Path(write(tmp_path / "other.csv", line(1))))
    before = left_behind(there)
    with received(here, [delivery]) as lease:
        first = next(partitions(here, lease, 3))
        text = json.dumps(first.as_json())
        with (
            there.database.connect() as connection,
            pytest.raises(SettingsError, match="is not in the database of this worker"),
        ):
            stage_partition(there, connection, Partition.from_json(json.loads(text)))
        elsewhere = replace(here, settings=replace(here.settings, home=there.settings.home))
        with pytest.raises(SettingsError, match=r"payments\.csv is not in the archive"):
            stage_partition(elsewhere, lease.connection, first)
        assert staged_chunks(lease) == []
    assert left_behind(there) == before


def test_a_worker_with_a_copy_of_the_database_writes_nothing(
    new_workspace: NewWorkspace, delivery: Path
) -> None:
    here, copy, empty = (new_workspace(16 * 1024) for _ in range(3))
    with received(here, [delivery]) as lease, received(copy, [delivery]) as other:
        assert (other.batch_id, other.epoch) == (lease.batch_id, lease.epoch)
        # As it was before the run that imports: taken in by an earlier one.
        other.connection.execute("UPDATE batch SET lease_owner = 'somebody since yesterday'")
        first = next(partitions(here, lease, 3))
        for there in (copy, empty):
            with (
                there.database.connect() as connection,
                pytest.raises(SettingsError, match="RECON_DATABASE_URL of that run"),
            ):
                stage_partition(
                    replace(there, settings=replace(there.settings, home=here.settings.home)),
                    connection,
                    first,
                )
        assert staged_chunks(other) == []
        assert stage_partition(here, lease.connection, first) > 0


def test_a_worker_of_another_version_refuses_a_partition(
    new_workspace: NewWorkspace, delivery: Path
) -> None:
    """It may not know what is said of it, and would judge rows as the run does not."""
    workspace = new_workspace(16 * 1024)
    with received(workspace, [delivery]) as lease:
        (shape, *_) = (one.as_json() for one in partitions(workspace, lease, 3))
    other = {"code": "of another version", "limits": {**shape["limits"], "more_bytes": 1}}
    for one in (shape | other, shape | other | {"more": 1}):
        with pytest.raises(SettingsError, match="A worker has another version of recon"):
            Partition.from_json(one)


def test_a_partition_is_places_and_limits_as_json(
    new_workspace: NewWorkspace, delivery: Path
) -> None:
    workspace = new_workspace(16 * 1024)
    assert workspace.settings.database_url is not None
    with received(workspace, [delivery]) as lease:
        for partition in partitions(workspace, lease, 3):
            text = json.dumps(partition.as_json())
            assert Partition.from_json(json.loads(text)) == partition
            assert len(text) < 1_000, "it has more than places"
            assert workspace.settings.database_url not in text


@pytest.mark.long
def test_a_partition_handed_out_twice_is_staged_once(
    new_workspace: NewWorkspace, delivery: Path
) -> None:
    expected = without_partitions(new_workspace(16 * 1024), delivery)
    workspace = new_workspace(16 * 1024)

    def take(partition: Partition) -> int:
        with workspace.database.connect() as connection:
            return stage_partition(workspace, connection, partition)

    with received(workspace, [delivery]) as lease, ThreadPoolExecutor(2) as threads:
        rows = 0
        for partition in partitions(workspace, lease, 6):
            rows += sum(threads.map(take, [partition] * 2))
        assert rows == ROWS
        assert take(partition) == 0
    run_batch(workspace, lease.batch_id)
    assert left_behind(workspace) == expected


def known_of(workspace: Workspace, lease: Lease) -> Known:
    receipts = ledger.list_receipts(lease.connection, lease.batch_id, "stage")
    clean = [{"payment": one.totals["payment"][READY]["rows"]} for one in receipts]
    return gather(zip(clean, [one.clues for one in receipts], strict=True))["payment"]


@pytest.mark.parametrize(
    "wanted", [in_long(slice(None)), slice(1, None, 2), in_long(slice(-1, None))]
)
def test_partitions_know_where_repeats_can_be(
    new_workspace: NewWorkspace, delivery: Path, wanted: slice
) -> None:
    whole, shared = new_workspace(16 * 1024), new_workspace(16 * 1024)
    with received(whole, [delivery]) as lease:
        stage(whole, lease)
        expected = known_of(whole, lease)
    with received(shared, [delivery]) as lease:
        some_partitions(shared, lease, wanted)
        stage(shared, lease)
        found = known_of(shared, lease)
    assert expected.keys is not None
    assert found.keys is not None
    # Those at the ends of a chunk are looked at too, and still nearly all are not.
    assert {tuple(key) for key in expected.keys} <= {tuple(key) for key in found.keys}
    assert len(found.keys) < len(expected.keys) + ROWS // 4
    assert found.values.keys() == expected.values.keys()
    for name, values in expected.values.items():
        assert values is not None
        assert sorted(found.values[name] or []) == sorted(values), name


@pytest.mark.long
def test_repeats_across_partitions_are_left_to_the_database(
    new_workspace: NewWorkspace, tmp_path: Path
) -> None:
    keys = [*range(1, 800, 2), *range(1, 800, 3)]
    path = Path(
        write(tmp_path / "a.csv", *(line(key, day=1 + n % 9) for n, key in enumerate(keys)))
    )
    whole, shared = new_workspace(2_000), new_workspace(2_000)
    expected = without_partitions(whole, path)
    with received(shared, [path]) as lease:
        some_partitions(shared, lease, slice(None))
        assert known_of(shared, lease).keys is None
    run_batch(shared, lease.batch_id)
    assert left_behind(shared) == expected
    assert expected["outcome"][0] > 10


@pytest.mark.long
def test_a_file_that_is_taken_back_takes_its_marks_along(
    new_workspace: NewWorkspace, tmp_path: Path
) -> None:
    """Rows that were only in a refused file are no repeats, and hide no repeat."""
    folder = tmp_path / "delivery"
    write(folder / "a.csv", *(line(key) for key in range(1, 50)))
    write(folder / "b.csv", *(line(key) for key in range(50, 99)))
    write(folder / "c.csv", *(line(key, amount="3.5") for key in range(40, 140)))
    stated = {"a.csv": {"rows": 49}, "b.csv": {"rows": 7}, "c.csv": {"rows": 100}}
    (folder / "manifest.json").write_text(json.dumps({"files": stated}))
    found = []
    for in_partitions in (False, True):
        workspace = new_workspace(16 * 1024)
        if in_partitions:
            import_in_partitions(workspace, [folder])
        else:
            import_delivery(workspace, [str(folder)], DEFAULT)
        found.append(left_behind(workspace))
    assert found[0] == found[1]
    assert found[0]["staged_payment"][0] == 149
    assert found[0]["outcome"][0] > 0
