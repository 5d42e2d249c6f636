"""Texts that a spreadsheet would run: a sign is put before them, and taken away to the byte."""

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.cells.formula_guard import Guard

SIGNS = ",;\t|\"'`=+-@%\r\n \x00\u3000\u200b\uff1d\uff0b09.Ea:~"
TEXTS = st.text(st.sampled_from(SIGNS), max_size=24)
DIALECTS = st.sampled_from(
    [(",", '"'), (";", '"'), ("\t", '"'), ("|", "'"), ("~", "'"), (",", "'")]
)


@given(TEXTS, DIALECTS)
@example('"=1",\'a,""', (",", '"'))
@example("\r\n=1", (",", '"'))
@example("\t\t-x", ("\t", '"'))
def test_what_is_put_is_taken_away_again(text: str, dialect: tuple[str, str]) -> None:
    guard = Guard(*dialect)
    assert guard.take(guard.put(text)) == text
    column = pl.DataFrame({"a": [guard.put(text), None]}).select(guard.take_all(pl.col("a")))
    assert column["a"].to_list() == [text, None]


@pytest.mark.parametrize(
    ("text", "put"),
    [
        ("=1+1", "'=1+1"),
        ("a,=1+1", "a,'=1+1"),
        ("a;=1+1", "a;'=1+1"),
        ('a,"=1+1"', 'a,"\'=1+1"'),
        ("a, =1", "a,' =1"),
        ("a,\xa0@SUM(A1)", "a,'\xa0@SUM(A1)"),
        ("a,\uff1d1", "a,'\uff1d1"),
        ("a,\u200b=1", "a,'\u200b=1"),
        ("a,\t=1", "a,'\t'=1"),
        ('a,"\rb"', 'a,"\'\rb"'),
        ('"a\n=1"', '"a\n\'=1"'),
        ("-5.00,-1e5,+3,-1.000", "-5.00,-1e5,+3,-1.000"),
        ("-5x,-1+2,- 5", "'-5x,'-1+2,'- 5"),
        ("+49 170", "'+49 170"),
        ("'quoted", "''quoted"),
        ('a,,"",b\'c', 'a,,"",b\'c'),
        ("2026-01-01T00:00:00-01:00", "2026-01-01T00:00:00-01:00"),
    ],
)
def test_what_would_be_run_gets_a_sign_and_a_number_none(text: str, put: str) -> None:
    assert Guard(",", '"').put(text) == put


def test_an_empty_cell_stays_empty() -> None:
    assert Guard("\t", '"').put("a\t\t\t-x") == "a\t\t\t'-x"


@given(TEXTS, DIALECTS)
@example("a,\u200b=1", (",", '"'))
@example("\r\n'", (",", '"'))
def test_no_text_that_gets_a_sign_is_passed_over(text: str, dialect: tuple[str, str]) -> None:
    guard = Guard(*dialect)
    column = pl.DataFrame({"a": [text, None]}).select(guard.may_put(pl.col("a")))["a"]
    assert column[0] or guard.put(text) == text
    assert column[1] is None
