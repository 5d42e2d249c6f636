"""The field reference page, written from the field tables, operations and reasons.

python -m schemas.derived.reference            prints the page
python -m schemas.derived.reference payment    prints the header line of a payment extract
python -m schemas.derived.reference --templates FOLDER    writes every header line, a file each
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from schemas.breaks import BREAKS, STATUSES
from schemas.derived.json_text import csv_template
from schemas.field import Field, Kind, Table
from schemas.operations import OPERATIONS
from schemas.reasons import REASONS, REFUSALS, Reason
from schemas.tables import EXTRACTS, TABLES

INTRODUCTION = """\
# Field reference

Every record, operation, reason, status and break code the product knows. This page is written by
`python -m schemas.derived.reference` from `schemas/tables.py`, `schemas/endpoints.py`,
`schemas/reasons.py` and `schemas/breaks.py`; change those, never this page.
"""
REJECTS = "Why a row is rejected: the `ErrorCode` of its `ErrorData`. The rest of the file goes on."
REFUSED = "Why a file is refused as a whole: none of its rows is taken."
EACH = "What a reconciliation makes of a record: exactly one of these."
CODES = (
    "What a difference is called, by which rules and commands ask for it. What becomes of a break, "
    "and what its amount is, is in [governance](governance.md)."
)


def page() -> str:
    """The whole page as Markdown, with one line feed at its end."""
    parts = [
        INTRODUCTION,
        "## Records\n",
        *(record_section(table) for table in TABLES.values()),
        "## Operations\n",
        operations_table(),
        f"## Reject reasons\n\n{REJECTS}\n",
        reasons_table(REASONS),
        f"## File refusals\n\n{REFUSED}\n",
        reasons_table(REFUSALS),
        f"## Statuses\n\n{EACH}\n",
        _markdown_table(
            ("Status", "Meaning"), ((f"`{one}`", meaning) for one, meaning in STATUSES.items())
        ),
        f"## Break codes\n\n{CODES}\n",
        _markdown_table(
            ("Code", "Class", "Meaning", "What to do"),
            ((f"`{one.code}`", one.group.value, one.title, one.action) for one in BREAKS.values()),
        ),
    ]
    return "\n".join(parts)


def record_section(table: Table) -> str:
    """The section of a record: its title, its identity, and its fields."""
    rows = (
        (field.name, f"`{type_text(field)}`", ", ".join(field.validations), _notes(table, field))
        for field in table.fields
    )
    fields = _markdown_table(("Field", "Type", "Validations", "Notes"), rows)
    return f"### {table.title}\n\n{_identity(table)}\n\n{fields}"


def operations_table() -> str:
    rows = (
        (
            operation.name,
            " or ".join((operation.method, *operation.also)),
            f"`{operation.path}`",
            f"`{operation.request}`",
            f"{'list of ' if operation.returns_list else ''}`{operation.response}`",
            " or ".join(operation.roles) or "not shown",
        )
        for operation in OPERATIONS
    )
    return _markdown_table(("Operation", "Method", "Path", "Request", "Response", "Roles"), rows)


def reasons_table(reasons: Mapping[str, Reason]) -> str:
    """Reasons by code, with the sentence that readers see and what to do next."""
    rows = (
        (f"`{reason.code}`", reason.title, reason.template, reason.remedy)
        for reason in reasons.values()
    )
    return _markdown_table(("Code", "Meaning", "Message", "What to do"), rows)


def type_text(field: Field) -> str:
    """The type of a field as the service document writes it."""
    of = TABLES[field.of].title if field.of in TABLES else field.of
    match field.kind:
        case Kind.LIST:
            return f"list<{of}>"
        case Kind.RECORD:
            return str(of)
        case Kind.MAP if field.nullable_values:
            return f"{field.kind.value}, values may be null"
        case kind:
            return kind.value


def _identity(table: Table) -> str:
    if table.key:
        key = "the business key is " + ", ".join(table.key)
    else:
        key = "no business key; the whole content is the identity"
    if not table.extract:
        return f"`{table.name}`: part of other records, not an extract."
    if table.endpoint:
        sent = table.endpoint
        key += f"; it is sent by {sent.name}: `{sent.method} {sent.path}`"
    return f"`{table.name}`: {key}."


def _notes(table: Table, field: Field) -> str:
    found = [
        (field.note, field.note),
        (field.name in table.key, "key"),
        (field.amount, f"amount in {table.currency}"),
        (field.version, "tells the newer of two versions"),
        (field.business_date, "the day it counts for"),
        (field.secret, "secret: never shown"),
        (field.output_only, "set by the service, not delivered"),
    ]
    return "; ".join([*(note for applies, note in found if applies), *_references(table, field)])


def _references(table: Table, field: Field) -> Iterator[str]:
    for reference in table.references:
        if reference.field == field.name:
            tenant = " of the same tenant" if reference.same_tenant else ""
            yield f"refers to `{reference.table}`.{reference.column}{tenant}"


def _markdown_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: list[str]) -> None:
    """Print the page or the header lines of named extracts, or write those of all extracts."""
    if arguments[:1] == ["--templates"] and len(arguments) == 2:
        for name, table in EXTRACTS.items():
            (Path(arguments[1]) / f"{name}.csv").write_text(
                csv_template(table), "utf-8", newline=""
            )
        return
    for name in arguments:
        if name not in EXTRACTS:
            sys.exit(f"{name} is no extract; choose from {', '.join(EXTRACTS)}")
    sys.stdout.write("".join(csv_template(EXTRACTS[name]) for name in arguments) or page())


if __name__ == "__main__":
    main(sys.argv[1:])
