"""Start a job as a run of its deployment, on a worker with an account of its own."""

import httpx
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound, PrefectException

from connectors.errors import ReconError
from flows.stages.workspace import Workspace

DEPLOYMENT = "do-job/desk"


def start_flow(_workspace: Workspace, number: int) -> None:
    """Ask Prefect for the run; raises ReconError if it cannot be started now."""
    try:
        run_deployment(DEPLOYMENT, parameters={"job": number}, timeout=0, as_subflow=False)
    except (PrefectException, ObjectNotFound, httpx.HTTPError, ValueError) as error:
        raise ReconError(
            f"{DEPLOYMENT} could not be started: {type(error).__name__}. `recon deploy` registers "
            f"it; `recon job {number}` does the job without it."
        ) from error
