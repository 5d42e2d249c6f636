"""Texts of whole records as commands show them: never with a password in them."""

from schemas.field import Table
from schemas.tables import EXTRACTS

HIDDEN = "(not shown: it can hold a secret)"
_NAMES = {
    field.name.lower() for table in EXTRACTS.values() for field in table.fields if field.secret
}


def shown_record(table: Table, text: str) -> str:
    """The text of a delivered record, unless the kind of record has secrets.

    Insert-batch data may hold a record of such a kind that could not be read as one.
    """
    hidden = table.unquotable or any(name in text.lower() for name in _NAMES)
    return HIDDEN if hidden else text
