"""The faults planted into the dirty delivery, one table row each."""

from dataclasses import dataclass, field

STRUCTURAL = frozenset(
    {
        "TooFewFields",
        "TooManyFields",
        "StrayQuote",
        "UnterminatedQuote",
        "Encoding",
        "NulCharacter",
        "FieldTooLarge",
        "InnerRecord",
    }
)
"""Rejects of the whole record; they name no field."""
LONGER_THAN_THE_LIMIT = b"all work and no play " * 50_100


@dataclass(frozen=True, slots=True)
class Plant:
    """A record spoiled in one way; `text` is the cell as it stands in the file, `{}` its value."""

    extract: str
    code: str
    column: str
    text: bytes | None
    """None ends the record before the column."""
    story: str
    also: dict[str, bytes] = field(default_factory=dict)
    """Further cells that must be other for the fault to be the only one."""

    @property
    def named(self) -> str:
        """The FieldName of the reject."""
        return "" if self.code in STRUCTURAL else self.column


@dataclass(frozen=True, slots=True)
class Twin:
    """A record delivered twice: the same again, or with one cell changed."""

    extract: str
    distance: int
    """How many other records stand between the two, more or less."""
    column: str = ""
    text: bytes = b""
    story: str = "the same record again"


PLANTS = (
    Plant("payments", "Integer", "TenantsId", b"seven", "a word for an integer"),
    Plant("payments", "Integer", "DebtsId", b"70.000.123", "points between thousands"),
    Plant("payments", "Integer", "CurrencyRatesId", b"500001.5", "a fraction for an integer"),
    Plant(
        "payments", "Integer", "Id", "\uff14\uff17\uff10\uff10".encode(), "digits of another script"
    ),
    Plant("payments", "IntegerRange", "CurrenciesId", b"2147483648", "one over 32 bits"),
    Plant("payments", "IntegerRange", "Id", b"9223372036854775808", "one over 64 bits"),
    Plant("payments", "NotNull", "Id", b"", "no Id"),
    Plant("payments", "NotNull", "PaymentDate", b"", "no date"),
    Plant("payments", "NotNull", "PaidAmount", b"", "no amount"),
    Plant("payments", "Number", "PaidAmount", "€{}".encode(), "a currency sign"),
    Plant("payments", "Number", "PaidAmount", b'"1,234.50"', "a comma between thousands"),
    Plant("payments", "Number", "DiscountAmount", b"(12.50)", "an accountant's minus"),
    Plant("payments", "Number", "PaidAmount", b'"12\n50"', "a line break inside the quotes"),
    Plant("payments", "NotFinite", "PaidAmount", b"NaN", "not a number"),
    Plant("payments", "NotFinite", "PaidAmount", b"1e400", "more than a double holds"),
    Plant("payments", "Precision", "PaidAmount", b"9007199254740993", "an odd number over 2**53"),
    Plant("payments", "Precision", "DiscountAmount", b"0.30000000000000000001", "twenty decimals"),
    Plant("payments", "DateTime", "PaymentDate", b"2026-09-31T10:00:00+02:00", "September 31"),
    Plant("payments", "DateTime", "PaymentDate", b"09/10/2026", "September 10 or October 9"),
    Plant("payments", "DateTime", "PaymentDate", b"46275", "a spreadsheet's day number"),
    Plant("payments", "OffsetMissing", "PaymentDate", b"2026-09-14T10:15:00", "no offset"),
    Plant("payments", "TooFewFields", "CurrencyRatesId", None, "the last field is missing"),
    Plant("payments", "TooFewFields", "DebtsId", None, "cut after the third field"),
    Plant("payments", "TooManyFields", "CurrencyRatesId", b"{},0", "a tenth field"),
    Plant("payments", "StrayQuote", "PaidAmount", b'12"50', "a quote inside a number"),
    Plant("payments", "StrayQuote", "PaidAmount", b'"12.50" EUR', "text after the closing quote"),
    Plant("payments", "UnterminatedQuote", "PaidAmount", b'"12.50', "a quote that is never closed"),
    Plant("payments", "UnterminatedQuote", "Id", b'"{}', "the same in the first field"),
    Plant("payments", "Encoding", "PaidAmount", b"1\xa0234.50", "a Latin-1 no-break space"),
    Plant("payments", "NulCharacter", "DiscountAmount", b"0\x00", "a NUL"),
    Plant("currency_rates", "Number", "ExchangeRate", b'"1,1172"', "a decimal comma"),
    Plant("currency_rates", "NotFinite", "ExchangeRate", b"inf", "an infinite rate"),
    Plant("currency_rates", "DateTime", "EffectiveDate", b"30.10.2026", "a day with points"),
    Plant("currency_rates", "NotNull", "ToCurrenciesId", b"", "no second currency"),
    Plant("currency_rates", "Integer", "FromCurrenciesId", b"EUR", "a code for an identifier"),
    Plant("invoice_files", "NotNull", "InvoiceUrl", b"", "no address"),
    Plant("invoice_files", "NulCharacter", "InvoiceUrl", b"{}\x00.pdf", "a NUL in the address"),
    Plant("invoice_files", "Encoding", "InvoiceUrl", b"{}?caf\xe9", "a Latin-1 letter"),
    Plant("invoice_files", "TooManyFields", "InvoiceUrl", b"{}?a,b", "a comma without quotes"),
    Plant("payment_plan_details", "DateTime", "PlannedDate", b"2026-02-30", "February 30"),
    Plant("payment_plan_details", "Number", "PlannedAmount", b"100.00 EUR", "a unit"),
    Plant("payment_plan_details", "IntegerRange", "PaymentsId", b"4300000001", "over 32 bits"),
    Plant("avatars", "Integer", "TenantsId", b"all", "a word for a tenant"),
    Plant("avatars", "StrayQuote", "Name", b'Nora "the voice"', "quotes that are not doubled"),
    Plant("payment_gateways", "NotNull", "Name", b"", "no name"),
    Plant("message_tones", "NotNull", "AvatarsId", b"", "no avatar"),
    Plant("message_tones", "TooFewFields", "Name", None, "two fields of three"),
    Plant("action_documents", "NotNull", "DocumentUrl", b"", "no address"),
    Plant("client_registrations", "Email", "EMail", b"person.example.com", "no @"),
    Plant("client_registrations", "NotEmpty", "FirstName", b'""', "an empty first name"),
    Plant("client_registrations", "NotEmpty", "Password", b'""', "an empty password"),
    Plant("client_registrations", "NotNull", "Company", b"", "no company"),
    Plant("client_registrations", "Integer", "PartnerUserID", b"P-2001", "a letter in a number"),
    Plant("client_registrations", "List", "Roles", b'"[Client,Partner"', "a list not closed"),
    Plant("form_replies", "List", "CampaignActionFiles", b'"[{Name:a.pdf"', "a list not closed"),
    Plant("form_replies", "Integer", "CampaignActionsRequestsId", b"8o19", "the letter o"),
    Plant("form_replies", "FieldTooLarge", "Comments", LONGER_THAN_THE_LIMIT, "over 1 MiB"),
    Plant(
        "campaign_actions_form_responses",
        "Map",
        "FormMetaCustomResponses",
        b'"[Monday,Tuesday]"',
        "a list for a map",
    ),
    Plant(
        "campaign_actions_form_responses",
        "Record",
        "FormMetaResponses",
        b"score=7",
        "a text for a record",
    ),
    Plant("insert_batch_data", "Boolean", "HasError", b"maybe", "neither True nor False"),
    Plant("insert_batch_data", "IntegerRange", "BatchId", b"4294967296", "over 32 bits"),
    Plant(
        "insert_batch_data",
        "InnerRecord",
        "Jsondata",
        b'"{""Id"":48500001,""TenantsId"":"',
        "JSON cut short",
        {"Data": b""},
    ),
    Plant(
        "insert_batch_data",
        "InnerRecord",
        "Data",
        b'"{""Weather"":""fine""}"',
        "an object that is no record of the service",
        {"Jsondata": b""},
    ),
    Plant("insert_batch_data", "InnerRecord", "Data", b"", "nothing inside", {"Jsondata": b""}),
)

CONFLICTS = (
    Twin("payments", 0, "PaidAmount", b"77.77", "the next record has its Id, another amount"),
    Twin("payments", 1400, "DiscountAmount", b"0.01", "its Id comes again far below"),
    Twin("currency_rates", 9, "ExchangeRate", b"9.9999", "another rate under the same Id"),
    Twin("invoice_files", 3, "DebtsId", b"70000001", "another debt under the same Id"),
    Twin("payment_gateways", 1, "ServiceKey", b"sample-key-other", "another key for the gateway"),
    Twin("client_registrations", 2, "Company", b"Other Ltd.", "another company, same address"),
    Twin("form_replies", 2, "Comments", b"Changed my mind.", "another comment, same reply"),
)
"""Same key, different content: both records are rejected, naming the first field of the key."""

REPEATS = (
    Twin("payments", 0),
    Twin("payments", 250),
    Twin("payments", 1900),
    Twin("currency_rates", 5),
    Twin("invoice_files", 2),
    Twin("payment_plan_details", 4),
    Twin("avatars", 3),
    Twin("message_tones", 2),
    Twin("insert_batch_data", 6),
)
"""Same key, same content: one counts, the other is superseded and no error."""

MISSING_RATE = "599999999"
NOTES = (
    ("ReferenceMissing", "CurrencyRatesId 599999999, which nobody delivers"),
    ("ReferenceTenant", "the rate of the same day that belongs to another tenant"),
    ("ReferenceMissing", "CurrencyRatesId 599999999, which nobody delivers"),
    ("ReferenceTenant", "the rate of the same day that belongs to another tenant"),
)
"""Payments that are accepted with a note: their rate is unknown or of another tenant."""
