"""Getting to know recon: `recon demo` and `recon fields`."""

from typing import Annotated

from cyclopts import Parameter

from connectors.errors import DeliveryError
from connectors.settings import check_own_kinds
from flows.commands.console import out
from flows.commands.deliver import refuse_unknown
from schemas.tables import EXTRACTS


def demo_command() -> int:
    """Import the sample deliveries into an embedded PostgreSQL through the Prefect flow.

    It imports a faulty delivery, its correction, the clean delivery (which changes nothing) and the
    faulty one again, then reconciles all sides. The reports are kept. Example: `recon demo`
    """
    from flows.ops.demo import run_demo

    return run_demo(lambda line: out().print(line))


def fields_command(
    record: Annotated[
        str | None, Parameter(help="Record kind, such as payment; default: all.")
    ] = None,
    *,
    template: Annotated[
        bool, Parameter(help="Print only the CSV header of the record kind.")
    ] = False,
) -> int:
    """Show the field tables of the service: names, types, rules, reject reasons.

    Example: `recon fields payment --template`
    """
    from schemas.derived.json_text import csv_template
    from schemas.derived.reference import page, record_section

    check_own_kinds()
    refuse_unknown(record)
    if template:
        if record is None:
            raise DeliveryError(
                "A template is the header of one record kind. Name it: "
                f"{', '.join(sorted(EXTRACTS))}."
            )
        out().print(csv_template(EXTRACTS[record]), end="")
        return 0
    out().print(record_section(EXTRACTS[record]) if record else page())
    return 0
