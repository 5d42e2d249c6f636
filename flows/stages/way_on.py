"""How stopped work continues: the code doing it knows, the one that asked for it says so."""

from collections.abc import Iterator
from contextlib import contextmanager

WAY_ON = "way_on"
SAME_COMMAND = ""
"""Stopped work continues when the same command is run again."""


@contextmanager
def goes_on_by(command: str) -> Iterator[None]:
    """Note on any exception that passes through that `command` continues the work.

    Of nested calls the outermost counts, because it knows what the others are part of.
    """
    try:
        yield
    except BaseException as ended:
        vars(ended)[WAY_ON] = command
        raise


def way_on(ended: BaseException | None) -> str:
    """The command that continues what an exception ended, even if another was raised from it."""
    while ended is not None:
        if WAY_ON in vars(ended):
            return str(vars(ended)[WAY_ON])
        ended = ended.__cause__ or ended.__context__
    return SAME_COMMAND
