"""Reconciliation reports as values: one with everything in it, hostile texts included."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal

from flows.steps.breaks.ageing import AgeingLine
from flows.steps.breaks.causes import CauseLine
from flows.steps.breaks.tolerated import ToleranceLine
from flows.steps.reconcile.allotment import PlanLine
from flows.steps.reconcile.batches import BatchLine
from flows.steps.reconcile.cut_off import AfterLine
from flows.steps.reconcile.debts import DebtLine
from flows.steps.reconcile.report import (
    Changes,
    Cover,
    InputLine,
    PreviousLine,
    ReconciliationReport,
    RuleChange,
    SignOff,
    SourceLine,
)
from flows.steps.reconcile.reported_breaks import BreakLine, Breaks
from flows.steps.reconcile.roll_forward import RollForward
from flows.steps.reconcile.self_test import SelfTest
from flows.steps.reconcile.totals import (
    ChainLine,
    ControlLine,
    ExcludedLine,
    Proof,
    ProofLine,
    StatusLine,
)
from flows.steps.reconcile.used_rates import RateLine
from schemas.breaks import BREAKS
from tests.report.sample_reports import HOSTILE

AS_OF = date(2026, 3, 9)
ZERO = Decimal(0)
WIDE = 9007199254740993
"""One more than a double holds."""


def everything() -> ReconciliationReport:
    """Not reconciled; every section has lines, and delivered texts are hostile."""
    return ReconciliationReport(
        cover=Cover(
            title=f"Reconciliation of feeds {HOSTILE['markup']}",
            as_of=AS_OF,
            period=(date(2026, 2, 20), date(2026, 3, 25)),
            tenants=(7, 8),
            truths=(
                SourceLine("payment", "E", ("D", "A"), (), "the service has no listing of these"),
                SourceLine("payment_plan_detail", "E", ("D",), ("G",), ""),
            ),
            inputs=(
                InputLine("payments.csv", "payment", 340_411, "a" * 64, 45, 12),
                InputLine(HOSTILE["formula"], "payment_plan_detail", 604, "b" * 64, 18, 12),
                InputLine("listing", "payment_plan_detail", 0, "c" * 64, 0),
            ),
            rules_name="three days in March",
            rules_hash="d" * 64,
            rules_text='name = "three days in March"\n\n[budget]\ncount = 2\n# </pre><script>\n',
            version="1.0.0",
            previous=PreviousLine(6, date(2026, 3, 6), "e" * 64, "RECONCILED_WITH_ACCEPTED"),
            verdict="NOT_RECONCILED",
            because=("6 open breaks", "1 tolerance limit passed", HOSTILE["closing"]),
            after=_after(),
        ),
        statuses=(
            StatusLine("payment", "MATCHED_EXACT", 38),
            StatusLine("payment", "MATCHED_TOLERANCE", 1),
            StatusLine("payment", "MATCHED_MANUAL", 1),
            StatusLine("payment", "PENDING", 1),
            StatusLine("payment", "MISSING_IN_TARGET", 2),
            StatusLine("payment", "MISMATCH", 1),
            StatusLine("payment", "EXCLUDED", 3),
            StatusLine("payment_plan_detail", "MATCHED_EXACT", 18),
        ),
        chain=_chain(),
        controls=(
            ControlLine(
                "payment",
                7,
                "978",
                45,
                42,
                {"PaidAmount": Decimal("6597.52"), "DiscountAmount": Decimal("503.00")},
                {"PaidAmount": Decimal("6242.03"), "DiscountAmount": Decimal("503.01")},
                WIDE,
                WIDE - 2047,
                {"PaidAmount": Decimal("-355.49"), "DiscountAmount": Decimal("0.01")},
                {"PaidAmount": ZERO, "DiscountAmount": ZERO},
                0,
            ),
            ControlLine(
                "payment",
                8,
                "12",
                1,
                1,
                {
                    "PaidAmount": Decimal("99999999999999999999.999999999999999999"),
                    "DiscountAmount": ZERO,
                },
                {
                    "PaidAmount": Decimal("99999999999999999999.999999999999999998"),
                    "DiscountAmount": ZERO,
                },
                5,
                5,
                {"PaidAmount": ZERO, "DiscountAmount": ZERO},
                {"PaidAmount": Decimal("-0.000000000000000001"), "DiscountAmount": ZERO},
                0,
            ),
            ControlLine("payment_plan_detail", None, "", 18, 18, {}, {}, 3, 3, {}, {}, 0),
        ),
        proofs=(
            Proof(
                "payment",
                "PaidAmount",
                "978",
                (
                    ProofLine("total per extract", 45, Decimal("6597.52")),
                    ProofLine("- excluded: superseded", -1, Decimal(-100)),
                    ProofLine("- missing in target", -2, Decimal("-255.50")),
                    ProofLine("+/- amounts and currencies that differ", 0, Decimal("0.01")),
                    ProofLine("= total per target", 42, Decimal("6242.03"), total=True),
                    ProofLine("counted in the target", 42, Decimal("6242.03")),
                ),
                ZERO,
            ),
            Proof(
                "payment",
                "PaidAmount",
                "12",
                (
                    ProofLine("total per extract", 1, Decimal(100)),
                    ProofLine("= total per target", 1, Decimal(100), total=True),
                    ProofLine("counted in the target", 1, Decimal("99.98")),
                ),
                Decimal("-0.02"),
            ),
            Proof(
                "payment",
                "DiscountAmount",
                "12",
                (
                    ProofLine("total per extract", 1, ZERO),
                    ProofLine("= total per target", 1, ZERO, total=True),
                    ProofLine("counted in the target", 1, ZERO),
                ),
                ZERO,
            ),
        ),
        breaks=Breaks.of(breaks()),
        ageing=(
            AgeingLine(
                "AMOUNT",
                "978",
                "difference",
                (0, 1, 0, 0, 0, 0, 0),
                (ZERO, Decimal("0.01"), *[ZERO] * 5),
            ),
            AgeingLine(
                "MISSING_IN_TARGET",
                "978",
                "difference",
                (0, 0, 1, 0, 0, 0, 1),
                (ZERO, ZERO, Decimal("125.25"), ZERO, ZERO, ZERO, Decimal("130.25")),
            ),
            AgeingLine("RATE_TRIANGLE", "", "none", (1, 0, 0, 0, 0, 0, 0), (ZERO,) * 7),
            AgeingLine("VALUE", "978", "gross", (2, 0, 0, 0, 0, 0, 0), (Decimal(51), *[ZERO] * 6)),
        ),
        roll_forward=(
            RollForward(
                "978",
                (
                    ProofLine(
                        "opening: open after the run before", 2, Decimal("300.00"), total=True
                    ),
                    ProofLine("+ new", 3, Decimal("255.51"), gross=Decimal(51)),
                    ProofLine("+ reopened: back after a resolution", 0, ZERO),
                    ProofLine("- resolved at the source", -1, Decimal("-100.00")),
                    ProofLine("- accepted", -1, Decimal("-200.00")),
                    ProofLine(
                        "closing: open after this run",
                        3,
                        Decimal("255.51"),
                        total=True,
                        gross=Decimal(51),
                    ),
                ),
                0,
                ZERO,
            ),
            RollForward(
                "",
                (
                    ProofLine("opening: open after the run before", 0, ZERO, total=True),
                    ProofLine("+ new", 1, ZERO),
                    ProofLine("closing: open after this run", 1, ZERO, total=True),
                ),
                0,
                ZERO,
                money=False,
            ),
        ),
        rates=(
            RateLine(
                "70041",
                7,
                "978",
                "12",
                Decimal("1.0"),
                date(2026, 3, 4),
                2,
                {"978": Decimal("236.5"), "12": Decimal("1.25")},
                0,
                3,
                ("RATE_TENANT", "RATE_STALE"),
                "70042",
                Decimal("-0.122756"),
                "12",
            ),
            RateLine(
                "70051",
                None,
                "978",
                "978",
                Decimal("1.0000000001"),
                date(1899, 12, 31),
                0,
                {},
                0,
                0,
                (),
                None,
                None,
            ),
        ),
        plans=(
            PlanLine(
                "301", 7, "978", 1, Decimal("101.25"), Decimal("101.25"), ZERO, ZERO, (2,), ()
            ),
            PlanLine(
                "302",
                None,
                "12",
                2,
                Decimal(30),
                ZERO,
                Decimal(30),
                Decimal(30),
                (1, 3),
                ("PLAN_UNPAID",),
            ),
        ),
        debts=(
            DebtLine("5001", 7, "978", 1, Decimal("101.25"), ZERO, Decimal("101.25"), 1, ()),
            DebtLine(
                "5002", 7, "978", 2, Decimal(100), Decimal(500), None, 0, ("DISCOUNT_GT_PAID",)
            ),
        ),
        batches=(BatchLine(900, 9, 8, 7, 1, 2, "recon pull insert_batch_data --batch 900"),),
        tolerances=(
            ToleranceLine(
                "payment.DiscountAmount", "978", 1, Decimal("0.01"), None, Decimal("1.00")
            ),
            ToleranceLine("all tolerances", "", 3, ZERO, 2, None),
        ),
        causes=(
            CauseLine(
                "same-factor-100",
                HOSTILE["formula"],
                2,
                {"978": Decimal("255.50")},
                {},
                "b" * 16,
                {"978": 2},
            ),
            CauseLine(
                "same-file-1",
                "one file: payments.csv",
                3,
                {},
                {"978": Decimal(51)},
                "a" * 16,
                {"": 1, "978": 2},
            ),
        ),
        changes=Changes(
            since="reconciliation 3 as of 2026-03-06, the last one approved",
            signed=True,
            accept="a" * 64,
            rules_before="c" * 64,
            rules=(RuleChange("budget: count", "1", "2"),),
            profiles=(
                RuleChange("bank, batch 12: decimal", ".", ","),
                RuleChange(
                    f"bank, batch 12: constants {HOSTILE['markup']}", "", HOSTILE["formula"]
                ),
            ),
            settings=(RuleChange("time zone (RECON_TIME_ZONE)", "UTC", "Pacific/Auckland"),),
            notes=("The report in reconciliation-2 was approved.",),
        ),
        sign_off=SignOff(
            2,
            date(2026, 3, 6),
            "Ada",
            HOSTILE["markup"],
            HOSTILE["table"],
            "f" * 64,
            "0" * 64,
            2,
            compared=12,
            not_compared={"currency_rate": 3},
        ),
        excluded=(
            ExcludedLine("superseded", "payment", 2, ""),
            ExcludedLine("test-tenant", "payment", 1, HOSTILE["formula"]),
        ),
        self_test=SelfTest(43, 42, ("RATE_GAP",)),
        left_out={"debts": 422, "causes": 1},
        currencies={"978": "EUR", "840": "USD", "13": HOSTILE["markup"]},
    )


def breaks() -> tuple[BreakLine, ...]:
    """Six open ones and one accepted; hostile where data was delivered."""
    base = BreakLine(
        id="a" * 16,
        group="COMPLETENESS",
        code="MISSING_IN_TARGET",
        severity="high",
        record="payment",
        tenant=7,
        key="1024/7",
        field="",
        side="D",
        expected=None,
        found=None,
        delta=None,
        amount=Decimal("130.25"),
        basis="difference",
        counted=Decimal("130.25"),
        currency="978",
        file="payments.csv",
        line=20,
        batch_id=12,
        state="OPEN",
        first_seen=date(2025, 11, 1),
        age_days=128,
        age_business_days=88,
        cause="same-factor-100",
        action=BREAKS["MISSING_IN_TARGET"].action,
        owner="",
        note="",
    )
    return (
        base,
        replace(
            base,
            id="b" * 16,
            key=HOSTILE["formula"],
            file=HOSTILE["markup"],
            amount=Decimal("125.25"),
            counted=Decimal("125.25"),
            state="NEW",
            first_seen=AS_OF,
            age_days=5,
            age_business_days=3,
            owner=HOSTILE["link"],
            note=HOSTILE["forged line"],
        ),
        replace(
            base,
            id="c" * 16,
            group="ACCURACY",
            code="AMOUNT",
            severity="medium",
            key="1021/7",
            field="PaidAmount",
            expected="121.25",
            found="-121.26",
            delta=Decimal("-0.01"),
            amount=Decimal("0.01"),
            counted=Decimal("0.01"),
            state="NEW",
            first_seen=AS_OF,
            age_days=3,
            age_business_days=1,
            cause="",
            action=BREAKS["AMOUNT"].action,
        ),
        *(
            replace(
                base,
                id=letter * 16,
                group="ACCURACY",
                code="VALUE",
                severity="low",
                key=f"{letter}/7",
                field="Name",
                expected=HOSTILE[one],
                found="" if other is None else HOSTILE[other],
                amount=None if letter == "d" else Decimal("51.00"),
                basis="gross",
                counted={"d": None, "e": Decimal("51.00"), "f": ZERO}[letter],
                currency="" if letter == "d" else "978",
                state="NEW",
                first_seen=AS_OF,
                age_days=0,
                age_business_days=0,
                cause="same-file-1",
                action=BREAKS["VALUE"].action,
            )
            for letter, one, other in (
                ("d", "terminal", "right to left"),
                ("e", "entity", None),
                ("f", "long", "look-alikes"),
            )
        ),
        replace(
            base,
            id="0" * 16,
            group="RATE",
            code="RATE_TRIANGLE",
            severity="low",
            record="currency_rate",
            tenant=None,
            key="978/840/12",
            expected="1.1",
            found="1.2",
            delta=Decimal("12345678901234567.890000000000000001"),
            amount=None,
            basis="none",
            counted=None,
            currency="",
            file=None,
            line=None,
            batch_id=None,
            state="ACCEPTED",
            age_days=40,
            age_business_days=28,
            cause="",
            action=BREAKS["RATE_TRIANGLE"].action,
            owner="treasury",
            note="accepted by Ada until 2026-04-01: agreed with the bank",
            accepted_by="Ada",
            accepted_until=date(2026, 4, 1),
            accepted_reason="agreed with the bank",
        ),
    )


def reconciled() -> ReconciliationReport:
    """Both sides agree: no break, no residual."""
    full = everything()
    return replace(
        full,
        cover=replace(full.cover, title="Reconciliation", verdict="RECONCILED", because=()),
        statuses=(StatusLine("payment", "MATCHED_EXACT", 44),),
        controls=full.controls[2:],
        proofs=full.proofs[2:],
        breaks=Breaks.of(()),
        ageing=(),
        roll_forward=(),
        causes=(),
        changes=None,
        sign_off=None,
        excluded=(),
        tolerances=(),
        self_test=SelfTest(43, 43),
    )


def _after() -> tuple[AfterLine, ...]:
    """Dated after the day: delivered more often than it is there, and once without an amount."""
    first, last = date(2026, 3, 10), date(2026, 4, 30)

    def payments(side: str, currency: str, rows: int, paid: str, **unreadable: int) -> AfterLine:
        amounts = {"PaidAmount": Decimal(paid), "DiscountAmount": ZERO}
        return AfterLine("payment", side, currency, rows, first, last, amounts, unreadable)

    planned = {"PlannedAmount": Decimal("57586.8")}
    return (
        payments("E", "", 1, "380.1"),
        payments("E", "978", 1784, "1975134.4", PaidAmount=1),
        payments("E", "12", 3, "12"),
        payments("D", "978", 889, "986816.03"),
        AfterLine("currency_rate", "E", "", 2930, first, first, {}),
        AfterLine("currency_rate", "D", "", 1461, first, first, {}),
        AfterLine("payment_plan_detail", "G", "978", 120, last, last, planned),
    )


def accepted() -> ReconciliationReport:
    """What is left was accepted."""
    full = everything()
    because = ("1 break is accepted",)
    return replace(
        reconciled(),
        cover=replace(
            full.cover,
            title="Reconciliation of tenants 7",
            verdict="RECONCILED_WITH_ACCEPTED",
            because=because,
            after=(),
        ),
        breaks=full.breaks[-1:],
        changes=None,
        sign_off=SignOff(2, date(2026, 3, 6), "Ada", None, "", "f" * 64, "0" * 64, 0),
        accepted_forward=(
            RollForward(
                "978",
                (
                    ProofLine("opening: accepted after the run before", 2, Decimal(30), total=True),
                    ProofLine("+ accepted", 1, Decimal("10.25")),
                    ProofLine("- expired: the acceptance has run out", -1, Decimal(-20)),
                    ProofLine("closing: accepted after this run", 2, Decimal("20.25"), total=True),
                ),
                0,
                ZERO,
            ),
        ),
    )


def nothing() -> ReconciliationReport:
    """No source was there at all."""
    full = everything()
    because = ("there is no extract in this scope: nothing to hold the target against",)
    cover = replace(
        full.cover,
        title="Reconciliation of everything",
        period=(None, None),
        after=(),
        tenants=(),
        truths=(),
        inputs=(),
        previous=None,
        verdict="INCOMPLETE",
        because=because,
    )
    empty: Mapping[str, tuple[()]] = dict.fromkeys(
        ("statuses", "chain", "controls", "proofs", "rates", "plans", "debts", "batches"), ()
    )
    return replace(reconciled(), cover=cover, **empty)  # type: ignore[arg-type]


REPORTS: Mapping[str, Callable[[], ReconciliationReport]] = {
    "everything": everything,
    "reconciled": reconciled,
    "accepted": accepted,
    "nothing": nothing,
}


def many(count: int) -> ReconciliationReport:
    """So many breaks, all of them different."""
    base = breaks()[2]
    return replace(
        everything(),
        breaks=Breaks.of(
            replace(base, id=f"{number:016x}", key=f"{number}/7", amount=Decimal(number).scaleb(-2))
            for number in range(count)
        ),
    )


def _chain() -> tuple[ChainLine, ...]:
    stages = (
        ("delivered", 45, "6597.52", "503.00", 3_000_046_182, ""),
        ("accepted", 44, "6468.27", "503.00", 3_000_042_997, "rejected and conflict"),
        (
            "to be found",
            43,
            "6368.27",
            "503.00",
            3_000_042_997,
            "superseded, stale and left out by rules",
        ),
        (
            "in the target",
            42,
            "6242.03",
            "503.01",
            3_000_042_869,
            "breaks, timing, and what rules leave out there",
        ),
    )
    lines = []
    rows, paid, discount = 45, Decimal("6597.52"), Decimal("503.00")
    for stage, count, amount, off, keys, explained in stages:
        lines.append(
            ChainLine(
                "payment",
                stage,
                "978",
                count,
                {"PaidAmount": Decimal(amount), "DiscountAmount": Decimal(off)},
                keys,
                count - rows,
                {"PaidAmount": Decimal(amount) - paid, "DiscountAmount": Decimal(off) - discount},
                explained,
                0,
                {
                    "PaidAmount": ZERO,
                    "DiscountAmount": Decimal("0.01") if stage == "accepted" else ZERO,
                },
            )
        )
        rows, paid, discount = count, Decimal(amount), Decimal(off)
    return tuple(lines)
