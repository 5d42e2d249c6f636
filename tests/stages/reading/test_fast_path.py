"""Rows of the fast path, typed from their bytes, are what validating the same rows says."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.files.chunks.chunk import Chunk
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import Extract
from connectors.settings import Settings
from data_samples.generate import write_payments
from flows.stages.chunks.split_chunk import fast_rows
from flows.stages.chunks.validate_chunk import validate_chunk
from flows.stages.chunks.write_out import write_out
from flows.stages.receiving.kept import headers_of
from flows.steps.validate.key_filter import looked_at
from schemas.millionths import in_millionths, plain_rows
from tests.examples import examples
from tests.stages.payments import HEADER, line, wide

EXTRACT = Extract(1, 1, "payments.csv", None, None, None, None, None, None, None)
GOOD = st.builds(
    line,
    st.integers(-3, 10**17),
    amount=st.from_regex(r"\A-?[0-9]{1,9}(\.[0-9]{1,7}(0{0,12}|0{30,34}))?\Z"),
    tenant=st.sampled_from([7, 7, 7, 8, 2**31]),
    day=st.integers(1, 31),
)
BAD = st.sampled_from(
    [
        "",
        "1,2,3",
        "1,7,1,2,2026-01-01T10:00:00Z,1,1,1,1,1",
        '"5",7,1,2,2026-01-01T10:00:00Z,"1",1,1,1',
        '5,7,1,2,"2026-01-01\nT10:00:00Z",1,1,1,1',
        "5,7,1,2,2026-01-01T10:00:00Z,,1,1,1",
        "5,7,1,2,2026-01-01T10:00:00Z,1.5e3,1,1,1",
        "5,7, 1,2,2026-01-01T10:00:00.5Z,1,1,1,1",
        "5,7,1,2,2026-01-01T10:00:00Z,1,1,1,é",
        '5,7,1,2,2026-01-01T10:00:00Z,5" pipe,1,1,1',
        "5\r,7,1,2,2026-01-01T10:00:00Z,1,1,1,1",
        '# 5,7,1,2,"2026',
        r"5,7,1,2,2026-01-01T10:00:00Z,1,\N,1,1",
        r"5,7,1,2,2026\-01-01T10:00:00Z,1,1,1,\x31",
        r'5,7,1,2,"2026-01-01T10:00:00Z",1,"1\"",1,1',
        '5,7, "1" ,2, "2026-01-01T10:00:00Z",1,1,1,1',
    ]
)
PROFILES = {
    "as documented": DEFAULT,
    "one tenant": replace(DEFAULT, tenant=7),
    "decimal comma": replace(DEFAULT, decimal=","),
    "comments": replace(DEFAULT, comment=("#",)),
    "escapes": replace(DEFAULT, escape="\\"),
    "blanks": replace(DEFAULT, blanks="dropped"),
}


def chunks(path: Path, profile: Profile) -> tuple[Header, list[Chunk]]:
    """The header of a file, and its records."""
    content = open_content(path, profile.encoding, name=path.name)
    where = Settings(path.parent)
    header = headers_of(profile, where).read(content, None)
    return header, list(read_chunks(content, header, first_place(header), where.limits.block_bytes))


def compare(header: Header, chunk: Chunk, profile: Profile) -> None:
    """Hold what is written out of a chunk against what validating says of every one of its rows."""
    table = header.table
    validated = validate_chunk(chunk, header, profile, 1, 1, with_texts=False)
    written = write_out(chunk, header, profile, EXTRACT, strict_bytes=0)
    told, wanted = (
        {state: one.as_json() for state, one in every.totals.get(table.name, {}).items()}
        for every in (written.validated, validated)
    )
    assert told == wanted
    if not chunk.height:
        return  # It tells of lines that are no records.
    rows = validated.rows[table.name]
    clean = validated.taken(rows.frame.filter(rows.clean))
    keys = clean.select(looked_at(table)).rows()
    found = written.keys[table.name].rows() if table.name in written.keys else []
    assert sorted(found) == sorted(keys)
    assert written.validated.excluded == validated.excluded
    short = plain_rows(table, clean)
    if short.all() and len(short):
        assert written.spool is not None
        exact = in_millionths(table, clean)
        spooled = pl.concat(written.spool)
        assert spooled.sort("record_number").equals(exact.select(spooled.columns))
    else:
        assert written.spool is None


@pytest.mark.long
@pytest.mark.parametrize("title", PROFILES)
@settings(max_examples=examples(150), deadline=None)
@given(
    lines=st.lists(st.one_of(GOOD, GOOD, GOOD, BAD), min_size=1, max_size=25),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_the_fast_path_is_what_validating_says(
    tmp_path_factory: pytest.TempPathFactory, title: str, lines: list[str], end: str
) -> None:
    path = tmp_path_factory.mktemp("fast") / "payments.csv"
    path.write_bytes(end.join([HEADER, *lines, ""]).encode())
    header, found = chunks(path, PROFILES[title])
    for chunk in found:
        compare(header, chunk, PROFILES[title])


def test_full_width_digits_are_read_beside_the_fast_path(tmp_path: Path) -> None:
    rows = [line(number, amount="-1.50", tenant=7, day=1) for number in range(40)]
    cells = rows[3].split(",")
    rows[3:6] = [",".join([*cells[:at], wide(cells[at]), *cells[at + 1 :]]) for at in (0, 4, 5)]
    path = tmp_path / "payments.csv"
    path.write_text("\n".join([HEADER, *rows, ""]))
    profile = replace(DEFAULT, width="folded")
    header, (chunk,) = chunks(path, profile)
    compare(header, chunk, profile)
    validated = validate_chunk(chunk, header, profile, 1, 1, with_texts=False)
    assert validated.rows["payment"].clean.sum() == 40


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.5])
def test_a_whole_file_is_what_validating_says(tmp_path: Path, rate: float) -> None:
    write_payments(tmp_path, 5_000, rate, 17)
    header, (chunk,) = chunks(tmp_path / "payments.csv", DEFAULT)
    compare(header, chunk, DEFAULT)
    fast = fast_rows(chunk, header, DEFAULT)
    if rate < 0.5:
        assert fast is not None
        assert fast.rows.mean() > 1 - 2 * rate - 0.01


CONSTANTS = [
    # record kind, header, a line, the constants
    ("payment", "Id,PaidAmount", "{},10.50", {"PaymentDate": "2026-01-01T10:00:00+01:00"}),
    ("payment", "Id,PaidAmount", "{},10.50", {"PaymentDate": "2026-01-01T10:00:00Z"}),
    ("payment_plan_detail", "PaymentPlansId,PlannedAmount", "{},1.5", {"PlannedDate": ""}),
    (
        "payment_plan_detail",
        "PaymentPlansId,PlannedCurrenciesId",
        "{},1",
        {"PlannedAmount": "", "PaymentsId": "", "PlannedDate": "2026-01-01T10:00:00"},
    ),
]
USUAL = {
    "TenantsId": "7",
    "CurrenciesId": "1",
    "CurrencyRatesId": "9",
    "DebtsId": "2",
    "ActionsId": "1",
    "DiscountAmount": "0.50",
}


@pytest.mark.parametrize(("kind", "names", "record", "constants"), CONSTANTS)
def test_constants_of_any_kind_leave_rows_on_the_fast_path(
    tmp_path: Path, kind: str, names: str, record: str, constants: dict[str, str]
) -> None:
    usual = USUAL if kind == "payment" else {}
    profile = replace(DEFAULT, record=kind, constants=usual | constants)
    path = tmp_path / "a.csv"
    path.write_text("\n".join([names, *map(record.format, range(1, 9))]))
    header, (chunk,) = chunks(path, profile)
    found = fast_rows(chunk, header, profile)
    assert found is not None
    assert found.rows.all()
    validated = validate_chunk(chunk, header, profile, 1, 1, with_texts=False)
    wanted = in_millionths(header.table, validated.taken(validated.rows[kind].frame))
    assert found.frame.equals(wanted.select(found.frame.columns))
