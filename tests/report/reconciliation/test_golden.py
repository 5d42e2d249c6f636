from collections.abc import Callable
from pathlib import Path

import pytest

from flows.report.reconciled.data import breaks_csv, breaks_frame, totals_json
from flows.report.reconciled.html import render_html
from flows.report.reconciled.markdown import reconciliation_markdown
from flows.report.reconciled.text import render_text
from flows.steps.reconcile.report import ReconciliationReport
from tests.report.golden_files import hold, without_lines_of
from tests.report.reconciliation.sample import REPORTS

GOLDEN = Path(__file__).parent / "golden"
WHOLE = "reconciled"
"""The page that is kept with all of its style and script."""
HOME = Path(__file__).parents[3] / "flows" / "report" / "reconciled"
SOURCES = [HOME / "style.css", HOME / "script.js"]
RENDERINGS: dict[str, Callable[[ReconciliationReport], bytes]] = {
    "html": lambda report: render_html(report).encode(),
    "txt": lambda report: render_text(report).encode(),
    "md": lambda report: reconciliation_markdown(report).encode(),
    "csv": lambda report: breaks_csv(breaks_frame(report)),
    "json": totals_json,
}


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("ending", RENDERINGS)
def test_renderings_are_the_golden_ones_byte_for_byte(name: str, ending: str) -> None:
    rendered = RENDERINGS[ending](REPORTS[name]())
    if ending == "html" and name != WHOLE:
        rendered = without_lines_of(rendered, *SOURCES)
    hold(GOLDEN / f"{name}.{ending}", rendered)


def test_no_golden_file_is_left_over() -> None:
    expected = {f"{name}.{ending}" for name in REPORTS for ending in RENDERINGS}
    assert {path.name for path in GOLDEN.iterdir()} == expected
