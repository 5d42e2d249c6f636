"""A run: whether it can be signed, its money, and what it was made from."""

from starlette.responses import Response

from connectors.postgres.signatures import signatures_of
from flows.desk.runs import run_of
from flows.desk.visit import Visit


def show(visit: Visit) -> Response:
    """The first page of a run."""
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
        signatures = signatures_of(connection, run.id)
    return visit.page("run.html.jinja", run=run, signatures=signatures)
