"""The first bytes of a line exclude a pattern only where no such line fits it."""

import random
import re

import numpy as np
import pytest

from connectors.files.line_heads import may_fit
from tests.examples import seeds

TOKENS = ["a", "b", "-", " ", r"\|", r"\.", ".", r"\d", r"\D", r"\s", r"\x61", "[ab]", "[^a]"]
TOKENS += ["[]a]", "[^]b]", r"[\d\]]", "[a-]", "é", "(a)", "(?:a|b)", "(?=a)", "(c*)", "a|b", "{}"]
REPEATS = [
    "",
    "",
    "",
    "?",
    "*",
    "+",
    "{0}",
    "{2}",
    "{1,2}",
    "{,2}",
    "{0,}",
    "{,}",
    "??",
    "*?",
    "+?",
]
SIGNS = "aab-- |.1]é가{}"


@pytest.mark.parametrize("seed", seeds(2, 100))
def test_a_line_that_fits_is_asked_for(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        made = (chance.choice(TOKENS) + chance.choice(REPEATS) for _ in range(chance.randrange(5)))
        pattern = "".join(made)
        try:
            wanted = re.compile(pattern)
        except re.error:
            continue
        lines = ["".join(chance.choices(SIGNS, k=chance.randrange(7))) for _ in range(60)]
        for encoding in ("utf-8", "euc-kr", "cp1252"):
            texts = [one.encode(encoding, "ignore") for one in lines]
            ends = np.cumsum([len(one) for one in texts])
            starts = np.append(0, ends[:-1])
            found = may_fit(np.frombuffer(b"".join(texts), np.uint8), starts, ends, [pattern])
            fit = [bool(wanted.fullmatch(one.decode(encoding))) for one in texts]
            assert not (np.array(fit) & ~found).any(), pattern


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("Page .*", "4711;1"),
        (r"\|?-[-|]*", "|  4711|"),
        (r"\|Doc\. .*", "|  4711|"),
        (" {8}T.*", "   4711"),
        ("-+", "-5"),
        ("---", "----"),
        (r"\d{2}:.*", "a"),
    ],
)
def test_records_of_another_beginning_are_not(pattern: str, line: str) -> None:
    text = np.frombuffer(line.encode(), np.uint8)
    assert not may_fit(text, np.array([0]), np.array([len(line)]), [pattern]).any()
