"""What an import of a sample delivery must find, as the content of its expected.json."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from sample_batches import Wrapped
from sample_delivery import Placed
from sample_text import COLUMNS, KINDS, Row

MONEY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "payments": ("CurrenciesId", ("PaidAmount", "DiscountAmount")),
    "payment_plan_details": ("PlannedCurrenciesId", ("PlannedAmount",)),
}
"""The currency and the amounts of the extracts that carry money."""
Json = dict[str, object]


def expected(name: str, placed: Sequence[Placed]) -> Json:
    """Counts, verdicts by record and control totals of one file."""
    counted = [each for each in placed if each.record.verdict in {"accepted", "noted"}]
    rows = [each.record.row for each in counted]
    found: Json = {
        "record_kind": KINDS[name],
        "rows": len(placed),
        "accepted": len(counted),
        "rejected": [_verdict(each) for each in placed if each.record.verdict == "rejected"],
        "superseded": _superseded(placed),
        "notes": [_verdict(each) for each in placed if each.record.verdict == "noted"],
    }
    if "Id" in COLUMNS[name]:
        found["hash_total_of_ids"] = str(sum(int(str(row[0])) for row in rows))
    if "TenantsId" in COLUMNS[name]:
        found["accepted_by_tenant"] = by_tenant(name, rows)
    if name in MONEY:
        found["control_totals"] = control_totals(name, rows)
    return found


def by_tenant(name: str, rows: Iterable[Row]) -> dict[str, int]:
    """Accepted records per TenantsId: bound to one, the others are TenantNotBound."""
    counts: defaultdict[str, int] = defaultdict(int)
    place = COLUMNS[name].index("TenantsId")
    for row in rows:
        counts[str(row[place])] += 1
    return dict(sorted(counts.items()))


def control_totals(name: str, rows: Iterable[Row]) -> dict[str, Json]:
    """Count and exact sums per CurrenciesId."""
    currency, amounts = MONEY[name]
    at = {column: place for place, column in enumerate(COLUMNS[name])}
    totals: defaultdict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    counts: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        code = str(row[at[currency]])
        counts[code] += 1
        for amount in amounts:
            totals[code][amount] += Decimal(str(row[at[amount]]))
    return {
        code: {"count": counts[code], **{name: f"{sums[name]:.2f}" for name in amounts}}
        for code, sums in sorted(totals.items(), key=lambda each: int(each[0]))
    }


def inner(wrapped: Iterable[Wrapped]) -> Json:
    """The records inside insert-batch data, apart by whether they are merged already."""
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for each in wrapped:
        groups[each.extract, "merged" if each.merged else "to_merge"].append(each.record)
    found: defaultdict[str, Json] = defaultdict(dict)
    for (name, state), rows in sorted(groups.items()):
        part: Json = {
            "rows": len(rows),
            "hash_total_of_ids": str(sum(int(str(row[0])) for row in rows)),
        }
        if name in MONEY:
            part["control_totals"] = control_totals(name, rows)
        found[KINDS[name]][state] = part
    return dict(found)


def _verdict(each: Placed) -> Json:
    return {
        "record_number": each.number,
        "first_line": each.first_line,
        "last_line": each.last_line,
        "ErrorCode": each.record.code,
        "FieldName": each.record.field,
        "fault": each.record.story,
    }


def _superseded(placed: Sequence[Placed]) -> list[Json]:
    """Repeated records: which of the two is kept does not matter, since they are the same."""
    first = {each.record.origin: each.number for each in reversed(placed)}
    return [
        {
            "record_number": each.number,
            "first_line": each.first_line,
            "same_as": first[each.record.origin],
        }
        for each in placed
        if each.record.verdict == "superseded"
    ]
