"""Which texts are hidden as they may hold a secret: by the names of fields that are in them."""

import re

import polars as pl
import pytest

from flows.steps.secrets import pattern_of
from schemas.tables import SECRETS

PIN = pattern_of(SECRETS, ["Pin", "Code"])
TEXTS = [
    # a text, and whether it is hidden
    ('{"Id":1,"Pin":"canary"}', True),
    ('7,"{""pin"":""canary""}",x', True),
    ('{"Jsondata":"{\\"Pin\\":\\"canary\\"}"}', True),
    ('{"Jsondata":"{\\u0022Pin\\u0022:\\u0022canary\\u0022}"}', True),
    ("{%22Pin%22:%22canary%22}", True),
    ("{Id:1,Pin:canary}", True),
    ("{Id:1,\\nPin:canary}", True),
    ("{Id:1,\\u000aPin:canary}", True),
    ("Pin=canary", True),
    ("CODE", True),
    ("1,a shipping invoice,10", False),
    ("1,an opinion,10", False),
    ("1,DECODED,10", False),
    ("1,Pinned,10", False),
    ("", False),
]
WITHIN = [
    '{"client_Password2":"canary"}',
    "\\u0022password\\u0022",
    "xServiceKeys",
    "recoverytoken",
]


@pytest.mark.parametrize(("text", "hidden"), [*TEXTS, *((one, True) for one in WITHIN)])
def test_a_secret_of_ones_own_hides_texts_that_have_its_name(text: str, hidden: bool) -> None:
    assert (re.search(PIN, text.lower()) is not None) is hidden
    assert pl.Series([text.lower()]).str.contains(PIN).to_list() == [hidden]


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_documented_secrets_are_looked_for_within_words(name: str) -> None:
    assert re.search(PIN, f"a{name}z".lower())
