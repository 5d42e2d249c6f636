"""Values that begin with a dash, and what is wrong with the arguments of a command: one line."""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from cyclopts import App
from cyclopts.argument import Argument
from cyclopts.exceptions import CoercionError, CycloptsError, MissingArgumentError

TAKEN = {
    date: "a day written as 2026-03-31",
    int: "a whole number",
    float: "a number",
    Decimal: "an amount such as 12.50",
}
"""What an option takes, by its type, where cyclopts would name the type."""
OPTION = re.compile(r"--?[A-Za-z][\w-]*(=.*)?|--", re.DOTALL)
"""A word that may be meant for an option, or for the end of all."""


def with_values(app: App, given: Sequence[str]) -> list[str]:
    """The arguments, with values such as `-` and `- wrong month` joined to their options.

    cyclopts takes every word with a dash for an option. One that may be meant for one stays that,
    and has to be joined by whoever types it: a forgotten value would be the option behind it.
    """
    if all(OPTION.fullmatch(word) or not word.startswith("-") for word in given):
        return [*given]
    _, apps, rest = app.parse_commands(given)
    names = {
        name
        for argument in apps[-1].assemble_argument_collection()
        if argument.token_count()[0]
        for name in argument.names
    }
    joined, words = [*given[: len(given) - len(rest)]], iter(rest)
    for word in words:
        if word == "--":
            return [*joined, word, *words]
        if joined and joined[-1] in names and word.startswith("-") and not OPTION.fullmatch(word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def argument_error(error: CycloptsError) -> str:
    """What is wrong, and where to read what the command takes."""
    command = " ".join(("recon", *(error.command_chain or ())))
    return f"{_wrong(error, command)} `{command} --help` shows what it takes.\n"


def _wrong(error: CycloptsError, command: str) -> str:
    argument = error.argument
    if isinstance(error, MissingArgumentError) and argument is not None:
        told = (argument.parameter.help or "").strip().rstrip(".")
        if error.keyword:
            named = f"{error.keyword}{f' ({told})' if told else ''}"
            return (
                f"{named} stands without a value. One that begins with a dash is written "
                f"{error.keyword}=VALUE."
            )
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
