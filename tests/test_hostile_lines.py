"""Payment files with several broken lines: none hides another, and none costs a good one."""

import gzip
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.settings import Limits, Settings
from flows.stages.examining.examine import examine
from flows.stages.examining.verdicts import Reject
from tests.stages.payments import HEADER, line

OPENED = line(2)[:-1] + '"9""'
CLOSED = line(5) + '"'


def rejects(tmp_path: Path, *lines: bytes, block_bytes: int = 1 << 20) -> list[Reject]:
    """What `recon check` says of a file of these records."""
    path = tmp_path / "payments.csv"
    path.write_bytes(b"\n".join([HEADER.encode(), *lines]) + b"\n")
    settings = Settings(tmp_path, limits=Limits(block_bytes=block_bytes))
    (verdict,) = examine(settings, [str(path)], DEFAULT)
    assert verdict.refused is None, verdict.message
    return verdict.rejects


def codes(found: list[Reject]) -> list[tuple[int, str]]:
    return [(one.line, error["ErrorCode"]) for one in found for error in one.errors]


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\0"])
@pytest.mark.parametrize(("before", "after"), [(b'"', b""), (b"", b",1"), (b"1,", b",")])
def test_bytes_that_are_no_text_are_told_before_another_fault(
    bad: bytes, before: bytes, after: bytes, tmp_path: Path
) -> None:
    code = "NulCharacter" if bad == b"\0" else "Encoding"
    good, broken = line(1).encode(), line(2).encode()
    record = broken[:5] + before + bad + broken[5:] + after
    (found,) = rejects(tmp_path, good, record, good)
    assert codes([found]) == [(3, code)]
    assert found.data == record.decode(errors="backslashreplace").replace("\0", "\\x00")


@pytest.mark.parametrize("block_bytes", [16, 100, 1 << 20])
def test_two_broken_quotes_do_not_take_in_what_stands_between_them(
    block_bytes: int, tmp_path: Path
) -> None:
    """No number and no time holds a line break, so the quotes do not belong together."""
    lines = [line(1), OPENED, line(3), line(4), CLOSED, line(6)]
    found = rejects(tmp_path, *(one.encode() for one in lines), block_bytes=block_bytes)
    assert codes(found) == [(3, "UnterminatedQuote"), (6, "StrayQuote")]


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_a_byte_order_mark_before_a_record_is_no_blank(block_bytes: int, tmp_path: Path) -> None:
    """It is part of the cell wherever blocks are cut; only the one before the header is a mark."""
    marked = b"\xef\xbb\xbf" + line(1).encode()
    found = rejects(tmp_path, marked, line(2).encode(), marked, block_bytes=block_bytes)
    assert codes(found) == [(2, "Integer"), (4, "Integer")]


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_text_inside_a_field_over_the_limit_is_no_row(
    over: int, encoding: str, ending: str, block_bytes: int, tmp_path: Path
) -> None:
    """It closes, so what looks like records in it is text: one row, rejected or not."""
    good = "guid,7,text,"
    inner = f"\n{good}\n" * 20
    rows = ["CommsGuid,CampaignActionsRequestsId,Comments,CampaignActionFiles", good]
    written = "\n".join([*rows, f'g,8,"{inner}",', "h,9,text,"]) + "\n"
    limit = len(inner) + 2 - over
    path = tmp_path / f"form_replies.csv{ending}"
    data = written.encode(encoding)
    path.write_bytes(gzip.compress(data) if ending else data)
    limits = Limits(block_bytes=block_bytes, field_bytes=limit, record_bytes=limit + 6 + over)
    (verdict,) = examine(Settings(tmp_path, limits=limits), [str(path)], DEFAULT)
    assert (verdict.refused, verdict.rows_in) == (None, 3), verdict.message
    assert codes(verdict.rejects) == ([(3, "FieldTooLarge")] if over > 0 else [])
