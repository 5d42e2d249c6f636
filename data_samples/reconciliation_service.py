"""What is planted at the service: answers that went wrong, and a listing of insert-batch data.

The listing speaks of batch 900. Its rows are those that were sent, with one contradiction each.
"""

import json

from reconciliation_base import Payment
from reconciliation_plants import Planted, pay

BATCH = 900
Row = tuple[str, ...]

ANSWERED_PAYMENTS = tuple(Payment(number) for number in (71, 72, 73, 74))
TONES = (("7", "1", "calm"), ("7", "2", "clear"))
SEND = "UPDATE recon.send s SET {} FROM recon.staged_{} r WHERE r.extract_id = s.extract_id AND "
OF = "r.record_number = s.record_number AND {}"


BATCHED_PAYMENTS = tuple(Payment(number) for number in range(81, 90))
"""Payments that come inside insert-batch data; 90 is only listed."""


def _jsondata(payment: Payment) -> str:
    ids = ("Id", "TenantsId", "ActionsId", "DebtsId", "CurrenciesId", "CurrencyRatesId")
    values = dict(zip(_COLUMNS, payment.cells, strict=True))
    typed: dict[str, object] = {
        name: int(value) if name in ids else value for name, value in values.items()
    }
    typed |= {name: float(values[name]) for name in ("PaidAmount", "DiscountAmount")}
    return json.dumps(typed, separators=(",", ":"))


_COLUMNS = (
    "Id",
    "TenantsId",
    "ActionsId",
    "DebtsId",
    "PaymentDate",
    "PaidAmount",
    "DiscountAmount",
    "CurrenciesId",
    "CurrencyRatesId",
)


ECHO = _jsondata(Payment(73, paid="173.52"))


def changed_send(change: str, record: str, which: str) -> str:
    """SQL that changes what the ledger knows of one send."""
    return SEND.format(change, record) + OF.format(which)


ANSWER_CHANGES = (
    (
        "payment 1071 has not been sent yet",
        changed_send("state = 'unsent', status = NULL", "payment", 'r."Id" = 1071'),
    ),
    (
        "payment 1072 was refused by the service",
        changed_send("state = 'refused', status = 400", "payment", 'r."Id" = 1072'),
    ),
    (
        "the service answered with another amount for payment 1073",
        changed_send(
            f"state = 'differs', echo = '{ECHO}'",
            "payment",
            'r."Id" = 1073',
        ),
    ),
    (
        "somebody said that payment 1074 arrived; no answer shows it",
        changed_send("status = NULL", "payment", 'r."Id" = 1074'),
    ),
    (
        "the answer about the tone clear was lost",
        changed_send("state = 'in_doubt', status = NULL", "message_tone", "r.\"Name\" = 'clear'"),
    ),
)

ANSWER_BREAKS = (
    pay("NOT_SENT", 71),
    pay("REFUSED", 72),
    pay("ECHO", 73, "PaidAmount"),
    pay("UNCONFIRMED", 74),
    Planted("IN_DOUBT", "message_tone", "7/2/clear"),
)


def _row(
    payment: Payment,
    *,
    error: bool = False,
    merged: bool = True,
    json_text: str | None = None,
    told: str = "",
) -> Row:
    jsondata = _jsondata(payment) if json_text is None else json_text
    return (",".join(payment.cells), str(error), str(merged), str(BATCH), jsondata, told)


def sent_rows() -> list[Row]:
    """Insert-batch data as it is delivered: nothing merged yet."""
    return [_row(payment, merged=False) for payment in BATCHED_PAYMENTS]


def listed_rows() -> list[Row]:
    """The same rows as the service lists them, each but the first with something wrong."""
    first, _, untold, both, neither, unset, unreadable, differs, _last = BATCHED_PAYMENTS
    stranger = Payment(90)
    other = Payment(88, paid="188.52")
    return [
        _row(first),
        _row(untold, error=True, merged=False),
        _row(both, error=True, told="late"),
        _row(neither, merged=False),
        _row(unset, told="late"),
        _row(unreadable, json_text="{not json"),
        _row(differs, json_text=_jsondata(other)),
        _row(_last),
        _row(stranger),
    ]


LISTING_BREAKS = (
    Planted("BATCH_MISSING", "insert_batch_data", "900 payment 1082/7"),
    Planted("BATCH_EXTRA", "insert_batch_data", "900 payment 1090/7"),
    Planted("BATCH_ERROR_UNTOLD", "insert_batch_data", "900 payment 1083/7", "ErrorData"),
    Planted("BATCH_MERGED_ERROR", "insert_batch_data", "900 payment 1084/7", "Merged"),
    Planted("BATCH_NOT_MERGED", "insert_batch_data", "900 payment 1085/7", "Merged"),
    Planted("BATCH_ERROR_UNSET", "insert_batch_data", "900 payment 1086/7", "HasError"),
    Planted("BATCH_JSON_UNREADABLE", "insert_batch_data", "900", "Jsondata"),
    Planted("BATCH_JSON_DIFFERS", "insert_batch_data", "900 payment 1088/7", "PaidAmount"),
    Planted("BATCH_COUNT", "insert_batch_data", "900", "HasError"),
)
