"""One period, drawn by its seed: what others do to batches and the target, and what people decide.

All of it goes through the commands, and the model is told the same.
"""

import csv
import io
import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from tests.governance.conftest import Ran
from tests.governance.period_batches import NOBODY
from tests.governance.period_facts import OPEN, Key, Payment, Row, Rules, Run
from tests.governance.period_model import World
from tests.stages.payments import HEADER

AMOUNTS = ("0.01", "10.50", "99.99", "100", "2500.75", "10000", "9000000000000.01", "0.5")
OFFSETS = (0, 60, 330, 840, -720, -210)
RULES: dict[str, tuple[Any, ...]] = {
    "calendar": (None, "AZ", "DE-BY", "ECB"),
    "tolerance": (0, 1, 20_000),
    "window": (None, 0, 2, 40),
    "business": (True, False),
    "offset": ("told", "equal", "differs"),
    "out": (0, 1, 2),
    "high": (10_000, 50),
    "medium": (100, 20),
}


class Story:
    def __init__(self, seed: int, place: Workspace, recon: Callable[..., Ran]) -> None:
        self.chance, self.place, self.recon = random.Random(seed), place, recon
        self.world, self.day = World(), date(2024, 12, 20)
        self.folder = place.settings.home.parent / "delivered"
        self.folder.mkdir(exist_ok=True)
        self.numbers = iter(range(1, 10_000))
        self.files: dict[int, tuple[Path, list[Row], int | None]] = {}
        pick = self.chance.choice
        self.rules = Rules(pick(RULES["calendar"]), pick((0, 1)), pick((None, 2)))
        self.log: list[str] = [f"seed {seed}"]

    def said(self, *arguments: object, codes: tuple[int, ...] = (0,)) -> Ran:
        typed = [str(one) for one in arguments]
        self.log.append(" ".join(["refused:" if codes == (2,) else "recon", *typed]))
        ran = self.recon(*typed)
        assert ran.returncode in codes, (self.log, ran)
        return ran

    # What others do.

    def payment(self) -> Payment:
        pick = self.chance.choice
        zone = timezone(timedelta(minutes=pick(OFFSETS)))
        day = self.day + timedelta(self.chance.randint(-40, 12))
        at = datetime(day.year, day.month, day.day, pick((0, 12, 23)), pick((0, 30)), tzinfo=zone)
        return Payment(next(self.numbers), pick((7, 8)), pick((1, 1, 2)), at,
                       Decimal(pick(AMOUNTS)), Decimal(pick(("0", "0.25", "150"))),
                       pick((1, 2)))  # fmt: skip

    def deliver(self) -> None:
        self.deliver_rows(self._rows())

    def hold(self) -> None:
        """A delivery over its error budget."""
        self.deliver_rows([*self._rows(), Row(self.payment(), "rate")], hold=True)

    def _rows(self) -> list[Row]:
        some = range(self.chance.randint(1, 3))
        return [Row(self.payment(), self.chance.choice(("", "", "", "amount", "rate")))
                for _ in some]  # fmt: skip

    def deliver_rows(
        self, rows: list[Row], corrects: int | None = None, *, hold: bool = False,
        path: Path | None = None, named: str | None = None,
    ) -> None:  # fmt: skip
        if path is None:
            path = self.folder / f"p{len([*self.folder.iterdir()])}.csv"
            lines = [HEADER, *map(_line, rows)]
            if named is not None:
                lines = [
                    f"{cell},{line}" for cell, line in zip(("ReconRow", named), lines, strict=True)
                ]
            path.write_text("\n".join(lines) + "\n")
        more = () if corrects is None else ("--corrects", corrects)
        budget = ("--max-errors", 0) if hold else ()
        told = json.loads(self.said("import", path, "--json", *more, *budget, codes=(0, 1)).stdout)
        batch = told["batch"]
        assert (told["state"] == "held") == hold, (self.log, told)
        if batch not in self.world.corrects:  # Else the same bytes came once more.
            self.world.deliver(batch, rows, corrects, hold=hold)
            self.files[batch] = path, rows, corrects

    def deliver_again(self) -> None:
        good = [row for row in self.world.rows if not row.bad and row.verdict != "pending"]
        if row := self.some(good):
            one = row.payment
            changed = self.chance.choice((
                one, one._replace(paid=one.paid + Decimal("0.75")),
                one._replace(at=one.at + timedelta(days=self.chance.choice((-3, 20)))),
            ))  # fmt: skip
            self.deliver_rows([Row(changed)])

    def correct(self) -> None:
        good = {row.key for row in self.world.rows if not row.bad}
        bad = [row for row in self.world.rows
               if row.bad and row.key not in good and row.batch not in self.world.held]  # fmt: skip
        if row := self.some(bad):
            run = self.world.chains[None][-1]
            told = any((one.code, one.key, one.batch) == ("REJECTED", row.key, row.batch)
                       and one.state in OPEN for one in run.breaks)  # fmt: skip
            by_file = told and self.chance.random() < 0.7
            named = self._offered(run)[row.payment.id] if by_file else None
            self.deliver_rows([Row(row.payment)], row.batch, named=named)

    def _offered(self, run: Run) -> dict[int, str]:
        """What the files to correct of a report call a row, by the Id of its record."""
        folder = self.folder_of(run.number) / "corrections"
        texts = (path.read_text() for path in sorted(folder.glob("*.csv")))
        return {int(line["Id"]): line["ReconRow"] for text in texts
                for line in csv.DictReader(io.StringIO(text))}  # fmt: skip

    def settle(self, what: str = "") -> None:
        """Somebody decides about a held batch."""
        if batch := self.some(sorted(self.world.held)):
            what = what or self.chance.choice(("release", "discard"))
            self.said(what, batch, "--reason", "seen", "--by", "op", codes=(0, 1))
            getattr(self.world, what)(batch)

    def undo(self) -> None:
        """Somebody takes a batch back, if another one stays."""
        there = sorted({row.batch for row in self.world.rows} - self.world.held)
        if len(there) > 1:
            self.undo_batch(self.some(there))

    def undo_batch(self, batch: int) -> None:
        """Take it back where that is possible, also over what somebody changed."""
        asked = ("undo", batch, "--reason", "wrong", "--by", "op")
        why, over = self.world.why_not_undone(batch), self.world.by_hand(batch)
        if why or over:
            told = self.said(*asked, codes=(2,)).stderr
            assert (why or "changed or deleted rows in the database") in told, (self.log, told)
        if not why:
            self.said(*asked, *(("--over-changes",) if over else ()))
            self.world.undo(batch)

    def bring_back(self) -> None:
        """A batch that was taken back comes again as it was."""
        if batch := self.some(sorted(self.world.taken_back)):
            path, rows, corrects = self.files[batch]
            if corrects not in self.world.taken_back:
                self.deliver_rows(rows, corrects, path=path)

    def change(self) -> None:
        key = self.some(sorted(self.world.target))
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
                self.write(key, None)
                return
            case "back" if row:
                one = row.payment
        self.write(key, one)

    def write(self, key: Key, one: Payment | None) -> None:
        """Write a record by hand, or over what is there; None: delete it."""
        if one is None:
            self._sql('DELETE FROM payment WHERE "Id" = %s', key[0])
            del self.world.target[key]
            return
        if key not in self.world.target:
            self.world.writer[key] = NOBODY
            self._sql(
                'INSERT INTO payment ("Id", "TenantsId", "ActionsId", "DebtsId", "PaymentDate", '
                '"PaymentDate_offset", "PaidAmount", "DiscountAmount", "CurrenciesId", '
                '"CurrencyRatesId", batch_id, extract_id, record_number) '
                "VALUES (%s, %s, %s, 2, %s, %s, %s, %s, %s, 9, 0, 0, 999)",
                one.id, one.tenant, one.action, one.at, _minutes(one.at), one.paid, one.discount,
                one.currency,
            )  # fmt: skip
        else:
            self._sql(
                'UPDATE payment SET "ActionsId" = %s, "PaidAmount" = %s, "DiscountAmount" = %s, '
                '"PaymentDate" = %s, "PaymentDate_offset" = %s WHERE "Id" = %s',
                one.action, one.paid, one.discount, one.at, _minutes(one.at), key[0],
            )  # fmt: skip
        self.world.target[key] = one

    def insert(self) -> None:
        """Somebody writes a payment into the database, or one that was gone once more."""
        lost = [row.payment for row in self.world.rows
                if not row.bad and row.key not in self.world.target]  # fmt: skip
        one = self.some(lost) if lost and self.chance.random() < 0.7 else self.payment()
        assert one is not None
        self.write(one.key, one)

    def sweep(self) -> None:
        """All that is not needed any more is removed, as after some days."""
        later = datetime.now(UTC) + timedelta(days=3)
        swept = sweep(self.place, Retention(1, 1, 1), now=later, dry_run=False)
        self.log.append(f"housekeeping: {[(one.what, one.number) for one in swept if one.number]}")

    # What people do.

    def other_rules(self) -> None:
        name = self.chance.choice((*RULES,))
        self.rules = self.rules._replace(**{name: self.chance.choice(RULES[name])})

    def decide(self, of: date | None = None) -> None:
        run, decided = self.world.chains[of][-1], self.world.decided[of]
        ours = {break_id(line): line["id"] for line in self.listed(run)}
        some = [one for one in run.breaks if one.state in (*OPEN, "ACCEPTED")]
        number = str(run.number)
        for one in self.chance.sample(some, min(len(some), self.chance.randint(0, 3))):
            terms: dict[str, Any] = {"id": one.id}
            name = ours[one.id]
            if one.state == "ACCEPTED" and self.chance.random() < 0.5:
                self.said("breaks", "reopen", name, "--run", number, "--reason", "no", "--by", "bo")
                decided.append(("reopen", terms))
            elif self.chance.random() < 0.8:
                until = run.as_of + timedelta(self.chance.choice((0, 5, 60)))
                more: tuple[str, ...] = ()
                if one.code == "AMOUNT" and self.chance.random() < 0.5:
                    up_to = abs(one.delta or 0) + Decimal(1)
                    more, terms["up_to"] = ("--up-to", str(up_to)), up_to
                self.said("breaks", "accept", name, "--run", number, "--reason", "ok", "--until",
                          until, "--by", "ann", *more)  # fmt: skip
                decided.append(("accept", terms | {"until": until, "by": "ann"}))
            else:
                at = self.chance.choice(("source", "service"))
                self.said("breaks", "resolve", name, "--run", number, "--reason", "done",
                          "--at", at, "--by", "cy")  # fmt: skip
                decided.append(("resolve", terms | {"at": at}))
        self.decided_about(run, of)

    def close(self, of: date | None = None) -> None:
        """Everything that is open is accepted, the day reconciled again, and the report signed."""
        run = self.world.chains[of][-1]
        left = [one for one in run.breaks if one.state in OPEN]
        if left:
            until = run.as_of + timedelta(self.chance.choice((3, 90)))
            self.said("breaks", "accept", "--state", "open", "--run", run.number, "--reason",
                      "month end", "--until", until, "--by", "ann")  # fmt: skip
            terms = {"until": until, "by": "ann"}
            self.world.decided[of] += [("accept", terms | {"id": one.id}) for one in left]
            self.decided_about(run, of)
            run = self.reconcile(of)
        if run.verdict not in ("RECONCILED", "RECONCILED_WITH_ACCEPTED"):
            return
        accept = self.totals(run.number)["changes"]["accept"]
        self.said("sign", "prepare", run.number, "--by", "Ann")
        more = ("--accept-changes", accept[:12]) if accept else ()
        back = ("--accept-restated", of) if of else ()
        self.said("sign", "approve", run.number, "--by", "Bo", *more, *back)
        if of is None:
            self.world.step += 1
            self.world.approved[run.number] = self.world.step
        self.signed(run)

    def reconcile(self, restate: date | None = None) -> Run:
        path = self.folder.parent / "rules.toml"
        path.write_text(self.rules.text)
        day = restate or self.day
        more = ("--restate", "late") if restate else ()
        told = self.said("reconcile", "--as-of", day, "--rules", path, "--json", *more,
                         codes=(0, 1))  # fmt: skip
        said = json.loads(told.stdout)
        run = self.world.run(said["reconciliation"], day, self.rules, restate is not None)
        self.reconciled(run, restate, said)
        return run

    def reconciled(self, run: Run, of: date | None, said: Any) -> None:
        """What is looked at after each run."""

    def decided_about(self, run: Run, of: date | None) -> None:
        """What is looked at after each decision."""

    def signed(self, run: Run) -> None:
        """What is noted of a report that was approved."""

    def some(self, of: list[Any]) -> Any:
        return self.chance.choice(of) if of else None

    def _sql(self, statement: str, *values: object) -> None:
        self.log.append(f"{statement[:30]} {values}")
        with self.place.database.connect() as connection:
            connection.execute(statement, values)  # type: ignore[arg-type]

    def folder_of(self, number: int) -> Path:
        return self.place.settings.reports / f"reconciliation-{number}"

    def totals(self, number: int) -> Any:
        return json.loads((self.folder_of(number) / "totals.json").read_text())

    def listed(self, run: Run, *more: str) -> list[dict[str, Any]]:
        told = self.recon("breaks", "list", "--run", str(run.number), "--json", *more)
        assert told.returncode == 0, (self.log, told)
        return list(json.loads(told.stdout)["breaks"])


def break_id(line: dict[str, Any]) -> tuple[Any, ...]:
    number, tenant = line["key"].split("/")
    return line["code"], (int(number), int(tenant)), line["field"] or "", line["side"]


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
