"""Periods reconciled, decided about, closed, signed, reopened and restated, in any order.

Every sequence has its own seed. After each run every figure of its report, of the lists and of the
desk is compared with a model in plain Python (`period_model.py`).
"""

import csv
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from tests.desk.browser import Browser, desk_of
from tests.examples import seeds
from tests.governance.conftest import Ran
from tests.governance.period_model import (
    GONE,
    OPEN,
    Break,
    Payment,
    Row,
    Rules,
    Run,
    World,
    business_days,
)
from tests.governance.period_reported import NAMES, forward, pool, severity
from tests.stages.payments import HEADER

AMOUNTS = ("0.01", "10.50", "99.99", "100", "2500.75", "10000", "9000000000000.01", "0.5")
OFFSETS = (0, 60, 330, 840, -720, -210)
FIGURE = re.compile(r'<a class="figure" href="([^"]+)">([^<]+)</a>')
BUCKETS = (1, 3, 7, 30, 60, 90)


class _Story:
    def __init__(
        self, seed: int, place: Workspace, recon: Callable[..., Ran], page: Browser
    ) -> None:
        self.chance, self.place, self.recon, self.page = random.Random(seed), place, recon, page
        self.world, self.day = World(), date(2024, 12, 20)
        self.folder = place.settings.home.parent / "delivered"
        self.folder.mkdir(exist_ok=True)
        self.numbers = iter(range(1, 10_000))
        self.files = iter(range(1, 10_000))
        self.calendar = self.chance.choice((None, "AZ", "DE-BY", "ECB"))
        self.rules = Rules(self.calendar, Decimal(self.chance.choice((0, 1))),
                           self.chance.choice((None, 2)))  # fmt: skip
        self.log: list[str] = []

    def said(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        self.log.append("recon " + " ".join(arguments))
        ran = self.recon(*arguments)
        assert ran.returncode in codes, (self.log, ran)
        return ran.stdout

    # What others do.

    def payment(self) -> Payment:
        pick = self.chance.choice
        zone = timezone(timedelta(minutes=pick(OFFSETS)))
        day = self.day + timedelta(self.chance.randint(-40, 12))
        at = datetime(day.year, day.month, day.day, pick((0, 12, 23)), pick((0, 30)), tzinfo=zone)
        return Payment(next(self.numbers), pick((7, 8)), 1, at, Decimal(pick(AMOUNTS)),
                       Decimal(pick(("0", "0.25", "150"))), pick((1, 2)))  # fmt: skip

    def deliver(self, *made: Row, corrects: int | None = None) -> None:
        rows = list(made)
        if not rows:
            for _ in range(self.chance.randint(1, 3)):
                bad = self.chance.choice(("", "", "", "amount", "rate"))
                rows.append(Row(0, self.payment(), bad))
        path = self.folder / f"p{next(self.files)}.csv"
        path.write_text("\n".join([HEADER, *map(_line, rows)]) + "\n")
        more = () if corrects is None else ("--corrects", str(corrects))
        told = self.said("import", str(path), "--json", *more, codes=(0, 1))
        batch = json.loads(told)["batch"]
        batch = batch["id"] if isinstance(batch, dict) else batch
        if batch in {row.batch for row in self.world.rows}:
            return  # The same bytes once more.
        self.world.step += 1
        for row in rows:
            there = self.world.target.get(row.payment.key)
            stale = not row.bad and there is not None and row.payment.at < there.at
            self.world.rows.append(Row(batch, row.payment, row.bad, stale))
            if not row.bad and not stale:
                self.world.target[row.payment.key] = row.payment
                self.world.brought[row.payment.key] = self.world.step

    def deliver_again(self) -> None:
        if row := self._some([row for row in self.world.rows if not row.bad]):
            one = row.payment
            changed = self.chance.choice((
                one, one._replace(paid=one.paid + Decimal("0.75")),
                one._replace(at=one.at + timedelta(days=self.chance.choice((-3, 20)))),
            ))  # fmt: skip
            self.deliver(Row(0, changed))

    def correct(self) -> None:
        good = {row.payment.key for row in self.world.rows if not row.bad}
        bad = [row for row in self.world.rows if row.bad and row.payment.key not in good]
        if row := self._some(bad):
            self.deliver(Row(0, row.payment), corrects=row.batch)

    def change(self) -> None:
        key = self._some(sorted(self.world.target))
        if key is None:
            return
        one, pick = self.world.target[key], self.chance.choice
        row = self.world.counting(key)
        match pick(("paid", "paid", "discount", "action", "days", "zone", "gone", "back", "back")):
            case "paid":
                one = one._replace(paid=one.paid + Decimal(pick(("0.50", "-0.01", "1", "12000"))))
            case "discount":
                one = one._replace(discount=one.discount + Decimal("0.10"))
            case "action":
                one = one._replace(action=one.action + 1)
            case "days":
                one = one._replace(at=one.at + timedelta(days=pick((-30, -1, 1, 30))))
            case "zone":
                one = one._replace(at=one.at.astimezone(timezone(timedelta(minutes=pick(OFFSETS)))))
            case "gone":
                self._sql('DELETE FROM payment WHERE "Id" = %s', key[0])
                del self.world.target[key]
                return
            case "back" if row:
                one = row.payment
        self.world.target[key] = one
        self._sql(
            'UPDATE payment SET "ActionsId" = %s, "PaidAmount" = %s, "DiscountAmount" = %s, '
            '"PaymentDate" = %s, "PaymentDate_offset" = %s WHERE "Id" = %s',
            one.action, one.paid, one.discount, one.at, _minutes(one.at), key[0],
        )  # fmt: skip

    def insert(self) -> None:
        """Somebody writes a payment into the database, or one that was gone once more."""
        lost = [row.payment for row in self.world.rows
                if not row.bad and row.payment.key not in self.world.target]  # fmt: skip
        one = self._some(lost) if lost and self.chance.random() < 0.7 else self.payment()
        assert one is not None
        self.world.target[one.key] = one
        self._sql(
            'INSERT INTO payment ("Id", "TenantsId", "ActionsId", "DebtsId", "PaymentDate", '
            '"PaymentDate_offset", "PaidAmount", "DiscountAmount", "CurrenciesId", '
            '"CurrencyRatesId", batch_id, extract_id, record_number) '
            "VALUES (%s, %s, %s, 2, %s, %s, %s, %s, %s, 9, 1, 1, 999)",
            one.id, one.tenant, one.action, one.at, _minutes(one.at), one.paid, one.discount,
            one.currency,
        )  # fmt: skip

    def sweep(self) -> None:
        """All that is not needed any more is removed, as after some days."""
        later = datetime.now(UTC) + timedelta(days=3)
        swept = sweep(self.place, Retention(1, 1, 1), now=later, dry_run=False)
        self.log.append(f"housekeeping: {[(one.what, one.number) for one in swept if one.number]}")

    # What people do.

    def decide(self) -> None:
        run = self.world.chains[None][-1]
        known = {one["id"]: one for one in self.listed(run)}
        ours = {_id(line): name for name, line in known.items()}
        some = [one for one in run.breaks if one.state in (*OPEN, "ACCEPTED")]
        for one in self.chance.sample(some, min(len(some), self.chance.randint(0, 3))):
            terms: dict[str, Any] = {"id": one.id}
            name, number = ours[one.id], str(run.number)
            if one.state == "ACCEPTED" and self.chance.random() < 0.5:
                self.said("breaks", "reopen", name, "--run", number, "--reason", "no", "--by", "bo")
                self.world.decided.append(("reopen", terms))
            elif self.chance.random() < 0.8:
                until = self.day + timedelta(self.chance.choice((0, 5, 60)))
                more: tuple[str, ...] = ()
                if one.code == "AMOUNT" and self.chance.random() < 0.5:
                    up_to = abs(one.delta or 0) + Decimal(1)
                    more, terms["up_to"] = ("--up-to", str(up_to)), up_to
                self.said("breaks", "accept", name, "--run", number, "--reason", "ok", "--until",
                          str(until), "--by", "ann", *more)  # fmt: skip
                self.world.decided.append(("accept", terms | {"until": until, "by": "ann"}))
            else:
                at = self.chance.choice(("source", "service"))
                self.said("breaks", "resolve", name, "--run", number, "--reason", "done",
                          "--at", at, "--by", "cy")  # fmt: skip
                self.world.decided.append(("resolve", terms | {"at": at}))

    def close(self) -> None:
        """Everything that is open is accepted, the day reconciled again, and the report signed."""
        run = self.world.chains[None][-1]
        left = [one for one in run.breaks if one.state in OPEN]
        if left:
            until = self.day + timedelta(self.chance.choice((3, 90)))
            self.said("breaks", "accept", "--state", "open", "--run", str(run.number), "--reason",
                      "month end", "--until", str(until), "--by", "ann")  # fmt: skip
            terms = {"until": until, "by": "ann"}
            self.world.decided += [("accept", terms | {"id": one.id}) for one in left]
            run = self.reconcile()
        totals = self.totals(run.number)
        if totals["cover"]["verdict"] not in ("RECONCILED", "RECONCILED_WITH_ACCEPTED"):
            return
        number, accept = str(run.number), totals["changes"]["accept"]
        self.said("sign", "prepare", number, "--by", "Ann")
        more = ("--accept-changes", accept[:12]) if accept else ()
        self.said("sign", "approve", number, "--by", "Bo", *more)
        self.world.step += 1
        self.world.approved[run.number] = self.world.step

    def reconcile(self, restate: date | None = None) -> Run:
        path = self.folder / "rules.toml"
        path.write_text(self.rules.text)
        day = restate or self.day
        more = ("--restate", "late") if restate else ()
        self.world.step += 1
        told = self.said("reconcile", "--as-of", str(day), "--rules", str(path), "--json", *more,
                         codes=(0, 1))  # fmt: skip
        said = json.loads(told)
        run = self.world.run(said["reconciliation"], day, self.rules, restate is not None)
        self.compare(run)
        return run

    def _some(self, of: list[Any]) -> Any:
        return self.chance.choice(of) if of else None

    def _sql(self, statement: str, *values: object) -> None:
        self.log.append(f"{statement[:30]} {values}")
        with self.place.database.connect() as connection:
            connection.execute(statement, values)  # type: ignore[arg-type]

    # What is told.

    def totals(self, number: int) -> Any:
        return json.loads((self._folder(number) / "totals.json").read_text())

    def _folder(self, number: int) -> Path:
        return self.place.settings.reports / f"reconciliation-{number}"

    def listed(self, run: Run) -> list[dict[str, Any]]:
        told = self.recon("breaks", "list", "--run", str(run.number), "--json")
        assert told.returncode == 0, told
        return list(json.loads(told.stdout)["breaks"])

    def compare(self, run: Run) -> None:
        where = "\n".join([*self.log, f"run {run.number} as of {run.as_of}, {self.rules}"])
        there = [one for one in run.breaks if one.state not in GONE]
        ours = {one.id: self.line(one, run.as_of) for one in there}
        told = {}
        with (self._folder(run.number) / "breaks.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        for line in lines:
            told[_id(line)] = {name: line[name] for name in next(iter(ours.values()), ())}
        assert told == ours, where
        totals = self.totals(run.number)
        statuses = {one["status"]: one["rows"] for one in totals["statuses"]}
        assert statuses == run.statuses, where
        for name, of in (("roll_forward", "open"), ("accepted_forward", "accepted"),
                         ("aside_forward", "set aside")):  # fmt: skip
            assert _forwards(totals[name]) == {
                key: lines for key, lines in forward(run, of).items() if lines
            }, (name, where)
        self.compare_sides(run, totals, where)
        self.compare_ages(run, totals, there, where)
        listed = {_id(line): line["state"] for line in self.listed(run)}
        assert listed == {one.id: one.state for one in run.breaks}, where
        self.compare_desk(run, there, where)

    def line(self, one: Break, as_of: date) -> dict[str, str]:
        until = one.until if one.state in ("ACCEPTED", "EXPIRED") or one.seen else None
        return {
            "state": one.state,
            "currency": str(one.currency or ""),
            "delta": _money(one.delta),
            "amount": _money(one.amount),
            "basis": one.basis,
            "counted": _money(one.counted),
            "severity": severity(one, as_of),
            "first_seen": str(one.first),
            "age_days": str(max((as_of - one.begin()).days, 0)),
            "age_business_days": str(max(business_days(one.begin(), as_of, self.calendar), 0)),
            "accepted_until": str(until or ""),
            "accepted_by": one.by if until else "",
        }

    def compare_sides(self, run: Run, totals: Any, where: str) -> None:
        for name, side in (("expected", run.delivered), ("found", run.found)):
            found = {
                (one["tenant"], one["currency"]): (
                    one[f"{name}_rows"], *(Decimal(one[name][of]) for of in
                                           ("PaidAmount", "DiscountAmount"))
                )
                for one in totals["controls"] if one[f"{name}_rows"]
            }  # fmt: skip
            assert found == side, (name, where)
        for one in totals["proofs"]:
            assert Decimal(one["unexplained"]) == 0, where
            place = 1 if one["field"] == "PaidAmount" else 2
            for line, side in ((one["lines"][0], run.delivered), (one["lines"][-1], run.found)):
                own = [cell for (_, currency), cell in side.items() if currency == one["currency"]]
                assert line["rows"] == sum(cell[0] for cell in own), where
                assert Decimal(line["amount"]) == sum(cell[place] for cell in own), where

    def compare_ages(self, run: Run, totals: Any, there: list[Break], where: str) -> None:
        ours: Counter[Any] = Counter()
        money: Counter[Any] = Counter()
        for one in there:
            if one.state in OPEN:
                age = max((run.as_of - one.begin()).days, 0)
                place = sum(age > upper for upper in BUCKETS)
                cell = one.code, str(one.currency or ""), one.basis, place
                ours[cell] += 1
                money[cell] += one.counted or Decimal(0)
        found: Counter[Any] = Counter()
        amounts: Counter[Any] = Counter()
        for line in totals["ageing"]:
            for place, (rows, amount) in enumerate(
                zip(line["counts"], line["amounts"], strict=True)
            ):
                cell = line["code"], line["currency"], line["basis"], place
                found[cell] += rows
                amounts[cell] += Decimal(amount)
        assert +found == +ours, where
        assert {of: amounts[of] for of in ours} == dict(money), where

    def compare_desk(self, run: Run, there: list[Break], where: str) -> None:
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
            number = Decimal(re.sub(r"[^0-9.\-]", "", unescape(told).replace("\u2212", "-")))
            if asked.get("basis") in ("difference", "gross"):
                own = [one.counted or 0 for one in fit if one.basis == asked["basis"]]
                assert number == sum(own), (to, where)
            elif "basis" not in asked:
                assert number == len(fit), (to, where)


def _line(row: Row) -> str:
    one = row.payment
    paid = "abc" if row.bad == "amount" else one.paid
    rate = "x" if row.bad == "rate" else 9
    return (f"{one.id},{one.tenant},{one.action},2,{one.at.isoformat()},{paid},{one.discount},"
            f"{one.currency},{rate}")  # fmt: skip


def _minutes(at: datetime) -> int:
    offset = at.utcoffset()
    assert offset is not None
    return int(offset.total_seconds() // 60)


def _id(line: dict[str, Any]) -> tuple[Any, ...]:
    number, tenant = line["key"].split("/")
    return line["code"], (int(number), int(tenant)), line["field"] or "", line["side"]


def _money(amount: Decimal | None) -> str:
    if amount is None:
        return ""
    text = format(amount.normalize(), "f")
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.ljust(2, '0')}"


def _forwards(told: Any) -> Any:
    found = {}
    for one in told:
        assert (one["residual_rows"], Decimal(one["residual"])) == (0, 0)
        found[one["currency"]] = {
            _word(line["text"]): (line["rows"], Decimal(line["amount"]), Decimal(line["gross"]))
            for line in one["lines"]
            if line["rows"] or Decimal(line["amount"]) or Decimal(line["gross"])
        }
    return {currency: lines for currency, lines in found.items() if lines}


def _word(text: str) -> str:
    return max((name for name in NAMES if text.startswith(name)), key=len)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_every_figure_of_every_run(
    workspace: Workspace, recon: Callable[..., Ran], seed: int
) -> None:
    with desk_of(workspace) as url:
        page = Browser(url)
        story = _Story(seed, workspace, recon, page)
        story.deliver()
        story.deliver()
        story.reconcile()
        for _ in range(5):
            for _ in range(story.chance.randint(0, 4)):
                story.chance.choice((
                    story.deliver, story.deliver_again, story.correct, story.change, story.change,
                    story.insert, story.sweep,
                ))()  # fmt: skip
            story.decide()
            story.day += timedelta(story.chance.choice((0, 1, 3, 12)))
            story.reconcile()
            if story.chance.random() < 0.4:
                story.close()
            main = story.world.chains[None]
            if story.chance.random() < 0.25 and main[-1].as_of > main[0].as_of:
                days = [one.as_of for one in main if one.as_of < main[-1].as_of]
                story.reconcile(restate=story.chance.choice(days))
        page.client.close()
