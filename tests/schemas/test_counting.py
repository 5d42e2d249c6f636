"""No message says "1 rows": a number before a noun goes through `quantity`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.counting import agree, first_of, grouped, plural, quantity

ROOT = Path(__file__).parents[2]
NOUNS = (
    "amounts|attempts|batches|breaks|bytes|causes|characters|columns|contents|days|deliveries"
    "|differences|errors|events|extracts|fields|files|folders|keys|lines|members|messages|minutes"
    "|notes|others|pages|payments|processes|reasons|records|rejects|reports|requests|rows|runs"
    "|seconds|segments|sends|tables|times|values"
)
# Between a number and its noun stands an adjective; these begin something else.
APART = "and|are|has|have|in|is|no|of|or|that|with|without"
COUNTED = re.compile(rf"\s(?:(?!(?:{APART})\s)[a-z-]+\s)?(?:{NOUNS})\b(?!\.\w)")
IN_LOG = re.compile(rf"%[sd]{COUNTED.pattern}")
# `pl.format("{} days", ...)`, `"{rows} rows".format(...)` and, in SQL, `n || ' rows'`.
IN_TEMPLATE = re.compile(rf"(?:\{{[^{{}}]*\}}|\|\|\s*'){COUNTED.pattern}")
UNIT = re.compile(rf"{COUNTED.pattern}\W*")
"""A text that is a noun and nothing else is put behind a number: `number + pl.lit(" days")`."""
IN_PAGE = re.compile(rf"\}}\}}{COUNTED.pattern}")
NO_NUMBERS = {
    # Spans: `0-30 days`.
    "flows/report/reconciled/tables.py: bucket",
    "flows/report/reconciled/workbook_chart.py: one",
    "flows/report/reconciled/page.html.jinja: {{ chart.swatch(colour) }}{{ name }} days",
    "flows/report/reconciled/page.html.jinja: {{ ages[loop.index0][0] }} days",
    # A command: `recon row 3 payments.csv`.
    # Which of them, and of a record kind: `Payment rows`.
    "connectors/postgres/batches/undo.py: title",
    # Always some: `12 of its Payment rows`, `None of the 5 columns`, factors of two and more.
    "connectors/files/layout/header_names.py: len(self.names)",
    # Which of some files: `Where it holds records`.
    "connectors/files/incoming/delivery.py: them",
    # One day has its own words.
    "flows/steps/frames/time_texts.py: {} days",
    # With its noun already: `3 lines between rows`.
    "flows/stages/draft/shape.py: lines",
    "flows/steps/breaks/patterns.py: times",
    # More than a limit, or a limit.
    "connectors/files/incoming/delivery.py: window",
    "flows/stages/jobs/arguments.py: {max_length} characters",
    "flows/tasks/artifacts.py: digits(lines)",
    "flows/stages/reconcile/as_of.py: len(reason)",
    "flows/tasks/partitions.py: WORKERLESS_SECONDS / 60",
    "schemas/own_tables.py: len(names)",
}


def sources() -> Iterator[Path]:
    for folder in ("flows", "connectors", "schemas"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".jinja") and "versions" not in path.parts:
                yield path


def bare_numbers(path: Path) -> Iterator[str]:
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text()
    if path.suffix == ".jinja":
        for found in IN_PAGE.finditer(text):
            before = text[: found.end()].rsplit("\n", 1)[-1]
            yield f"{name}: {re.search(r'(?:[{][{][^{]*[}][}])+[^{}]*$', before)[0]}"  # type: ignore[index]
        return
    nodes = list(ast.walk(ast.parse(text)))
    pieces = {
        id(piece) for node in nodes if isinstance(node, ast.JoinedStr) for piece in node.values
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for pattern in (IN_LOG, IN_TEMPLATE):
                yield from (f"{name}: {found[0]}" for found in pattern.finditer(node.value))
            if UNIT.fullmatch(node.value) and id(node) not in pieces:
                yield f"{name}: {node.value}"
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            # A limit of the product has a name in capitals, and is never one.
            limit = isinstance(value.value, ast.Name) and value.value.id.isupper()
            shown = ast.unparse(value.value)
            if COUNTED.match(str(after.value)) and not limit and not shown.startswith("agree("):
                yield f"{name}: {shown}"


@pytest.mark.long
def test_no_number_stands_bare_before_its_noun() -> None:
    found = {one for path in sources() for one in bare_numbers(path)}
    assert found == NO_NUMBERS


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "row", "0 rows"),
        (1, "row", "1 row"),
        (2, "row", "2 rows"),
        (1000, "kept file", "1,000 kept files"),
        (1, "batch", "1 batch"),
        (2, "batch", "2 batches"),
        (2, "process", "2 processes"),
        (2, "delivery", "2 deliveries"),
        (2, "day", "2 days"),
        (-1, "day", "-1 days"),
    ],
)
def test_a_number_and_its_noun(number: int, noun: str, text: str) -> None:
    assert quantity(number, noun, grouped) == text


def test_what_goes_with_the_number_follows_it() -> None:
    assert [agree(number, "is", "are") for number in (0, 1, 2)] == ["are", "is", "are"]
    assert plural("box") == "boxes"


@pytest.mark.parametrize(
    ("several", "told"),
    [((), ""), ((1,), "1"), ((1, 2), "1, 2"), ((1, 2, 3), "1, 2 and 1 more"),
     ((1, 2, 3, 4), "1, 2 and 2 more")],
)  # fmt: skip
def test_the_first_of_several_and_how_many_more(several: tuple[int, ...], told: str) -> None:
    assert first_of(several, 2) == told
    assert first_of(several, 2, lambda one: f"<{one}>") == re.sub(r"\b(\d)(?! more)", r"<\1>", told)
    assert first_of(several, 2, by="; ", end="; and") == told.replace(",", ";").replace(
        " and", "; and"
    )
