"""The service document's own tables against the field tables and operations, in both directions."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from schemas.field import Field, Kind, Rule, Table
from schemas.operations import OPERATIONS, Operation
from schemas.tables import TABLES
from tests.examples import in_long
from tests.schemas.interface_document import (
    METHODS,
    NULLABLE_MAP,
    Documented,
    Endpoint,
    documented_endpoints,
    documented_records,
)

DOCUMENT = (Path(__file__).parents[1] / "service" / "interface.md").read_text(encoding="utf-8")


def drift(
    document: str = DOCUMENT,
    tables: Mapping[str, Table] = TABLES,
    operations: Iterable[Operation] = OPERATIONS,
) -> list[str]:
    """Every difference between the document and ours, in words; none when they agree."""
    theirs, their_endpoints = document_read(document)
    ours = OUR_RECORDS if tables is TABLES else our_records(tables)
    found = [f"record {title} is on one side only" for title in theirs.keys() ^ ours.keys()]
    found += [
        f"{title}: {set(theirs[title]) ^ set(ours[title]) or 'other order'}"
        for title in theirs.keys() & ours.keys()
        if theirs[title] != ours[title]
    ]
    our_endpoints = [our_endpoint(operation, tables) for operation in operations]
    if their_endpoints != our_endpoints:
        found.append(f"operations: {set(their_endpoints) ^ set(our_endpoints) or 'other order'}")
    return found


@lru_cache(maxsize=1)
def document_read(document: str) -> tuple[dict[str, list[Documented]], list[Endpoint]]:
    """What the document says; a change of ours is held against the one that was read last."""
    records = documented_records(document)
    return records, documented_endpoints(document, records)


def our_records(tables: Mapping[str, Table]) -> dict[str, list[Documented]]:
    return {table.title: [ours(field, tables) for field in table] for table in tables.values()}


def ours(field: Field, tables: Mapping[str, Table]) -> Documented:
    of = tables[field.of].title if field.of and field.of in tables else str(field.of)
    kind = {
        Kind.LIST: f"list<{of}>",
        Kind.RECORD: of,
        Kind.MAP: NULLABLE_MAP if field.nullable_values else Kind.MAP.value,
    }.get(field.kind, field.kind.value)
    # As they are written, and not each once as `validations` has them.
    rules = (*([Rule.NOT_NULL] if field.required else []), *field.rules)
    return Documented(field.name, kind, rules, field.output_only)


OUR_RECORDS = our_records(TABLES)


def our_endpoint(operation: Operation, tables: Mapping[str, Table]) -> Endpoint:
    return Endpoint(
        (operation.method, *operation.also),
        operation.path,
        tables[operation.request].title,
        tables[operation.request].columns,
        tables[operation.response].title,
        operation.response_name,
        operation.returns_list,
        operation.roles,
    )


def test_the_document_and_the_field_tables_agree() -> None:
    assert drift() == []
    assert drift("\n".join(DOCUMENT.splitlines())) == []


def test_a_note_of_ours_is_the_documents() -> None:
    for table in TABLES.values():
        for field in table:
            assert not field.note or re.search(rf"\| {field.name} \|.*{field.note}", DOCUMENT)


def noticed(
    document: str = DOCUMENT,
    tables: Mapping[str, Table] = TABLES,
    operations: Iterable[Operation] = OPERATIONS,
) -> bool:
    """Whether the comparison fails: with differences, or because it cannot read the document."""
    assert document != DOCUMENT or tables is not TABLES or operations is not OPERATIONS
    try:
        return bool(drift(document, tables, operations))
    except (AssertionError, LookupError, ValueError, StopIteration):
        return True


NAMES = sorted({field.name for table in TABLES.values() for field in table}, key=len, reverse=True)
NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")
MENTION = re.compile(rf"{NAME.pattern}(?: \([^)]*\))?(?:, )?")
TYPE = re.compile(
    r"(?<=[(| ])(?:64-bit integer|map<|list<|(?:integer|string|double|boolean|datetime)\b)"
)
WORD_OF_OPERATION = re.compile(rf"\b(?:{'|'.join(METHODS)}|Client|Admin|Partner)\b|(?<= )/")
DEFINITION = re.compile(
    r"\| (?!Field \||Operation \|)|### |Field error: |[A-Z]\w+ \((?:integer|string)\)"
)


def defining_lines() -> Iterator[int]:
    """Numbers of the lines that say what records and operations are."""
    current = ""
    for number, line in enumerate(DOCUMENT.splitlines()):
        current = line if line.startswith("## ") else current
        relevant = current in {"## Resources and their fields", "## Endpoints", "## Authentication"}
        if relevant and DEFINITION.match(line):
            yield number


def replaced(pattern: re.Pattern[str], line: str, by: str) -> Iterator[str]:
    """The line with one match after the other replaced; `{}` stands for the match."""
    for match in pattern.finditer(line):
        yield line[: match.start()] + by.replace("{}", match[0]) + line[match.end() :]


def changes(line: str) -> Iterator[str]:
    """Every small change of what a line defines; an empty text removes the line."""
    if line.startswith("###"):
        yield re.sub(r"^### (\w+)", r"### \1X", line)
        return
    yield ""
    if line.count("|") > 3:
        yield f"{line}\n{line}"
    yield from replaced(NAME, line, "{}X")
    yield from replaced(NAME, line, "Surplus (string), {}")
    yield from replaced(MENTION, line, "")
    yield from replaced(re.compile(r"\| yes \|"), line, "| no |")
    yield from replaced(re.compile(r"\| no \|"), line, "| yes |")
    yield from replaced(re.compile(r"\| Required\b"), line, "| Optional")
    yield from replaced(WORD_OF_OPERATION, line, "{}X")
    yield from replaced(TYPE, line, "guid {}")


@pytest.mark.parametrize(
    "number",
    [in_long(line) if number % 3 else line for number, line in enumerate(defining_lines())],
)
def test_any_change_of_the_document_is_noticed(number: int) -> None:
    lines = DOCUMENT.splitlines()
    for changed in changes(lines[number]):
        text = "\n".join([*lines[:number], *changed.splitlines(), *lines[number + 1 :]])
        assert noticed(text), f"{lines[number]}\n{changed}"


@pytest.mark.long
def test_rows_in_another_order_are_noticed() -> None:
    lines = DOCUMENT.splitlines()
    numbers = set(defining_lines())
    for number in sorted(numbers):
        # The roles are looked up by operation, in whatever order they are listed.
        if number + 1 in numbers and lines[number].count("|") > 3:
            swapped = [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]
            assert noticed("\n".join(swapped)), lines[number]


def fields_changed(table: Table) -> Iterator[tuple[Field, ...]]:
    """Every small change of a table's fields."""
    fields = table.fields
    for at, field in enumerate(fields):
        new = [
            [],
            [replace(field, name=field.name + "X")],
            [field, Field("Surplus", Kind.STRING)],
            [replace(field, kind=Kind.DOUBLE if field.kind is not Kind.DOUBLE else Kind.STRING)],
            [replace(field, required=not field.required)],
            [replace(field, rules=(*field.rules, Rule.EMAIL))],
            [replace(field, output_only=not field.output_only)],
        ]
        if field.kind is Kind.MAP:
            new.append([replace(field, nullable_values=not field.nullable_values)])
        if field.of:
            new.append([replace(field, of="avatar")])
        yield from ((*fields[:at], *each, *fields[at + 1 :]) for each in new)
    yield tuple(reversed(fields))


@pytest.mark.parametrize("name", TABLES)
def test_any_change_of_a_field_table_is_noticed(name: str) -> None:
    def with_fields(fields: tuple[Field, ...]) -> dict[str, Table]:
        # Without keys and references, which would have to be changed along.
        return {**TABLES, name: Table(name, TABLES[name].title, fields)}

    agreed = drift()
    assert drift(tables=with_fields(TABLES[name].fields)) == agreed
    for fields in fields_changed(TABLES[name]):
        assert noticed(tables=with_fields(fields)), fields
    assert noticed(tables={key: table for key, table in TABLES.items() if key != name})


@pytest.mark.parametrize("at", range(len(OPERATIONS)))
def test_any_change_of_an_operation_is_noticed(at: int) -> None:
    operation = OPERATIONS[at]
    for new in (
        [],
        [operation, operation],
        [replace(operation, method="PATCH")],
        [replace(operation, path=operation.path + "/x")],
        [replace(operation, request="user_account")],
        [replace(operation, response="payment_gateway" if at != 2 else "avatar")],
        [replace(operation, roles=("Admin",))],
        [replace(operation, also=("PATCH",))],
        [replace(operation, returns_list=not operation.returns_list)],
        [replace(operation, response_name="Other")],
    ):
        assert noticed(operations=(*OPERATIONS[:at], *new, *OPERATIONS[at + 1 :])), new
    assert noticed(operations=OPERATIONS[::-1])
