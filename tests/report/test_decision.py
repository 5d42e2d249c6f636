"""What somebody reads who decides about a held batch."""

from dataclasses import replace

import pytest

from flows.report.decision import decision_markdown
from flows.report.markdown import summary_markdown
from tests.report.sample_reports import States, file_line, held, payments

HELD: States = {
    "rejected": (900, "1", {}),
    "superseded": (30, "1", {}),
    "excluded": (1, "1", {}),
    "pending": (69, "1", {}),
}


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (
            HELD,
            "applies 69 of the 1\u202f000 rows read; "
            "900 are in error, 30 are superseded, 1 is excluded.",
        ),
        (
            {"rejected": (1, "1", {})},
            "applies 0 of the 1 row read; 1 is in error.",
        ),
    ],
)
def test_a_release_promises_the_rows_that_wait(states: States, told: str) -> None:
    rows, errors = sum(one[0] for one in states.values()), states["rejected"][0]
    file = file_line("payments.csv", "payment", "e1", size=9, rows=rows, rejected=errors)
    report = replace(held(), files=(file,), chains=(payments(states),))
    assert f"**release** {told}" in decision_markdown(1, report, [])


def test_money_that_was_there_before_is_not_told_as_missing() -> None:
    states: States = {"unchanged": (3, "1", {"1": ("986816.03", "0")})}
    page = summary_markdown(replace(held(), chains=(payments(states),)))
    assert "| Currency | Amount | Read | Written | Unchanged, there before |" in page
    assert "| PaidAmount | 986\u202f816.03 | 0.00 | 986\u202f816.03 |" in page
