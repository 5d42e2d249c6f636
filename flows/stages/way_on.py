"""How work that is stopped goes on: known where it is done, said where it was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

WAY_ON = "way_on"
SAME_COMMAND = ""
"""What was stopped goes on when its command is run again, as it was given."""


@contextmanager
def goes_on_by(command: str) -> Iterator[None]:
    """Say of whatever ends this before its end that `command` goes on with it.

    Of several, one within the other, the outermost counts: it knows what the others are part of.
    """
    try:
        yield
    except BaseException as ended:
        vars(ended)[WAY_ON] = command
        raise


def way_on(ended: BaseException | None) -> str:
    """The command that goes on with what was ended, also where another error was made of that."""
    while ended is not None:
        if WAY_ON in vars(ended):
            return str(vars(ended)[WAY_ON])
        ended = ended.__cause__ or ended.__context__
    return SAME_COMMAND
