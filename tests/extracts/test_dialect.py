from typing import Any

import pytest

from connectors.files.text.dialect import Dialect
from tests.extracts.cut_records import read, summary


def test_other_dialect() -> None:
    dialect = Dialect(delimiter=b";", quote=b"'", encoding="cp1252")
    data = b"1;'a;\"b'\n2;\x81\n3;\x80\n4;it's\n"
    codes = [code for _, _, code in summary(read(data, 2, dialect)[0])]
    assert codes == ["None", "Encoding", "None", "StrayQuote"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"encoding": "utf-16"},
        {"delimiter": b'"'},
        {"delimiter": b"||\\", "escape": b"\\"},
        {"delimiter": b'|"'},
        {"escape": b"^"},
        {"quote": b"\n"},
        {"delimiter": b"|", "encoding": "gbk"},
        {"max_field_bytes": 0},
        {"max_field_bytes": 9, "max_record_bytes": 8},
        {"max_record_bytes": 9, "max_field_bytes": 8, "look_ahead_bytes": 8},
    ],
)
def test_dialect_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|transcode|part of"):
        Dialect(**wrong)
