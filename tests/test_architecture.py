"""The picture in `docs/architecture.md` is that of the code, and its paths are there."""

import ast
import re
import runpy
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"


def test_the_picture_is_drawn_from_the_code() -> None:
    rooms = runpy.run_path(str(ROOT / "docs" / "rooms.py"))
    text = PAGE.read_text()
    assert rooms["drawn"](text) == text, "draw it anew: python docs/rooms.py"


def test_every_path_of_the_page_is_there() -> None:
    named = re.findall(r"`((?:flows|connectors|schemas|tests)/[\w/.]*)`", PAGE.read_text())
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_module_waits_for_itself() -> None:
    """Imports at the top of modules make no circle: any of them can be the first."""
    rooms = runpy.run_path(str(ROOT / "docs" / "rooms.py"))
    paths = [path for package in rooms["PACKAGES"] for path in (ROOT / package).rglob("*.py")]
    ahead = {path: set(rooms["imported"](path, at_once=True)) for path in paths}
    while free := [path for path, needed in ahead.items() if not needed & ahead.keys() - {path}]:
        for path in free:
            del ahead[path]
    assert sorted(str(path.relative_to(ROOT)) for path in ahead) == []


def test_a_class_name_is_one_class() -> None:
    """Whoever reads a name knows which class is meant, without the line that imports it."""
    named = Counter(
        node.name
        for package in ("flows", "connectors", "schemas")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in named.items() if count > 1] == []
