import os
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.report.reconciled.data import breaks_csv, breaks_frame, totals_json
from flows.report.reconciled.html import render_html
from flows.report.reconciled.markdown import reconciliation_markdown
from flows.report.reconciled.text import render_text
from flows.steps.reconcile.report import ReconciliationReport
from tests.report.reconciliation.sample import REPORTS

GOLDEN = Path(__file__).parent / "golden"
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
    path = GOLDEN / f"{name}.{ending}"
    rendered = RENDERINGS[ending](REPORTS[name]())
    if os.environ.get("RECON_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(rendered)
    assert path.is_file(), f"{path.name} is missing; RECON_GOLDEN=write writes it"
    assert rendered == path.read_bytes(), f"{path.name} differs; RECON_GOLDEN=write rewrites it"


def test_no_golden_file_is_left_over() -> None:
    expected = {f"{name}.{ending}" for name in REPORTS for ending in RENDERINGS}
    assert {path.name for path in GOLDEN.iterdir()} == expected
