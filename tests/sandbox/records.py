"""Records that pass every rule, and the texts their answers hold."""

from typing import Any

PAYMENT: dict[str, Any] = {
    "Id": 12,
    "TenantsId": 1,
    "ActionsId": 2,
    "DebtsId": 3,
    "PaymentDate": "2026-01-02T03:04:05+02:00",
    "PaidAmount": 10.5,
    "DiscountAmount": 0,
    "CurrenciesId": 1,
    "CurrencyRatesId": 4,
}
PAYMENT_HEADER = ",".join(PAYMENT)
PAYMENT_CSV = f"{PAYMENT_HEADER}\r\n12,1,2,3,2026-01-02T03:04:05.0000000+02:00,10.5,0,1,4\r\n"
TONE: dict[str, Any] = {"TenantsId": 1, "AvatarsId": 2, "Name": "x"}
RATE: dict[str, Any] = {
    "Id": 3,
    "TenantsId": 1,
    "FromCurrenciesId": 1,
    "ToCurrenciesId": 2,
    "ExchangeRate": 1.0712,
    "EffectiveDate": "2026-01-02",
}
REGISTRATION: dict[str, Any] = {
    "EMail": "a@b.co",
    "FirstName": "A",
    "LastName": "B",
    "Password": "secret-word",
    "Company": "",
    "Roles": ["Client", "x,y"],
}
