"""Texts of whole records as commands show them: never with a password in them."""

from schemas.field import Table
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA

HIDDEN = "(not shown: it can hold a secret)"
_NAMES = {
    field.name.lower() for table in EXTRACTS.values() for field in table.fields if field.secret
}


def shown_record(table: Table, text: str) -> str:
    """The text of a delivered record, unless the kind of record has secrets.

    Insert-batch data may hold a record of such a kind that could not be read as one.
    """
    if table is INSERT_BATCH_DATA:
        hidden = any(name in text.lower() for name in _NAMES)
    else:
        hidden = any(field.secret for field in table.fields)
    return HIDDEN if hidden else text
