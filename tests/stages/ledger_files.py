"""Small files of a few record kinds, and what a ledger is to know of each row."""

import random
from pathlib import Path
from typing import Any

from tests.stages.ledger_model import KEYLESS, Row, Terms

HEADERS = {
    "form_reply": "CommsGuid,CampaignActionsRequestsId,Comments",
    "currency_rate": "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate",
    "payment": "Id,TenantsId,ActionsId,DebtsId,PaymentDate,PaidAmount,DiscountAmount,CurrenciesId,"
    "CurrencyRatesId",
    "avatar": "TenantsId,Name,Gender",
    "payment_plan_detail": "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,"
    "PaymentsId",
}
TOGETHER = (
    *(("currency_rate",), ("payment",), ("form_reply",), ("currency_rate", "payment")),
    *(("currency_rate", "payment", "payment_plan_detail"), tuple(HEADERS)),
)


class MadeFiles:
    """Of tenants, keys and a feed of their own, so that several sequences share a database."""

    def __init__(self, seed: int, chance: random.Random, folder: Path) -> None:
        self.seed, self.chance, self._within, self._count = seed, chance, folder, 0
        self.kinds = chance.choice(TOGETHER)
        self.worlds = chance.choice((1, 4, 10))
        """Sets of keys that have nothing to do with each other."""
        self.ids = chance.choice((2, 4, 8))
        self.faulty = chance.choice((0.0, 0.15, 0.4))
        self.leaves_out = self.kinds == ("payment",) and chance.random() < 0.5
        first = 1000 + 2 * seed
        self.tenants = chance.choice([(first,), (first, first + 1)])

    def folder(self) -> Path:
        """A new one, empty."""
        self._count += 1
        path = self._within / f"{self.seed}-{self._count}"
        path.mkdir()
        return path

    def row(self, kind: str, fault: str = "") -> tuple[str, Row]:
        pick, tenant = self.chance.choice, self.chance.choice(self.tenants)
        world = 200 * self.seed + 10 * self.chance.randrange(self.worlds)
        number, other = (world + self.chance.randint(1, self.ids) for _ in range(2))
        day, hour, offset = pick((1, 1, 2)), pick((10, 11, 12)), pick(("", "", "Z", "+02:00"))
        if kind == "payment":
            offset = offset or "Z"
        minutes = {"": None, "Z": 0, "+02:00": 120}[offset]
        at, when = day * 1440 + hour * 60, f"2026-01-{day:02}T{hour}:00:00{offset}"
        amount = pick(("1", "1.0", "2", "3.50", "-4"))
        excluded = kind == "payment" and self.leaves_out and self.chance.random() < 0.2
        version = reference = None
        key: Any = (number, tenant)
        match kind:
            case "currency_rate":
                cells, bad = [str(number), str(tenant), "1", "2", amount, when], 4
                content, version = (float(amount), at, minutes), (at, minutes)
            case "payment":
                money, currency = ["1", "2", when, amount, "0"], "9" if excluded else "1"
                cells, bad = [str(number), str(tenant), *money, currency, str(other)], 5
                content, version = (float(amount), at, minutes, other), (at, minutes)
                reference = other, tenant
            case "form_reply":
                guid, text = f"{world}{pick(('a', 'b, c', 'ü'))}", pick(("", "x", "y\nz"))
                key, content = (guid, number % 2), (text or None,)
                cells, bad = [guid, str(number % 2), text], 1
                if self.chance.random() < 0.15:  # Such a row equals no other.
                    cells[self.chance.randrange(2)], key = "", (object(),)
            case "avatar":
                cells, bad = [str(tenant), pick(("a", "", "ü")), pick("fm")], 0
                key = content = (tenant, cells[1] or None, cells[2])
            case _:
                cells, bad = [str(number), f"2026-01-0{day}", amount, "1", str(other)], 2
                key = content = (number, day, float(amount), other)
                reference = other, None
        if fault in ("bad", "key"):
            cells[bad if fault == "bad" else 1 if kind == "form_reply" else 0] = "x"
        text = ",".join(map(self.cell, cells)) + ",more" * (fault == "width")
        if fault == "quote":
            text = f'"x"y,{text}'.replace("\n", "")
        undivided = fault in ("width", "quote")
        excluded = excluded and not undivided
        fault = "" if excluded else fault
        if excluded or (fault and (fault != "bad" or kind in ("form_reply", *KEYLESS))):
            key = None
        row = Row(kind, key, content, version, reference, bool(fault), undivided)
        row.verdict = "excluded" if excluded else ""
        return text, row

    def cell(self, text: str) -> str:
        if any(sign in text for sign in ',"\n') or (text and self.chance.random() < 0.05):
            return f'"{text}"'
        return text

    def fault(self) -> str:
        faults = ("bad", "bad", "key", "width", "quote")
        return self.chance.choice(faults) if self.chance.random() < self.faulty else ""

    def file(self, kind: str, header: str, lines: list[str]) -> str:
        folder = self.folder()
        path = folder / f"{kind}-{folder.name}.csv"
        end = self.chance.choice(("\n", "\r\n"))
        path.write_bytes("".join(f"{line}{end}" for line in (header, *lines)).encode())
        return str(path)

    def profile(self, terms: Terms) -> Path:
        lines = [f'feed = "f{self.seed}"', f'keep = "{self.chance.choice(("text", "reference"))}"']
        lines += [f"tenant = {terms.tenant}"] if terms.tenant else []
        lines += [
            "[policy]",
            f'duplicate = "{terms.duplicate}"',
            f'reference = "{terms.reference}"',
        ]
        lines += [f"complete = {str(terms.complete).lower()}", f'repeats = "{terms.repeats}"']
        lines += ["[budget]", f"errors = {terms.budget}"] if terms.budget is not None else []
        lines += ["[leave_out]", 'CurrenciesId = ["9"]'] if self.leaves_out else []
        path = self.folder() / "profile.toml"
        path.write_text("\n".join(lines) + "\n")
        return path
