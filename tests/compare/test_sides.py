"""What is a side: the very files that were named, all of them, or a refusal that says why."""

from pathlib import Path

import pytest

from connectors.compare.sides import parquet_side
from tests.compare.tables import compared, counts, parquet_file

PATTERNS = ["q*", "q?", "q[1]", "q[", "{q,r}", "~", "%71"]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_name_is_a_name_and_no_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As a file, as a folder, as that of the results and of what is written meanwhile."""
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    other = parquet_file(tmp_path / "right.parquet", {"id": [1, 2, 3, 4]})
    for file, ids in ((f"{name}.parquet", [1, 2]), ("q1.parquet", [3]), ("qq.parquet", [3, 4])):
        parquet_file(tmp_path / file, {"id": ids})
    result = compared(f"{name}.parquet", other, folder=folder / "out")
    assert counts(result) == {"MATCHED_EXACT": 2, "MISSING_IN_EXTRACT": 2}
    assert parquet_side(folder / "out").rows == 2
    assert parquet_side(Path(name, "out", "differences.parquet")).rows == 2
    left, right = tmp_path / f"{name}.csv", tmp_path / "right.csv"
    left.write_text('id,v\n1,"a\nb"\n2\n3,c\n')
    right.write_text("id,v\n3,c\n")
    assert counts(compared(f"{name}.csv", right, partitions=3)) == {
        "MATCHED_EXACT": 1,
        "MISSING_IN_TARGET": 1,
    }
