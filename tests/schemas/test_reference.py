import subprocess
from pathlib import Path

import pytest

from connectors.files.text.content import WORKBOOKS
from schemas.derived import reference
from schemas.derived.json_text import csv_template
from schemas.operations import OPERATIONS
from schemas.reasons import REASONS, REFUSALS
from schemas.tables import EXTRACTS, TABLES

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "data_samples" / "templates"


def test_the_page_is_what_the_tables_say() -> None:
    written = (ROOT / "docs" / "fields.md").read_bytes()
    assert written == reference.page().encode(), "the page is an earlier one: run `make fields`"


@pytest.mark.parametrize("name", EXTRACTS)
def test_a_template_is_the_header_of_its_record(name: str) -> None:
    written = (TEMPLATES / f"{name}.csv").read_bytes()
    assert written == csv_template(EXTRACTS[name]).encode(), "an earlier one: run `make fields`"


def test_make_fields_writes_every_template(tmp_path: Path) -> None:
    told = subprocess.run(
        ["make", "-n", "fields", "PYTHON=python"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    command = next(line for line in told.splitlines() if "templates" in line)
    reference.main([*command.split()[3:-1], str(tmp_path)])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in TEMPLATES.iterdir()
    }


def test_there_is_no_template_of_anything_else() -> None:
    assert {path.name for path in TEMPLATES.iterdir()} == {f"{name}.csv" for name in EXTRACTS}


def test_nothing_is_missing_on_the_page() -> None:
    lines = reference.page().splitlines()
    for table in TABLES.values():
        start = lines.index(f"### {table.title}")
        section = lines[
            start + 1 : next(
                (at for at in range(start + 1, len(lines)) if lines[at].startswith("##")), None
            )
        ]
        rows = [line for line in section if line.startswith("| ")][2:]
        assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [
            field.name for field in table
        ]
        assert all(row.count(" | ") == 3 for row in rows)
    first_cells = {line.split(" | ")[0].removeprefix("| ") for line in lines}
    assert {operation.name for operation in OPERATIONS} <= first_cells
    assert {f"`{code}`" for code in (*REASONS, *REFUSALS)} <= first_cells


def test_the_command_prints_the_page_or_a_header(capsys: pytest.CaptureFixture[str]) -> None:
    reference.main([])
    assert capsys.readouterr().out == reference.page()
    reference.main(["message_tone"])
    assert capsys.readouterr().out == ",".join(EXTRACTS["message_tone"].columns) + "\n"
    with pytest.raises(SystemExit, match="tone is no extract"):
        reference.main(["tone"])


def test_what_to_do_is_said_of_each_kind_of_file() -> None:
    """Lines of a fixed width have no quotes, and a workbook need not become CSV."""
    for code in ("TooFewFields", "TooManyFields"):
        assert "fixed width" in REASONS[code].remedy
    assert all(suffix in REFUSALS["unsupported_format"].remedy for suffix in WORKBOOKS)
