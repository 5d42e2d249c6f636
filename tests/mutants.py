"""Mutants: does a test fail where the code says something else?

    python -m tests.mutants --seed 1 --count 300      about two hours on two cores
    python -m tests.mutants --seed 1 --count 300 --gate      by the tests of the gate alone: an hour
    python -m tests.mutants --seed 1 --count 300 --map FOLDER --verdicts FILE

`--map` takes over what an earlier run found out of the tests; `--verdicts` goes on with one that
was stopped.

A mutant is one operator, constant, condition or return value of a pure step, a stage or a connector
that says something else. All tests are run once, over code that notes which of them enters the
functions with mutants. Those are run on each mutant until one fails, those that do the least first.
What survives is listed: it changes nothing that matters, or a test is missing.
"""

import argparse
import ast
import builtins
import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]
import pytest

from tests.memory import MEMORY, has_room

ROOT = Path(__file__).parents[1]
PLACES = (
    "flows/steps",
    "flows/stages",
    "connectors/files",
    "connectors/service",
    "connectors/postgres",
    "schemas",
)
APART = (
    "migrations",
    "flows/steps/fast",
    "unpivot_loops.py",
    "binary_rows.py",
    "compiled.py",
    "self_test.py",
    "__init__.py",
)
"""Not mutated: what databases remember, what is compiled for seconds, planted faults."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
}
NAMES = {
    "is_null": "is_not_null",
    "is_not_null": "is_null",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "first": "last",
    "last": "first",
    "inner": "left",
    "left": "inner",
    "semi": "anti",
    "anti": "semi",
}
WITHOUT_SERVER = ("-m", "not flows and not e2e")
"""Those with Prefect's are half of the time, and enter nothing else of ours."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SECONDS = 150
"""Tests that take so much longer than where nothing was changed, and some more, do not end."""
TESTS, TESTS_SECONDS = 250, 240
"""Of the tests that enter a function, so many are run, and for so long: first those that are called
as its module or its folder, then those that do the least."""


class Mutant(NamedTuple):
    """One change: a file, where, and what stands there instead."""

    path: str
    function: int
    """Line of the function it is in; 0 for the module."""
    line: int
    start: int
    end: int
    """Bytes of the file that are replaced."""
    old: str
    new: str


# Which test enters which function.

SEEN = "_seen_by_a_test"
"""What the noting code calls, where a process has it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--map", help="a folder for which test enters which function")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--map")
    if folder:
        Path(folder).mkdir(exist_ok=True)
        config.pluginmanager.register(_Mapper(Path(folder) / f"{os.getpid()}.jsonl"))


class _Mapper:
    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._entered: set[str] = set()
        setattr(builtins, SEEN, self._entered.add)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._entered.clear()
        begun = time.perf_counter()
        try:
            return (yield)
        finally:
            took = round(time.perf_counter() - begun, 3)
            entered = sorted(self._entered.copy())  # Threads of the test go on.
            line = {"test": item.nodeid, "seconds": took, "entered": entered}
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


def note_entries(folder: Path, mutants: Sequence[Mutant]) -> None:
    """Have the functions of mutants, in a copy of the code, say that they are entered."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for one in mutants:
        wanted[one.path].add(one.function)
    for name, functions in wanted.items():
        path = folder / name
        rows = path.read_text().splitlines(keepends=True)
        every = [one for one in ast.walk(ast.parse("".join(rows))) if isinstance(one, FUNCTIONS)]
        for one in sorted(every, key=lambda one: one.body[0].lineno, reverse=True):
            first = one.body[1 if ast.get_docstring(one) and len(one.body) > 1 else 0]
            # What a module says itself is entered with any function of it.
            if not functions & {0, _begin(one)} or first.lineno == one.lineno:
                continue
            note = f'getattr(__import__("builtins"), "{SEEN}", len)("{name}:{_begin(one)}")'
            rows.insert(first.lineno - 1, f"{' ' * first.col_offset}{note}\n")
        path.write_text("".join(rows))


def _begin(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    decorated = function.decorator_list
    return decorated[0].lineno if decorated else function.lineno


# What can be changed.


def mutants(path: Path) -> Iterator[Mutant]:
    """Every change of a file that is tried."""
    text = path.read_bytes()
    begins = [0]
    for row in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(row))
    name = str(path.relative_to(ROOT))
    for node, function in _inside(ast.parse(text), 0):
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[node.end_lineno - 1] + node.end_col_offset
        old = text[start:end].decode()
        for new in _changed(node):
            yield Mutant(name, function, node.lineno, start, end, old, new)


def _inside(node: ast.AST, function: int) -> Iterator[tuple[Any, int]]:
    for field, value in ast.iter_fields(node):
        skipped = field in ("annotation", "returns", "decorator_list", "args")
        if skipped and not (field == "args" and isinstance(node, ast.Call)):
            continue
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, ast.AST) or isinstance(one, (ast.JoinedStr, ast.Import)):
                continue
            within = _begin(one) if isinstance(one, FUNCTIONS) else function
            if hasattr(one, "lineno"):
                yield one, within
            yield from _inside(one, within)


def _changed(node: ast.AST) -> Iterator[str]:
    new: Any = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            new.ops = [SWAPS[type(op)]()]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in SWAPS:
            if any(
                isinstance(one, ast.Constant | ast.JoinedStr) and not _number(one)
                for one in ast.walk(node)
            ):
                return  # Texts that are put together.
            new.op = SWAPS[type(op)]()
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
            new = inner
        case ast.Constant(value=bool() as value):
            new.value = not value
        case ast.Constant(value=int() as value):
            new.value = value + 1
        case ast.Constant(value=str() as value) if value in NAMES:
            new.value = NAMES[value]
        case ast.Call(func=ast.Attribute(attr=attr)) if attr in NAMES:
            new.func.attr = NAMES[attr]
        case ast.IfExp():
            new.body, new.orelse = new.orelse, new.body
        case ast.Return(value=ast.AST() as value) if not isinstance(value, ast.Constant):
            yield "return None"
            return
        case ast.Continue():
            yield "break"
            return
        case _:
            return
    yield f"({ast.unparse(new)})"


def _number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def chosen(seed: int, count: int) -> list[Mutant]:
    """So many changes, the same for a seed; every file has the weight of what can be changed."""
    files = sorted(path for place in PLACES for path in (ROOT / place).rglob("*.py"))
    pool = [
        mutant
        for path in files
        if not any(part in str(path.relative_to(ROOT)) for part in APART)
        for mutant in mutants(path)
    ]
    return random.Random(seed).sample(pool, min(count, len(pool)))


# What is run.


class Tests:
    """The tests that enter a function."""

    def __init__(self, path: Path) -> None:
        self._by_function: dict[str, set[str]] = defaultdict(set)
        self._weight: dict[str, float] = {}
        lines = (line for file in path.glob("*.jsonl") for line in file.read_text().splitlines())
        for one in map(json.loads, lines):
            self._weight[one["test"]] = one["seconds"] + len(one["entered"]) / 1000
            for function in one["entered"]:
                self._by_function[function].add(one["test"])

    def leave_out_all_but(self, there: set[str]) -> int:
        """Forget tests that are not there; gives how many those are."""
        gone = self._weight.keys() - there
        for tests in self._by_function.values():
            tests.difference_update(gone)
        return len(gone)

    def of(self, mutant: Mutant) -> list[str]:
        if mutant.function:
            found = self._by_function[f"{mutant.path}:{mutant.function}"]
        else:
            found = set().union(
                *(ids for at, ids in self._by_function.items() if at.startswith(mutant.path + ":"))
            )
        near = {Path(mutant.path).stem, Path(mutant.path).parent.name}

        def order(test: str) -> tuple[int, float]:
            folders = Path(test.partition("::")[0].removesuffix(".py").replace("test_", ""))
            return -len(near.intersection(folders.parts)), self._weight[test]

        tests: list[str] = []
        left = float(TESTS_SECONDS)
        for test in sorted(found, key=order)[:TESTS]:
            left -= self._weight[test]
            if left >= 0 or not tests:
                tests.append(test)
        return tests

    def seconds(self, tests: Iterable[str]) -> float:
        return sum(self._weight[test] for test in tests)


def tried(mutant: Mutant, tests: Tests, folder: Path, cases: Sequence[str]) -> str:
    """`killed`, `endless`, `survived` or `not entered`, by the tests in a folder with the code."""
    near = tests.of(mutant)
    if not near:
        return "not entered"
    path = folder / mutant.path
    before = path.read_bytes()
    path.write_bytes(before[: mutant.start] + mutant.new.encode() + before[mutant.end :])
    try:
        for some in (near[:25], near[25:]):
            seconds = SECONDS + 5 * tests.seconds(some)
            if some and (found := _failed([*cases, *some], folder, seconds)):
                return found
    finally:
        path.write_bytes(before)
    return "survived"


def _failed(asked: list[str], folder: Path, seconds: float) -> str:
    """`killed` where one of them fails, `endless` where they do not end; else empty."""
    try:
        done = _pytest(folder, "-x", f"--basetemp={folder}/.base", *asked, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "endless"
    return "killed" if done.returncode else ""


def _pytest(
    folder: Path, *asked: str, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", *asked]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, _ = process.communicate(timeout=timeout)
        finally:
            _end(process, folder)
    return subprocess.CompletedProcess(command, process.returncode, out)


def _end(process: subprocess.Popen[str], folder: Path) -> None:
    """Kill the tests and what they started: some of it, as PostgreSQL, in a session of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for one in psutil.process_iter(["cwd"]):
        if one.info["cwd"] and Path(one.info["cwd"]).is_relative_to(folder):
            with suppress(psutil.NoSuchProcess):
                one.kill()


def _collected(folder: Path, cases: Sequence[str]) -> set[str]:
    """The tests that are there; one that is not fails whatever the code says."""
    return set(_pytest(folder, "--collect-only", *cases).stdout.splitlines())


def _mapped(
    folder: Path, into: Path, mutants: Sequence[Mutant], workers: int, cases: Sequence[str]
) -> None:
    """Run the tests over a copy of the code, and write which of them enters what."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    note_entries(folder, mutants)
    asked = ("-p", "tests.mutants", f"--map={into}", "-n", str(workers))
    done = _pytest(folder, *asked, *cases)
    print(done.stdout.splitlines()[-1], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--map", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--verdicts", type=Path, default=Path(os.devnull))
    parser.add_argument("--gate", action="store_true")
    asked = parser.parse_args()
    cases = (*WITHOUT_SERVER, *(() if asked.gate else ("--all-cases",)))
    picked = chosen(asked.seed, asked.count)
    made_in = MEMORY if has_room(MEMORY) else None
    with (
        tempfile.TemporaryDirectory(dir=made_in) as place,
        ThreadPoolExecutor(asked.workers) as pool,
    ):
        home = Path(place).resolve()
        found = asked.map or home / "map"
        if not found.exists():
            _mapped(home / "noting", found, picked, asked.workers, cases)
        tests = Tests(found)
        folders = []
        for number in range(asked.workers):
            folder = home / str(number)
            shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
            folders.append(folder)
        if gone := tests.leave_out_all_but(_collected(folders[0], cases)):
            print(f"{gone} tests of the map are not there", flush=True)

        def work(mutant: Mutant) -> tuple[Mutant, str]:
            folder = folders.pop()
            try:
                return mutant, tried(mutant, tests, folder, cases)
            finally:
                folders.append(folder)

        lines = asked.verdicts.read_text().splitlines() if asked.verdicts.exists() else []
        verdicts = {Mutant(*mutant): verdict for mutant, verdict in map(json.loads, lines)}
        asked_of = [pool.submit(work, one) for one in picked if one not in verdicts]
        for mutant, verdict in (one.result() for one in as_completed(asked_of)):
            verdicts[mutant] = verdict
            with asked.verdicts.open("a") as file:
                file.write(json.dumps([mutant, verdict]) + "\n")
            print(f"{verdict} {mutant.path}:{mutant.line}", flush=True)
            if verdict != "killed":
                print(f"  - {mutant.old}\n  + {mutant.new}", flush=True)
        counts = Counter(verdicts[one] for one in picked)
        print(f"seed {asked.seed}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


if __name__ == "__main__":
    main()
