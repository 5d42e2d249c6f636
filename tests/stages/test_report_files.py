"""Files that lie in the folder of a report and are not of it."""

from pathlib import Path
from tempfile import TemporaryDirectory

from flows.stages.reconcile.report_files import (
    BREAKS_CSV,
    BREAKS_PARQUET,
    MANIFEST,
    READ_BY_PEOPLE,
    RECORDS,
    TOTALS,
    _strange,
)
from tests.compare.tables import another_user, becomes

ROOT = Path(__file__).parents[2]


def test_a_file_of_a_report_is_named_in_one_place() -> None:
    """A name that is spelled again is one that a rename leaves behind."""
    names = (*READ_BY_PEOPLE, RECORDS, BREAKS_CSV, BREAKS_PARQUET, TOTALS, MANIFEST)
    spelled = {
        (path.name, name)
        for room in ("flows/stages/reconcile", "flows/desk")
        for path in (ROOT / room).rglob("*.*")
        if path.suffix in {".py", ".jinja"}
        for text in (path.read_text(),)
        for name in names
        if f'"{name}"' in text or f"'{name}'" in text
    }
    assert spelled == {("report_files.py", name) for name in names}


def test_what_is_strange_in_a_folder_of_a_report(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("report.html", ".lock", "~$report.xlsx", "b.html", "deep/er/a.html"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("deep")
    assert _strange(tmp_path, {"report.html"}) == ["b.html", "deep/er/a.html", "link"]


@becomes
def test_a_folder_that_nobody_can_look_into_is_strange() -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "closed").mkdir(mode=0o700)
        with another_user():
            assert _strange(folder, set()) == ["closed"]
