"""The first page: every scope with its last verdict, and who stands for it."""

from dataclasses import dataclass

from starlette.responses import Response

from connectors.postgres.reconciliations import Reconciliation, latest_runs
from connectors.postgres.signatures import Signature, signatures_of
from flows.desk.runs import only_seen
from flows.desk.visit import Visit
from schemas.accounts import approval
from schemas.life import Role


@dataclass(frozen=True, slots=True)
class _Scope:
    run: Reconciliation
    signatures: dict[Role, Signature]

    @property
    def approval(self) -> str | None:
        return approval({role: one.person for role, one in self.signatures.items()})


def show(visit: Visit) -> Response:
    """What there is to review."""
    with visit.place.database.connect() as connection:
        runs = only_seen(connection, latest_runs(connection))
        scopes = [_Scope(run, signatures_of(connection, run.id)) for run in runs]
    return visit.page("home.html.jinja", scopes=scopes)
