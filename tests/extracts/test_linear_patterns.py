"""Patterns of a profile: what is refused, what they fit, and that none of them runs on and on."""

import random
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.errors import ProfileError
from connectors.files.profiles.profile_file import load_profile, read_profile
from connectors.files.text.comments import FEW, cut_out
from connectors.files.text.linear_patterns import as_series, decoded, fitting, groups_of
from connectors.settings import Settings
from flows.stages.examining.examine import examine
from tests.examples import seeds
from tests.stages.reading.test_skipped_lines import CONSTANTS

REFUSED = [
    ("(?!Total).*", "look-around, .* is not supported. Say what stands there"),
    ("(?<=a)b", "look-around, .* is not supported. Say what stands there"),
    (r"(\d)x\1", "backreferences are not supported. Write again what stands there"),
    ("(?P<A>.)(?P=A)", "unrecognized flag. Of groups with a question mark there are"),
    ("(?>a*)b", "unrecognized flag. Of groups with a question mark there are"),
    (r"Total\Z", r"unrecognized escape sequence. The end of a text is \\z"),
    ("a{,3}", r"expects a valid decimal. Write numbers in the braces, \{0,3\}"),
    ("*** Total", "missing expression. Write a backslash before"),
    (r"\w{900}", "it is too large. Repeat less often"),
    ("(?P<A>.)(?P<A>.)", "duplicate capture group name"),
    ("(?x) a  # that is all", "unclosed group"),
    ("a)|(?:b", "unopened group"),
    ("Page (", "unclosed group"),
]


@pytest.mark.parametrize(("pattern", "said"), REFUSED)
def test_a_pattern_that_is_not_read_is_refused_with_what_to_write(pattern: str, said: str) -> None:
    whole = f"^[a-zA-Z._]+: '{re.escape(pattern)}' is no pattern: .*{said}"
    for keys in ({"skip_lines": [pattern]}, {"footer": ["x", pattern]}, part(pattern)):
        with pytest.raises(ProfileError, match=whole):
            read_profile({"feed": "x", "record": "payment", **keys})


def part(pattern: str) -> dict[str, Any]:
    return {"fields": {"PaidAmount": {"part": pattern}}}


def test_a_file_is_told_where_its_pattern_stands(tmp_path: Path) -> None:
    path = tmp_path / "bank.toml"
    path.write_text("feed = 'x'\nfooter = ['a']\n\nskip_lines = [\n  '(?!a).*',\n]\n")
    with pytest.raises(ProfileError) as refusal:
        load_profile(path)
    assert str(refusal.value) == (
        f"{path}, line 4: skip_lines: '(?!a).*' is no pattern: look-around, including look-ahead "
        "and look-behind, is not supported. Say what stands there, such as [^;]* for all up to a "
        "semicolon; several patterns, or (one|other), for several kinds of text."
    )


TOKENS = ["a", "b", "-", " ", r"\|", r"\.", ".", r"\d", r"\D", r"\s", r"\W", r"\x61", "[ab]"]
TOKENS += ["[^a]", "[]a]", "[^]b]", r"[\d\]]", "[a-]", "é", "(?P<A>a)", "(?:a|b)", "(c*)", "a|b"]
TOKENS += ["^", "$", r"\b", "(?P<B>.*)", "(?i:A)", "(?:(a+)+)"]
REPEATS = [*[""] * 6, "?", "*", "+", "{0}", "{2}", "{1,2}", "{0,}", "??", "*?", "+?"]
SIGNS = [*"aab-- |.1]é가A\0", b"\xff", b"\x81"]
ENCODINGS = ["utf-8", "cp1252", "euc-kr"]


def drawn(chance: random.Random) -> str:
    """A pattern. What a repeated group holds that may be empty, the engines say differently."""
    tokens = chance.choices(TOKENS, k=chance.randrange(1, 5))
    return "".join(one if "?P" in one else one + chance.choice(REPEATS) for one in tokens)


def line(chance: random.Random, encoding: str) -> bytes:
    signs = chance.choices(SIGNS, k=chance.randrange(7))
    return b"".join(
        one if isinstance(one, bytes) else one.encode(encoding, "ignore") for one in signs
    )


@pytest.mark.long
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("seed", seeds(2, 100))
def test_lines_of_a_block_are_what_each_is_by_itself(seed: int, encoding: str) -> None:
    """And what `re` has them fit, where both engines know a pattern."""
    chance = random.Random(f"{seed} {encoding}")
    lines = [line(chance, encoding) for _ in range(2 * FEW)]
    ends = np.cumsum([len(one) + 1 for one in lines]) - 1
    starts = ends - [len(one) for one in lines]
    texts = [decoded(one, encoding) for one in lines]
    block = b"\n".join(lines)
    cut = cut_out(block, starts, ends, encoding)
    assert cut.to_list() == as_series(texts).to_list()
    few = cut_out(block, starts[:FEW], ends[:FEW], encoding)
    assert few.to_list() == cut.to_list()[:FEW]
    for _ in range(50):
        patterns = [drawn(chance), drawn(chance)]
        try:
            read_profile({"feed": "x", "skip_lines": [f"a(?:{one})" for one in patterns]})
            with warnings.catch_warnings(action="ignore"):
                known = [re.compile(one) for one in patterns]
        except (ProfileError, re.error):
            continue
        found = [next(filter(None, (one.fullmatch(text) for one in known)), None) for text in texts]
        assert fitting(cut, patterns).to_list() == [one is not None for one in found], patterns
        held = [one and one.groupdict() for one in found]
        assert groups_of(texts, patterns) == held, patterns


HOSTILE = ["(?:a+)+b", r"(?:\w|\d)*x", "(?:a|a)*(?:a|a)*-", "a(?:.*)*(?:.*)*;;"]


@pytest.mark.parametrize("pattern", HOSTILE)
@pytest.mark.parametrize("key", ["skip_lines", "footer", "part"])
def test_no_pattern_runs_on_and_on(tmp_path: Path, key: str, pattern: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Id,DebtsId,PaidAmount\n1,{'a' * 3000},5\n{'a' * 3000}\n")
    part = {"fields": {"DebtsId": {"part": f"({pattern})"}}}
    profile = read_profile(
        {
            "feed": "x",
            "record": "payment",
            "constants": {name: one for name, one in CONSTANTS.items() if name != "DebtsId"},
            **(part if key == "part" else {key: [pattern]}),
        }
    )
    (verdict,) = examine(Settings(home=tmp_path), [str(path)], profile)
    refused = "incomplete_file" if key == "footer" else None
    assert (verdict.refused, verdict.comments.lines) == (refused, 0)
    assert (verdict.rows_in, len(verdict.rejects)) == ((0, 0) if refused else (2, 2))
