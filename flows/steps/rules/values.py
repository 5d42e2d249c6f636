"""The values of a rule file, read strictly: senseless ones are refused with their line."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import MAX_PREC, Context, Decimal
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from flows.steps.rules.calendar import CalendarUnknown, find_calendar
from schemas.toml_text import Path, suggestion

REFERENCES = ("rates", "plans", "documents", "batches")
MOST = 2**31 - 1
"""The largest age in days and the largest count."""
RECORDS = "records"
"""The section with definitions of record kinds, which only the kept rules of a run have."""
NEVER = "never"
"""The word for "no limit" in rules that have a limit by default."""
Reader = Callable[[Path, Any], Any]
_Number = TypeVar("_Number", int, Decimal)
_EXACT = Context(prec=MAX_PREC)
"""A context in which `normalize` only drops trailing zeros, however many digits there are."""


class RulesRefused(ValueError):
    """A rule file cannot be used: the line, what is wrong, and what is allowed."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class Values:
    """Readers of single values, which know the lines of the keys."""

    def __init__(self, lines: Mapping[Path, int]) -> None:
        self.lines = lines

    def refuse(self, path: Path, message: str) -> NoReturn:
        """Raise RulesRefused with the line of the key, or of the nearest section around it."""
        while path and path not in self.lines:
            path = path[:-1]
        raise RulesRefused(message, self.lines.get(path))

    def known(
        self,
        path: Path,
        given: Mapping[str, Any],
        readers: Mapping[str, Reader],
        needed: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        values = {}
        for key, value in given.items():
            if key not in readers:
                self.refuse((*path, key), f"{key!r} is not a rule. {suggestion(key, readers)}")
            values[key] = readers[key]((*path, key), value)
        for key in needed:
            if key not in values:
                self.refuse(path, f"{key} is missing.")
        return values

    def section(self, default: Any, readers: Mapping[str, Reader]) -> Reader:
        def read(path: Path, value: Any) -> Any:
            if not isinstance(value, dict):
                self.refuse(path, f"{path[-1]} is a section. Write [{path[-1]}].")
            return replace(default, **self.known(path, value, readers))

        return read

    def each(self, reader: Reader) -> Reader:
        def read(path: Path, value: Any) -> tuple[Any, ...]:
            if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
                self.refuse(path, f"{path[-1]} may be there many times. Write [[{path[-1]}]].")
            return tuple(reader((*path, number), one) for number, one in enumerate(value))

        return read

    def limit(self, reader: Reader) -> Reader:
        return lambda path, value: None if value == NEVER else reader(path, value)

    def choice(self, kind: type[StrEnum]) -> Reader:
        def read(path: Path, value: Any) -> StrEnum:
            allowed = {member.value: member for member in kind}
            if not isinstance(value, str) or value not in allowed:
                self.refuse(path, f"{path[-1]} = {value!r}. {suggestion(str(value), allowed)}")
            return allowed[value]

        return read

    def text(self, path: Path, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            self.refuse(path, f"{path[-1]} = {_quoted(value)} is not a text in quotes.")
        return str(value)

    def flag(self, path: Path, value: Any) -> bool:
        if not isinstance(value, bool):
            self.refuse(path, f"{path[-1]} = {_quoted(value)} is neither true nor false.")
        return bool(value)

    def number(self, path: Path, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
            self.refuse(
                path,
                f"{path[-1]} = {_quoted(value)} is not a number of the service, such as 978 (codes "
                "like EUR are not in the records).",
            )
        return int(value)

    def whole(self, path: Path, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.refuse(path, f"{path[-1]} = {_quoted(value)} is not a whole number of 0 or more.")
        return self._in_range(path, int(value))

    def days(self, path: Path, value: Any) -> Decimal:
        return self._in_range(path, self.amount(path, value))

    def _in_range(self, path: Path, value: _Number) -> _Number:
        if value > MOST:
            self.refuse(path, f"{path[-1]} = {value} is out of range. Use 0 to {MOST}.")
        return value

    def amount(self, path: Path, value: Any) -> Decimal:
        number = _decimal(value)
        if number is None:
            self.refuse(path, f"{path[-1]} = {_quoted(value)} is not a number such as 0.01.")
        if number < 0:
            self.refuse(path, f"{path[-1]} = {number} is negative. A tolerance is 0 or more.")
        exponent = number.normalize(_EXACT).as_tuple().exponent
        if number >= Decimal(10) ** 20 or (isinstance(exponent, int) and exponent < -18):
            self.refuse(path, f"{path[-1]} = {number} has more than 20 digits, or 18 decimals.")
        return number

    def share(self, path: Path, value: Any) -> Decimal:
        number = self.amount(path, value)
        if number > 1:
            self.refuse(
                path,
                f"{path[-1]} = {number} is more than the whole. It is a share, not a percentage: "
                f"{number} % is {(number / 100).normalize():f}.",
            )
        return number

    def calendar(self, path: Path, value: Any) -> str:
        name = self.text(path, value)
        try:
            find_calendar(name)
        except CalendarUnknown as error:
            self.refuse(path, str(error))
        return name

    def references(self, path: Path, value: Any) -> frozenset[str]:
        names = self.values(path, value) if value != [] else ()
        for name in names:
            if name not in REFERENCES:
                self.refuse(path, f"{name!r} is no reference. {suggestion(name, REFERENCES)}")
        return frozenset(names)

    def values(self, path: Path, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            self.refuse(path, f'{path[-1]} = {_quoted(value)} is not a list such as ["1", "2"].')
        return tuple(
            str(one) if isinstance(one, int) and not isinstance(one, bool) else self.text(path, one)
            for one in value
        )


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        number = Decimal(value)
    except ArithmeticError:
        return None
    return number if number.is_finite() else None


def _quoted(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
