"""A feed whose clean rows are kept by reference answers as any other, in less space."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.postgres.batches.ledger import list_extracts
from connectors.settings import Limits
from data_samples.generate import write_payments
from flows.stages.receiving.kept import evidence_of
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.texts import RowTexts
from flows.stages.sequence import import_delivery
from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from tests.examples import examples
from tests.recon import run
from tests.stages.payments import HEADER, line

REFERENCE = replace(DEFAULT, keep="reference")
ROWS, SEED = examples(3_000, 400), 17


def told(workspace: Workspace, rows: Any, batch: int) -> list[dict[str, Any]]:
    """Every row of a batch as `recon row` shows it, its batch's own numbers left out."""
    names = "record, record_number, first_line, last_line, byte_start, byte_end, data, raw, state"
    found = rows(
        f"SELECT {names}, error_data, jsondata, extract_id FROM staged_row WHERE batch_id = %s "
        "ORDER BY record_number",
        [batch],
    )
    keys = [*names.split(", "), "error_data", "jsondata", "extract_id"]
    with workspace.database.connect() as connection:
        texts = RowTexts(workspace, connection, [batch])
        shown = [dict(texts.fill(dict(zip(keys, row, strict=True)))) for row in found]
    return [row for row in shown if row.pop("extract_id")]


def both(workspace: Workspace, path: Path) -> list[int]:
    return [
        import_delivery(workspace, [str(path)], profile).batch.id
        for profile in (replace(DEFAULT, feed="text"), replace(REFERENCE, feed="reference"))
    ]


@pytest.mark.long
def test_every_row_is_told_the_same(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    write_payments(tmp_path, ROWS, 0.02, SEED)
    with_text, by_reference = both(workspace, tmp_path / "payments.csv")
    first, second = (told(workspace, rows, batch) for batch in (with_text, by_reference))
    for row in first:
        # The second delivery finds the rows of the first.
        row["state"] = row["state"].replace("inserted", "unchanged")
    assert first == second
    kept = dict(
        rows(
            "SELECT error_data IS NULL, count(data) FROM staged_row WHERE batch_id = %s GROUP BY 1",
            [by_reference],
        )
    )
    assert kept[True] == 0
    assert kept[False] > 0


@pytest.mark.long(but=("cp1252-1",))
@pytest.mark.parametrize("files", [1, 20])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_small_files_are_kept_so_as_well(
    workspace: Workspace, rows: Any, tmp_path: Path, files: int, encoding: str
) -> None:
    """Whatever is read by nothing compiled, alone or together with others."""
    folder = tmp_path / "delivery"
    folder.mkdir()
    for at in range(1, 2 * files, 2):
        text = f"{HEADER},More\n{line(at)},é\n{line(at + 1)},x\n"
        (folder / f"{at:02}.csv").write_bytes(text.encode(encoding))
    (folder / "z.csv").write_text(f"{HEADER},More\n{line(90)},a\n{line(91, amount='x')},b\n")
    settings = replace(workspace.settings, limits=Limits())
    where = replace(workspace, settings=settings)
    shape = replace(REFERENCE, unknown_columns="ignore", encoding=encoding.removeprefix("utf-16"))
    batch = import_delivery(where, [str(folder)], shape).batch.id
    kept = rows("SELECT error_data IS NULL, count(*), count(data) FROM staged_payment GROUP BY 1")
    assert {clean: counts for clean, *counts in kept} == {
        True: [2 * files + 1, 0],
        False: [1, 1],
    }
    texts = [row["data"] for row in told(workspace, rows, batch)]
    assert sorted(texts) == sorted(
        [f"{line(at)},{'é' if at % 2 else 'x'}" for at in range(1, 2 * files + 1)]
        + [f"{line(90)},a", f"{line(91, amount='x')},b"]
    )


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_rows_in_conflict_are_written_out_whole(
    workspace: Workspace, tmp_path: Path, encoding: str
) -> None:
    lines = [
        line(1),
        line(2, amount='"1.5"'),
        line(3).replace(",0.5,", ',"0.50"\t,').replace("\t", ""),
        line(2, amount="2.5"),
    ]
    path = tmp_path / "payments.csv"
    path.write_bytes("\r\n".join([HEADER, *lines, ""]).encode(encoding))
    written = []
    for batch in both(workspace, path):
        (found,) = write_rejects(workspace, batch, tmp_path / str(batch), with_secrets=False)
        written.append([text.partition(",")[2] for text in found.read_text("utf-8").splitlines()])
    assert written[0] == written[1]
    assert written[1][1:] == [lines[1], lines[3]]


def test_a_text_whose_file_was_cleared_away_is_no_longer_told(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}\n{line(1)}\n")
    batch = import_delivery(workspace, [str(path)], REFERENCE).batch.id
    assert [row["data"] for row in told(workspace, rows, batch)] == [line(1)]
    later = datetime.now(UTC) + timedelta(days=100)
    sweep(workspace, Retention(archive_days=90), now=later, dry_run=False)
    assert [row["data"] for row in told(workspace, rows, batch)] == [None]
    asked = "row", str(batch), "a.csv", "--line", "2", "--json"
    shown = run(str(workspace.settings.database_url), workspace.settings.home, *asked)
    (said,) = json.loads(shown.stdout)["rows"][0]["next"]
    with workspace.database.connect() as connection:
        (extract,) = list_extracts(connection, batch)
    assert said == evidence_of(workspace, extract).remedy
    assert said == (
        f"Housekeeping removed the kept file on {extract.cleared_at:%Y-%m-%d}. Import the file "
        "again where it is needed: its bytes are kept anew."
    )


def test_a_refused_file_hides_no_text_of_another(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "delivery"
    folder.mkdir()
    (folder / "a.csv").write_text("colour\nred\n")
    (folder / "b.csv").write_text(f"{HEADER}\n{line(1)}\n")
    batch = import_delivery(workspace, [str(folder)], REFERENCE).batch.id
    assert [row["data"] for row in told(workspace, rows, batch)] == [line(1)]


def test_the_identity_of_a_profile_that_keeps_text_is_what_it_was() -> None:
    assert Profile(keep="text").hash == DEFAULT.hash
    assert REFERENCE.hash != DEFAULT.hash
