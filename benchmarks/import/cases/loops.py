"""Load what compiles the loops: a price of a process, whatever the number of its rows."""

import connectors.postgres.bulk.binary_rows
import flows.steps.fast.records

__all__ = ["connectors", "flows"]
