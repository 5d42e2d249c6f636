"""Files that lie in the folder of a report and are not of it."""

from pathlib import Path
from tempfile import TemporaryDirectory

from flows.stages.reconcile.report_files import _strange
from tests.compare.tables import another_user, becomes


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
