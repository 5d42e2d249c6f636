"""The validations of the field tables, reported as the framework's validators report them."""

import re
from functools import cache

from connectors.sandbox.failures import Failure, FieldFailure
from connectors.sandbox.options import Style
from connectors.sandbox.values import Record, Value
from schemas.field import Field, Rule, Table
from schemas.tables import TABLES

_CAPITAL = re.compile(r"([A-Z])")
_LOCAL_PART = re.compile(r"[\w!#$%&'*+\-/=?^`{|}~]+(?:\.[\w!#$%&'*+\-/=?^`{|}~]+)*")
_DOMAIN = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.)+[A-Za-z0-9][A-Za-z0-9-]{0,62}")


def validate(style: Style, table: Table, record: Record) -> Failure | None:
    """The failure of an invalid record: it lists every failed rule and is named after the first."""
    errors = tuple(
        _failure(style, field, rule, record.get(field.name))
        for field, rule in _rules(table.name)
        if not holds(style, rule, record.get(field.name))
    )
    if not errors:
        return None
    first = errors[0]
    return Failure(400, first.code, first.message, first.code, errors, all_columns=True)


def holds(style: Style, rule: Rule, value: Value | None) -> bool:
    """Whether a value passes a rule; null fails only NotNull and NotEmpty."""
    match rule:
        case Rule.NOT_NULL:
            return value is not None
        case Rule.NOT_EMPTY:
            return value is not None and (not isinstance(value, str) or value.strip() != "")
        case Rule.EMAIL:
            return value is None or is_mail_address(style, str(value))


def is_mail_address(style: Style, text: str) -> bool:
    """Whether the host accepts the text as an e-mail address."""
    local, at, domain = text.rpartition("@")
    if not style.dotted_mail_domain:
        return text.count("@") == 1 and bool(local) and bool(domain)
    return bool(at and _LOCAL_PART.fullmatch(local) and _DOMAIN.fullmatch(domain))


def display_name(name: str) -> str:
    """A field's name in words: `TenantsId` is `Tenants Id`, `EMail` is `E Mail`."""
    return _CAPITAL.sub(r" \1", name).strip()


@cache
def _rules(table: str) -> tuple[tuple[Field, Rule], ...]:
    return tuple((field, rule) for field in TABLES[table] for rule in field.validations)


def _failure(style: Style, field: Field, rule: Rule, value: Value | None) -> FieldFailure:
    display = display_name(field.name)
    field_error = {
        Rule.NOT_NULL: "must not be empty.",
        Rule.NOT_EMPTY: style.not_empty,
        Rule.EMAIL: "is not a valid email address.",
    }[rule]
    meta = [("PropertyName", display)]
    # The framework echoes the failed value; secrets are never repeated here.
    if value is not None and not field.secret:
        meta.append(("PropertyValue", str(value)))
    return FieldFailure(rule.value, field.name, f"'{display}' {field_error}", tuple(meta))
