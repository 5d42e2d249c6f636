"""Record kinds that the service document does not have: each a TOML file with its field table.

The files are read once, when the field tables are: everything that is derived from those is derived
from these as well. What is wrong with a file is kept for whoever reads the settings
(`connectors.settings`), because nobody could be told while a module is imported.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schemas.field import Field, Kind, Reference, Rule, Table
from schemas.ledger import LEDGER
from schemas.own_columns import OWN_COLUMNS
from schemas.own_definition import MARKS
from schemas.toml_text import key_lines, read_toml, suggestion

FOLDER = "RECON_RECORDS"
MOST_FIELDS = 400
"""PostgreSQL keeps a row in a page of 8 KB, and of each field up to 18 bytes in it."""
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
TABLE_KEYS = ("name", "title", "key", "currency", "fields", "references")
FIELD_KEYS = ("type", "required", "rules", *MARKS, "note")
REFERENCE_KEYS = ("field", "record", "column", "same_tenant")
INSERT_BATCH_DATA = "insert_batch_data"
"""The one documented record without a table of its own: nothing can refer to a row of it."""
TIMES = (Kind.DATETIME, Kind.DATETIME_OFFSET)
INTEGERS = (Kind.INTEGER, Kind.INTEGER64)
TEMPORARY = {
    *("used", "met", "missing", "offered", "told_keys"),
    *("present", "repaired", "in_error", "named_repairs", "repair_claims", "sends_reopened"),
}
"""Names of tables of a moment: PostgreSQL would find these instead."""
TAKEN = {*LEDGER, *TEMPORARY, "alembic_version", "shown_row", "position", "lineage"}
"""Names of other tables."""


@dataclass(frozen=True, slots=True)
class OwnTables:
    """The record kinds of a folder, or why there are none."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    fault: str | None = None
    """A line for everything that is wrong with a file, in all files."""


def own_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where record kinds are defined; the default folder need not be there."""
    home = environment.get("RECON_HOME") or ".recon"
    return Path(environment.get(FOLDER) or Path(home, "records"))


def read_own_tables(
    folder: Path, documented: Mapping[str, Table], *, named: bool = False
) -> OwnTables:
    """The record kinds of a folder, in the order of their names; one that is `named` is there."""
    try:
        folder = folder.expanduser()
        if named and not folder.is_dir():
            return OwnTables(fault=f"{folder}: {FOLDER} names it, and it is no folder.")
        paths = sorted(folder.glob("*.toml"))
    except (OSError, RuntimeError) as error:
        return OwnTables(fault=f"{folder}: cannot be read: {error}.")
    files = [_File(path) for path in paths]
    read: dict[str, _File] = {}
    for file in files:
        with file.telling():
            table = file.read()
            if table.name in documented or _is_taken(table.name):
                raise _KeyError("name", f"= {table.name!r} is taken. Find another one.")
            if table.name in read:
                raise _KeyError(
                    "name", f"= {table.name!r}: {read[table.name].path} defines it too."
                )
            read[table.name] = file
    own = {name: file.table for name, file in read.items() if file.table}
    # Of a file with faults nobody knows what it defines, so nothing is said of who refers to it.
    for file in () if any(file.faults for file in files) else files:
        file.check_references({**documented, **own}, own)
    faults = [fault for file in files for fault in file.faults]
    tables = {name: own[name] for name in sorted(own)}
    return OwnTables(fault="\n".join(faults)) if faults else OwnTables(tables)


def _is_taken(name: str) -> bool:
    """Whether another table has the name, or it is a word of SQL."""
    # Most machines have no record kind of their own, and no command waits for this.
    from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS  # noqa: PLC0415

    return name in TAKEN or name in RESERVED_WORDS or name.startswith(("staged_", "pg_"))


class _KeyError(ValueError):
    """What is wrong with a key."""

    def __init__(self, key: str, said: str) -> None:
        super().__init__(f"{key} {said}")
        self.key = key


class _File:
    """A file under reading: its field table, and all that is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path, self.faults = path, list[str]()
        self.table: Table | None = None
        self._lines: dict[str, int] = {}

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Go on behind a key that cannot be meant, and say where it stands."""
        try:
            yield
        except _KeyError as error:
            key = error.key
            while key and key not in self._lines:
                key = key.rpartition(".")[0]
            where = f", line {self._lines[key]}" if key else ""
            self.faults.append(f"{self.path}{where}: {error}")

    def read(self) -> Table:
        """The table as far as it could be read; raises _KeyError where there is none."""
        try:
            text = self.path.read_text(encoding="utf-8-sig")
            document = read_toml(text)
        except (OSError, ValueError) as error:
            raise _KeyError("", f"cannot be read: {error}.") from None
        lines = key_lines(text)
        self._lines = {".".join(map(str, at)): line for at, line in lines.items()}
        self._refuse_unknown("", document, TABLE_KEYS)
        fields = _of_type("fields", document.get("fields"), dict, "sections: [fields.Id]")
        if not 1 <= len(fields) <= MOST_FIELDS:
            raise _KeyError("fields", f"are {len(fields)} in number. Use 1 to {MOST_FIELDS}.")
        name = _named("name", document.get("name"), NAME, "small letters, digits and _")
        table = Table(name=name, title=name, fields=tuple(self._fields(fields)))
        with self.telling():
            table = replace(table, title=_text("title", document.get("title", name)))
        columns = tuple(table.by_name)
        if len(columns) < len(fields):
            return table  # What is left would be told of fields that are missing for their faults.
        with self.telling():
            table = replace(table, key=_columns("key", document.get("key"), columns))
        with self.telling():
            if (currency := document.get("currency")) is not None:
                _one_of("currency", currency, columns)
                table = replace(table, currency=currency)
        with self.telling():
            table = replace(table, references=tuple(self._references(document, columns)))
        for check in (_check_marks, _check_money, _check_keys, _check_rules):
            with self.telling():
                check(table)
        self.table = table
        return table

    def _fields(self, told: Mapping[str, Any]) -> Iterator[Field]:
        folded: dict[str, str] = {}
        for name, section in told.items():
            at = f"fields.{name}"
            with self.telling():
                if (same := folded.setdefault(name.casefold(), name)) != name:
                    raise _KeyError(at, f"is {same} in other letters: case does not count.")
                if name.casefold() in map(str.casefold, OWN_COLUMNS):
                    raise _KeyError(at, "is the name of a column of rejects. Find another one.")
                keys = _of_type(at, section, dict, f"a section: [{at}]")
                self._refuse_unknown(at, keys, FIELD_KEYS)
                yield _field(name, keys)

    def _references(
        self, document: Mapping[str, Any], columns: tuple[str, ...]
    ) -> Iterator[Reference]:
        told = _of_type(
            "references", document.get("references", []), list, "sections: [[references]]"
        )
        for number, one in enumerate(told):
            at = f"references.{number}"
            with self.telling():
                keys = _of_type(at, one, dict, "a section: [[references]]")
                self._refuse_unknown(at, keys, REFERENCE_KEYS)
                yield _reference(at, keys, columns)

    def check_references(self, known: Mapping[str, Table], own: Mapping[str, Table]) -> None:
        """Tell what refers to nothing, and kinds of which none could be applied first."""
        if self.table is None:
            return
        for number, one in enumerate(self.table.references):
            with self.telling():
                _check_reference(f"references.{number}", self.table, one, known)
        with self.telling():
            if self.table.name in _reached_from(self.table, own):
                raise _KeyError(
                    "references",
                    f"lead from {self.table.name} back to it, so that no row could come first. "
                    "Leave one of them out.",
                )

    def _refuse_unknown(self, at: str, told: Iterable[str], allowed: tuple[str, ...]) -> None:
        for key in told:
            if key not in allowed:
                with self.telling():
                    raise _KeyError(
                        f"{at}.{key}".lstrip("."), f"is not a key. {suggestion(key, allowed)}"
                    )


def _reached_from(table: Table, own: Mapping[str, Table]) -> set[str]:
    """The kinds of one's own that a kind refers to, by way of others too."""
    reached, left = set[str](), [table]
    while left:
        for one in left.pop().references:
            if one.table in own and one.table not in reached:
                reached.add(one.table)
                left.append(own[one.table])
    return reached


def _field(name: str, told: Mapping[str, Any]) -> Field:
    at = f"fields.{name}"
    _named(at, name, FIELD_NAME, "letters and digits, a capital letter first")
    kind = _of_type(f"{at}.type", told.get("type"), str, f"one of {', '.join(KINDS)}")
    _one_of(f"{at}.type", kind, tuple(KINDS))
    rules = _of_type(f"{at}.rules", told.get("rules", []), list, "a list of rules")
    for rule in rules:
        _one_of(f"{at}.rules", rule, tuple(Rule))
    flags = {
        key: _of_type(f"{at}.{key}", told.get(key, False), bool, "true or false")
        for key in ("required", *MARKS)
    }
    note = _text(f"{at}.note", told["note"]) if "note" in told else ""
    return Field(name, KINDS[kind], rules=tuple(map(Rule, rules)), note=note, **flags)


def _reference(at: str, told: Mapping[str, Any], columns: tuple[str, ...]) -> Reference:
    _one_of(f"{at}.field", told.get("field"), columns)
    return Reference(
        told["field"],
        _of_type(f"{at}.record", told.get("record"), str, "a record kind"),
        _of_type(f"{at}.column", told.get("column", "Id"), str, "a field of it"),
        _of_type(f"{at}.same_tenant", told.get("same_tenant", False), bool, "true or false"),
    )


def _check_marks(table: Table) -> None:
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
    if table.version and not table.by_name[table.version].required:
        # Of a record without one nobody can say whether it is the older.
        at = f"fields.{table.version}.version"
        raise _KeyError(at, "is for a field that all records have. Make it required = true.")


def _check_money(table: Table) -> None:
    if table.amounts and table.currency is None:
        raise _KeyError("currency", "is missing. Name the field that says what money is in.")
    if table.currency and table.by_name[table.currency].kind is not Kind.INTEGER:
        raise _KeyError("currency", "has to be of type integer, as currencies are everywhere.")


def _check_keys(table: Table) -> None:
    for name in table.key:
        if not table.by_name[name].needs_value:
            raise _KeyError(f"fields.{name}", "is of the key. Make it required = true.")
    if table.tenant and table.by_name[table.tenant].kind is not Kind.INTEGER:
        raise _KeyError("fields.TenantsId", "says whose a record is: it has to be an integer.")


def _check_rules(table: Table) -> None:
    for one in table.fields:
        of_text = [rule.value for rule in one.rules if rule is not Rule.NOT_NULL]
        if of_text and one.kind is not Kind.STRING:
            raise _KeyError(f"fields.{one.name}.rules", f"has {of_text[0]}, which is for a string.")


def _check_reference(at: str, table: Table, one: Reference, known: Mapping[str, Table]) -> None:
    if one.table not in known or not known[one.table].extract or one.table == INSERT_BATCH_DATA:
        kinds = [name for name, of in known.items() if of.extract and name != INSERT_BATCH_DATA]
        raise _KeyError(f"{at}.record", f"= {one.table!r}: {suggestion(one.table, kinds)}")
    target = known[one.table]
    if one.column not in target.by_name:
        told = suggestion(one.column, target.columns, "Its fields")
        raise _KeyError(f"{at}.column", f"= {one.column!r}: {told}")
    kinds_of = {table.by_name[one.field].kind, target.by_name[one.column].kind}
    if not kinds_of <= {*INTEGERS}:
        raise _KeyError(at, "is not from an integer to an integer, as a reference has to be.")
    if one.same_tenant and not (table.tenant and target.tenant):
        raise _KeyError(f"{at}.same_tenant", "is for records with TenantsId on both sides.")
    tenants = [of.by_name[of.tenant] for of in (table, target) if of.tenant]
    if one.same_tenant and not all(of.required for of in tenants):
        raise _KeyError(f"{at}.same_tenant", "is for records that all have a TenantsId: required.")


def _of_type(key: str, value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        said = "is missing" if value is None else f"= {value!r} is none"
        raise _KeyError(key, f"{said}. Write {what}.")
    return value


def _text(key: str, value: Any) -> str:
    text: str = _of_type(key, value, str, "a text in quotes")
    if not text.strip() or not text.isprintable():
        raise _KeyError(key, f"= {text!r} is nothing to show. Write a text of one line.")
    return text.strip()


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
