"""Record kinds of one's own are of the rules by which a run is judged, and judged again."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from flows.steps.frames.sources import Sources
from flows.steps.reconcile.changes import rule_changes
from flows.steps.reconcile.cut_off import cut_off
from flows.steps.rules import own_kinds
from flows.steps.rules.canonical import rules_hash, rules_text
from flows.steps.rules.file import read_rules_text
from flows.steps.rules.own_kinds import decides, out_of_reach, tables_by, with_own_kinds
from flows.steps.rules.rules import Rules
from flows.steps.rules.values import RulesRefused
from schemas.field import Field, Kind, Reference, Rule, Table
from schemas.own_tables import OwnTables
from tests.reconcile.records import AS_OF, database, extract

REFUND = Table(
    "refund",
    'The "refund"',
    (
        Field("Id", Kind.INTEGER, required=True),
        Field("TenantsId", Kind.INTEGER, required=True),
        Field("PaymentsId", Kind.INTEGER64, note="what is given back"),
        Field("At", Kind.DATETIME, business_date=True),
        Field("Reason", Kind.STRING),
    ),
    key=("Id",),
    references=(Reference("PaymentsId", "payment", same_tenant=True),),
)


def of(table: Table, field: str, **now: Any) -> Table:
    return replace(
        table, fields=tuple(replace(one, **now) if one.name == field else one for one in table)
    )


def rules(*tables: Table) -> Rules:
    return Rules(records=tuple((one.name, decides(one)) for one in tables))


def test_without_kinds_the_rules_are_what_they_were() -> None:
    assert "records" not in rules_text(Rules())
    assert tables_by(Rules()) is own_kinds.EXTRACTS


def test_kept_rules_have_them() -> None:
    kept = rules(REFUND)
    assert read_rules_text(rules_text(kept), kept=True) == kept


NOT_NOW = "the record kind refund is not defined so now, and rules define none. Take [records] out"


@pytest.mark.parametrize(
    ("now", "refused"),
    [
        (REFUND, None),
        (of(REFUND, "Reason", note="why"), None),
        (replace(REFUND, title="Refund"), NOT_NOW),
        (None, NOT_NOW),
    ],
)
def test_the_rules_of_a_report_are_a_rule_file_while_its_kinds_are_defined_so(
    now: Table | None, refused: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_kinds, "OWN", OwnTables({"refund": now} if now else {}))
    text = rules_text(replace(rules(REFUND), name="month end"))
    if refused is None:
        assert with_own_kinds(read_rules_text(text)) == read_rules_text(text, kept=True)
        return
    line = text[: text.index("refund = ")].count("\n") + 1
    with pytest.raises(RulesRefused, match=re.escape(f"line {line}: {refused}")):
        read_rules_text(text)


def test_kinds_are_a_section_of_a_rule_file() -> None:
    with pytest.raises(RulesRefused, match=re.escape("records is a section. Write [records].")):
        read_rules_text("records = 5")


def test_a_note_decides_about_no_figure() -> None:
    noted = of(REFUND, "Id", note="a number")
    assert rules_hash(rules(REFUND)) == rules_hash(rules(noted))


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (
            replace(REFUND, references=()),
            ("reference PaymentsId", "payment.Id of the same tenant", ""),
        ),
        (
            of(REFUND, "At", business_date=False),
            ("field At", "datetime, business_date", "datetime"),
        ),
        (
            of(REFUND, "Reason", rules=(Rule.NOT_NULL,)),
            ("field Reason", "string", "string, NotNull"),
        ),
        (replace(REFUND, fields=REFUND.fields[:-1]), ("field Reason", "string", "")),
        (replace(REFUND, title="Refund"), ("title", 'The "refund"', "Refund")),
    ],
)
def test_each_change_is_told(now: Table, told: tuple[str, str, str]) -> None:
    (one,) = rule_changes(rules_text(rules(REFUND)), rules_text(rules(now)))
    assert (one.key, one.old, one.new) == (f"record kind refund: {told[0]}", *told[1:])


def test_a_run_is_judged_again_by_what_its_definitions_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = replace(of(REFUND, "At", business_date=False), references=())
    monkeypatch.setattr(own_kinds, "OWN", OwnTables({"refund": now}))
    monkeypatch.setattr(own_kinds, "EXTRACTS", own_kinds.EXTRACTS | {"refund": now})
    assert with_own_kinds(rules(REFUND)) == rules(now)
    assert tables_by(rules(now))["refund"] is now
    gone = replace(REFUND, fields=(*REFUND.fields, Field("Clerk", Kind.STRING)))
    then = tables_by(rules(gone))["refund"]
    assert (then.references, then.business_date) == (REFUND.references, "At")
    # Frames have the columns of now.
    assert then.columns == now.columns


def test_what_was_dated_is_cut_off_as_it_was() -> None:
    rows = [
        {"Id": day, "TenantsId": 7, "At": datetime(2026, 1, day), "At_offset": None}  # noqa: DTZ001
        for day in (8, 10)
    ]
    sources = Sources({"refund": extract(REFUND, *rows)}, {"refund": database(REFUND, *rows)})
    then = cut_off(sources, AS_OF, {"refund": REFUND})
    now = cut_off(sources, AS_OF, {"refund": of(REFUND, "At", business_date=False)})
    for cut, ids in ((then, [8]), (now, [8, 10])):
        assert [
            side["refund"]["Id"].to_list() for side in (cut.kept.extract, cut.kept.database)
        ] == [ids] * 2


SHOP = Table(
    "shop",
    "Shop",
    (
        Field("Id", Kind.INTEGER, required=True),
        Field("TenantsId", Kind.INTEGER, required=True),
        Field("Code", Kind.INTEGER),
    ),
    key=("Id",),
)
SOLD = Table(
    "sold",
    "Sold",
    (
        Field("Id", Kind.INTEGER, required=True),
        Field("TenantsId", Kind.INTEGER, required=True),
        Field("ShopCode", Kind.INTEGER),
    ),
    key=("Id",),
    references=(Reference("ShopCode", "shop", "Code"),),
)


def without(table: Table, field: str) -> Table:
    return replace(table, fields=tuple(one for one in table if one.name != field))


TARGETS: list[tuple[Table | None, bool, bool]] = [
    # what it refers to, as it is now; whether a reference to it, and one of the same tenant, can
    # be followed still
    (SHOP, True, True),
    (of(SHOP, "Code", kind=Kind.INTEGER64, required=True), True, True),
    (of(SHOP, "Code", kind=Kind.STRING), False, False),
    (of(SHOP, "Code", kind=Kind.DOUBLE), False, False),
    (without(SHOP, "Code"), False, False),
    (without(SHOP, "TenantsId"), True, False),
    (of(SHOP, "TenantsId", required=False), True, False),
    (replace(SHOP, key=("Id", "TenantsId")), True, True),
    (None, False, False),
]


@pytest.mark.parametrize("same_tenant", [False, True])
@pytest.mark.parametrize(("shop", "any_tenant", "of_tenant"), TARGETS)
def test_an_earlier_reference_is_followed_where_one_could_be_defined_now(
    shop: Table | None,
    any_tenant: bool,
    of_tenant: bool,
    same_tenant: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = {"sold": replace(SOLD, references=())} | ({"shop": shop} if shop else {})
    monkeypatch.setattr(own_kinds, "EXTRACTS", own_kinds.EXTRACTS | kinds)
    then = replace(SOLD, references=(replace(SOLD.references[0], same_tenant=same_tenant),))
    earlier = rules(then, SHOP)
    followed = of_tenant if same_tenant else any_tenant
    assert tables_by(earlier)["sold"].references == (then.references if followed else ())
    assert out_of_reach(earlier) == (set() if followed else {("sold", "ShopCode")})


UNREFERRED = replace(SOLD, references=())


@pytest.mark.parametrize(
    "now", [without(UNREFERRED, "ShopCode"), of(UNREFERRED, "ShopCode", kind=Kind.STRING)]
)
def test_a_field_that_no_row_had_a_value_of_led_nowhere(
    now: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_kinds, "EXTRACTS", own_kinds.EXTRACTS | {"sold": now, "shop": SHOP})
    assert (tables_by(rules(SOLD))["sold"].references, out_of_reach(rules(SOLD))) == ((), set())
