"""The picture in `docs/architecture.md` is that of the code, and its paths are there."""

import ast
import re
import runpy
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
ROOMS = runpy.run_path(str(ROOT / "docs" / "rooms.py"))
PACKAGES = ROOMS["PACKAGES"]
PATHS = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
POINTER = re.compile(r"`([a-z_]+)\.(?!(?:csv|html|json|parquet|pid|py|toml|yaml)`)([A-Za-z_]+)`")
"""Names of files look like it: their endings are left out."""
NOT_OURS = ("datetime.strptime", "loop.create_connection", "schema.table", "os.walk")


def test_the_picture_is_drawn_from_the_code() -> None:
    text = PAGE.read_text()
    assert ROOMS["drawn"](text) == text, "draw it anew: python docs/rooms.py"


def test_the_picture_can_be_drawn_and_has_one_direction() -> None:
    """Mermaid draws nothing where a box has the name of its frame; arrows lead to no box twice."""
    lines = ROOMS["picture"]()
    frames, boxes = (
        re.findall(pattern, lines, re.MULTILINE)
        for pattern in (r"^  subgraph (\w+)", r"^    (\w+)\[")
    )
    assert len({*frames, *boxes}) == len(frames) + len(boxes) > len(PACKAGES)
    ahead: dict[str, set[str]] = {box: set() for box in boxes}
    for mine, other in re.findall(r"^  (\w+) --> (\w+)$", lines, re.MULTILINE):
        ahead[mine].add(other)
    while free := [box for box, needed in ahead.items() if not needed & ahead.keys()]:
        for box in free:
            del ahead[box]
    assert ahead == {}, "these rooms use each other: move what they share into one below them"


def test_every_path_of_the_page_is_there() -> None:
    """Whole paths, from the root: of bare names such as `records.py` there are four, or none."""
    text = PAGE.read_text()
    named = re.findall(r"`((?:flows|connectors|schemas|tests)/[\w/.]*|[\w/]+\.py)`", text)
    assert len(named) > 20
    gone = [path for path in named if not (ROOT / path).exists()]
    assert gone == [], f"write in {PAGE.name} where each of them is now, from the root"


def test_what_a_docstring_points_at_is_there() -> None:
    """`make.ORIGIN` in words: a module of ours, and a name that stands in it."""
    gone = []
    for path in PATHS:
        for module, name in POINTER.findall(path.read_text()):
            meant = [other.read_text() for other in PATHS if other.stem == module]
            if (
                not any(re.search(rf"\b{name}\b", text) for text in meant)
                and f"{module}.{name}" not in NOT_OURS
                and not list(ROOT.glob(f"{module}/{name}*"))
            ):
                gone.append(f"{path.relative_to(ROOT)}: `{module}.{name}`")
    assert gone == [], "name the module they are in now"


def test_a_text_that_explains_stands_below_what_it_explains() -> None:
    """A constant that was moved or deleted takes its text along."""
    left = [
        f"{path.relative_to(ROOT)}:{text.lineno}"
        for path in PATHS
        for module in (ROOMS["parsed"](path),)
        for node in (module, *(one for one in module.body if isinstance(one, ast.ClassDef)))
        for before, text in pairwise(node.body)
        if isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and text.lineno != (before.end_lineno or 0) + 1
    ]
    assert left == [], "delete the text, or put it below its name"


def test_what_a_benchmark_asks_of_the_product_is_there() -> None:
    """Nothing runs them with the tests."""
    asked = {
        (node.module, one.name)
        for folder in ("benchmarks", "data_samples", "docs")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
        for one in node.names
        if node.module.partition(".")[0] in PACKAGES
    }
    assert len(asked) > 20
    assert [one for one in sorted(asked) if not _is_there(*one)] == []


def _is_there(module: str, name: str) -> bool:
    """Whether a module has this name, or a module below it."""
    found = import_module(module)
    below = hasattr(found, "__path__") and find_spec(f"{module}.{name}")
    return hasattr(found, name) or bool(below)


def test_no_module_waits_for_itself() -> None:
    """Imports at the top of modules make no circle: any of them can be the first."""
    ahead = {path: set(ROOMS["imported"](path, at_once=True)) for path in PATHS}
    while free := [path for path, needed in ahead.items() if not needed & ahead.keys() - {path}]:
        for path in free:
            del ahead[path]
    circle = sorted(str(path.relative_to(ROOT)) for path in ahead)
    assert circle == [], "these import each other: give what they share a module of its own"


def test_a_class_name_is_one_class() -> None:
    """Whoever reads a name knows which class is meant, without the line that imports it."""
    named = Counter(
        node.name
        for path in PATHS
        for node in ROOMS["parsed"](path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    twice = [name for name, count in named.items() if count > 1]
    assert twice == [], "rename one, or put an underscore before a name that its module keeps"


def test_the_command_line_and_prefect_take_a_batch_through_the_same_stages() -> None:
    """The order is written twice, by hand: a stage in one of the two alone would be left out."""
    ours = (ROOT / "flows/stages/sequence.py").read_text().partition("def _go_on(")[2]
    theirs = (ROOT / "flows/import_batch.py").read_text().partition("def run_stages(")[2]
    stages = re.findall(r"    (?:\w+ = )?(\w+)\(workspace, lease[,)]", ours.partition("\ndef ")[0])
    tasks = re.findall(r"tasks\.(\w+)_rows\(", theirs.partition("\ndef ")[0])
    assert [name.removesuffix("_and_finish") for name in stages] == tasks
    assert len(tasks) >= 4


READERS = re.compile(r"\bpl\.(?:scan_(?!lines)|read_(?:parquet|ipc|ndjson|avro|delta|excel))\w*\(")
OF_BYTES = {"connectors/files/disk/spool.py": 1, "flows/stages/frame_file.py": 2}
"""What is read there is no path: bytes, or an open file by its number."""


def test_no_path_is_taken_for_a_pattern() -> None:
    """polars does so with every path it is given, unless it is told otherwise."""
    found = {
        str(path.relative_to(ROOT)): len(READERS.findall(path.read_text()))
        for path in PATHS
        if path.name != "columnar.py"
    }
    bare = {path: count for path, count in found.items() if count}
    assert bare == OF_BYTES, "read files by the functions of connectors/files/incoming/columnar.py"
