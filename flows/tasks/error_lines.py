"""One-line messages for what ends a run without being a bug: what, where, and what to do next.

Prefect writes the whole traceback of the exception that ended a run, once each for the task, the
flow and the process, and the helpful line is lost among them.
"""

import logging

import httpx

from connectors.errors import ReconError
from connectors.files.disk.system_errors import cure, where

LOGGERS = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")
"""Prefect's loggers for what ended a run, shown on run pages, by workers and in terminals."""
GOES_ON = (
    "What was done before stands. {todo}, and run the same again: it goes on where it stopped; "
    "`recon status` shows where every batch is."
)
STOPPED = (
    "The process of this run was told to stop. What was done before stands; Retry goes on where it "
    "stopped."
)
NO_API = "Failed to reach API at"
PARAMETERS, AND_PARAMETER = "Flow run received invalid parameters:", "\n - "
"""Texts before Prefect's list of refused parameters, and before each of them."""
SIGNATURE = "\nFunction '"
"""Text before the function's signature, which follows the list if a parameter is missing."""
REFUSE_PARAMETERS = ("ParameterTypeError", "SignatureMismatchError", "ParameterBindError")
ANOTHER_RUN = (
    "Nothing was done, and Retry would fail again: start a new run with other parameters, or "
    "correct those of its schedule."
)
SEE_THAT = "Make sure that the server of PREFECT_API_URL runs"


def error_line(error: BaseException | None) -> str | None:
    """The message about an error caused by a user or the surroundings; None if it is a bug."""
    match error:
        case ReconError():
            return str(error)
        case MemoryError():
            return "This machine has too little memory. " + GOES_ON.format(
                todo="Lower RECON_LIMIT_BLOCK_BYTES where it is set, or use a machine with more"
            )
        case OSError():
            fault = f"{where(error)}: {error.strerror or error}. "
            return fault + GOES_ON.format(todo=cure(error))
        case KeyboardInterrupt() | SystemExit():
            return STOPPED
    return prefect_line(error)


def prefect_line(error: BaseException | None) -> str | None:
    """The message about an error of Prefect's client; None if the error is not one."""
    match error:
        case httpx.HTTPError() | httpx.InvalidURL():
            # An error from our own service is a ServiceUnusable, so this is from Prefect's client.
            why = str(error).splitlines()[:1] or [""]
            return (
                f"The Prefect server gave no usable answer: {type(error).__name__}"
                f"{f', {why[0]}' if why[0] else ''}. " + GOES_ON.format(todo=SEE_THAT)
            )
        case RuntimeError() if NO_API in str(error):
            # Raised if the server was unreachable from the first call on; its text contains the
            # address and any password in it.
            return "The Prefect server cannot be reached. " + GOES_ON.format(todo=SEE_THAT)
        # Compared by name, because the command line asks here too without loading Prefect.
        case Exception() if type(error).__name__ in REFUSE_PARAMETERS:
            _, _, wrong = str(error).partition(SIGNATURE)[0].rpartition(PARAMETERS)
            problems = "; ".join(filter(None, wrong.split(AND_PARAMETER))).rstrip(".")
            return f"{problems}. {ANOTHER_RUN}"
        # Prefect raises the message of a Failed state that a flow has returned.
        case Exception() if type(error).__name__ == "FailedRun":
            return str(error)
        case BaseException() if type(error).__name__ == "TerminationSignal":
            return STOPPED
    return None


class OneLine(logging.Filter):
    """Leaves only the message of an error that is no bug; at level DEBUG its traceback stays."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record, and let it always be written."""
        line = error_line(record.exc_info[1]) if record.exc_info else None
        if line is not None:
            record.msg, record.args = "%s", (line,)
            if not logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
                record.exc_info = record.exc_text = None
        return True


ONE_LINE = OneLine()


def keep_to_one_line() -> None:
    """Install the filter in this process."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(ONE_LINE)  # Has no effect a second time.
