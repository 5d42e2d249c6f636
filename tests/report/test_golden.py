from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from flows.report.html import render_html
from flows.report.markdown import summary_markdown
from flows.report.text import render_text
from flows.steps.batch_report import BatchReport
from tests.report.golden_files import hold, without_lines_of
from tests.report.sample_reports import REPORTS

GOLDEN = Path(__file__).parent / "golden"
WHOLE = "complete"
"""The page that is kept with all of its style."""
TEMPLATE = Path(__file__).parents[2] / "flows" / "report" / "template.html.jinja"
RENDERINGS: dict[str, Callable[[BatchReport], str]] = {
    "html": render_html,
    "txt": render_text,
    "md": summary_markdown,
}


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("ending", RENDERINGS)
def test_renderings_are_the_golden_ones_byte_for_byte(name: str, ending: str) -> None:
    rendered = RENDERINGS[ending](REPORTS[name]()).encode()
    if ending == "html" and name != WHOLE:
        rendered = without_lines_of(rendered, TEMPLATE)
    hold(GOLDEN / f"{name}.{ending}", rendered)


def test_no_golden_file_is_left_over() -> None:
    expected = {f"{name}.{ending}" for name in REPORTS for ending in RENDERINGS}
    assert {path.name for path in GOLDEN.iterdir()} == expected


@pytest.mark.parametrize("ending", RENDERINGS)
def test_equal_reports_give_equal_bytes_whatever_order_their_mappings_were_filled_in(
    ending: str,
) -> None:
    report = REPORTS["complete_with_errors"]()
    turned = replace(
        report,
        currencies=dict(reversed(list(report.currencies.items()))),
        chains=tuple(
            replace(chain, states=dict(reversed(list(chain.states.items()))))
            for chain in report.chains
        ),
    )
    assert turned == report
    assert RENDERINGS[ending](turned) == RENDERINGS[ending](report)
