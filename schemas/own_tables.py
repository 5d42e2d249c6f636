"""Record kinds that the service document does not have: a TOML file with a field table for each.

The files are read once, together with the field tables, and everything is derived from both alike.
Faults of a file are kept until the settings are read (`connectors.settings`), because nobody can be
told while a module is being imported.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from schemas.endpoints import Endpoint
from schemas.field import NUMBERS, TENANT, TIMES, Field, Kind, Reference, Rule, Table
from schemas.own_checks import (
    REFERENCES,
    KeyFault,
    Others,
    named_like_secrets,
    reference_faults,
    table_faults,
)
from schemas.own_columns import OWN_COLUMNS
from schemas.own_definition import MARKS
from schemas.own_endpoint import (
    ENDPOINT_KEYS,
    METHODS,
    SECTION,
    TakenOperations,
    endpoint_faults,
    path_faults,
)
from schemas.own_names import TakenNames
from schemas.toml_text import key_lines, read_toml, suggestion, written_text

FOLDER = "RECON_RECORDS"
MOST_KEY = 32
"""PostgreSQL allows no more columns in a key."""
MOST_FIELDS = 400
"""PostgreSQL keeps a row in a page of 8 KB, with up to 18 bytes of each field."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
FIELD_NAME = re.compile(r"[A-Z][A-Za-z0-9]{0,39}")
"""As in the service document; names that begin otherwise are columns of our own."""
OF_NAME = "a to z, digits and _, a letter first"
OF_FIELD = "A to Z in either case and digits, a capital letter first"
KINDS = {kind.value: kind for kind in (*NUMBERS, Kind.STRING, Kind.BOOLEAN, *TIMES)}
TABLE_KEYS = ("name", "title", "key", "currency", "fields", "references", SECTION)
FIELD_KEYS = ("type", "required", "rules", *MARKS, "note")
REFERENCE_KEYS = ("field", "record", "column", "same_tenant")
REFERENCE_VALUES = (
    ("record", None, str, "a record kind"),
    ("column", "Id", str, "a field of it"),
    ("same_tenant", False, bool, "true or false"),
)
"""Keys of a reference: name, default, type, and the words for what to write."""


@dataclass(frozen=True, slots=True)
class OwnTables:
    """The record kinds of a folder, or why there are none."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    fault: str | None = None
    """One line for each fault, over all files."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """The file that defines each kind."""

    def about(self, name: str) -> str:
        """A record kind with its file, for the beginning of a message about it."""
        return f"{self.files[name]}: the record kind {name}"


def own_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that defines record kinds; the default folder need not exist."""
    home = environment.get("RECON_HOME") or ".recon"
    return Path(environment.get(FOLDER) or Path(home, "records"))


def read_own_tables(
    folder: Path, documented: Mapping[str, Table], *, named: bool = False
) -> OwnTables:
    """Read the record kinds of a folder, sorted by name; a `named` folder has to exist."""
    try:
        folder = folder.expanduser()
        if named and not folder.is_dir():
            return OwnTables(fault=f"{folder}: {FOLDER} names it, and it is no folder.")
        # Editors keep unsaved changes beside a file, under a name that begins with a dot.
        there = (one for one in folder.glob("*") if not one.name.startswith("."))
        paths = sorted(one for one in there if one.suffix.lower() == ".toml")
    except (OSError, RuntimeError) as error:
        return OwnTables(fault=f"{folder}: cannot be read: {error}.")
    files = [_File(path) for path in paths]
    read: dict[str, _File] = {}
    names = TakenNames(documented)
    for file in files:
        with file.telling():
            file.read()
        with file.telling():
            if file.name in read:
                raise KeyFault("name", f"= {file.name!r}: {read[file.name].path} defines it too.")
            names.refuse(file.name)
            if file.table and file.name:
                read[file.name] = file
                names.add(file.name)
    titles = {table.title.casefold(): name for name, table in documented.items()}
    taken = TakenOperations()
    own = {name: file.table for name, file in read.items() if file.table}
    for name, table in own.items():
        read[name].check_title(table.title, titles)
        # The sends of two kinds could not be told apart by the name of their operation.
        read[name].tell(*taken.faults(table.endpoint) if table.endpoint else ())
    secrets = {
        secret.casefold(): name
        for name, table in (*own.items(), *documented.items())
        for secret in table.secrets
    }
    public = {
        field.name.casefold(): name
        for name, table in documented.items()
        for field in table.fields
        if not field.secret
    }
    unsure = {name: file.unsure for name, file in read.items()}
    for name, table in own.items():
        # Such fields would be hidden in some places and shown in others.
        read[name].tell(*named_like_secrets(table, unsure[name], secrets, public))
    # A file without a name or fields defines something unknown, perhaps what seems missing.
    unknown = [file for file in files if not (file.table and file.name)]
    for file in files:
        others = Others({**documented, **own}, unsure, complete={*unknown} <= {file})
        file.check_references(others, own)
    faults = [fault for file in files for fault in file.faults]
    if faults:
        return OwnTables(fault="\n".join(faults))
    return OwnTables(
        {name: own[name] for name in sorted(own)},
        files={name: of.path for name, of in read.items()},
    )


class _File:
    """A file being read: its field table, and all its faults."""

    def __init__(self, path: Path) -> None:
        self.path, self.faults = path, list[str]()
        self.name = ""
        """The name of the record kind; empty if the file gives no valid one."""
        self.table: Table | None = None
        """The table with every named field, including faulty ones."""
        self.unsure = set[str]()
        """The fields whose meaning is unknown because their definition is faulty."""
        self._references = list[dict[str, Any]]()
        """What could be read of each reference."""
        self._text = ""

    @cached_property
    def _lines(self) -> dict[str, int]:
        """The line of each key, worked out only when there is a fault."""
        lines: dict[str, int] = {}
        for at, line in key_lines(self._text).items():
            key = within = ".".join(map(str, at))
            lines[key] = line
            # A section around others may have no line of its own.
            while within := within.rpartition(".")[0]:
                lines.setdefault(within, line)
        return lines

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Note a fault with its line, and continue after it."""
        try:
            yield
        except KeyFault as fault:
            self.tell(fault)

    def tell(self, *faults: KeyFault) -> None:
        """Note faults, each with the line of its key."""
        for fault in faults:
            key = fault.key
            while key and key not in self._lines:
                key = key.rpartition(".")[0]
            where = f", line {self._lines[key]}" if key else ""
            self.faults.append(f"{self.path}{where}: {fault}")

    def read(self) -> None:
        """Read as much of the table as possible; raises KeyFault if there is none."""
        try:
            # Reading a pipe would wait until somebody writes to it.
            is_file = stat.S_ISREG(self.path.stat().st_mode)
            text = written_text(self.path) if is_file else ""
            document = read_toml(text)
        except UnicodeDecodeError as error:
            message = f"cannot be read: it is not UTF-8 text: byte {error.start}. Save it in UTF-8."
            raise KeyFault("", message) from None
        except OSError as error:
            raise KeyFault("", f"cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise KeyFault("", f"cannot be read: {error}.") from None
        if not is_file:
            raise KeyFault("", "is no file. Take it away, or give it another ending.")
        self._text = text
        self._refuse_unknown("", document, TABLE_KEYS)
        with self.telling():
            self.name = _named("name", document.get("name"), NAME, OF_NAME)
        title = self.name
        with self.telling():
            title = _text("title", document["title"]) if "title" in document else title
        fields = _of_type("fields", document.get("fields"), dict, "sections: [fields.Id]")
        if not 1 <= len(fields) <= MOST_FIELDS:
            raise KeyFault("fields", f"are {len(fields)} in number. Use 1 to {MOST_FIELDS}.")
        columns, currency = tuple(fields), document.get("currency")
        table = Table(name=self.name, title=title, fields=tuple(self._fields(fields)))
        before = len(self.faults)
        with self.telling():
            table = replace(table, key=self._key(document.get("key"), columns))
        sure_key = len(self.faults) == before
        with self.telling():
            if currency is not None:
                _one_of("currency", currency, columns)
                table = replace(table, currency=currency)
        with self.telling():
            table = replace(table, references=tuple(self._read_references(document, columns)))
        self.tell(*table_faults(table, self.unsure, has_currency=currency is not None))
        with self.telling():
            if SECTION in document:
                unsure = self.unsure if sure_key else {*columns}
                table = replace(table, endpoint=self._endpoint(table, document[SECTION], unsure))
        self.table = table

    def _endpoint(self, table: Table, value: Any, unsure: Collection[str]) -> Endpoint | None:
        """The operation that takes the record; None where a part of it is faulty.

        `unsure` are fields whose type, or whether they belong to the key, is unknown.
        """
        section = _of_type(SECTION, value, dict, f"a section: [{SECTION}]")
        before, name, method, path = len(self.faults), "", METHODS[0], ""
        self._refuse_unknown(SECTION, section, ENDPOINT_KEYS)
        with self.telling():
            name = _named(f"{SECTION}.name", section.get("name"), FIELD_NAME, OF_FIELD)
        with self.telling():
            method = section.get("method")
            _one_of(f"{SECTION}.method", method, METHODS)
        with self.telling():
            path = _of_type(f"{SECTION}.path", section.get("path"), str, "a path in quotes")
            self.tell(*path_faults(path))
        if len(self.faults) > before:
            return None
        endpoint = Endpoint(name, method, path, request=self.name, response=self.name)
        self.tell(*endpoint_faults(table, endpoint, unsure))
        return endpoint

    def _fields(self, sections: Mapping[str, Any]) -> Iterator[Field]:
        folded: dict[str, str] = {}
        for name, section in sections.items():
            at, before = f"fields.{name}", len(self.faults)
            with self.telling():
                if (same := folded.setdefault(name.casefold(), name)) != name:
                    raise KeyFault(at, f"is {same} in other letters: case does not count.")
                if name.casefold() == TENANT.casefold() and name != TENANT:
                    raise KeyFault(at, f"is {TENANT} in other letters. Write it {TENANT}.")
                if name.casefold() in map(str.casefold, OWN_COLUMNS):
                    raise KeyFault(at, "is the name of a column of rejects. Find another one.")
                _named(at, name, FIELD_NAME, OF_FIELD)
            field = Field(name, Kind.STRING)
            with self.telling():
                keys = _of_type(at, section, dict, f"a section: [{at}]")
                self._refuse_unknown(at, keys, FIELD_KEYS)
                field = self._field(name, keys)
            self.unsure |= {name} if len(self.faults) > before else set()
            yield field

    def _field(self, name: str, section: Mapping[str, Any]) -> Field:
        """As much of a field as could be read."""
        at, kind, note = f"fields.{name}", Kind.STRING, ""
        flags: dict[str, Any] = {}
        rules: list[Rule] = []
        with self.telling():
            word = _of_type(f"{at}.type", section.get("type"), str, f"one of {', '.join(KINDS)}")
            _one_of(f"{at}.type", word, tuple(KINDS))
            kind = KINDS[word]
        with self.telling():
            for rule in _of_type(f"{at}.rules", section.get("rules", []), list, "a list of rules"):
                with self.telling():
                    _one_of(f"{at}.rules", rule, tuple(Rule))
                    rules.append(Rule(rule))
        for key in ("required", *MARKS):
            with self.telling():
                flags[key] = _of_type(f"{at}.{key}", section.get(key, False), bool, "true or false")
        with self.telling():
            note = _text(f"{at}.note", section["note"]) if "note" in section else ""
        return Field(name, kind, rules=tuple(rules), note=note, **flags)

    def _key(self, value: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
        names = _of_type("key", value, list, 'a list of fields such as ["Id", "TenantsId"]')
        if not names:
            raise KeyFault("key", "has no field. Name those that tell two records apart.")
        if twice := [name for name in names if names.count(name) > 1]:
            raise KeyFault("key", f"has {twice[0]} more than once. Name it once.")
        if len(names) > MOST_KEY:
            raise KeyFault("key", f"has {len(names)} fields. Use up to {MOST_KEY}.")
        for name in names:
            with self.telling():
                _one_of("key", name, columns)
        return tuple(name for name in names if name in columns)

    def _read_references(
        self, document: Mapping[str, Any], columns: tuple[str, ...]
    ) -> Iterator[Reference]:
        """The references whose source and target are both known."""
        references = _of_type(
            "references", document.get("references", []), list, "sections: [[references]]"
        )
        for number, one in enumerate(references):
            at, read = f"{REFERENCES}{number}", dict[str, Any]()
            self._references.append(read)
            with self.telling():
                keys = _of_type(at, one, dict, "a section: [[references]]")
                self._refuse_unknown(at, keys, REFERENCE_KEYS)
                with self.telling():
                    _one_of(f"{at}.field", keys.get("field"), columns)
                    read["field"] = keys["field"]
                for key, usual, kind, what in REFERENCE_VALUES:
                    with self.telling():
                        read[key] = _of_type(f"{at}.{key}", keys.get(key, usual), kind, what)
            if read.keys() >= {*REFERENCE_KEYS}:
                yield Reference(
                    read["field"], read["record"], read["column"], same_tenant=read["same_tenant"]
                )

    def check_title(self, title: str, titles: dict[str, str]) -> None:
        """Refuse a title that another kind has: reports would show two kinds under one name.

        `titles` maps taken titles in lower case to their kinds; this title is added.
        """
        if (of := titles.setdefault(title.casefold(), self.name)) != self.name:
            at = "title" if "title" in self._lines else "name"
            self.tell(KeyFault(at, f"= {title!r} is the title of {of}. Find another one."))

    def check_references(self, others: Others, own: Mapping[str, Table]) -> None:
        """Report references to nothing, and cycles of kinds where none could be applied first."""
        if self.table is None:
            return
        for number, one in enumerate(self._references):
            at = f"{REFERENCES}{number}"
            named = one.get("field")
            before = [other.get("field") for other in self._references[:number]]
            if named is not None and named in before:
                self.tell(KeyFault(f"{at}.field", f"= {named!r} refers already. Use it once."))
            self.tell(*reference_faults(at, self.table, self.unsure, one, others))
        if own.get(self.name) is self.table and self.name in _reached_from(self.table, own):
            message = (
                f"lead from {self.name} back to it, so that no row could come first. "
                "Leave one of them out."
            )
            self.tell(KeyFault("references", message))

    def _refuse_unknown(self, at: str, keys: Iterable[str], allowed: tuple[str, ...]) -> None:
        for key in keys:
            if key not in allowed:
                message = f"is not a key. {suggestion(key, allowed)}"
                self.tell(KeyFault(f"{at}.{key}".lstrip("."), message))


def _reached_from(table: Table, own: Mapping[str, Table]) -> set[str]:
    """The kinds of one's own that a kind refers to, directly or through others."""
    reached, left = set[str](), [table]
    while left:
        for one in left.pop().references:
            if one.table in own and one.table not in reached:
                reached.add(one.table)
                left.append(own[one.table])
    return reached


def _of_type(key: str, value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        problem = "is missing" if value is None else f"= {value!r} is none"
        raise KeyFault(key, f"{problem}. Write {what}.")
    return value


def _text(key: str, value: Any) -> str:
    text: str = _of_type(key, value, str, "a text in quotes")
    if not text.strip() or not text.isprintable():
        raise KeyFault(key, f"= {text!r} is nothing to show. Write a text of one line.")
    return text.strip()


def _named(key: str, value: Any, pattern: re.Pattern[str], what: str) -> str:
    text: str = _of_type(key, value, str, "a name in quotes")
    if not pattern.fullmatch(text):
        raise KeyFault(key, f"= {text!r} is no name. Use up to 40 signs: {what}.")
    return text


def _one_of(key: str, value: Any, allowed: tuple[str, ...]) -> None:
    text = _of_type(key, value, str, f"one of {', '.join(allowed)}")
    if text not in allowed:
        raise KeyFault(key, f"= {text!r} is none. {suggestion(text, allowed)}")
