"""A header among the records of a file: of other columns, or the same once more."""

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.layout.header_again import OtherHeader
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.settings import Limits
from tests.examples import examples
from tests.stages.payments import HEADER, line

SWAPPED = HEADER.replace("PaidAmount,DiscountAmount", "DiscountAmount,PaidAmount")
PLAIN: dict[str, Any] = {"feed": "a"}
TABLE: dict[str, Any] = {
    "feed": "rates",
    "record": "currency_rate",
    "offset": "Z",
    "unknown_columns": "ignore",
    "unpivot": {"keep": ["Date"], "name": "Currency", "value": "Rate"},
    "columns": {"Date": "EffectiveDate", "Rate": "ExchangeRate"},
    "fields": {
        "ToCurrenciesId": {"from": ["Currency"], "map": {"1 USD": 840, "1 ILS": 376}},
        "Id": {"key": ["EffectiveDate", "FromCurrenciesId", "ToCurrenciesId"]},
    },
    "constants": {"TenantsId": 7, "FromCurrenciesId": 978},
}
MONTHS: dict[str, Any] = TABLE | {
    "unpivot": {"columns": ["Jan", "Feb"], "name": "Month", "value": "Rate"},
    "columns": {"Rate": "ExchangeRate", "To": "ToCurrenciesId", "Month": "EffectiveDate"},
    "fields": {
        "EffectiveDate": {"prefix": "1 ", "suffix": " 2026", "date_format": "%d %b %Y"},
        "Id": TABLE["fields"]["Id"],
    },
}
PAID: dict[str, Any] = {
    "feed": "list",
    "record": "payment",
    "delimiter": ";",
    "unknown_columns": "ignore",
    "columns": {"Doc": "Id", "Amount": "PaidAmount", "Debt": "DebtsId"},
    "constants": {
        **dict.fromkeys(("TenantsId", "ActionsId", "CurrenciesId", "CurrencyRatesId"), 7),
        "DiscountAmount": "0",
        "PaymentDate": "2026-01-01T00:00:00Z",
    },
}
WORDS: dict[str, Any] = {
    "feed": "words",
    "record": "avatar",
    "unknown_columns": "ignore",
    "unpivot": {"keep": ["English"], "name": "Language", "value": "Word"},
    "columns": {"English": "Name", "Language": "Gender", "Word": "Style"},
}
NAMED: dict[str, Any] = PAID | {"names": ["Doc", "Amount", "Debt"]}
AT: dict[str, Any] = {one: of for one, of in PAID.items() if one != "delimiter"} | {
    "positions": {"Doc": "1-8", "Amount": "9-16", "Debt": "17-20"}
}
GROUPS: dict[str, Any] = PAID | {
    "columns": {"Doc": "Id", "Amount": "PaidAmount", "Debt": "DebtsId"},
    "skip_lines": ["Account;(?P<Account>[^;]*);Sum;(?P<Sum>.*)", "Doc;.*", "Amount;.*"],
}


class Case(NamedTuple):
    text: str
    shape: dict[str, Any]
    line: int | None = None
    told: str = ""
    """What is said of the line, or a part of it."""


FULL = f"{HEADER}\n{line(1)}\n"
LIST = "Doc;Amount;Debt\n1;2.50;3\n"
OTHER = {
    "two amounts exchanged": Case(
        f"{FULL}{SWAPPED}\n{line(2)}\n",
        PLAIN,
        3,
        "column 6 is 'DiscountAmount', and line 1 has 'PaidAmount' there",
    ),
    "in quotes, in other letters and blanks": Case(
        FULL + ",".join(f'" {name.upper()}"' for name in SWAPPED.split(",")) + "\n", PLAIN, 3
    ),
    "behind a byte-order mark": Case(f"{FULL}\ufeff{SWAPPED}\n", PLAIN, 3),
    "behind a record without a line end": Case(
        f"{FULL[:-1]}{SWAPPED}\n{line(2)}\n", PLAIN, 2, "has no end, its column 6 is 'Disc"
    ),
    "with a column more in front": Case(f"{FULL}No,{SWAPPED}\n", PLAIN, 3, "column 1 is 'No'"),
    "by the names of the fields": Case(f"{LIST}Id;DebtsId;PaidAmount\n", PAID, 3),
    "with one that is read and one that is not": Case(
        "Doc;Amount;Debt;PaidAmount\n1;2.50;3;4\nDoc;PaidAmount;Debt;Amount\n", PAID, 3
    ),
    "with one less": Case(f"{FULL}{HEADER.rpartition(',')[0]}\n", PLAIN, 3, "column 9 is empty"),
    "with one that is called otherwise": Case(FULL + HEADER.replace("Paid", "My") + "\n", PLAIN, 3),
    "a table in which a unit changes": Case(
        "Date,1 USD,1 ILS\n2026-01-01,1,2\nDate,1 USD,100 ILS\n2026-01-02,1,200\n",
        TABLE,
        3,
        "column 3 is '100 ILS', and line 1 has '1 ILS' there",
    ),
    "a table with none of the columns": Case(
        "Date,1 USD,1 ILS\n2026-01-01,1,2\nDate,2026,2027\n", TABLE, 3
    ),
    "a table with what is kept behind": Case(
        "1 USD,1 ILS,Date\n1,2,2026-01-01\n100 CZK,1 ILS,Date\n", TABLE, 3
    ),
    "a table of stated columns": Case("To,Jan,Feb\n1,2,3\nTo,Feb,Jan\n1,2,3\n", MONTHS, 3),
    "one of several rows": Case(
        "Doc;Amount;Debt\n;in EUR;\n1;2.50;3\nDoc;Debt;Amount\n;;in EUR\n",
        PAID
        | {
            "header_lines": 2,
            "columns": {"Doc": "Id", "Amount in EUR": "PaidAmount", "Debt": "DebtsId"},
        },
        4,
    ),
    "one of several rows, in a part of a name": Case(
        "Doc;Amount;Debt;T\n;in EUR;;\n1;2.50;3;\nDoc;Sum;Debt;T\n;in EUR;;\n",
        PAID
        | {
            "header_lines": 2,
            "columns": {"Doc": "Id", "Amount in EUR": "PaidAmount", "Debt": "DebtsId"},
        },
        4,
    ),
    "one with titles above several columns, of which two are exchanged": Case(
        "Doc;Paid;;Fee;\n;Debt;Amount;Debt;Amount\n1;3;2.50;4;5\nDoc;Fee;;Paid;\n",
        PAID
        | {
            "header_lines": 2,
            "header_titles": "spread",
            "columns": {"Doc": "Id", "Paid Amount": "PaidAmount", "Paid Debt": "DebtsId"},
        },
        4,
        "column 2 is 'Fee', and line 1 has 'Paid' there",
    ),
    "a table whose kept column has a name of several rows": Case(
        "USD,ILS,Date\n1,1,of\n1,2,2026-01-01\nILS,USD,Date\n1,1,of\n",
        TABLE
        | {
            "header_lines": 2,
            "unpivot": TABLE["unpivot"] | {"keep": ["Date of"]},
            "columns": {"Date of": "EffectiveDate", "Rate": "ExchangeRate"},
        },
        4,
    ),
    "left out by a pattern": Case(
        f"{LIST}Doc;Debt;Amount\n4;5;6\n", PAID | {"skip_lines": ["Doc;.*"]}, 3
    ),
    "left out by a pattern, in a table": Case(
        "Date,1 USD,1 ILS\n2026-01-01,1,2\nDate,1 USD,100 ILS\n2026-01-02,1,200\n",
        TABLE | {"skip_lines": ["Date,.*"]},
        3,
    ),
    "a comment": Case(f"{LIST}#Doc;Debt;Amount\n4;5;6\n", PAID | {"comment": "#"}, 3),
    "left out by a column": Case(
        f"{LIST}Doc;Debt;Amount\n", PAID | {"keep_only": {"Debt": ["3"]}}, 3
    ),
    "where the profile has the names": Case(
        "1;2.50;3\nDoc;Debt;Amount\n", NAMED, 2, "and the feed profile names 'Amount' there"
    ),
    "of a fixed width": Case(
        "1       2.50    3   \nAmount  Doc     Debt\n", AT, 2, "column 1 is 'Amount'"
    ),
    "with another first column": Case(
        "Pos;Doc;Amount;Debt\na;4;2.50;3\nLine;Amount;Doc;Debt\nb;5;6;7\n",
        PAID,
        3,
        "column 1 is 'Line', and line 1 has 'Pos' there",
    ),
    "with others in front, in quotes": Case(
        '"Pos";"Doc";Amount;" Debt"\na;4;2.50;3\nLine;" Amount";"Doc"; Debt\n',
        PAID | {"blanks": "dropped"},
        3,
    ),
    "with another first column, left out by a pattern": Case(
        "Pos;Doc;Amount;Debt\na;4;2.50;3\nLine;Amount;Doc;Debt\nb;5;6;7\n",
        PAID | {"skip_lines": ["Line;.*"]},
        3,
    ),
    "a table with another first column": Case(
        "Date,1 USD,1 ILS\n2026-01-01,1,2\nNr,Date,100 ILS\n", TABLE, 3
    ),
    "with one that begins as a value does": Case(
        "Doc;Amount;Debt;1st\n1;2.50;3;\nDoc;Debt;Amount;2nd\n",
        PAID,
        3,
        "column 2 is 'Debt', and line 1 has 'Amount' there",
    ),
    "with such a one behind its first": Case(
        "Doc;Amount;Debt;No\n1;2.50;3;4\nDebt;1st;Doc;Amount\n", PAID, 3
    ),
    "where nothing was made of a column": Case(
        "Doc;Amount;Debt;Page 1\n1;2.50;3;\nDoc;Amount;Debt;PaidAmount\n", PAID, 3
    ),
    "with a column more behind, of which nothing is made": Case(
        "Doc;Amount;Debt;Page 1\n1;2.50;3;\nDoc;Amount;Debt;Page 1;More\n", PAID, 3
    ),
    "a table of texts that has a column more": Case(
        "English,German\nhouse,Haus\nEnglish,French,German\n", WORDS, 3
    ),
    "of texts alone": Case(
        "Name,Gender,Style\na,b,c\nGender,Name\n", {"feed": "a", "record": "avatar"}, 3
    ),
}
NONE = {
    "the same again": Case(f"{FULL}{HEADER}\n{line(2)}\n", PLAIN),
    "the same behind a record without a line end": Case(f"{FULL[:-1]}{HEADER}\n", PLAIN),
    "too many cells, the last of them a name": Case(f"{FULL}{line(2)},x,Id\n", PLAIN),
    "the same by the names of the fields": Case(
        "Doc;Amount;Debt\nId;PaidAmount;DebtsId\n1;2.50;3\n", PAID
    ),
    "the same but for the name of a column that nothing is made of": Case(
        "Doc;Amount;Debt;Page 1\n1;2.50;3;\nDoc;Amount;Debt;Page 2\nId;Amount;Debt;page\n", PAID
    ),
    "the same with empty cells behind": Case(f"{FULL}{HEADER},,\n", PLAIN),
    "the same in several rows": Case(
        "Doc;Amount;Debt\n;in EUR;\n1;2.50;3\nDoc;Amount;Debt\n;in EUR;\n",
        PAID
        | {
            "header_lines": 2,
            "columns": {"Doc": "Id", "Amount in EUR": "PaidAmount", "Debt": "DebtsId"},
        },
    ),
    "a name in a text": Case("Doc;Amount;Debt;Text\n1;2.50;3;Amount\n;;;Amount\n", PAID),
    "names of few columns above lines that are left out": Case(
        "Doc;Amount;Debt;Text;A;B;C\nAmount;Debt;;;;;\n1;2.50;3;;;;\n",
        PAID | {"skip_lines": ["Amount;.*"]},
    ),
    "lines whose groups are columns": Case(
        f"{LIST}Account;;Sum;\nAccount;Doc;Sum;Amount\n", GROUPS
    ),
    "what cannot be divided": Case(
        'Doc;Amount;Debt\nDebt;Doc;"Amount\n"Amount;2.5;\0\n1;#;x"\n', PAID
    ),
    "within a text": Case('Doc;Amount;Debt;Text\n1;2.50;3;"a\nDoc;Debt;Amount;Text\n"\n', PAID),
    "a cell in a table": Case("Date,1 USD,1 ILS\n2026-01-01,1,Date\nDate,,\n", TABLE),
    "words in a table of texts, one of them its first column": Case(
        "English,German,French\nhouse,Haus,maison\nEnglish,Englisch,anglais\n", WORDS
    ),
    "names of few columns, all of which are texts": Case(
        "Name,Gender,AgeGroup,Style,ImageUrl\na,b,c,d,e\nStyle,Name,,,\n,,,Name,Style\n",
        {"feed": "a", "record": "avatar"},
    ),
    "a name in each of several texts": Case(
        "Pos;Doc;Amount;Debt;A;B\na;4;2.50;3;Doc;Amount\nb;5;6;7;Debt;Doc\n", PAID
    ),
    "one column": Case(
        "Doc\n1\nAmount\nDoc\n",
        PAID
        | {
            "columns": {"Doc": "Id"},
            "constants": PAID["constants"] | {"DebtsId": 3, "PaidAmount": "1"},
        },
    ),
    "texts, one of them a name": Case(
        "Name,Gender,Style\nName,,\nGender,b,c\nName,Name,Name\n",
        {"feed": "a", "record": "avatar"},
    ),
    "a row that is corrected": Case(f"ReconRow,{HEADER}\na.csv:3,{SWAPPED}\n", {"feed": "a"}),
}


def found(folder: Path, text: str, shape: dict[str, Any], block_bytes: int) -> OtherHeader | None:
    """What the first chunk tells that tells of such a line; it is the one that has it."""
    path = folder / "a.csv"
    path.write_bytes(text.encode())
    profile = read_profile(shape)
    content = open_content(path, profile.encoding)
    header = read_header(content, None, profile, Limits())
    chunks = read_chunks(content, header, first_place(header), block_bytes)
    for chunk in chunks:
        if other := chunk.other_header:
            assert other.byte < chunk.end.byte
            # Who goes on at this chunk finds it too, as nothing of it was taken.
            again = next(read_chunks(content, header, chunk.start, block_bytes))
            assert again.other_header == other or header.unpivot or header.dialect.skips
            return other
    return None


@pytest.mark.parametrize("name", OTHER)
def test_a_header_of_other_columns_is_told_wherever_blocks_are_cut(
    tmp_path: Path, name: str
) -> None:
    case = OTHER[name]
    text = case.text + ("" if case.text.count("\n") > 3 else case.text.splitlines()[1] + "\n")
    for block_bytes in (1 << 20, 40):
        other = found(tmp_path, text, case.shape, block_bytes)
        assert other is not None
        assert other.line == case.line
        assert case.told in other.detail


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_other_header_is_a_record(tmp_path: Path, name: str) -> None:
    for block_bytes in (1 << 20, 40):
        assert found(tmp_path, NONE[name].text, NONE[name].shape, block_bytes) is None


@pytest.mark.parametrize("seed", range(examples(50, 2)))
def test_every_such_line_is_found_and_no_other_one(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    words = [
        "Doc",
        "doc",
        " DEBT",
        "Amount ",
        '"Debt"',
        '" Amount"',
        "",
        "",
        "Do",
        "Docs",
        "D",
        "7",
    ]
    lines = [drawn.choices(words, k=3) for _ in range(drawn.choice((3, 300)))]
    expected = None
    for number, cells in enumerate(lines, 2):
        names = [cell.strip('" ').casefold() for cell in cells]
        filled = [*filter(None, names)]
        of_names = {*filled} <= {"doc", "amount", "debt"} and len({*filled}) > 1
        if of_names and names != ["doc", "amount", "debt"]:
            expected = expected or number
    text = "\n".join(map(";".join, [["Doc", "Amount", "Debt"], *lines])) + "\n"
    other = found(tmp_path, text, PAID | {"blanks": "dropped"}, 100)
    assert (other and other.line) == expected
