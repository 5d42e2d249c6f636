"""Totals that stand behind the records: what ties, what does not, and what cannot be told."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ProfileError
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches.ledger import State
from connectors.settings import Settings
from flows.stages.examining.examine import examine
from flows.stages.sequence import import_delivery, release_batch
from flows.stages.workspace import Workspace

PROFILE = read_profile(
    {
        "feed": "shop",
        "record": "payment",
        "unknown_columns": "ignore",
        "footer": [r"Total,(?P<PaidAmount>[^,]*),*", r"Rows,(?P<rows>\d+),*"],
        "columns": {"No": "Id", "Paid": "PaidAmount", "Debt": "DebtsId", "On": "PaymentDate"},
        "constants": {
            "TenantsId": 7,
            "ActionsId": 1,
            "DiscountAmount": "0.00",
            "CurrencyRatesId": 9,
            "CurrenciesId": 1,
        },
        "leave_out": {"Kind": ["subtotal"]},
    }
)
HEADER = "No,Paid,Debt,On,Kind"


def row(number: int, paid: str, kind: str = "sale") -> str:
    return f"{number},{paid},5,2026-11-01T10:00:00Z,{kind}"


def shop(folder: Path, rows: list[str], total: str, count: int | None = None) -> str:
    path = folder / "shop.csv"
    behind = [f"Total,{total},,,", f"Rows,{len(rows) if count is None else count},,,"]
    path.write_text("\n".join([HEADER, *rows, *behind, ""]))
    return str(path)


@pytest.mark.long
def test_an_amount_that_cannot_be_read_holds_the_batch_and_costs_no_other_row(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = shop(tmp_path, [row(1, "10"), row(2, "12 50"), row(3, "2.50")], "25.00")
    told = (
        "shop.csv cannot be proven to be whole: sum of PaidAmount: stated 25.00, "
        "the file has 12.50, and 1 row has no amount there that can be read"
    )
    batch = import_delivery(workspace, [path], PROFILE).batch
    assert (batch.state, batch.held_because) == (State.HELD, told)
    assert rows("SELECT count(*) FROM payment") == [(0,)]
    release_batch(workspace, batch.id, by="ann", reason="row 2 is 12.50 by their list")
    assert rows('SELECT "Id", "PaidAmount" FROM payment ORDER BY 1') == [
        (1, Decimal(10)),
        (3, Decimal("2.50")),
    ]
    (verdict,) = examine(workspace.settings, [path], PROFILE)
    assert verdict.refused is None
    assert "An import of it is held." in (verdict.message or "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("delivered", "total", "count", "message"),
    [
        ([row(1, "10"), row(2, "x")], "12.50", 3, "rows: stated 3, the file has 2"),
        ([row(1, "10"), row(2, "2.50")], "12.60", 2, "stated 12.60, the file has 12.50"),
        ([row(1, "10."), row(2, "x")], "10.", 2, None),
        ([row(1, "10"), row(2, "x")], "10", 2, None),  # Whatever it was to be, it is not needed.
        ([], "0.00", 0, "a header but no record"),
        ([], "1.00", 0, "stated 1.00, the file has 0"),
    ],
)
def test_what_ties_and_what_does_not(
    workspace: Workspace,
    tmp_path: Path,
    delivered: list[str],
    total: str,
    count: int,
    message: str | None,
) -> None:
    path = shop(tmp_path, delivered, total, count)
    (verdict,) = examine(workspace.settings, [path], PROFILE)
    batch = import_delivery(workspace, [path], PROFILE).batch
    if message is None:
        assert (verdict.message, batch.state) == (None, State.COMPLETE_WITH_ERRORS)
    else:
        assert message in (verdict.message or "")
        refused = "the file has" in message
        assert (verdict.refused == "incomplete_file") is refused
        assert (batch.state is State.COMPLETE_WITH_ERRORS) is refused


@pytest.mark.parametrize(
    ("delivered", "footer", "unread"),
    [
        # Both fields are added up, and what cannot be read is not where they differ.
        (["1,10.00,0.00,", "2,20.00,x,"], "Sum,99.00,0.00,", None),
        (["1,10.00,0.00,", "2,y,x,"], "Sum,99.00,7.00,", "99.00, the file has 10"),
        (["1,10.00,0.00,", "2,20.00,x,"], "Sum,30.00,7.00,", "7.00, the file has 0"),
        # An empty cell adds nothing to the sum of whoever sent it, whatever becomes of its row.
        (["1,10.00,0.00,", "2,20.00,,"], "Sum,30.00,7.00,", None),
        (["1,10.00,0.00,", "2,,0.00,"], "Sum,99.00,0.00,", None),
        (["1,10.00,0.00,", "2,,0.00,subtotal"], "Sum,99.00,0.00,", None),
        (["1,10.00,0.00,", "2,y,0.00,subtotal"], "Sum,99.00,0.00,", "the file has 10"),
        # Without cells, either may have been there.
        (["1,10.00,0.00,", "2,20.00,0.00,,,"], "Sum,30.00,0.00,", "the file has 10"),
    ],
)
def test_only_a_cell_that_cannot_be_read_excuses_the_sum_it_belongs_to(
    workspace: Workspace, tmp_path: Path, delivered: list[str], footer: str, unread: str | None
) -> None:
    constants = {"DebtsId": "5", "PaymentDate": "2026-11-01T10:00:00Z", **PROFILE.constants}
    del constants["DiscountAmount"]
    profile = replace(
        PROFILE,
        columns={"No": "Id", "Paid": "PaidAmount", "Off": "DiscountAmount"},
        constants=constants,
        footer=("Sum,(?P<PaidAmount>[^,]*),(?P<DiscountAmount>[^,]*),*",),
    )
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(["No,Paid,Off,Kind", *delivered, footer, ""]))
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    batch = import_delivery(workspace, [str(path)], profile).batch
    if unread is None:
        assert verdict.refused == "incomplete_file", verdict.message
        assert batch.state is State.COMPLETE_WITH_ERRORS
        return
    told = re.compile(rf"{unread}(\.00)?, and 1 row has no amount there that can be read")
    assert verdict.refused is None
    assert told.search(verdict.message or "")
    assert batch.state is State.HELD
    assert told.search(batch.held_because or "")


IN_EACH = replace(
    PROFILE,
    footer=("(?P<CurrenciesId>[A-Z]+),(?P<PaidAmount>[^,]*),*",),
    fields={"CurrenciesId": {"from": ("Kind",), "map": {"EUR": "978", "USD": "840"}}},
    constants={name: of for name, of in PROFILE.constants.items() if name != "CurrenciesId"},
    leave_out={},
)
BY_CURRENCY = [
    # rows, the footer, whether the file is refused, and what is said
    ([("10", "EUR"), ("2.50", "USD")], "EUR,10.00,,,\nUSD,2.50,,,", None, None),
    (
        [("10", "EUR"), ("2.50", "USD")],
        "EUR,10.00,,,\nUSD,2.60,,,",
        "incomplete_file",
        "sum of PaidAmount in currency 840: stated 2.60, the file has 2.50",
    ),
    (
        [("10", "EUR"), ("2.50", "USD")],
        "EUR,12.50,,,",
        "incomplete_file",
        "in currency 840: stated 0, the file has 2.50; sum of PaidAmount in currency 978",
    ),
    (
        [("10", "EUR"), ("2.50", "U$D")],
        "EUR,10.00,,,\nUSD,2.50,,,",
        None,
        "rows with 2.50 of it have no currency that can be read",
    ),
    (
        [("10", "EUR"), ("2.50", "U$D")],
        "EUR,10.00,,,\nUSD,2.60,,,",
        "incomplete_file",
        "in no currency: stated 0, the file has 2.50",
    ),
]


@pytest.mark.parametrize(("delivered", "footer", "refused", "told"), BY_CURRENCY)
def test_the_sum_of_each_currency_ties(
    workspace: Workspace,
    tmp_path: Path,
    delivered: list[tuple[str, str]],
    footer: str,
    refused: str | None,
    told: str | None,
) -> None:
    path = tmp_path / "shop.csv"
    rows = [row(number, *one) for number, one in enumerate(delivered)]
    path.write_text("\n".join([HEADER, *rows, footer, ""]))
    (verdict,) = examine(workspace.settings, [str(path)], IN_EACH)
    assert (verdict.refused, told in (verdict.message or "") if told else verdict.message) == (
        refused, True if told else None,
    )  # fmt: skip
    batch = import_delivery(workspace, [str(path)], IN_EACH).batch
    is_held = bool(told) and refused is None
    assert (batch.state is State.HELD) is is_held
    assert (batch.state is State.COMPLETE) is (told is None)


BY_CELL: list[tuple[dict[str, Any], str]] = [
    # how CurrenciesId is written, and the cell of the record and of the footer
    ({}, "978"),
    ({}, " 978 "),
    ({"width": "folded"}, "\uff19\uff17\uff18"),
    ({"thousands": " "}, "1 978"),
    ({"negative": ["1-"]}, "978-"),
    ({"positive": ["1+", "1"]}, "978+"),
    ({"currency": ["No 1"]}, "No 978"),
    ({"part": r"^[A-Z]+/(\d+)$"}, "EUR/978"),
    ({"thousands": "'", "part": r"/([\d']+)$"}, "EUR/1'978"),
    ({"part": r"^[A-Z]/(\d+)$", "prefix": "9", "suffix": "8"}, "E/7"),
    ({"prefix": "9", "suffix": "8"}, "7"),
    ({"map": {"EUR": 978}}, "EUR"),
    ({"map": {" EUR": 978}}, " EUR"),
    ({"map": {"\uff25": 978}, "part": "([^x])"}, "x\uff25"),
    ({"part": r"^([A-Z]+)/", "map": {"EUR": 978}}, "EUR/978"),
    ({"default": 978}, ""),
    ({"null": ["-"], "default": 978}, "-"),
    ({"null": ["-"], "map": {"EUR": 1}, "default": 978}, "-"),
    ({"blanks": "dropped", "null": ["-"], "default": 978}, " - "),
]
OF_PART = [
    # how PaidAmount is written, and the cell of the record and of the footer
    ({"part": r"EUR ([\d.]+)"}, "EUR 10.50"),
    ({"part": r"EUR ([\d,]+)", "decimal": ","}, "EUR 10,50"),
    ({"width": "folded"}, "\uff11\uff10.50"),
    ({"negative": ["1-"], "thousands": " "}, "1 000.50-"),
]


@pytest.mark.parametrize(
    ("name", "told", "cell"),
    [("CurrenciesId", *one) for one in BY_CELL] + [("PaidAmount", *one) for one in OF_PART],
)
def test_a_footer_that_repeats_the_cells_of_the_only_record_ties(
    tmp_path: Path, name: str, told: dict[str, Any], cell: str
) -> None:
    cells = {"CurrenciesId": "978", "PaidAmount": "10.00", name: cell}
    constants = dict.fromkeys(("TenantsId", "ActionsId", "DebtsId", "CurrencyRatesId"), 7)
    profile = read_profile(
        {
            "feed": "shop",
            "record": "payment",
            "delimiter": ";",
            "footer": ["Total;(?P<PaidAmount>[^;]*);(?P<CurrenciesId>[^;]*);"],
            "columns": {"No": "Id"},
            "constants": {
                **constants,
                "DiscountAmount": "0.00",
                "PaymentDate": "2026-11-01T00:00:00Z",
            },
            "fields": {name: told},
            "unknown_columns": "ignore",
        }
    )
    line = f"{cells['PaidAmount']};{cells['CurrenciesId']};"
    path = tmp_path / "shop.csv"
    path.write_text(f"No;PaidAmount;CurrenciesId;On\n1;{line}\nTotal;{line}\n")
    (verdict,) = examine(Settings(tmp_path / "home"), [str(path)], profile)
    assert (verdict.message, verdict.rows_in, len(verdict.rejects)) == (None, 1, 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "told"), [("x", "stated 3, the file has 1, and 1 row has no key there"), ("", None)]
)
def test_a_hash_total_is_excused_by_a_key_that_cannot_be_read(
    workspace: Workspace, tmp_path: Path, number: str, told: str | None
) -> None:
    path = tmp_path / "shop.csv"
    path.write_text("\n".join([HEADER, row(1, "10"), row(2, "5").replace("2", number, 1), ""]))
    stated = {"files": {"shop.csv": {"hash_total": "3", "sums": {"PaidAmount": "15"}}}}
    (tmp_path / "manifest.json").write_text(json.dumps(stated))
    profile = replace(PROFILE, footer=())
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    batch = import_delivery(workspace, [str(path)], profile).batch
    if told is None:
        assert (verdict.refused, batch.state) == ("incomplete_file", State.COMPLETE_WITH_ERRORS)
    else:
        assert told in (verdict.message or "")
        assert told in (batch.held_because or "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("totals", "total", "state"), [("all", "25", State.HELD), ("kept", "10", State.COMPLETE)]
)
def test_a_row_left_out_whose_amount_cannot_be_read_is_part_of_what_is_not_known(
    workspace: Workspace, tmp_path: Path, totals: str, total: str, state: State
) -> None:
    profile: Profile = replace(PROFILE, totals=totals, footer=PROFILE.footer[:1])
    path = tmp_path / "shop.csv"
    delivered = [row(1, "10"), row(2, "x", "subtotal"), f"Total,{total},,,", ""]
    path.write_text("\n".join([HEADER, *delivered]))
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    assert verdict.refused is None
    assert ("1 row has no amount" in (verdict.message or "")) is (state is State.HELD)
    assert import_delivery(workspace, [str(path)], profile).batch.state is state


@pytest.mark.long
@pytest.mark.parametrize(("totals", "ties"), [("all", False), ("kept", True)])
def test_a_grand_total_beside_subtotals_that_are_left_out(
    workspace: Workspace, rows: Any, tmp_path: Path, totals: str, ties: bool
) -> None:
    profile: Profile = replace(PROFILE, totals=totals, footer=PROFILE.footer[:1])
    delivered = [row(1, "10"), row(2, "2.50"), row(0, "12.50", "subtotal")]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join([HEADER, *delivered, "Total,12.50,,,", ""]))
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    batch = import_delivery(workspace, [str(path)], profile).batch
    assert (verdict.refused is None, batch.state is State.COMPLETE) == (ties, ties)
    assert rows("SELECT count(*) FROM payment") == [(2 * ties,)]


MARKED: dict[str, Any] = {
    "feed": "statement",
    "record": "payment",
    "delimiter": ";",
    "decimal": ",",
    "unknown_columns": "ignore",
    "footer": ["Total;(?P<PaidAmount_2>[^;]*);[^;]*;(?P<PaidAmount>[^;]*)"],
    "columns": {"No": "Id"},
    "fields": {
        "PaidAmount": {
            "from": ["Mark", "Paid"],
            "join": " ",
            "negative": ["D 1"],
            "positive": ["C 1", "1"],
        }
    },
    "constants": {
        **dict.fromkeys(("TenantsId", "ActionsId", "DebtsId", "CurrencyRatesId"), 7),
        "CurrenciesId": 978,
        "DiscountAmount": "0.00",
        "PaymentDate": "2026-11-01T00:00:00Z",
    },
}


@pytest.mark.parametrize(
    ("total", "told"),
    [
        ("Total;15,00;x;D", None),
        ('Total;"15,00";x;"D"', None),
        ("Total; 15,00;x;D ", None),
        ("Total;15,00;x;C", "stated 15.00, the file has -15.00"),
        ("Total;15,00;x;", "stated 15.00, the file has -15.00"),
        ("Total;15,00;x;X", "states PaidAmount as 'X 15,00', which is no number"),
        ("Total;;x;D", "states PaidAmount as 'D', which is no number"),
    ],
)
def test_a_total_has_its_mark_in_a_cell_of_its_own_as_the_amounts_have(
    still: Workspace, tmp_path: Path, total: str, told: str | None
) -> None:
    path = tmp_path / "statement.csv"
    path.write_text(f"No;Paid;Text;Mark\n1;10,00;x;C\n2;25,00;x;D\n{total}\n")
    (verdict,) = examine(still.settings, [str(path)], read_profile(MARKED))
    if told is None:
        assert (verdict.refused, verdict.rows_in, [*verdict.rejects]) == (None, 2, [])
    else:
        assert verdict.refused == "incomplete_file"
        assert told in (verdict.message or "")


@pytest.mark.parametrize(
    ("footer", "told"),
    [
        ("T;(?P<PaidAmount_2>.*)", "there is no group PaidAmount"),
        (
            "T;(?P<DiscountAmount>.);(?P<DiscountAmount_2>.*)",
            "DiscountAmount is not made of several",
        ),
        ("T;(?P<rows>.);(?P<rows_2>.*)", "rows is not made of several"),
        ("T;(?P<PaidAmount_x>.*)", "'PaidAmount_x', not rows, or an amount"),
    ],
)
def test_only_a_field_of_several_columns_has_a_total_of_several_cells(
    footer: str, told: str
) -> None:
    with pytest.raises(ProfileError, match=re.escape(told)):
        read_profile(MARKED | {"footer": [footer]})
