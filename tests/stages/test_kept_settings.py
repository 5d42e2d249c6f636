"""Settings that decide verdicts are kept with a batch: whoever goes on with it goes by them."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError
from connectors.files.profiles.profile import BY_KEY, DEFAULT
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches import ledger
from connectors.postgres.batches.ledger import State
from flows.stages.partitions import stage_in_partitions
from flows.stages.receiving.terms import other_terms, restored_profile, stored_profile
from flows.stages.reconcile.profile_changes import _keys
from flows.stages.sequence import import_delivery, run_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.extracts.test_cell_currencies import NAMES, SHAPE, sheet, with_names
from tests.recon import run
from tests.scale.workers import processes, received
from tests.stages.payments import HEADER, line

EUROS = SHAPE | {"constants": SHAPE["constants"] | {"CurrenciesId": 978}}
OTHER = "CurrenciesId,Code\n978,GBP\n826,EUR\n"
"""A table by which each verdict is the other way round."""
LINES = 180
BEFORE = datetime(2026, 1, 1, tzinfo=UTC)
Rows = Callable[..., list[tuple[Any, ...]]]


def as_toml(shape: dict[str, Any]) -> str:
    keys = [f"{key} = {json.dumps(of)}" for key, of in shape.items() if not isinstance(of, dict)]
    for key, of in shape.items():
        if isinstance(of, dict):
            keys += [f"[{key}]", *(f"{name} = {json.dumps(one)}" for name, one in of.items())]
    return "\n".join(keys)


def lines(first: int, last: int) -> list[list[tuple[str, str]]]:
    """Every third amount is in pounds; by the table `NAMES` all records are in euros."""
    return [
        [(str(at), "0"), (f"{at}.25", "GBP" if at % 3 == 0 else "EUR")]
        for at in range(first, last + 1)
    ]


def wrong(rows: Rows, batch: int = 1) -> dict[int, str]:
    """By key: the reason against a row of a batch."""
    told = rows(
        "SELECT \"Id\", error_data::json -> 0 ->> 'ErrorCode' FROM staged_payment "
        "WHERE batch_id = %s AND error_data IS NOT NULL",
        [batch],
    )
    return dict(told)


def thirds(first: int, last: int) -> dict[int, str]:
    return {at: "OtherCurrency" for at in range(first, last + 1) if at % 3 == 0}


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "point"),
    [
        (1, "chunk:1"),  # One chunk has its verdicts, all others come under another table.
        (20, "copy:1"),  # Small files, which are staged together.
    ],
)
def test_a_rerun_goes_by_the_table_of_its_batch(
    workspace: Workspace, rows: Rows, tmp_path: Path, files: int, point: str
) -> None:
    folder, each = tmp_path / "delivery", LINES // files
    folder.mkdir()
    for number in range(files):
        first = number * each + 1
        sheet(folder / f"{number:02}.xlsx", ["Number", "Paid"], lines(first, first + each - 1))
    profile = tmp_path / "x.toml"
    profile.write_text(as_toml(EUROS))
    tables = {}
    for name, text in (("then", NAMES), ("now", OTHER)):
        tables[name] = tmp_path / f"{name}.csv"
        tables[name].write_text(text)
    url, home = str(workspace.settings.database_url), workspace.settings.home
    sizes = {"RECON_LIMIT_BLOCK_BYTES": "512"} | (
        {"RECON_LIMIT_STRICT_BYTES": "1"} if files == 1 else {}
    )
    given = {**sizes, "RECON_CURRENCIES": str(tables["then"]), "CRASH_AT": point}
    killed = run(url, home, "import", str(folder / "*.xlsx"), "--profile", str(profile), **given)
    assert killed.returncode == -9, killed.stderr
    given = {**sizes, "RECON_CURRENCIES": str(tables["now"])}
    again = run(url, home, "rerun", "1", **given)
    assert again.returncode == 1, again.stderr
    assert wrong(rows) == thirds(1, LINES)
    assert rows('SELECT count(*) FROM payment WHERE "CurrenciesId" = 978') == [(120,)]


@pytest.mark.long
def test_workers_of_a_cluster_need_no_table(
    workspace: Workspace, rows: Rows, tmp_path: Path
) -> None:
    path = sheet(tmp_path / "a.xlsx", ["Number", "Paid"], lines(1, LINES))
    settings = with_names(workspace.settings, tmp_path, NAMES)
    limits = replace(settings.limits, block_bytes=512)
    settings = replace(settings, limits=limits)
    elsewhere = replace(settings, currencies=tmp_path / "is-not-there.csv")
    here = replace(workspace, settings=settings)
    with (
        received(here, [Path(path)], read_profile(EUROS)) as lease,
        processes(elsewhere) as workers,
    ):
        stage_in_partitions(here, lease, workers, at_once=2, chunks=2)
    run_batch(here, 1)
    assert wrong(rows) == thirds(1, LINES)


def with_table(workspace: Workspace, folder: Path, text: str) -> Workspace:
    return replace(workspace, settings=with_names(workspace.settings, folder, text))


@pytest.mark.long
def test_a_correction_is_held_against_the_table_of_what_it_repairs(
    workspace: Workspace, rows: Rows, tmp_path: Path
) -> None:
    path = sheet(tmp_path / "a.xlsx", ["Number", "Paid"], lines(1, 6))
    import_delivery(with_table(workspace, tmp_path, NAMES), [path], read_profile(EUROS))
    assert wrong(rows) == thirds(1, 6)
    changed = with_table(workspace, tmp_path, OTHER)
    # A correction as a text names no currency; that of it comes as a sheet.
    repair = tmp_path / "repair.csv"
    repair.write_text("ReconRow,Number,Paid\n1:3,3,3.00\n1:6,6,x\n")
    import_delivery(changed, [str(repair)], read_profile(EUROS), corrects=1)
    assert wrong(rows, 2) == {6: "Number"}
    sheet(tmp_path / "b.xlsx", ["Number", "Paid"], [[("6", "0"), ("6.5", "EUR")]])
    sheet(tmp_path / "c.xlsx", ["Number", "Paid"], [[("6", "0"), ("6.5", "GBP")]])
    for corrects, name, expected in ((1, "c.xlsx", thirds(6, 6)), (2, "b.xlsx", {})):
        path = str(tmp_path / name)
        batch = import_delivery(changed, [path], read_profile(EUROS), corrects=corrects).batch
        assert wrong(rows, batch.id) == expected


@pytest.mark.long
def test_a_known_delivery_says_that_the_table_was_another(
    workspace: Workspace, rows: Rows, tmp_path: Path
) -> None:
    path = sheet(tmp_path / "a.xlsx", ["Number", "Paid"], lines(1, 6))
    text = tmp_path / "b.csv"
    text.write_text(f"{HEADER}\n{line(9)}\n")
    for name in (path, str(text)):
        shape = read_profile(EUROS if name == path else {"feed": "y"})
        told = []
        for names in (NAMES, NAMES, OTHER):
            place = with_table(workspace, tmp_path, names)
            told.append(" ".join(import_delivery(place, [name], shape).messages))
        assert "which differ in" not in told[1]
        of_sheet = "which differ in RECON_CURRENCIES: to have it read anew, `recon undo 1"
        assert (of_sheet in told[2]) == (name == path)


@pytest.mark.long
@pytest.mark.parametrize(("now", "expected"), [(NAMES, thirds(1, 6)), ("", {})])
def test_a_batch_that_was_opened_before_goes_by_the_table_of_now(
    workspace: Workspace, rows: Rows, tmp_path: Path, now: str, expected: dict[int, str]
) -> None:
    path = sheet(tmp_path / "a.xlsx", ["Number", "Paid"], lines(1, 6))
    with received(with_table(workspace, tmp_path, OTHER), [Path(path)], read_profile(EUROS)):
        pass
    with workspace.database.connect() as connection:
        kept = json.loads(ledger.find_batch(connection, 1).profile)
        assert kept.pop("kept_settings")["currencies"] == {"978": "GBP", "826": "EUR"}
    received_before(workspace, kept)
    run_batch(with_table(workspace, tmp_path, now), 1)
    assert wrong(rows) == expected


LONG = "x" * 2_000
"""What is in a column that is ignored."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ({"field_bytes": 1_000}, {}, {2: "FieldTooLarge"}),
        ({}, {"field_bytes": 1_000}, {}),
        ({"record_bytes": 1_000}, {}, {2: "RecordTooLarge"}),
        ({}, {"columns": 3}, {}),
    ],
)
def test_rows_are_read_within_the_limits_of_their_batch(
    workspace: Workspace,
    rows: Rows,
    tmp_path: Path,
    then: dict[str, int],
    now: dict[str, int],
    expected: dict[int, str],
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER},More\n{line(1)},\n{line(2)},{LONG}\n{line(3)},\n")
    profile = read_profile({"feed": "x", "unknown_columns": "ignore"})

    def within(limits: dict[str, int]) -> Workspace:
        settings = workspace.settings
        return replace(
            workspace, settings=replace(settings, limits=replace(settings.limits, **limits))
        )

    with received(within(then), [path], profile):
        pass
    run_batch(within(now), 1)
    told = "SELECT record_number, error_data::json -> 0 ->> 'ErrorCode' FROM staged_payment"
    assert dict(rows(f"{told} WHERE batch_id = 1 AND error_data IS NOT NULL")) == expected
    (name,) = then.keys() | now.keys()
    if name != "columns":  # With fewer of them the file is refused before it is known.
        again = import_delivery(within(now), [str(path)], profile)
        assert f"which differ in RECON_LIMIT_{name.upper()}" in again.messages[0]
    if "field_bytes" in then:  # A correction is read within those of its own day.
        repair = tmp_path / "repair.csv"
        repair.write_text(f"ReconRow,{HEADER},More\n1:2,{line(2)},{LONG}\n")
        batch = import_delivery(within(now), [str(repair)], profile, corrects=1).batch
        assert batch.state is State.COMPLETE


def received_before(workspace: Workspace, profile: dict[str, Any]) -> None:
    """Have the database say that an earlier version received batch 1 so: no event has a hash."""
    with workspace.database.connect() as connection, connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("UPDATE event SET detail = NULL WHERE batch_id = 1")
        connection.execute("UPDATE batch SET profile = %s WHERE id = 1", [json.dumps(profile)])


def received_under(workspace: Workspace, path: Path, kept: object) -> None:
    """Receive a file as batch 1, and have the database say that these settings were kept of it."""
    path.write_text(f"{HEADER}\n{line(1)}\n")
    with received(workspace, [path]):
        pass
    with workspace.database.connect() as connection:
        profile = json.loads(ledger.find_batch(connection, 1).profile) | {"kept_settings": kept}
    received_before(workspace, profile)


@pytest.mark.parametrize(
    ("kept", "said"), [({"locale": "de"}, "locale"), ({"limits": {"pages": 3}}, "pages")]
)
def test_a_setting_that_this_version_does_not_know_stops_it(
    workspace: Workspace, tmp_path: Path, kept: dict[str, Any], said: str
) -> None:
    received_under(workspace, tmp_path / "a.csv", kept)
    with pytest.raises(BatchStateError, match=rf"terms that this one does not know: {said}\."):
        run_batch(workspace, 1)


def test_a_pattern_that_this_version_does_not_read_stops_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    received_under(workspace, tmp_path / "a.csv", {})
    with workspace.database.connect() as connection:
        profile = json.loads(ledger.find_batch(connection, 1).profile) | {"footer": ["(?!a).*"]}
    received_before(workspace, profile)
    said = r"a pattern that this one does not read\. footer: '\(\?!a\)\.\*' is no pattern: look-"
    with pytest.raises(BatchStateError, match=said):
        run_batch(workspace, 1)


@pytest.mark.long(but=("kept1-limits = 5",))
@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (None, "kept_settings = null"),
        ({"limits": 5}, "limits = 5"),
        ({"limits": {"columns": "many"}}, 'limits.columns = "many"'),
        ({"limits": {"record_bytes": 0}}, "limits.record_bytes = 0"),
        ({"limits": {"record_bytes": 2**51}}, f"limits.record_bytes = {2**51}"),
        ({"currencies": ["EUR"]}, 'currencies = ["EUR"]'),
        ({"currencies": {"978": 1}}, "currencies.978 = 1"),
    ],
)
def test_settings_that_somebody_altered_in_the_database_are_told(
    workspace: Workspace, tmp_path: Path, kept: object, said: str
) -> None:
    path = tmp_path / "a.csv"
    received_under(workspace, path, kept)
    for ask in (
        lambda: run_batch(workspace, 1),
        lambda: import_delivery(workspace, [str(path)], DEFAULT),
    ):
        with pytest.raises(BatchStateError, match=re.escape(f"profile: {said} in its")):
            ask()
    undo_batch(workspace, 1, by=None, reason="altered")
    assert import_delivery(workspace, [str(path)], DEFAULT).batch.state is State.COMPLETE


ISO = "%Y-%m-%dT%H:%M:%S%z"


@pytest.mark.long(but=("date_format-kept4-read4",))
@pytest.mark.parametrize(
    ("key", "kept", "read"),
    [
        ("comment", None, ()),
        ("comment", "#", ("#",)),
        ("comment", ["#", "--"], ("#", "--")),
        ("date_format", ISO, ISO),
        ("date_format", ["%Y-%m-%d", ISO], ("%Y-%m-%d", ISO)),
    ],
)
def test_what_is_one_text_or_a_list_is_read_as_any_version_kept_it(
    workspace: Workspace, tmp_path: Path, key: str, kept: object, read: object
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}\n{line(1)}\n")
    with received(workspace, [path]):
        pass
    with workspace.database.connect() as connection:
        profile = json.loads(ledger.find_batch(connection, 1).profile) | {key: kept}
        received_before(workspace, profile)
        batch = ledger.find_batch(connection, 1)
        assert getattr(restored_profile(batch), key) == read
        now = replace(DEFAULT, **{key: read})
        assert other_terms(batch, now) == []
        assert other_terms(batch, DEFAULT) == ([] if now == DEFAULT else [key])
        assert _keys(batch)[key] == (read if isinstance(read, str) else json.dumps(list(read)))
    assert run_batch(workspace, 1).batch.state is State.COMPLETE


@pytest.mark.parametrize(
    ("kept", "repeats", "state"),
    [(None, "superseded", State.COMPLETE), (BY_KEY, BY_KEY, State.COMPLETE_WITH_ERRORS)],
)
def test_equal_rows_that_an_earlier_version_received_are_one_record(
    workspace: Workspace, tmp_path: Path, kept: object, repeats: str, state: State
) -> None:
    """Their number is made of what they say, and this version takes them for two things."""
    made = replace(DEFAULT, record="payment", fields={"Id": {"key": ("DebtsId", "PaidAmount")}})
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{row.partition(',')[2]}\n" for row in (HEADER, line(1), line(1))))
    with received(workspace, [path], made):
        pass
    with workspace.database.connect() as connection:
        profile = json.loads(ledger.find_batch(connection, 1).profile)
        received_before(workspace, profile | {"repeats": kept})
        batch = ledger.find_batch(connection, 1)
    assert restored_profile(batch).repeats == repeats
    assert other_terms(batch, made) == ([] if repeats == BY_KEY else ["repeats"])
    assert run_batch(workspace, 1).batch.state is state


IDS: dict[str, Any] = {"fields": {"Id": {"key": ("DebtsId", "PaidAmount")}}}
REFERENCES: dict[str, Any] = {"fields": {"CurrencyRatesId": {"key": ("PaymentDate",)}}}


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({}, []),
        (IDS, ["repeats"]),
        (IDS | {"duplicate": "last_wins"}, []),
        (REFERENCES, []),
        (REFERENCES | {"record": None}, []),
    ],
)
def test_a_feed_is_told_as_read_otherwise_only_where_its_equal_rows_are(
    stated: dict[str, Any], told: list[str]
) -> None:
    """As its batches were by an earlier version; and what no profile says is in no report."""
    given = replace(DEFAULT, **{"record": "payment", **stated})
    now = ledger.Batch(
        1, "", "default", stored_profile(given), State.RECEIVED, None, None, BEFORE, None, None,
        None, 0,
    )  # fmt: skip
    kept = {key: of for key, of in json.loads(now.profile).items() if key != "repeats"}
    then = replace(now, profile=json.dumps(kept))
    assert other_terms(then, given) == told
    assert other_terms(now, given) == []
    assert sorted({key for key, _ in _keys(then).items() ^ _keys(now).items()}) == told
    assert "repeats" not in _keys(now)
