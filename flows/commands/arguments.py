"""How the arguments of a command are read, and one-line messages about what is wrong."""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from cyclopts import App, Token, convert
from cyclopts.argument import Argument
from cyclopts.exceptions import CoercionError, CycloptsError, MissingArgumentError

from connectors.printable import shown

TAKEN = {
    date: "a day written as 2026-03-31",
    int: "a whole number",
    float: "a number",
    Decimal: "an amount such as 12.50",
    Path: "a path",
}
"""What an option takes, by its type, where cyclopts would only name the type."""
NUMERAL = re.compile(r"[+-]?(\d[\d.]*|\.\d+)(e[+-]?\d+)?|[+-]?[A-Z]+", re.ASCII | re.IGNORECASE)
"""A text that may be a number with decimals, or a word such as NaN."""
WRITTEN = {
    date: re.compile(r"\d{4}(-?)\d\d\1\d\d", re.ASCII),
    int: re.compile(r"[+-]?\d+", re.ASCII),
    float: NUMERAL,
    Decimal: NUMERAL,
    Path: re.compile(r".+", re.DOTALL),
}
"""How a value of a type is written. cyclopts would round 11.6 to another batch, take 0x1f for a
number and a week for a day, and an empty path for the current folder."""
OPTION = re.compile(r"--?[A-Za-z][\w-]*(=.*)?|--", re.DOTALL)
"""A word that may be meant as an option, or as the end of all options."""


def with_values(app: App, given: Sequence[str]) -> list[str]:
    """The arguments, with values such as `-` and `- wrong month` joined to their options.

    cyclopts takes every word with a dash for an option. A word that may be meant as one stays that,
    and has to be joined by the user: after a forgotten value, the next option would be taken for
    it.
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


def read_value(kind: Any, tokens: Sequence[Token]) -> Any:
    """The value given for an argument; raises CoercionError if it is invalid.

    `null`, which a script writes for a missing value, does not mean every batch or tenant: to mean
    that, the option is left out.
    """
    kinds = [one for one in get_args(kind) if one is not NoneType]
    try:
        return convert(
            kinds[0] if NoneType in get_args(kind) else kind, tokens, converter=_read_one
        )
    except CoercionError as error:
        read = error.token and error.token.value  # The error does not say by which option it came.
        error.token = next((token for token in tokens if token.value == read), None)
        raise


def _read_one(kind: Any, text: str) -> Any:
    written = WRITTEN.get(kind)
    try:
        if written is None or written.fullmatch(text):
            return convert(kind, [text])
    except (ValueError, ArithmeticError):
        pass
    raise CoercionError(token=Token(value=text), target_type=kind)


def argument_error(error: CycloptsError) -> str:
    """What is wrong, and where to read what the command takes."""
    command = " ".join(("recon", *(error.command_chain or ())))
    return f"{_wrong(error, command)} `{command} --help` shows what it takes."


def _wrong(error: CycloptsError, command: str) -> str:
    argument = error.argument
    if isinstance(error, MissingArgumentError) and argument is not None:
        meaning = (argument.parameter.help or "").strip().rstrip(".")
        if error.keyword:
            named = f"{error.keyword}{f' ({meaning})' if meaning else ''}"
            return (
                f"{named} stands without a value. One that begins with a dash is written "
                f"{error.keyword}=VALUE."
            )
        name = argument.name if argument.index is None else _place(argument)
        return f"`{command}` needs {name}{f' ({meaning})' if meaning else ''}."
    if isinstance(error, CoercionError) and error.token is not None and argument is not None:
        taken = TAKEN.get(error.target_type) if error.target_type else None
        if error.msg is None and taken:
            name = error.token.keyword or _place(argument)
            return f'{name} takes {taken}, not "{shown(error.token.value)}".'
    message, token = str(error), getattr(error, "token", None)
    if token is not None and token.value:
        message = message.replace(token.value, shown(token.value))
    return message


def _place(argument: Argument) -> str:
    """A positional argument as the help spells it."""
    return argument.name.lstrip("-").upper()
