"""What the lines of a footer state: the number of rows, and sums of amounts."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from connectors.errors import ExtractRefused
from connectors.files.profiles.footer_groups import joined_groups
from connectors.files.profiles.profile import ROWS, Profile, number_form, width_of, written_of
from connectors.files.profiles.profile_made import currencies_of
from connectors.files.text.content import Content, refused
from connectors.files.text.dialect import Dialect
from connectors.files.text.linear_patterns import Groups, literal
from connectors.printable import shown
from schemas.amounts import EXACT
from schemas.cells.numbers import AROUND, NumberForm, exact_number
from schemas.cells.reading import Unread, read_integer
from schemas.cells.sheet_cells import ERROR_VALUE, REMARK
from schemas.field import Kind


class FooterLine(NamedTuple):
    pattern: str
    groups: Groups


def totals_of_lines(
    content: Content, profile: Profile, dialect: Dialect, lines: Iterable[FooterLine]
) -> tuple[int | None, dict[str, Decimal], dict[str, dict[str, Decimal]]]:
    """The stated number of rows, sums over all currencies, and sums of each currency.

    Raises ExtractRefused `incomplete_file` if a line states no number, or two lines state different
    ones.
    """
    whole = (_of_whole_cells(content, dialect, line) for line in lines)
    stated = [joined_groups(groups, profile.fields) for groups in whole]
    return *_stated(content, profile, stated), _stated_by_currency(content, profile, stated)


def _of_whole_cells(content: Content, dialect: Dialect, line: FooterLine) -> Groups:
    """The texts of a line's groups, without quotes around them.

    Raises ExtractRefused for a part of a quoted cell: it may be a number, but not the stated one.
    """
    if not dialect.has_quote:
        return line.groups
    quote, found = dialect.quote.decode(), dict[str, str | None]()
    for name, text in line.groups.items():
        if (text or "").count(quote) % 2:
            raise incomplete(
                content,
                f"the group {name} of its footer's pattern '{shown(line.pattern)}' takes "
                f"'{shown(text or '', 100)}', a part of a cell in quotes. Write the group so that "
                f"it takes all of the cell: {_whole_cell(name, dialect)}",
            )
        body = (text or "").strip()
        in_quotes = body[:1] == body[-1:] == quote and len(body) > 1
        found[name] = body[1:-1].replace(quote * 2, quote) if in_quotes else text
    return found


def _whole_cell(name: str, dialect: Dialect) -> str:
    """A group that takes one cell, quoted or not."""
    quote, delimiter = dialect.quote.decode(), literal(dialect.delimiter.decode(dialect.encoding))
    return f"(?P<{name}>{quote}[^{quote}]*{quote}|[^{delimiter}]*)"


def _stated(
    content: Content, profile: Profile, lines: Iterable[Groups]
) -> tuple[int | None, dict[str, Decimal]]:
    """The number of rows and the sums over all currencies, as far as lines state them."""
    found: dict[str, tuple[Decimal, str]] = {}
    for groups in lines:
        if _currency_in(profile, groups):
            continue
        for name, text in groups.items():
            if text is None:
                continue
            number = _number(content, profile, name, text)
            before = found.setdefault(name, (number, text))
            if before[0] != number:
                raise incomplete(content, _stated_twice(name, before[1], text))
    numbers = {name: number for name, (number, _) in found.items()}
    rows = numbers.pop(ROWS, None)
    return None if rows is None else int(rows), numbers


def _stated_by_currency(
    content: Content, profile: Profile, lines: Iterable[Groups]
) -> dict[str, dict[str, Decimal]]:
    """The sums of lines that name their currency, by field and currency."""
    found: dict[str, dict[str, Decimal]] = {}
    for groups in lines:
        if not (of := _currency_in(profile, groups)):
            continue
        currency = _currency(content, profile, of, groups[of] or "")
        for name, text in groups.items():
            if name == of or text is None:
                continue
            number, sums = _number(content, profile, name, text), found.setdefault(name, {})
            if sums.setdefault(currency, number) != number:
                raise incomplete(
                    content,
                    f"its footer states {name} in currency {currency} as {sums[currency]:f} and as "
                    f"{number:f}",
                )
    return found


def _currency_in(profile: Profile, groups: Groups) -> str | None:
    """The field whose group in a line names the currency of its sums; None for all currencies."""
    return next((name for name in currencies_of(profile.record) if name in groups), None)


def _currency(content: Content, profile: Profile, name: str, text: str) -> str:
    """The currency that a line names, as records of the feed name theirs."""
    written = written_of(profile, name)
    plain = _plain(written, number_form(written).whole, text)
    if {"", *written["null"]} & {text, text.strip(" ")}:
        plain = written.get("default", plain)
    number = read_integer(Kind.INTEGER, plain)
    if isinstance(number, Unread):
        known = f"a text that fields.{name}.map names" if "map" in written else "its number"
        raise incomplete(
            content, f"its footer states {name} as {shown(text, 100)!r}, which is not {known}"
        )
    return str(number)


def _number(content: Content, profile: Profile, name: str, text: str) -> Decimal:
    """A number of the footer, written as the feed writes the numbers of records."""
    written = written_of(profile, None if name == ROWS else name)
    form = number_form(written)
    if name == ROWS:
        form = form.count
    number = exact_number(_plain(written, form, text).strip(AROUND).removesuffix("."))
    if number is None or (name == ROWS and (number < 0 or number != number.to_integral_value())):
        what = "no count of rows" if name == ROWS else f"no number: {form.description}"
        raise incomplete(
            content, f"its footer states {name} as {shown(text, 100)!r}, which is {what}"
        )
    # Scaled like the columns that the field is the sum of.
    return EXACT.multiply(number, Decimal(written["scale"])) if "scale" in written else number


def _plain(written: Mapping[str, Any], form: NumberForm, text: str) -> str:
    """The value of a text, read like a record's cell, or like the part that is read of a cell."""
    cells = dict.fromkeys((text.strip(" "), text))
    parts = [one for one in (*(_part_of(written, cell) for cell in cells), *cells) if one]
    if "map" in written:
        return next((str(written["map"][one]) for one in parts if one in written["map"]), "")
    plain = width_of(written)(next(iter(parts), ""))
    return plain if form == NumberForm() else str(pl.select(form.plain(pl.lit(plain))).item())


def _part_of(written: Mapping[str, Any], cell: str) -> str | None:
    """The part of a cell that is read, with prefix and suffix added; None if nothing fits."""
    if "part" in written:
        says = ~pl.lit(cell).str.contains(f"{REMARK}|{ERROR_VALUE}")
        part = pl.when(says).then(pl.lit(cell).str.extract(written["part"], 1))
        cell = pl.select(part).item()
    return cell and f"{written.get('prefix', '')}{cell}{written.get('suffix', '')}"


def _stated_twice(name: str, *texts: str) -> str:
    stated = f"its footer states {name} as {' and as '.join(map(repr, texts))}"
    if name == ROWS:
        return stated
    return (
        f"{stated}. A footer has one sum of a field, over all currencies and columns: where each "
        "is that of a currency, name that by a group of its field; or leave the group out of the "
        "other patterns"
    )


def incomplete(content: Content, detail: str) -> ExtractRefused:
    """The refusal of a file whose footer differs from what the profile says."""
    return refused("incomplete_file", content.name, detail=detail)
