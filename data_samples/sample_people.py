"""The sample records without money: avatars, tones, gateways, documents, people and replies."""

import json
import random
from collections.abc import Sequence
from uuid import NAMESPACE_URL, uuid5

from sample_records import TENANTS
from sample_text import Row, jsv

FIRST_NAMES = ("Ada", "Łukasz", "Chloé", "Jörg", "Siobhán", "Ngọc", "Olga", "Mateo", "Ines", "Per")
LAST_NAMES = ("Müller", "O'Neill", "García", "Øster", "Kowalska", "Smith, Jr.", "Dvořák", "Li")
TONES = ("Friendly", "Formal", "Urgent", "Empathetic", "Neutral", "Firm", "Brief", "Warm")
COMMENTS = (
    "Paid today, please confirm.",
    'The clerk said "two more weeks", so I waited.',
    "First line\nsecond line, with a comma\nthird line",
    "Zahlung erfolgt über die Hausbank. Grüße aus Köln",
    "J'ai déjà réglé la facture ; voir pièce jointe.",
    "請確認付款。謝謝 🙂",
    "Amount in dispute: 120,50 instead of 102,50",
    'He wrote:\r\n"see you"\r\nand left.',
    None,
    "",
)


def avatars() -> list[Row]:
    """Every field is optional, so some are left out and one is an empty text."""
    looks = (
        ("Nora", "female", "25-34", "business", "nordic"),
        ("Amir", "male", "35-44", "casual", "persian"),
        ("Kim", None, "18-24", "casual", "korean"),
        ("Zoë", "female", "45-54", "business", None),
        ("Robot 7", "", None, "flat, two colours", None),
    )
    return [
        (str(tenant), name, gender, age, style, image(tenant, name), group)
        for tenant in TENANTS
        for name, gender, age, style, group in looks
    ]


def image(tenant: int, name: str) -> str:
    """Where the picture of an avatar would be."""
    return f"https://images.example.com/{tenant}/{name.lower().replace(' ', '-')}.png"


def payment_gateways() -> list[Row]:
    """Three ways to pay per tenant, with keys that are plainly not keys."""
    return [
        (
            str(tenant),
            str(900 + tenant * 10 + place),
            name,
            f"sample-key-{tenant}-{place}",
            f"https://notify.example.com/{tenant}/{place}" if place < 2 else None,
            f"https://pay.example.com/{tenant}/back?from=gateway",
        )
        for tenant in TENANTS
        for place, name in enumerate(("Card", "Bank transfer", 'Wallet "Express"'))
    ]


def message_tones() -> list[Row]:
    """Eight tones per tenant, each bound to an avatar number."""
    return [
        (str(tenant), str(tenant * 100 + place % 5), tone)
        for tenant in TENANTS
        for place, tone in enumerate(TONES)
    ]


def action_documents(payments: Sequence[Row]) -> list[Row]:
    """Documents of the actions of every fiftieth payment."""
    return [
        (payment[1], payment[2], f"https://files.example.com/actions/{payment[2]}/statement.pdf")
        for payment in payments[::50]
    ]


def client_registrations(draw: random.Random) -> list[Row]:
    """Forty people; the passwords say that they are samples."""
    rows: list[Row] = []
    for place in range(40):
        first, last = draw.choice(FIRST_NAMES), draw.choice(LAST_NAMES)
        password = f"Sample-Pass-{place + 1}"
        roles = (["Client"], ["Client", "Partner"], ["Client", "Branch, North"], [])[place % 4]
        rows.append(
            (
                f"person{place + 1}@clients.example.com",
                first,
                last,
                password,
                password if place % 9 else None,
                "" if place % 13 == 5 else f"Sample Trading {place % 6 + 1} Ltd.",
                str(2000 + place % 3) if place % 5 else None,
                jsv(roles),
            )
        )
    return rows


def form_replies(draw: random.Random) -> list[Row]:
    """Forty replies: comments with all that hurts a careless reader, files as JSV or JSON."""
    return [
        (
            guid("reply", place),
            str(8000 + place),
            COMMENTS[place % len(COMMENTS)],
            nested(uploads(draw, place), place),
        )
        for place in range(40)
    ]


def campaign_actions_form_responses(draw: random.Random) -> list[Row]:
    """Responses with a nested record, a map and a list, as JSV or JSON."""
    rows: list[Row] = []
    for place in range(15):
        files = uploads(draw, place + 1)
        results = {"CustomFormResults": f"score={place}", "Comments": "a, b"}
        # Quotes inside a text would need an escape in JSON, which reads differently as JSV.
        note = "said yes, twice" if place % 2 else 'said "yes"'
        answers = {"Preferred day": "Monday", "Note": note, "Second phone": None}
        rows.append(
            (
                str(70_001 + place),
                str(8000 + place),
                str(3000 + place) if place % 4 else None,
                f"2026-10-{place + 10}T08:{place + 10}:00" + ("", "Z", "+02:00")[place % 3],
                nested(results | {"CampaignActionFiles": files}, place),
                nested(answers, place + 1),
                str(4000 + place),
                nested(files, place),
                COMMENTS[place % len(COMMENTS)],
                str(place % 3),
                f"person{place + 1}@clients.example.com",
                "1",
            )
        )
    return rows


def uploads(draw: random.Random, place: int) -> list[dict[str, str | None]]:
    """Zero to two files as a customer's upload describes them."""
    return [
        {
            "Name": f"receipt {place}-{copy}.pdf",
            "FileType": "application/pdf",
            "FileSize": str(draw.randrange(1_000, 900_000)),
            "Extension": "pdf" if copy else None,
            "UploadUrl": f"https://uploads.example.com/{guid('file', place * 10 + copy)}",
        }
        for copy in range(place % 3)
    ]


def nested(value: object, place: int) -> str | None:
    """A nested cell: JSV and JSON in turn, and nothing at all for every seventh."""
    if place % 7 == 6:
        return None
    return jsv(value) if place % 2 else json.dumps(value, ensure_ascii=False)


def guid(purpose: str, place: int) -> str:
    """A GUID that is the same in every run."""
    return str(uuid5(NAMESPACE_URL, f"https://samples.example.com/{purpose}/{place}"))
