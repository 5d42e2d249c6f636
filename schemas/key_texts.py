"""The key of a record as breaks name it: one text, and the values in it.

`flows.steps.breaks.make.key_text` writes it.
"""

import re

from schemas.field import INTEGERS, NESTED, Kind, Table

FREE = (Kind.STRING, *NESTED)
"""Kinds whose values may contain any character."""
PLACE = r"^[0-9]*:.*:[0-9]*"
"""A batch, file and row, in place of a key that lacks a part (`match_breaks.line_key`)."""
READ_OTHERWISE = rf"(?s){PLACE}\\*$"
"""A key that looks like a place; a backslash at its end marks it as a key."""
DUPLICATE_SUFFIX = r"(?s)#[0-9].*$"
"""The end of a break's key where several keys are alike: where the row was delivered, or a number.
File names may contain any character, but keys never contain such a text: see NUMBERED."""
NUMBERED, NOT_NUMBERED = r"#(\\*[0-9])", r"#\${1}"
"""A text within a key that looks like this end, and how it is escaped: `#2` as `#\2`."""
EMPTY = r"\e"
"""How an empty text is written; an absent value is written as nothing."""

_NUMBER = re.compile(DUPLICATE_SUFFIX)
_NOT_NUMBERED = re.compile(r"#\\(\\*[0-9])")
_WHOLE_PLACE = re.compile(rf"(?s){PLACE}\Z")
_MARKED = re.compile(READ_OTHERWISE.removesuffix("$") + r"\Z")
_PART = re.compile(r"((?:[^\\/]|\\.)*)/", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def key_values(table: Table, key: str | None) -> dict[str, int | str] | None:
    """Read the key of a record from the key of its break; None unless it names the whole key.

    Also None for a key with a number or a time, which may be written in several ways. A key that
    lacks a part may be something else's number, such as a debt's.
    """
    kinds = [table.by_name[name].kind for name in table.key]
    if not key or not kinds or not {*kinds} <= {*INTEGERS, Kind.STRING}:
        return None
    bare = _NUMBER.sub("", key)
    texts = [place for place, kind in enumerate(kinds) if kind is Kind.STRING]
    if texts:
        if _WHOLE_PLACE.match(bare):
            return None
        bare = bare[:-1] if _MARKED.search(bare) else bare
        bare = _NOT_NUMBERED.sub(r"#\1", bare)
    parts = _parts(bare, len(kinds), texts[-1] if texts else len(kinds) - 1)
    if parts is None:
        return None
    values: dict[str, int | str] = {}
    for place, (name, kind, part) in enumerate(zip(table.key, kinds, parts, strict=True)):
        if kind is Kind.STRING and part:
            values[name] = _text(part, last=place == texts[-1])
        elif kind is not Kind.STRING and re.fullmatch(r"-?\d{1,19}", part):
            values[name] = int(part)
        else:
            return None
    return values


def _parts(text: str, number: int, last: int) -> list[str] | None:
    """Split a text into its parts; the part at `last` may itself contain the separator."""
    before = []
    for _ in range(last):
        found = _PART.match(text)
        if found is None:
            return None
        before.append(found[1])
        text = text[found.end() :]
    rest = text.rsplit("/", number - last - 1) if number - last > 1 else [text]
    return [*before, *rest] if len(rest) == number - last else None


def _text(part: str, *, last: bool) -> str:
    if part == EMPTY:
        return ""
    if last:
        return part.removeprefix("\\")
    return _ESCAPED.sub(r"\1", part)
