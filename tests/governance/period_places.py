"""The places that tell of a run, each of them held against the model or against another place."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import polars as pl

from flows.report.reconciled.break_sheet import BREAK_COLUMNS
from flows.report.reconciled.words import sources
from flows.stages.workspace import Workspace
from schemas.guards.decisions import DECIDED, SIGNED
from schemas.life import GONE as WORDS
from schemas.life import Choice
from tests.desk.browser import Browser
from tests.governance.conftest import Ran
from tests.governance.period_facts import ASIDE, GONE, OPEN, Break, Row, Run, business_days
from tests.governance.period_reported import (
    compare_ages,
    compare_changes,
    compare_sides,
    forward,
    forwards,
    pool,
    severity,
)
from tests.governance.period_story import Story, break_id
from tests.report.reconciliation.test_workbook import Book

FIGURE = re.compile(r'<a class="figure" href="([^"]+)">([^<]+)</a>')
STATE = re.compile(r'<th scope="row" data-of="Run"><a href="/runs/(\d+)/.*?'
                   r'data-of="State">([^<]+)<.*?data-of="Amount">([^<]*)<')  # fmt: skip
_MONEY = ("delta", "amount", "counted")
_NUMBERS = (*_MONEY, "tenant", "line", "batch_id", "age_days", "age_business_days")


class Places(Story):
    def __init__(
        self, seed: int, place: Workspace, recon: Callable[..., Ran], page: Browser
    ) -> None:
        super().__init__(seed, place, recon)
        self.page = page
        self.reports: dict[int, Any] = {}
        """What an approved report said when it was signed."""

    def reconciled(self, run: Run, of: date | None, said: Any) -> None:
        where = "\n".join([*self.log, f"run {run.number} as of {run.as_of}, {run.rules}"])
        there = [one for one in run.breaks if one.state not in GONE]
        with (self.folder_of(run.number) / "breaks.csv").open(newline="") as file:
            lines = {break_id(line): line for line in csv.DictReader(file)}
        ours = {one.id: _line(one, run) for one in there}
        told = {one: {name: line[name] for name in next(iter(ours.values()), ())}
                for one, line in lines.items()}  # fmt: skip
        assert told == ours, (_differ(told, ours), where)
        totals = self.totals(run.number)
        assert said["totals"] == totals, where
        statuses = {one["status"]: one["rows"] for one in totals["statuses"]}
        assert statuses == run.statuses, where
        assert (said["verdict"], totals["cover"]["verdict"]) == (run.verdict, run.verdict), where
        for name, pooled in (("roll_forward", "open"), ("accepted_forward", "accepted"),
                             ("aside_forward", "set aside")):  # fmt: skip
            said_of = forwards(totals[name])
            of_model = {key: lines for key, lines in forward(run, pooled).items() if lines}
            assert said_of == of_model, (name, _differ(said_of, of_model), where)
        compare_sides(run, totals, where)
        compare_ages(run, totals, there, where)
        compare_changes(run, totals["changes"], where)
        told_other = {one["id"] for one in totals["changes"]["outgrown"]}
        other = {lines[one.id]["id"] for one in there if one.state == "REOPENED" and one.seen}
        listed = {line["id"]: line for line in self.listed(run)} if told_other - other else {}
        into = {one for one, line in listed.items() if line["state"] == "CHANGED_INTO"}
        assert other <= told_other <= other | into, (other, told_other, where)
        counts = {"code": Counter(one.code for one in there),
                  "state": Counter(one.state for one in there),
                  "severity": Counter(line["severity"] for line in ours.values())}  # fmt: skip
        assert {name: totals["breaks"][name] for name in counts} == counts, where
        self._compare_files(run, lines, where)
        self._compare_lists(run, lines, where)
        self._compare_desk(run, there, where)
        if there:
            self._compare_break(run, of, self.chance.choice(there), lines, where)
        rows = [*self.world.rows, *self.world.undone.values()]
        self._compare_row(self.chance.choice(rows), where)

    def decided_about(self, run: Run, of: date | None) -> None:
        """As lists and desk have it now, before the next run looks."""
        where = "\n".join([*self.log, f"now, of run {run.number}"])
        now = [replace(one, state=self._now(one, of, run.as_of)) for one in run.breaks]
        listed = {break_id(line): line["state"] for line in self.listed(run)}
        states = {one.id: one.state for one in now}
        assert listed == states, (_differ(listed, states), where)
        self._compare_desk(run, [one for one in now if one.state not in GONE], where)

    def _now(self, one: Break, of: date | None, as_of: date) -> str:
        choices = [(what, terms) for what, terms in self.world.decided[of] if terms["id"] == one.id]
        if not choices or one.state in (*GONE, *ASIDE):
            return one.state
        what, terms = choices[-1]
        if what == "accept":
            return "ACCEPTED" if terms["until"] >= as_of else "EXPIRED"
        return "REOPENED" if what == "reopen" else one.state

    def signed(self, run: Run) -> None:
        self.reports[run.number] = self._report(run.number)

    def end(self) -> None:
        """What was signed is as it was; the trail has every decision, and holds."""
        where = "\n".join(self.log)
        for number, report in self.reports.items():
            assert self._report(number) == report, (number, where)
        self.page.open("/trail.csv")
        assert self.page.answer is not None
        lines = [*csv.DictReader(io.StringIO(self.page.answer.text))]
        words = {*DECIDED.values(), *SIGNED.values(), "undo", "discarded", "released"}
        told = [(line["what"], line["by"], line["reason"]) for line in reversed(lines)
                if line["what"] in words]  # fmt: skip
        assert told == _decided(self.log), ("trail", where)
        self.said("audit", "verify")

    def _report(self, number: int) -> Any:
        told = self.said("report", number, "--json").stdout, self.said("report", number).stdout
        return told, (self.folder_of(number) / "signatures.json").read_text()

    def _compare_files(self, run: Run, lines: Mapping[Any, dict[str, str]], where: str) -> None:
        folder = self.folder_of(run.number)
        frame = pl.read_parquet(folder / "breaks.parquet")
        kept = {}
        for line in frame.iter_rows(named=True):
            texts = {name: _text(value) for name, value in line.items()}
            kept[break_id(line)] = texts
        shown = {one: _unquoted(line) for one, line in lines.items()}
        assert kept == shown, (_differ(kept, shown), where)
        files = (path.read_text() for path in (folder / "corrections").glob("*.csv"))
        offered = {name for text in files for line in csv.DictReader(io.StringIO(text))
                   for name in line["BreakId"].split()}  # fmt: skip
        rejected = {line["id"] for line in shown.values() if line["code"] == "REJECTED"}
        left = {line["id"] for line in shown.values() if line["state"] in OPEN}
        assert offered & rejected == rejected & left, where
        assert offered <= left, where
        book = Book((folder / "report.xlsx").read_bytes())
        columns = {name: book.column("Breaks", column.name) for name, column in BREAK_COLUMNS}
        ids = {line["id"]: one for one, line in lines.items()}
        assert len(columns["id"]) == len(ids), where
        for place, cell in enumerate(columns["id"]):
            assert cell is not None, where
            line = shown[ids[cell[1]]]
            for name, cells in columns.items():
                of = line["class" if name == "group" else name]
                assert _cell(name, cells[place]) == _sheet(name, of), (name, line, where)

    def _compare_lists(self, run: Run, lines: Mapping[Any, dict[str, str]], where: str) -> None:
        listed = {break_id(line): line for line in self.listed(run)}
        states = {one: line["state"] for one, line in listed.items()}
        assert states == {one.id: one.state for one in run.breaks}, where
        for one, line in lines.items():
            for name in ("id", "amount", "delta", "counted", "basis", "first_seen", "expected",
                         "found", "accepted_by", "accepted_until", "accepted_reason", "cause",
                         "batch_id", "file", "line", "currency"):  # fmt: skip
                told = listed[one][name]
                if name in _MONEY and told is not None:
                    told = _money(Decimal(str(told)))
                assert str("" if told is None else told) == line[name], (name, line, where)
        pools = {"open": "open", "accepted": "accepted", "aside": "set aside", "resolved": ""}
        state = self.chance.choice((*pools,))
        some = {break_id(line) for line in self.listed(run, "--state", state)}
        assert some == {one.id for one in run.breaks if pool(one.state) == pools[state]}, where

    def _compare_desk(self, run: Run, there: list[Break], where: str) -> None:
        """Every figure of the run's page, from the breaks it leads to."""
        self.page.open(f"/runs/{run.number}")
        assert self.page.status == 200, where
        text = self.page.answer.text  # type: ignore[union-attr]
        words = {"open": "open", "accepted": "accepted", "aside": "set aside"}
        for to, told in FIGURE.findall(text):
            asked = dict(
                one.split("=", 1) for one in unescape(to).split("?")[1].split("&") if "=" in one
            )
            if not {*asked} <= {"state", "currency", "basis"} or asked["state"] not in words:
                continue
            fit = [one for one in there if pool(one.state) == words[asked["state"]]]
            if "currency" in asked:
                fit = [one for one in fit if str(one.currency or "-") == asked["currency"]]
            number = _number(told)
            if asked.get("basis") in ("difference", "gross"):
                own = [one.counted or 0 for one in fit if one.basis == asked["basis"]]
                assert number == sum(own), (to, where)
            elif "basis" not in asked:
                assert number == len(fit), (to, where)

    def _compare_break(
        self, run: Run, of: date | None, one: Break, lines: Mapping[Any, dict[str, str]],
        where: str,
    ) -> None:  # fmt: skip
        """What each run of the chain left of a break, on its own page."""
        self.page.open(f"/runs/{run.number}/breaks/{lines[one.id]['id']}")
        assert self.page.status == 200, where
        text = self.page.answer.text  # type: ignore[union-attr]
        told = [(int(number), _state(state), _number(amount) if amount else None)
                for number, state, amount in STATE.findall(text)]  # fmt: skip
        ours = [
            (past.number, was.state, was.amount) for past in reversed(self.world.chains[of])
            for was in past.breaks if was.id == one.id
        ]  # fmt: skip
        assert told == ours, (one.id, told, ours, where)

    def _compare_row(self, row: Row, where: str) -> None:
        path = self.files[row.batch][0]
        asked = ("row", str(row.batch), path.name, "--record", str(row.number), "--json")
        ran = self.recon(*asked)
        assert ran.returncode == 0, (ran, where)
        (facts,) = json.loads(ran.stdout)["rows"]
        taken_back = self.world.taken_back.get(row.batch)
        state = "corrected" if not taken_back and self.world.corrected(row) else row.verdict
        before = facts["state_before"] if taken_back else facts["state"]
        assert facts["state"] == taken_back if taken_back else True, (facts, where)
        assert before.split(",")[0] == state, (asked, facts["state"], where)
        told = {
            (one["scope"], one["code"]): (one["state"], [(of["run"], of["state"],
                                                          "approved" in of["signed"])
                                                         for of in one["runs"]])
            for one in facts["breaks"]
        }  # fmt: skip
        assert told == self._breaks_of(row), (asked, where)

    def _breaks_of(self, row: Row) -> dict[Any, Any]:
        """What runs said of breaks whose place is a row."""
        found: dict[Any, Any] = {}
        for of, chain in self.world.chains.items():
            scope = f"everything; restated as of {of}" if of else "everything"
            for run in chain:
                for one in run.breaks:
                    mine = one.key == row.key and one.batch == row.batch
                    if mine and (one.code == "REJECTED") == bool(row.bad):
                        past = [(other.number, was.state, other.number in self.reports)
                                for other in reversed(chain) if other.number <= run.number
                                for was in other.breaks if was.id == one.id]  # fmt: skip
                        field = (scope, one.code)
                        found[field] = (one.state, past)
        return found


def _differ(told: Any, ours: Any) -> Any:
    """What is told, and what should be, where that differs."""
    return [(one, told.get(one), ours.get(one)) for one in {*told, *ours}
            if told.get(one) != ours.get(one)]  # fmt: skip


def _line(one: Break, run: Run) -> dict[str, str]:
    until = one.until if one.state in ("ACCEPTED", "EXPIRED") or one.seen else None
    business = business_days(one.begin(), run.as_of, run.rules.calendar)
    return {
        "state": one.state,
        "currency": str(one.currency or ""),
        "delta": _money(one.delta),
        "amount": _money(one.amount),
        "basis": one.basis,
        "counted": _money(one.counted),
        "severity": severity(one, run.as_of, run.rules),
        "first_seen": str(one.first),
        "age_days": str(max((run.as_of - one.begin()).days, 0)),
        "age_business_days": str(max(business, 0)),
        "accepted_until": str(until or ""),
        "accepted_by": one.by if until else "",
        "batch_id": str(one.batch or ""),
    }


def _decided(log: list[str]) -> list[tuple[str, str, str]]:
    """What the trail has of decisions, from the commands that took them."""
    words = {"accept": DECIDED[Choice.ACCEPT], "reopen": DECIDED[Choice.REOPEN],
             "resolve": DECIDED[Choice.RESOLVE], "prepare": "report prepared",
             "approve": "report approved", "undo": "undo", "discard": "discarded",
             "release": "released"}  # fmt: skip
    found = []
    for typed in log:
        word = next((one for one in typed.split()[1:3] if one in words), None)
        if word is None or not typed.startswith("recon ") or " list " in typed:
            continue
        by = re.search(r"--by (\S+)", typed)
        reason = re.search(r"--reason (.*?)(?= --|$)", typed)
        found.append((words[word], by[1] if by else "", reason[1] if reason else ""))
    return found


def _text(value: object) -> str:
    if isinstance(value, Decimal):
        return _money(value)
    return "" if value is None else str(value)


def _state(told: str) -> str:
    """A state as a page of the desk has it."""
    word = told[:1].lower() + told[1:]
    return next((of.value for of, text in WORDS.items() if text == word),
                told.upper().replace(" ", "_"))  # fmt: skip


def _money(amount: Decimal | None) -> str:
    if amount is None:
        return ""
    text = format(amount.normalize(), "f")
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.ljust(2, '0')}"


def _number(told: str) -> Decimal:
    return Decimal(re.sub(r"[^0-9.\-]", "", unescape(told).replace("\u2212", "-")))


def _unquoted(line: dict[str, str]) -> dict[str, str]:
    """Without what keeps a spreadsheet from taking a text for a formula."""
    quoted = line["quoted"].split()
    return {name: value[1:] if name in quoted else value
            for name, value in line.items() if name != "quoted"}  # fmt: skip


def _cell(name: str, cell: Any) -> object:
    """What stands in a cell of the sheet of breaks."""
    if cell is None:
        return ""
    kind, text = cell
    if kind == "n" and name in ("first_seen", "accepted_until"):
        return str(date(1899, 12, 30) + timedelta(int(text)))
    return Decimal(text) if kind == "n" or name in _NUMBERS else text


def _sheet(name: str, text: str) -> object:
    """What a cell of breaks.csv is there."""
    if not text:
        return ""
    if name == "side":
        return sources(text)
    if name == "currency":
        return f"currency {text}"
    return Decimal(text) if name in _NUMBERS else text
