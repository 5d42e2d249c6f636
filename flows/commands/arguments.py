"""What is wrong with the arguments of a command: one line, as everything else is told."""

from datetime import date
from decimal import Decimal

from cyclopts.argument import Argument
from cyclopts.exceptions import CoercionError, CycloptsError, MissingArgumentError

TAKEN = {
    date: "a day written as 2026-03-31",
    int: "a whole number",
    float: "a number",
    Decimal: "an amount such as 12.50",
}
"""What an option takes, by its type, where cyclopts would name the type."""


def argument_error(error: CycloptsError) -> str:
    """What is wrong, and where to read what the command takes."""
    command = " ".join(("recon", *(error.command_chain or ())))
    return f"{_wrong(error, command)} `{command} --help` shows what it takes.\n"


def _wrong(error: CycloptsError, command: str) -> str:
    argument = error.argument
    if isinstance(error, MissingArgumentError) and argument is not None:
        told = (argument.parameter.help or "").strip().rstrip(".")
        name = argument.name if argument.index is None else _place(argument)
        return f"`{command}` needs {name}{f' ({told})' if told else ''}."
    if isinstance(error, CoercionError) and error.token is not None and argument is not None:
        taken = TAKEN.get(error.target_type) if error.target_type else None
        if error.msg is None and taken:
            name = error.token.keyword or _place(argument)
            return f'{name} takes {taken}, not "{error.token.value}".'
    return " ".join(str(error).split())


def _place(argument: Argument) -> str:
    """An argument that is told by its place, as the help spells it."""
    return argument.name.lstrip("-").upper()
