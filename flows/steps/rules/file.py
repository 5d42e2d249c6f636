"""Rule files: the TOML with the rules of a reconciliation, read strictly.

Values that make no sense (a tolerance in the wrong unit, a share above one, a currency that is no
number) are refused with their line; nothing is guessed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from flows.steps.rules.own_kinds import unlike_now
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
from flows.steps.rules.values import RECORDS, Reader, RulesRefused, Values
from schemas.derived.json_text import datetime_text, number_text
from schemas.derived.left_out import means_a_state
from schemas.field import TIMES, Field, Kind, Table
from schemas.tables import EXTRACTS
from schemas.toml_text import Path, key_lines, read_toml, suggestion

EXAMPLES = {
    Kind.INTEGER: "12",
    Kind.INTEGER64: "12",
    Kind.DOUBLE: "12.5",
    Kind.BOOLEAN: "true",
    Kind.DATETIME: "2026-01-31T12:00:00",
    Kind.DATETIME_OFFSET: "2026-01-31T12:00:00+01:00",
}
_BITS = {Kind.INTEGER: 31, Kind.INTEGER64: 63}
_DIGITS = 400
"""No double has more digits before or behind its point."""
TAKEN = (
    "reports call records so that are left out by their own state, and by no rule. Give the "
    "exclusion an id of its own"
)


def read_rules_text(text: str, *, kept: bool = False) -> Rules:
    """Read rules from a TOML text; raise RulesRefused.

    `kept` is for the rules of an earlier run. These may have exclusions with an id or value that is
    refused today, tolerances or windows without effect, and other definitions of record kinds. A
    rule file may be copied from a report: the definitions in it must be the present ones.
    """
    try:
        document = read_toml(text, parse_float=Decimal)
    except ValueError as error:
        raise RulesRefused(f"This is not TOML: {error}.") from error
    reader = _Reader(key_lines(text))
    records = document.pop(RECORDS, {})
    if kept:
        return replace(reader.rules(document), records=tuple(records.items()))
    reader.check_records(records)
    rules = reader.rules(document)
    reader.check_ids(rules)
    reader.check_tolerances(rules)
    reader.check_windows(rules)
    return reader.with_values(rules)


class _Reader(Values):
    def check_records(self, records: Any) -> None:
        """Refuse definitions of record kinds that differ from the present ones."""
        if not isinstance(records, dict):
            self.refuse((RECORDS,), f"{RECORDS} is a section. Write [{RECORDS}].")
        for name in unlike_now(records):
            self.refuse(
                (RECORDS, name),
                f"the record kind {name} is not defined so now, and rules define none. Take "
                f"[{RECORDS}] out: record kinds of your own count as they are defined.",
            )

    def rules(self, document: Mapping[str, Any]) -> Rules:
        top: dict[str, Reader] = {
            "name": self.text,
            "calendar": self.calendar,
            "offset": self.choice(Offset),
            "references": self.references,
            "budget": self.section(Budget(), {"count": self.whole, "amount": self.amount}),
            "rates": self.section(Rates(), self._rates()),
            "plans": self.section(Plans(), self._plans()),
            "severities": self.section(Severities(), self._severities()),
            "tolerance": self.each(self.tolerance),
            "window": self.each(self.window),
            "exclude": self.each(self.exclusion),
        }
        plural = {"tolerance": "tolerances", "window": "windows", "exclude": "exclusions"}
        values = self.known((), document, top)
        rules = Rules(**{plural.get(key, key): value for key, value in values.items()})
        about = [(one.record, one.field, one.currency, one.tenant) for one in rules.tolerances]
        self._check_once("tolerance", about)
        self._check_once("exclude", [exclusion.id for exclusion in rules.exclusions])
        return rules

    def _rates(self) -> dict[str, Reader]:
        return {
            "direction": self.choice(Direction),
            "base_currency": self.number,
            "stale_days": self.limit(self.whole),
            "jump_percent": self.limit(self.amount),
            "inverse_tolerance": self.limit(self.share),
            "daily": self.flag,
        }

    def _plans(self) -> dict[str, Reader]:
        return {
            "discount": self.choice(Discount),
            "early_days": self.limit(self.whole),
            "late_days": self.limit(self.whole),
            "under": self.amount,
            "over": self.amount,
        }

    def _severities(self) -> dict[str, Reader]:
        amounts = dict.fromkeys(("high_amount", "medium_amount"), self.amount)
        return amounts | dict.fromkeys(("high_age_days", "medium_age_days"), self.whole)

    def tolerance(self, path: Path, given: Mapping[str, Any]) -> Tolerance:
        readers: dict[str, Reader] = {
            "record": self.record,
            "field": self.text,
            "currency": self.number,
            "tenant": self.number,
            "absolute": self.amount,
            "relative": self.share,
            "above": self.amount,
            "below": self.amount,
            "above_relative": self.share,
            "below_relative": self.share,
            "days": self.days,
        }
        values = self.known(path, given, readers, needed=("record", "field"))
        table = EXTRACTS[values["record"]]
        field = self.field((*path, "field"), table, values["field"])
        self._check_units(path, table, field, values)
        both = {"absolute": ("above", "below"), "relative": ("above_relative", "below_relative")}
        for name, sides in both.items():
            if name in values:
                value = values.pop(name)
                for side in sides:
                    if side in values:
                        self.refuse((*path, side), f"{name} says {side} too. Keep one of them.")
                    values[side] = value
        return Tolerance(**values)

    def _check_units(
        self, path: Path, table: Table, field: Field, values: Mapping[str, Any]
    ) -> None:
        """Refuse a tolerance unless it is in days for a time, or amount or share for a number."""
        of = f"{table.name}.{field.name}"
        bounds = [name for name in values if name not in ("record", "field", "currency", "tenant")]
        if field.name in table.key:
            self.refuse((*path, "field"), f"{of} is part of the key: records are told apart by it.")
        if field.kind not in (*TIMES, Kind.DOUBLE):
            message = f"{of} is of type {field.kind}. Only a double or a time has a tolerance."
            self.refuse((*path, "field"), message)
        for name in bounds:
            if field.kind in TIMES and name != "days":
                self.refuse((*path, name), f"{of} is a time. Its tolerance is in days: days = 1.")
            if field.kind is Kind.DOUBLE and name == "days":
                message = f"{of} is a number, not a time. Use absolute or relative."
                self.refuse((*path, name), message)
        if "currency" in values and not field.amount:
            self.refuse((*path, "currency"), f"{of} is no amount and has no currency.")
        if "tenant" in values and table.tenant is None:
            self.refuse((*path, "tenant"), f"{table.name} has no tenant.")
        if not any(values[name] for name in bounds):
            message = f"The tolerance of {of} allows nothing. Give absolute, relative or days."
            self.refuse(path, message)

    def window(self, path: Path, given: Mapping[str, Any]) -> Window:
        readers = {"record": self.record, "days": self.whole, "business": self.flag}
        return Window(**self.known(path, given, readers, needed=("record", "days")))

    def exclusion(self, path: Path, given: Mapping[str, Any]) -> Exclusion:
        readers = {
            "id": self.text,
            "record": self.record,
            "field": self.text,
            "values": self.values,
            "reason": self.text,
        }
        values = self.known(path, given, readers, needed=tuple(readers))
        field = self.field((*path, "field"), EXTRACTS[values["record"]], values["field"])
        if field.secret:
            self.refuse((*path, "field"), f"{field.name} is a secret; no rule may name its values.")
        return Exclusion(**values)

    def record(self, path: Path, value: Any) -> str:
        name = self.text(path, value)
        if name not in EXTRACTS:
            self.refuse(path, f"{name!r} is no record kind. {suggestion(name, EXTRACTS)}")
        return name

    def field(self, path: Path, table: Table, name: str) -> Field:
        if name not in table.columns:
            hint = suggestion(name, table.columns)
            self.refuse(path, f"{table.name} has no field {name!r}. {hint}")
        return table.by_name[name]

    def check_ids(self, rules: Rules) -> None:
        """Refuse exclusion ids that reports use for records left out without a rule."""
        for number, one in enumerate(rules.exclusions):
            if means_a_state(one.id):
                self.refuse(
                    ("exclude", number, "id"),
                    f"id = {one.id!r}: {TAKEN}, such as {one.id + '-' + one.record!r}.",
                )

    def check_tolerances(self, rules: Rules) -> None:
        """Refuse tolerances of records without a key, where any other value is another record."""
        for number, one in enumerate(rules.tolerances):
            if not EXTRACTS[one.record].key:
                self.refuse(
                    ("tolerance", number, "field"),
                    f"{one.record} has no key: its records are told apart by all that they say, "
                    f"{one.field} included. No tolerance can hold.",
                )

    def check_windows(self, rules: Rules) -> None:
        """Refuse windows of records without a business date, and two windows that would compete."""
        for number, one in enumerate(rules.windows):
            if EXTRACTS[one.record].business_date is None:
                self.refuse(
                    ("window", number, "record"),
                    f"{one.record} has no business date, from which a window is counted.",
                )
        self._check_once("window", [(one.record, one.business) for one in rules.windows])

    def with_values(self, rules: Rules) -> Rules:
        """The rules with every value of an exclusion in its canonical text."""
        exclusions = tuple(
            replace(one, values=tuple(self._values(("exclude", number, "values"), one)))
            for number, one in enumerate(rules.exclusions)
        )
        return replace(rules, exclusions=exclusions)

    def _values(self, path: Path, exclusion: Exclusion) -> Iterator[str]:
        field = EXTRACTS[exclusion.record].by_name[exclusion.field]
        for value in exclusion.values:
            text = value_text(field, value)
            if text is None:
                self.refuse(
                    path,
                    f"{value!r} is no {field.kind}, which {exclusion.record}.{field.name} is: no "
                    f"record can have it. Write it as {EXAMPLES[field.kind]!r}.",
                )
            yield text

    def _check_once(self, section: str, keys: list[Any]) -> None:
        first: dict[Any, int] = {}
        for number, key in enumerate(keys):
            if first.setdefault(key, number) != number:
                line = self.lines.get((section, first[key]))
                self.refuse((section, number), f"The same {section} is on line {line} already.")


def value_text(field: Field, text: str) -> str | None:
    """The canonical text of a value, however it is written; None if the field cannot have it.

    A time with an offset is an instant, written in UTC; a time without one is a wall clock.
    """
    match field.kind:
        case Kind.INTEGER | Kind.INTEGER64:
            return _integer(text, _BITS[field.kind])
        case Kind.DOUBLE:
            return _number(text)
        case Kind.BOOLEAN:
            return text if text in ("true", "false") else None
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            return _time(text, bare=field.kind is Kind.DATETIME)
        case _:
            return text


def _integer(text: str, bits: int) -> str | None:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return None
    number = int(text)
    return str(number) if -(2**bits) <= number < 2**bits else None


def _number(text: str) -> str | None:
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    if not number.is_finite() or (number and abs(number.adjusted()) > _DIGITS):
        return None
    return number_text(number)


def _time(text: str, *, bare: bool) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return datetime_text(moment.astimezone(UTC), 0)
    except (ValueError, OverflowError):
        return None
    return datetime_text(moment, None) if bare else None
