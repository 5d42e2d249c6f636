"""Rule files: what they say is what is meant, and what cannot be meant is refused with its line."""

import re
from contextlib import suppress
from dataclasses import fields, replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pytest

from connectors.errors import RulesError
from flows.stages.reconcile.rules import read_rules
from flows.steps.rules.canonical import rules_hash, rules_text
from flows.steps.rules.file import read_rules_text
from flows.steps.rules.rules import (
    Budget,
    Direction,
    Discount,
    Exclusion,
    Offset,
    Plans,
    Rates,
    Rules,
    Severities,
    Tolerance,
    Window,
)
from flows.steps.rules.values import RulesRefused
from schemas.derived.left_out import WORDS
from tests.odd_toml import ODD_TOML

SAMPLE = Path(__file__).parents[2] / "data_samples" / "rules.toml"
OF_DAYS = SAMPLE.parent / "reconciliation" / "rules.toml"
PAID = '[[tolerance]]\nrecord = "payment"\nfield = "PaidAmount"\n'

OF_MANY = {"tolerances": "tolerance", "windows": "window", "exclusions": "exclude"}
TOP_LEVEL = {OF_MANY.get(one.name, one.name) for one in fields(Rules)} - {"records"}
"""The keys of a file and its sections; it says nothing of record kinds of one's own."""
SAID = [
    ("", Rules()),
    ('name = "x"\noffset = "equal"', Rules(name="x", offset=Offset.EQUAL)),
    (PAID + "absolute = 0.01",
     Rules(tolerances=(Tolerance("payment", "PaidAmount", above=Decimal("0.01"),
                                 below=Decimal("0.01")),))),
    (PAID + 'above = "1.5"\nbelow_relative = 0.1\ncurrency = 978\ntenant = 0',
     Rules(tolerances=(Tolerance("payment", "PaidAmount", 978, 0, above=Decimal("1.5"),
                                 below_relative=Decimal("0.1")),))),
    ('[[tolerance]]\nrecord = "currency_rate"\nfield = "EffectiveDate"\ndays = 1',
     Rules(tolerances=(Tolerance("currency_rate", "EffectiveDate", days=Decimal(1)),))),
    ('[[tolerance]]\nrecord = "currency_rate"\nfield = "ExchangeRate"\nrelative = 1e-6',
     Rules(tolerances=(Tolerance("currency_rate", "ExchangeRate",
                                 above_relative=Decimal("0.000001"),
                                 below_relative=Decimal("0.000001")),))),
    ('[[window]]\nrecord = "payment"\ndays = 2', Rules(windows=(Window("payment", 2),))),
    ("[budget]\ncount = 3\namount = 0.30", Rules(budget=Budget(3, Decimal("0.3")))),
    ('[rates]\ndirection = "from_to"\nstale_days = "never"',
     Rules(rates=Rates(direction=Direction.FROM_TO, stale_days=None))),
    ('[plans]\ndiscount = "counts"\nearly_days = 3',
     Rules(plans=Plans(discount=Discount.COUNTS, early_days=3))),
    ('[[exclude]]\nid = "a"\nrecord = "payment"\nfield = "TenantsId"\nvalues = [9]\nreason = "b"',
     Rules(exclusions=(Exclusion("a", "payment", "TenantsId", ("9",), "b"),))),
    ("references = []", Rules(references=frozenset())),
    ('calendar = "DE-BY"', Rules(calendar="DE-BY")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rules"), SAID)
def test_a_file_says_what_is_meant(text: str, rules: Rules) -> None:
    assert read_rules_text(text) == rules


def test_every_key_is_on_the_page_and_in_the_sample() -> None:
    sections = (Tolerance, Window, Exclusion, Budget, Rates, Plans, Severities)
    keys = {one.name for section in sections for one in fields(section)}
    keys |= TOP_LEVEL | {"absolute", "relative"}
    page = (SAMPLE.parents[1] / "docs" / "reconciliation.md").read_text()
    told = page.partition("\n## Rules\n")[2].partition("\n## ")[0]
    for text in (told, SAMPLE.read_text()):
        assert keys - {*re.findall(r"\w+", text)} == set()


REFUSED = [
    ("tolerances = 1", 1, "Did you mean tolerance?"),
    ("[rates]\n\nstale_day = 1", 3, "Did you mean stale_days?"),
    ("[plan]\nunder = 1", 1, "Did you mean plans?"),
    (PAID + "days = 1", 4, "is a number, not a time"),
    ('[[tolerance]]\nrecord = "payment"\nfield = "PaymentDate"\nabsolute = 1', 4, "is in days"),
    (PAID + "relative = 5", 4, "5 % is 0.05"),
    (PAID + "relative = 1.5", 4, "1.5 % is 0.015"),
    (PAID + "absolute = -0.01", 4, "negative"),
    (PAID + "absolute = nan", 4, "not a number"),
    (PAID + "absolute = inf", 4, "not a number"),
    (PAID + 'absolute = "one"', 4, "not a number"),
    (PAID + "absolute = true", 4, "not a number"),
    (PAID + "absolute = 1e-19", 4, "18 decimals"),
    (PAID + 'currency = "EUR"\nabsolute = 1', 4, "not a number of the service"),
    (PAID + "currency = 978.0\nabsolute = 1", 4, "not a number of the service"),
    (PAID + "", 1, "allows nothing"),
    (PAID + "absolute = 0", 1, "allows nothing"),
    (PAID + "absolute = 1\nabove = 2", 5, "Keep one"),
    (PAID + "absolute = 1\n" + PAID + "above = 1", 5, "on line 1 already"),
    ('[[tolerance]]\nrecord = "payments"', 2, "Did you mean payment?"),
    ('[[tolerance]]\nrecord = "payment"\nabsolute = 1', 1, "field is missing"),
    (PAID.replace("PaidAmount", "PaidAmont") + "absolute = 1", 3, "Did you mean PaidAmount?"),
    (PAID.replace("PaidAmount", "DebtsId") + "absolute = 1", 3, "is of type 64-bit integer. Only"),
    (PAID.replace("PaidAmount", "Id") + "absolute = 1", 3, "part of the key"),
    ('[[tolerance]]\nrecord = "payment_plan_detail"\nfield = "PlannedAmount"\nabsolute = 1', 3,
     "told apart by all that they say"),
    ('[[window]]\nrecord = "invoice_file"\ndays = 2', 2, "no business date"),
    ('[[window]]\nrecord = "user_account"\ndays = 2', 2, "no business date"),
    ('[[tolerance]]\nrecord = "currency_rate"\nfield = "ExchangeRate"\ncurrency = 1\nabsolute = 1',
     4, "has no currency"),
    ('[tolerance]\nrecord = "payment"', 1, "Write [[tolerance]]"),
    ("rates = 1", 1, "Write [rates]"),
    ('offset = "same"', 1, "Allowed: equal, told, differs"),
    ('calendar = "Mars"', 1, "no calendar"),
    ('references = ["rates", "plan"]', 1, "Did you mean plans?"),
    ('[[window]]\nrecord = "payment"\ndays = -1', 3, "0 or more"),
    ('[[window]]\nrecord = "payment"\ndays = 1\nbusiness = "yes"', 4, "neither true nor false"),
    ('[[exclude]]\nid = "a"\nrecord = "payment"\nfield = "Id"\nvalues = [\n "1",\n]', 1,
     "reason is missing"),
    ('[[exclude]]\nid = "a"\nrecord = "payment_gateway"\nfield = "ServiceKey"\nvalues = ["x"]\n'
     'reason = "b"', 4, "secret"),
    *((f'[[exclude]]\nid = "a"\nrecord = "{record}"\nfield = "{field}"\nvalues = {values}\n'
       'reason = "b"', 5, why)
      for record, field, values, why in (
          ("payment", "Id", '["1", "one"]', "'one' is no 64-bit integer"),
          ("payment", "TenantsId", "[2147483648]", "no record can have it"),
          ("payment", "PaidAmount", '["12,50"]', "Write it as '12.5'"),
          ("payment", "PaidAmount", '["1e999999999"]', "no record can have it"),
          ("payment", "PaymentDate", '["2026-01-31"]', "'2026-01-31T12:00:00+01:00'"),
          ("currency_rate", "EffectiveDate", '["31.01.2026"]', "'2026-01-31T12:00:00'"),
          ("insert_batch_data", "Merged", '["yes"]', "Write it as 'true'"),
      )),
    *((f'[[exclude]]\nid = "{word}"\nrecord = "payment"\nfield = "Id"\nvalues = [1]\nreason = "b"',
       2, "Give the exclusion an id of its own")
      for word in (*sorted(WORDS), " Stale", "Left  out")),
    ("name = ", None, "not TOML"),
    ("offset = []", 1, "Allowed: equal, told, differs"),
    (
        '[[window]]\nrecord = "payment"\ndays = 1\n[[window]]\nrecord = "payment"\ndays = 400',
        4,
        "The same window is on line 1 already",
    ),
    ('[[window]]\nrecord = "payment"\ndays = 2147483648', 3, "Use 0 to 2147483647"),
    ('[[tolerance]]\nrecord = "payment"\nfield = "PaymentDate"\ndays = 2147483647.5', 4,
     "Use 0 to 2147483647"),
    (PAID + "absolute = 10000000000.0000000000000000001", 4, "18 decimals"),
    (PAID + "absolute = 1E9999999999999999999", None, "a number in it is too large"),
    ("name = 0x" + "f" * 5000, None, "a number in it is too large"),
    ("name = " + "9" * 5000, None, "a number in it is too large"),
    ("name = " + "[" * 2000 + "]" * 2000, None, "nested too deeply"),
    ("name = 'a'\nname = 'b'", None, "not TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "why"), REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_line(
    text: str, line: int | None, why: str
) -> None:
    with pytest.raises(RulesRefused) as refused:
        read_rules_text(text)
    assert refused.value.line == line
    assert why in str(refused.value)


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    with pytest.raises(RulesError, match="cannot be read"):
        read_rules(file)
    file.write_text("\n\nnam = 1")
    with pytest.raises(RulesError) as refused:
        read_rules(file)
    assert str(refused.value).startswith(f"{file}: line 3: 'nam' is not a rule.")
    file.write_bytes(b"\xff")
    with pytest.raises(RulesError, match="not UTF-8"):
        read_rules(file)


def test_what_is_refused_by_now_is_read_of_a_run_that_used_it() -> None:
    tests = Exclusion("stale", "payment", "Id", ("1",), "b")
    kept = Rules(exclusions=(tests,), windows=(Window("payment", 1), Window("payment", 400)))
    assert read_rules_text(rules_text(kept), kept=True) == kept


def test_the_sample_is_read_and_written_back() -> None:
    rules = read_rules(SAMPLE)
    text = rules_text(rules)
    again = read_rules_text(text)
    assert rules_text(again) == text
    assert set(again.tolerances) == set(rules.tolerances)
    assert replace(again, tolerances=rules.tolerances) == rules


@pytest.mark.parametrize("about", ["tenant = 0", "currency = 0", "tenant = 0\ncurrency = 0"])
def test_a_tolerance_of_number_zero_is_kept_as_one(about: str) -> None:
    """It is no tolerance of all tenants or currencies, whoever reads the rules of the run again."""
    rules = read_rules_text(f"{PAID}{about}\nabove = 1")
    assert read_rules_text(rules_text(rules)) == rules
    assert rules_hash(rules) != rules_hash(read_rules_text(f"{PAID}above = 1"))


def test_the_hash_is_of_what_is_meant_not_of_how_it_is_spelled() -> None:
    one = read_rules_text('# why\nname = "a"\n' + PAID + "absolute = 0.010\n" + PAID +
                          "currency = 1\nabove = 1")  # fmt: skip
    other = read_rules_text(PAID + "currency = 1\nabove = 1.0\n" + PAID +
                            'below = 0.01\nabove = "0.01"').tolerances  # fmt: skip
    assert rules_hash(one) == rules_hash(Rules(name="a", tolerances=other))
    assert rules_hash(one) != rules_hash(replace(one, name="b"))
    assert rules_hash(Rules()) != rules_hash(Rules(rates=Rates(stale_days=None)))


def test_every_rule_is_in_the_hash() -> None:
    others = {
        "name": "b",
        "tolerances": read_rules_text(PAID + "absolute = 1").tolerances,
        "budget": Budget(count=1),
        "windows": (Window("payment", 2),),
        "exclusions": (Exclusion("a", "payment", "TenantsId", ("9",), "b"),),
        "rates": Rates(daily=True),
        "plans": Plans(discount=Discount.COUNTS),
        "severities": Severities(high_age_days=1),
        "offset": Offset.EQUAL,
        "calendar": "DE",
        "references": frozenset({"rates"}),
        "records": (("refund", "of"),),
    }
    assert [*others] == [one.name for one in fields(Rules)], "give the new one another value here"
    for name, other in others.items():
        assert rules_hash(replace(Rules(), **{name: other})) != rules_hash(Rules()), (
            f"{name} is not in flows/steps/rules/canonical.py"
        )


def test_the_hash_of_rules_that_somebody_signed_for_stays_what_it_was() -> None:
    said = "".join(rules_hash(read_rules_text(text)) for text, _ in SAID)
    assert [rules_hash(read_rules(SAMPLE)), rules_hash(read_rules(OF_DAYS)), rules_hash(Rules()),
            sha256(said.encode()).hexdigest()] == [
        "1459bc0bf9d47eedd1636a7e34fd00717a7776bc83a26c688fd4f2bef6d3dcd4",
        "42241b1d3b65e519596997160d0665c6c4439480b25f9f4653ee9b47e6d1699f",
        "36be61c05d873a8e65a2806de294095f464eac88a32f51ebd69ba11a91140293",
        "d80ba39c462f0ceb8446077c99b0d806852497edbe1846f54f60b39634a2b972",
    ], "leave a new rule out of canonical.py where it has its default"  # fmt: skip


@pytest.mark.parametrize("amount", ["0.1", "1e3", "100.00", '"1_0"',
                                    "12345678901234567890.123456789012345678"])  # fmt: skip
def test_every_digit_of_an_amount_survives_being_written(amount: str) -> None:
    rules = read_rules_text(f"{PAID}absolute = {amount}")
    assert read_rules_text(rules_text(rules)) == rules


KEYS = {
    "": (*sorted(TOP_LEVEL), "nam"),
    "[budget]": ("count", "amount"),
    "[rates]": ("direction", "base_currency", "stale_days", "jump_percent", "inverse_tolerance",
                "daily"),
    "[plans]": ("discount", "early_days", "late_days", "under", "over"),
    "[severities]": ("high_amount", "medium_amount", "high_age_days", "medium_age_days"),
    PAID: ("currency", "tenant", "absolute", "relative", "above", "below_relative", "days"),
    "[[tolerance]]": ("record",),
    '[[tolerance]]\nrecord = "payment"\nabsolute = 1': ("field",),
    '[[window]]\nrecord = "payment"': ("days", "business"),
    '[[exclude]]\nid = "a"\nrecord = "payment"\nreason = "b"\nvalues = [1]': ("field",),
    '[[exclude]]\nrecord = "payment"\nfield = "TenantsId"\nreason = "b"\nvalues = [1]': ("id",),
    '[[exclude]]\nid = "a"\nrecord = "payment"\nfield = "TenantsId"\nreason = "b"': ("values",),
}  # fmt: skip


@pytest.mark.parametrize(("begin", "key"), [(a, key) for a, keys in KEYS.items() for key in keys])
def test_whatever_stands_behind_a_key_is_meant_or_refused(begin: str, key: str) -> None:
    for odd in ODD_TOML:
        with suppress(RulesRefused):
            rules = read_rules_text(f"{begin}\n{key} = {odd}")
            assert read_rules_text(rules_text(rules)) == rules


@pytest.mark.parametrize("name", ['a "quoted" \\ name', "tab\tand\nline", "\x7f", "Ünïcode"])
def test_every_text_survives_being_written(name: str) -> None:
    assert read_rules_text(rules_text(Rules(name=name))) == Rules(name=name)
