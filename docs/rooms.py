"""Draw the rooms of the code and who imports whom: `python docs/rooms.py` writes the picture again.

It goes into `docs/architecture.md`, between two marks, as a Mermaid graph; below it what is in each
folder, as its package says.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("flows", "connectors", "schemas")
BEGIN, END = "<!-- rooms: python docs/rooms.py -->\n", "<!-- end of rooms -->\n"


def picture() -> str:
    """The graph: a box for each room with its number of modules, an arrow for who imports whom."""
    modules = {path: room(path) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    sizes = Counter(modules.values())
    arrows = Counter(
        (mine, other)
        for path, mine in modules.items()
        for other in {room(found) for found in imported(path)}
        if mine != other
    )
    lines = ["```mermaid", "flowchart TD"]
    for package in PACKAGES:
        # A frame needs a name of its own: with that of a box in it Mermaid draws nothing at all.
        lines.append(f'  subgraph in_{package}["{package}"]')
        lines += [
            f'    {name.replace("/", "_")}["{name} ({count})"]'
            for name, count in sorted(sizes.items())
            if name.split("/")[0] == package
        ]
        lines.append("  end")
    lines += [
        f"  {mine.replace('/', '_')} --> {other.replace('/', '_')}"
        for (mine, other), count in sorted(arrows.items())
        if not implied(mine, other, arrows)
    ]
    return "\n".join([*lines, "```", ""])


def folders() -> str:
    """A line for each folder of the code: the first sentence of its package."""
    paths = (path for of in PACKAGES for path in sorted((ROOT / of).rglob("__init__.py")))
    lines = [
        f"| `{path.parent.relative_to(ROOT)}` | {text.splitlines()[0]} |"
        for path in paths
        if (text := ast.get_docstring(parsed(path)))
    ]
    return "\n".join(["| folder | what is in it |", "|---|---|", *lines, ""])


def room(path: Path) -> str:
    """A package of the second floor, in `flows/steps` of the third; loose modules: of their floor.

    The module that is run as the program stands above all others, and for itself.
    """
    *packages, module = path.relative_to(ROOT).parts
    if module == "__main__.py":
        return "/".join([*packages, "__main__"])
    return "/".join(packages[: 3 if packages[:2] == ["flows", "steps"] else 2])


def imported(path: Path, *, at_once: bool = False) -> Iterator[Path]:
    """The modules of ours that a file imports, wherever in it; `at_once`: when it is imported."""
    tree = parsed(path)
    for node in tree.body if at_once else ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None or node.level:
            continue
        if node.module.split(".")[0] in PACKAGES:
            for name in node.names:
                yield from found(f"{node.module}.{name.name}") or found(node.module)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def found(dotted: str) -> list[Path]:
    """The file of a module, if it is one."""
    path = ROOT / dotted.replace(".", "/")
    return [one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()]


def implied(mine: str, other: str, arrows: Counter[tuple[str, str]]) -> bool:
    """Whether the arrow is left out: a longer way of arrows says the same."""
    seen, ahead = {mine}, [to for start, to in arrows if start == mine and to != other]
    while ahead:
        at = ahead.pop()
        if at not in seen:
            seen.add(at)
            ahead += [to for start, to in arrows if start == at and (at, to) != (mine, other)]
    return other in seen


def drawn(text: str) -> str:
    """The page with the picture of today."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + picture() + "\n" + folders() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
