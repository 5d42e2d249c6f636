"""Record kinds that the service document does not have: each a TOML file with its field table.

The files are read once, when the field tables are: everything that is derived from those is derived
from these as well. What is wrong with a file is kept for whoever reads the settings
(`connectors.settings`), because nobody could be told while a module is imported.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schemas.field import Field, Kind, Reference, Rule, Table
from schemas.ledger import LEDGER
from schemas.toml_text import key_lines, read_toml, suggestion

FOLDER = "RECON_RECORDS"
MOST_FIELDS = 500
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
FIELD_NAME = re.compile(r"[A-Z][A-Za-z0-9]{0,39}")
"""As in the service document: what begins in another way is a column of our own."""
KINDS = {
    kind.value: kind
    for kind in (
        *(Kind.INTEGER, Kind.INTEGER64, Kind.DOUBLE, Kind.STRING, Kind.BOOLEAN),
        *(Kind.DATETIME, Kind.DATETIME_OFFSET),
    )
}
MARKS = ("amount", "version", "business_date")
"""What a field may be for the totals and the days of its record."""
TABLE_KEYS = ("name", "title", "key", "currency", "fields", "references")
FIELD_KEYS = ("type", "required", "rules", *MARKS, "note")
REFERENCE_KEYS = ("field", "record", "column", "same_tenant")
TIMES = (Kind.DATETIME, Kind.DATETIME_OFFSET)
INTEGERS = (Kind.INTEGER, Kind.INTEGER64)
TAKEN = {*LEDGER, "alembic_version", "shown_row", "position", "lineage"}
"""Names of other tables."""


class OwnTableError(ValueError):
    """A file that defines no record kind: which, where, and what is allowed."""


@dataclass(frozen=True, slots=True)
class OwnTables:
    """The record kinds of a folder, or why there are none."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    fault: str | None = None


def own_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where record kinds are defined; a folder that is not there has none."""
    home = environment.get("RECON_HOME") or ".recon"
    return Path(environment.get(FOLDER) or Path(home, "records"))


def read_own_tables(folder: Path, documented: Mapping[str, Table]) -> OwnTables:
    """The record kinds of a folder, in the order of their names."""
    tables: dict[str, Table] = {}
    try:
        for path in sorted(folder.expanduser().glob("*.toml")):
            table = _read_file(path)
            if table.name in documented or _is_taken(table.name):
                raise OwnTableError(f"{path}: name = {table.name!r} is taken. Find another one.")
            if table.name in tables:
                raise OwnTableError(f"{path}: another file of {folder} defines {table.name} too.")
            tables[table.name] = table
        known = {**documented, **tables}
        for table in tables.values():
            _check_references(table, known)
    except (OwnTableError, OSError, RuntimeError) as error:
        return OwnTables(fault=str(error))
    return OwnTables(tables)


def definition_of(table: Table) -> str:
    """What defines a record kind, as JSON: the same whatever the file's spelling and comments."""
    shape = {
        "title": table.title,
        "key": table.key,
        "currency": table.currency,
        "fields": [
            {
                "name": of.name,
                "type": of.kind.value,
                "required": of.required,
                "rules": [rule.value for rule in of.rules],
                **{mark: True for mark in MARKS if getattr(of, mark)},
            }
            for of in table.fields
        ],
        "references": [
            {"field": one.field, "record": one.table, "column": one.column,
             "same_tenant": one.same_tenant}
            for one in table.references
        ],
    }  # fmt: skip
    return json.dumps(shape, sort_keys=True)


def _is_taken(name: str) -> bool:
    """Whether another table has the name, or it is a word of SQL."""
    # Most machines have no record kind of their own, and no command waits for this.
    from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS  # noqa: PLC0415

    return name in TAKEN or name in RESERVED_WORDS or name.startswith("staged_")


def _read_file(path: Path) -> Table:
    try:
        text = path.read_text(encoding="utf-8-sig")
        document = read_toml(text)
    except (OSError, ValueError) as error:
        raise OwnTableError(f"{path}: cannot be read: {error}.") from None
    try:
        return _table(document)
    except _KeyError as error:
        lines = {".".join(map(str, at)): line for at, line in key_lines(text).items()}
        key = error.key
        while key and key not in lines:
            key = key.rpartition(".")[0]
        where = f", line {lines[key]}" if key else ""
        raise OwnTableError(f"{path}{where}: {error}") from None


class _KeyError(ValueError):
    """What is wrong with a key."""

    def __init__(self, key: str, said: str) -> None:
        super().__init__(f"{key} {said}")
        self.key = key


def _table(document: Mapping[str, Any]) -> Table:
    _refuse_unknown("", document, TABLE_KEYS)
    fields = _of_type("fields", document.get("fields"), dict, "sections: [fields.Id]")
    if not 1 <= len(fields) <= MOST_FIELDS:
        raise _KeyError("fields", f"are {len(fields)} in number. Use 1 to {MOST_FIELDS}.")
    name = _named("name", document.get("name"), NAME, "small letters, digits and _")
    table = Table(
        name=name,
        title=_of_type("title", document.get("title", name), str, "a text in quotes"),
        fields=tuple(_field(key, told) for key, told in fields.items()),
    )
    columns = tuple(one.name for one in table.fields)
    folded = [column.casefold() for column in columns]
    if len(set(folded)) != len(folded):
        raise _KeyError("fields", "have a name twice (case does not count).")
    table = replace(table, key=_columns("key", document.get("key"), columns))
    if (currency := document.get("currency")) is not None:
        _one_of("currency", currency, columns)
        table = replace(table, currency=currency)
    references = _of_type(
        "references", document.get("references", []), list, "sections: [[references]]"
    )
    read = [_reference(f"references.{at}", one, columns) for at, one in enumerate(references)]
    table = replace(table, references=tuple(read))
    _check_together(table)
    return table


def _field(name: str, told: Any) -> Field:
    at = f"fields.{name}"
    told = _of_type(at, told, dict, f"a section: [{at}]")
    _refuse_unknown(at, told, FIELD_KEYS)
    _named(at, name, FIELD_NAME, "letters and digits, a capital letter first")
    kind = _of_type(f"{at}.type", told.get("type"), str, f"one of {', '.join(KINDS)}")
    _one_of(f"{at}.type", kind, tuple(KINDS))
    rules = _of_type(f"{at}.rules", told.get("rules", []), list, "a list of rules")
    for rule in rules:
        _one_of(f"{at}.rules", rule, tuple(Rule))
    flags = {
        name: _of_type(f"{at}.{name}", told.get(name, False), bool, "true or false")
        for name in ("required", *MARKS)
    }
    note = _of_type(f"{at}.note", told.get("note", ""), str, "a text in quotes")
    return Field(name, KINDS[kind], rules=tuple(map(Rule, rules)), note=note, **flags)


def _reference(at: str, told: Any, columns: tuple[str, ...]) -> Reference:
    told = _of_type(at, told, dict, "a section: [[references]]")
    _refuse_unknown(at, told, REFERENCE_KEYS)
    _one_of(f"{at}.field", told.get("field"), columns)
    return Reference(
        told["field"],
        _of_type(f"{at}.record", told.get("record"), str, "a record kind"),
        _of_type(f"{at}.column", told.get("column", "Id"), str, "a field of it"),
        _of_type(f"{at}.same_tenant", told.get("same_tenant", False), bool, "true or false"),
    )


def _check_together(table: Table) -> None:
    for mark, kinds, what in (
        ("amount", (Kind.DOUBLE,), "a double"),
        ("version", (*TIMES, *INTEGERS), "a datetime or an integer"),
        ("business_date", TIMES, "a datetime"),
    ):
        marked = [one for one in table.fields if getattr(one, mark)]
        for one in marked:
            if one.kind not in kinds:
                raise _KeyError(f"fields.{one.name}.{mark}", f"is for {what}.")
        if len(marked) > 1 and mark != "amount":
            raise _KeyError(f"fields.{marked[1].name}.{mark}", "is said of another field already.")
    if table.amounts and table.currency is None:
        raise _KeyError("currency", "is missing. Name the field that says what money is in.")
    if table.currency and table.by_name[table.currency].kind not in INTEGERS:
        raise _KeyError("currency", "has to be an integer, as currencies are everywhere.")
    for name in table.key:
        if not table.by_name[name].needs_value:
            raise _KeyError(f"fields.{name}", "is of the key. Make it required = true.")
    if table.tenant and table.by_name[table.tenant].kind is not Kind.INTEGER:
        raise _KeyError("fields.TenantsId", "says whose a record is: it has to be an integer.")


def _check_references(table: Table, known: Mapping[str, Table]) -> None:
    for at, one in enumerate(table.references):
        key = f"{table.name}.toml, references.{at}"
        if one.table not in known or not known[one.table].extract:
            raise OwnTableError(f"{key}: {suggestion(one.table, known, 'Record kinds')}")
        target = known[one.table]
        if one.column not in target.by_name:
            raise OwnTableError(f"{key}: {suggestion(one.column, target.columns, 'Its fields')}")
        kinds = {table.by_name[one.field].kind, target.by_name[one.column].kind}
        if not kinds <= {*INTEGERS}:
            raise OwnTableError(f"{key}: a reference is from an integer to an integer.")
        if one.same_tenant and not (table.tenant and target.tenant):
            raise OwnTableError(f"{key}: same_tenant is for records with TenantsId on both sides.")


def _refuse_unknown(at: str, told: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in told:
        if key not in allowed:
            raise _KeyError(f"{at}.{key}".lstrip("."), f"is not a key. {suggestion(key, allowed)}")


def _of_type(key: str, value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        said = "is missing" if value is None else f"= {value!r} is none"
        raise _KeyError(key, f"{said}. Write {what}.")
    return value


def _named(key: str, value: Any, pattern: re.Pattern[str], what: str) -> str:
    text: str = _of_type(key, value, str, "a name in quotes")
    if not pattern.fullmatch(text):
        raise _KeyError(key, f"= {text!r} is no name. Use up to 40 signs: {what}.")
    return text


def _one_of(key: str, value: Any, allowed: tuple[str, ...]) -> None:
    text = _of_type(key, value, str, f"one of {', '.join(allowed)}")
    if text not in allowed:
        raise _KeyError(key, f"= {text!r} is none. {suggestion(text, allowed)}")


def _columns(key: str, value: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    names = _of_type(key, value, list, 'a list of fields such as ["Id", "TenantsId"]')
    if not names or len({*map(str, names)}) != len(names):
        raise _KeyError(key, "are not one or more fields, each of them once.")
    for name in names:
        _one_of(key, name, columns)
    return tuple(names)
