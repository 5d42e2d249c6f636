import sys
from types import FrameType
from typing import Any

import pytest

from connectors.files.text import bitmask as bits
from connectors.files.text import lines, readings, records
from connectors.files.text.dialect import Dialect
from connectors.files.text.records import split

HOSTILE = {
    "all stray": b'1,5" pipe\n',
    "all text after quote": b'1,"a"b"\n',
    "all not doubled": b'1,"a "b" c"\n',
    "all unterminated": b'1,"a\n',
    "unterminated, wrong width": b'1,2,"a\n',
    "every other unterminated": b'1,"a\n2,b\n',
    "legal but too wide": b'1,"a\n",","\n",2\n',
    "doubled quotes over lines": b'""\n,""""\n',
    "one quote a line": b'"\n',
    "closing and opening": b'","\n',
    "large fields": b'1,"' + b"a" * 300 + b'\n"\n',
    "bad bytes": b"1,\xff\n",
}
COUNTED = {module.__file__ for module in (bits, lines, readings, records)}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("lead", [b"", b'x,"'])
def test_work_is_linear(unit: bytes, lead: bytes) -> None:
    """Count executed lines and bytes read again: four times the data, four times the steps."""
    few, many = steps(lead + unit * 500), steps(lead + unit * 2000)
    assert many <= 4.5 * few + 500


def steps(data: bytes) -> int:
    """Numpy calls outside loops are linear; what could be more is counted here."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in COUNTED:
            return None
        count += event == "line"
        if event == "call" and "record" in frame.f_locals:
            count += len(frame.f_locals["record"])
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        split(data, 2, Dialect(max_field_bytes=200, max_record_bytes=2000), line=1, final=True)
    finally:
        sys.settrace(previous)
    return count
