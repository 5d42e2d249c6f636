"""The order of record kinds: what is referred to comes before what refers to it."""

from schemas.field import Table
from schemas.tables import EXTRACTS


def by_dependency() -> list[Table]:
    """Every deliverable record, references first, otherwise in the document's order."""
    ordered: dict[str, Table] = {}

    def add(table: Table) -> None:
        for reference in table.references:
            if reference.table not in ordered:
                add(EXTRACTS[reference.table])
        ordered.setdefault(table.name, table)

    for table in EXTRACTS.values():
        add(table)
    return list(ordered.values())
