"""How the cells of a column are written: every reading that fits all of them."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from schemas.cells.dates import NoForm, date_form
from schemas.cells.numbers import BLANK, BLANKS

DAYS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
    "%Y.%m.%d",
    *("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%Y%m%d"),
)
CLOCKS = (
    *("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S", "T%H:%M:%S.%f"),
    *(" %I:%M %p", " %I:%M:%S %p"),
)
ISO = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}([.]\d+)?)?(Z|[+-]\d{2}:\d{2})")
_CORE = re.compile(rf"[0-9](?:[0-9.,'{BLANKS}]*[0-9])?")
MINUS = "-(\N{MINUS SIGN}"
SIGNS = f"+){MINUS}"
FLAGS = ("DR", "CR", "D", "C", "S", "H", "%")
"""Words for debit and credit, and what else is no currency."""
_CODE = re.compile(r"[A-Z]{3}")


def time_forms(cells: Sequence[str]) -> list[str]:
    """The forms by which every cell is a time; ISO 8601 with an offset is none of them."""
    found = []
    for form in (f"{day}{clock}" for day in DAYS for clock in CLOCKS):
        try:
            wall = date_form(form).wall
        except NoForm:
            continue
        if cells and all(not isinstance(wall(cell), str) for cell in cells):
            found.append(form)
    return found


@dataclass(slots=True)
class NumberSigns:
    """What numbers are written with."""

    decimal: set[str] = field(default_factory=set)
    thousands: set[str] = field(default_factory=set)
    either: set[str] = field(default_factory=set)
    """Signs that may be one or the other: `1.234`."""
    around: set[str] = field(default_factory=set)
    """What stands around the digits, with 1 for them."""

    def add(self, cells: Iterable[str]) -> bool:
        """Look at the cells of a column; False: not all of them are numbers."""
        read = [(cell, _CORE.search(cell)) for cell in cells]
        if not read or not all(core and _is_number(cell, core[0]) for cell, core in read):
            return False
        for cell, core in read:
            assert core is not None
            self._look(core[0])
            self.around.add(cell[: core.start()] + "1" + cell[core.end() :])
        return True

    def _look(self, core: str) -> None:
        signs = [sign for sign in core if not sign.isdigit()]
        if not signs:
            return
        last, others = signs[-1], {sign for sign in signs if sign != signs[-1]}
        behind = len(core) - core.rindex(last) - 1
        if others:
            self.decimal.add(last)
            self.thousands |= {_thousands(sign) for sign in others}
        elif len(signs) > 1 or last not in ".,":
            self.thousands.add(_thousands(last))
        elif behind == 3 and not core.startswith("0"):
            self.either.add(last)
        else:
            self.decimal.add(last)

    @property
    def negative(self) -> list[str]:
        """Examples of minus one that are no number as the document has it."""
        return sorted({_without_currency(one) for one in self.around if _is_negative(one)} - {"-1"})

    @property
    def currency(self) -> list[str]:
        """Examples of one with a sign or a code of a currency."""
        return sorted({_unsigned(one) for one in self.around if _has_currency(one)})

    @property
    def others(self) -> list[str]:
        """What stands around numbers and is neither a sign nor a currency."""
        rest = {_unsigned(_without_currency(one)) for one in self.around}
        return sorted(one for one in rest if one.strip(BLANKS) not in ("1", "+1"))


def _is_number(cell: str, core: str) -> bool:
    if not _is_grouped(core):
        return False
    rest = cell.replace(core, "", 1).strip(f"{SIGNS}{BLANKS}")
    sign = len(rest) == 1 and _is_currency(rest)
    # Three letters before digits alone are a name, such as that of an account.
    code = _CODE.fullmatch(rest) is not None and not (f"{rest}{core}" == cell and core.isdigit())
    return not rest or sign or rest.upper() in FLAGS or code


def _is_grouped(core: str) -> bool:
    """Whether its signs are between groups of three digits, the last one maybe before decimals."""
    first, *groups = re.split("[^0-9]", core)
    signs = [sign for sign in core if not sign.isdigit()]
    if signs and signs[-1] in ".," and signs.count(signs[-1]) == 1:
        groups.pop()
    return not groups or (len(first) <= 3 and all(len(group) == 3 for group in groups))


def _thousands(sign: str) -> str:
    return BLANK if sign in BLANKS else sign


def _is_negative(around: str) -> bool:
    return any(sign in around for sign in MINUS)


def _is_currency(sign: str) -> bool:
    return unicodedata.category(sign) == "Sc"


def _has_currency(around: str) -> bool:
    return any(map(_is_currency, around)) or _CODE.search(around) is not None


def _without_currency(around: str) -> str:
    bare = "".join(sign for sign in _CODE.sub("", around) if not _is_currency(sign))
    return bare.strip(BLANKS) if _has_currency(around) else around


def _unsigned(around: str) -> str:
    return "".join(sign for sign in around if sign not in SIGNS).strip(BLANKS)
