"""Rows that may be sums of others are named by a draft: as records their money counts twice."""

from pathlib import Path

import pytest

from connectors.files.drafting.shape import shape_of
from tests.feeds.test_draft import drafted

SUBTOTALS = (
    'Customer,Paid\nAcme,"£1,200.00"\nAcme,(45.00)\nTotal for Acme,"£1,155.00"\n,\n'
    'Bolt,£20.00\nBolt,£30.00\nTotal for Bolt,£50.00\n,\nGrand Total,"£1,205.00"\n'
)
ALIKE = "No;Who;Paid\n1;a;1,50\n2;b;2,50\n3;c;-1,00\n"
ROWS = [
    # a text, the lines that may be sums with how many rows they are the sum of, patterns of them
    (SUBTOTALS, [(4, 2), (8, 2), (10, 4)], ["Total for.*"]),
    (
        "Who;Paid\nA;1,50\nA;2,50\nSumme A;4,00\nB;1\nZwischensumme B;1\nC;3\nSaldo;9\n",
        [(4, 2), (6, 1), (8, 0)],
        ["Summe.*", "Zwischensumme.*"],
    ),
    ('Who,On,Paid\nA,1,2\n"Total for A, B",,2\nC,1,2\nTotal for C,,2\nD,1,2\n',
     [(3, 1), (5, 1)], ['"?Total for.*']),
    # No word: a sum of three rows at the least, and no number of a row.
    (ALIKE + "4;d;3,00\n5;e;7,00\n", [(5, 3)], []),
    ("No;Paid\n0;1.5\n1;1.5\n2;4.5\n3;5.5\n", [], []),
    ("Ref;Paid\nR0;1.5\nR1;1.5\nR2;4.5\nR3;5.5\n", [], []),
    # A word within another, in a remark of a whole row, or in most rows.
    ("Who;Paid;Note\nSumitomo;5;Total agreed\nB;6;x\nTotalEnergies;7;y\n", [], []),
    ("Account;Paid\nBalance 1;5\nBalance 2;6\nOther;7\n", [], []),
    # A word that is part of a number: a conversion, and no balance.
    ("Id;Paid;On\nCARD-7;5;1\nBALANCE-9;6;2\nCARD-8;7;3\nTotal/2;1;4\nFEE-1;1;5\n", [], []),
    # What a name begins with is no pattern where it is that of a record, too.
    ("Who;Paid\nTotal;5\nB;6\nC;9\nTotal Gas;8\nTotal;1\nD;1\n", [(2, 0), (5, 0), (6, 0)],
     ["Total.*"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sums", "patterns"), ROWS)
def test_what_may_be_a_sum_is_told_by_a_word_or_by_its_number(
    text: str, sums: list[tuple[int, int]], patterns: list[str]
) -> None:
    shape = shape_of(text)
    assert [(one.record.line, one.rows) for one in shape.sums] == sums
    assert [one.pattern for one in shape.kinds if one.pattern != "[,]+"] == patterns


def test_a_draft_names_such_rows_and_how_to_leave_them_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(SUBTOTALS)
    lines = drafted(str(path))[0].splitlines()
    assert "# ? skip_lines = ['[,]+', 'Total for.*']  # 4 lines between rows" in lines
    at = lines.index("# ? 3 rows may be sums of others, whose money would count twice:")
    assert lines[at + 1 : at + 5] == [
        "#   look at them; skip_lines, of a sheet leave_out, or footer at the end takes them out",
        '#   line 4, the sum of 2 rows above in "Paid": Total for Acme,"£1,155.00"',
        '#   line 8, the sum of 2 rows above in "Paid": Total for Bolt,£50.00',
        '#   line 10, the sum of 4 rows above in "Paid": Grand Total,"£1,205.00"',
    ]
