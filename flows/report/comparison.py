"""A comparison of two sides as text, JSON and an HTML page, which all show the same value."""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Template

from connectors.compare.differences import UNIT
from flows.report.spelling import digits, shortened, shortened_pair, visible
from flows.report.template import template
from flows.steps.frames.time_texts import apart
from flows.steps.match.statuses import ColumnResult, Comparison, SideResult
from schemas.breaks import Status
from schemas.counting import agree, quantity

MEANINGS: Mapping[Status, str] = {
    Status.MATCHED_EXACT: "the same on both sides",
    Status.MATCHED_TOLERANCE: "the same within the tolerances",
    Status.MISMATCH: "on both sides with other values",
    Status.MISSING_IN_TARGET: "on the left side only",
    Status.MISSING_IN_EXTRACT: "on the right side only",
    Status.DUPLICATE: "the key is not one row's alone: compared with nothing",
    Status.UNKNOWN: "the key is empty: compared with nothing",
}
HEADS: Mapping[str, str] = {
    "status": "Status",
    "column": "Column",
    "left": "Left",
    "right": "Right",
    "delta": "Right minus left",
    "left_at": "Left line or row",
    "right_at": "Right line or row",
}
"""Headings of the columns of differences.csv on the page; other columns belong to the key."""
_NULL = "NULL"
"""Shown for a missing value."""
_VALUE = 60
"""Most characters of a value in the text."""
_LONG = 200
"""Most characters of a value on the page."""


def verdict(comparison: Comparison) -> str:
    if comparison.agrees:
        tolerated = comparison.statuses.get(Status.MATCHED_TOLERANCE, 0)
        within = f", {quantity(tolerated, 'row')} within tolerance"
        return f"The sides agree{within if tolerated else ''}."
    return "The sides differ."


def render_text(comparison: Comparison) -> str:
    lines = [verdict(comparison), ""]
    for title, side in (("left", comparison.left), ("right", comparison.right)):
        lines.append(f"{title:6}{visible(side.name)} ({side.kind}): {quantity(side.rows, 'row')}")
        lines += [f"      SHA-256 {side.sha256}"] if side.sha256 else []
        lines += [f"      {visible(one)}" for one in _remarks(side)]
    lines.append(f"key   {', '.join(map(visible, comparison.key))}")
    lines += [f"ignored: {visible(name)}" for name in comparison.ignored]
    lines += [f"tolerance: {visible(name)}={one}" for name, one in comparison.tolerances.items()]
    lines.append("")
    width = max(len(str(count)) for count in comparison.statuses.values())
    for status, count in comparison.statuses.items():
        lines.append(f"{count:>{width}}  {status:18}  {MEANINGS[status]}")
    columns = [one for one in comparison.columns if one.different or one.tolerated or one.remark]
    if columns:
        lines += ["", "columns"]
        lines += [f"  {visible(one.name)}: {_column_text(one)}" for one in columns]
    if comparison.shown:
        lines += [
            "",
            f"{len(comparison.shown)} of {quantity(comparison.differences, 'difference')}, "
            "the largest of each kind",
        ]
        lines += [f"  {_difference_text(line)}" for line in comparison.shown]
    if comparison.method:
        lines += ["", comparison.method]
    return "\n".join(lines)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison for scripts, also written to summary.json."""
    return {
        "agrees": comparison.agrees,
        "left": _side_json(comparison.left),
        "right": _side_json(comparison.right),
        "key": list(comparison.key),
        "ignored": list(comparison.ignored),
        "tolerances": dict(comparison.tolerances),
        "method": comparison.method,
        "pairs": comparison.pairs,
        "statuses": {str(status): count for status, count in comparison.statuses.items()},
        "repeated_keys": {"left": comparison.repeated[0], "right": comparison.repeated[1]},
        "empty_keys": {"left": comparison.keyless[0], "right": comparison.keyless[1]},
        "columns": [asdict(one) for one in comparison.columns],
        "differences": comparison.differences,
    }


def render_html(comparison: Comparison) -> str:
    """The comparison as one page without script or network, with every value escaped."""
    sides = (("Left", comparison.left), ("Right", comparison.right))
    return _template().render(
        comparison=comparison,
        title=f"Comparison of {' and '.join(_called(side) for _, side in sides)}",
        verdict=verdict(comparison),
        meanings=MEANINGS,
        sides=sides,
        remarks=_remarks,
        heads=HEADS,
        lines=[_cells(line) for line in comparison.shown],
        figure=_figure,
    )


@cache
def _template() -> Template:
    # Text from either side may be anything; `visible` spells out invisible characters.
    return template("comparison.html.jinja", visible=visible)


def _called(side: SideResult) -> str:
    """A file by its base name, anything else by its full name."""
    return shortened(Path(side.name).name if side.sha256 else side.name, _LONG)


def _cells(line: Mapping[str, object]) -> dict[str, str]:
    """A difference for the page; values with a long common beginning start where they differ."""
    cells = {name: _short(value) for name, value in line.items()}
    if line["column"] is None:
        cells |= dict.fromkeys(("column", "left", "right"), "")
    elif isinstance(line["left"], str) and isinstance(line["right"], str):
        left, right = shortened_pair(line["left"], line["right"], _LONG)
        cells |= {"left": _given(left or ""), "right": _given(right or "")}
    delta = line["delta"]
    places = {
        name: "" if line[name] is None else _figure(line[name]) for name in ("left_at", "right_at")
    }
    return cells | {"delta": "" if delta is None else _figure(delta)} | places


def _short(value: object) -> str:
    return _NULL if value is None else _given(shortened(str(value), _LONG))


def _given(text: str) -> str:
    """A value that is there: in quotes if it reads like a missing one, or has blanks at an end."""
    return f"'{text}'" if text == _NULL or text != text.strip() else text


def _figure(value: object) -> str:
    """A number in groups of three digits, or how far two times are apart."""
    if isinstance(value, int):
        return digits(value)
    text = str(value)
    if text.endswith(UNIT):
        return _delta(text)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return shortened(text, _LONG)
    whole = number == number.to_integral_value() and "." not in text
    return digits(int(number) if whole else number)


def _delta(value: str) -> str:
    """Right minus left; of two times in words."""
    seconds = value.removesuffix(UNIT)
    return value if seconds == value else pl.select(apart(pl.lit(seconds))).item()


def _remarks(side: SideResult) -> list[str]:
    remarks = list(side.notes)
    if side.broken:
        are = agree(side.broken, "is", "are")
        remarks.insert(
            0, f"{quantity(side.broken, 'record')} cannot be read and {are} compared with nothing"
        )
    if side.only_columns:
        remarks.append(f"only here: {', '.join(side.only_columns)}")
    return remarks


def _side_json(side: SideResult) -> dict[str, Any]:
    return {
        "name": side.name,
        "kind": side.kind,
        "rows": side.rows,
        "unreadable": side.broken,
        "only_columns": list(side.only_columns),
        "notes": list(side.notes),
        "sha256": side.sha256,
    }


def _column_text(column: ColumnResult) -> str:
    parts = (
        (column.different, f"{column.different} differ"),
        (column.largest is not None, f"largest {_delta(column.largest or '')}"),
        (column.tolerated, f"{column.tolerated} within tolerance"),
        (column.remark, f"{column.left_type} and {column.right_type}: {column.remark}"),
    )
    return ", ".join(text for there, text in parts if there)


def _difference_text(line: Mapping[str, object]) -> str:
    key = "/".join(_display(value) for name, value in line.items() if name not in HEADS)
    if line["column"] is None:
        return f"{key}: {MEANINGS[Status(str(line['status']))]}"
    delta = f" ({_delta(str(line['delta']))})" if line["delta"] is not None else ""
    left, right = line["left"], line["right"]
    if isinstance(left, str) and isinstance(right, str):
        values = [_given(one or "''") for one in shortened_pair(left, right, _VALUE)]
    else:
        values = [_display(left), _display(right)]
    return f"{key}: {visible(str(line['column']))} {' -> '.join(values)}{delta}"


def _display(value: object) -> str:
    return _NULL if value is None else _given(shortened(str(value), _VALUE) or "''")
