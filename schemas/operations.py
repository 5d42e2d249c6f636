"""All operations: those of the service document, and those for records of one's own."""

from dataclasses import astuple, dataclass

from schemas.endpoints import ENDPOINTS, Endpoint
from schemas.field import Table
from schemas.tables import OWN, TABLES


@dataclass(frozen=True, slots=True)
class Operation(Endpoint):
    """One operation of the service on one record."""

    @property
    def table(self) -> Table:
        return TABLES[self.request]


OPERATIONS: tuple[Operation, ...] = tuple(
    Operation(*astuple(one))
    for one in (*ENDPOINTS, *(of.endpoint for of in OWN.tables.values() if of.endpoint))
)
"""In the document's order, followed by those of one's own."""

PUSHES: dict[str, Operation] = {
    operation.request: operation for operation in OPERATIONS if not operation.returns_list
}
"""The operation that takes a record, by the record's name; a record without one is never sent."""

BY_NAME: dict[str, Operation] = {operation.name: operation for operation in PUSHES.values()}
"""The same by operation name. A database may keep sends by a name that no longer exists."""
