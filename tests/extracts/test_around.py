"""What stands around the records of a file: text above the header, and a footer with totals."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ExtractRefused, ProfileError
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.drafting.shape import shape_of
from connectors.files.incoming.manifest_entries import ManifestEntry
from connectors.files.layout.footer import FOOTER_BYTES, ExtractFooter, with_footer
from connectors.files.layout.header import Header, read_header
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.settings import Limits
from schemas.tables import EXTRACTS
from tests.stages.payments import wide

COLUMNS = {"Zahlung": "Id", "Betrag": "PaidAmount", "Mandant": "TenantsId"}
REST = {
    name: "2026-01-01T00:00:00Z" if name == "PaymentDate" else "1"
    for name in EXTRACTS["payment"].columns
    if name not in COLUMNS.values() and EXTRACTS["payment"].by_name[name].needs_value
}
UNNAMED = {"unnamed_columns": 1, "unknown_columns": "ignore"}
HASHES = {"comment": "#"}
HEADER = "Zahlung;Betrag;Mandant\n"
ROWS = "4711;1.234,56;7\n4712;-20,00;7\n"
SUM, COUNT = r"Summe;(?P<PaidAmount>[^;]*);", r"(?P<rows>[\d.]+) Buchungen;;"
FOOTER = "Summe;1.214,56;\n2 Buchungen;;\n"


def bank(**keys: object) -> Profile:
    shape = {"feed": "bank", "record": "payment", "decimal": ",", "thousands": "."}
    return read_profile({**shape, "columns": COLUMNS, "constants": REST, **keys})


def read(
    folder: Path, text: str, profile: Profile, encoding: str = "utf-8", block_bytes: int = 7
) -> tuple[Header, str]:
    """The header, and the texts of the records one below the other."""
    path = folder / "a.csv"
    path.write_bytes(text.encode(encoding))
    content = open_content(path, profile.encoding)
    header = read_header(content, None, profile, Limits())
    # Small blocks, so that records and footer lie in several.
    chunks = read_chunks(content, header, first_place(header), block_bytes)
    return header, "".join(f"{one}\n" for chunk in chunks for one in chunk.positions()["data"])


def refused(folder: Path, text: str, profile: Profile) -> ExtractRefused:
    with pytest.raises(ExtractRefused) as caught:
        read(folder, text, profile)
    return caught.value


ABOVE = [
    # text above the header, keys of the profile
    ("", {"header_line": "found"}),
    ("Kontoauszug 11/2026\nvon;bis\n\n", {"header_line": "found"}),
    ("Zahlung;Betrag\n1;2\n", {"header_line": "found"}),
    ('"Zahlung\nBetrag"\n', {"header_line": 3}),
    ("\n\nx\n", {"header_line": 4}),
    ("x\n", {"header_line": 2, "delimiter": ";"}),
    ("sep=;\n", {}),
    ('"sep=;"\r\n', {}),
    ("SEP=;\n", {"delimiter": ";"}),
    ("sep=;\n", {"header_line": "found"}),
    ("# by hand\n# for November\nsep=;\n", {"comment": "#"}),
    ("sep=;\n# by hand\n", {"comment": "#"}),
]


@pytest.mark.parametrize(("above", "keys"), ABOVE)
def test_the_header_is_where_the_profile_says(
    tmp_path: Path, above: str, keys: dict[str, object]
) -> None:
    header, records = read(tmp_path, above + HEADER + ROWS, bank(**keys))
    assert header.names == ("Zahlung", "Betrag", "Mandant")
    assert header.body_line == above.count("\n") + 2
    assert records == ROWS


BROKEN = 'Zahlung;"Betrag\n(EUR)";Mandant\n'
"""A header with a line break in a name, as spreadsheets write theirs."""
OF_BROKEN = {"Zahlung": "Id", "Betrag\n(EUR)": "PaidAmount", "Mandant": "TenantsId"}


@pytest.mark.parametrize(
    ("header", "keys"),
    [
        (BROKEN, {}),
        (BROKEN, {"delimiter": ";"}),
        (BROKEN, {"comment": "#"}),
        (BROKEN, {"escape": "\\", "delimiter": ";"}),
        (BROKEN.replace(";", "||"), {"delimiter": "||"}),
        (BROKEN.replace("\n", "\r\n"), {}),
    ],
)
@pytest.mark.parametrize("above", ["", "Auszug;11/2026\n", '"Auszug\nKonto";x;y\n'])
def test_a_header_of_several_lines_is_found(
    tmp_path: Path, above: str, header: str, keys: dict[str, object]
) -> None:
    name = "Betrag\r\n(EUR)" if "\r" in header else "Betrag\n(EUR)"
    mapped = {"Zahlung": "Id", name: "PaidAmount", "Mandant": "TenantsId"}
    rows = ROWS.replace(";", str(keys.get("delimiter", ";")))
    profile = bank(columns=mapped, header_line="found", **keys)
    found, records = read(tmp_path, above + header + rows, profile)
    assert (found.names, records) == (tuple(mapped), rows)


def test_any_sign_may_be_stated_by_the_file(tmp_path: Path) -> None:
    text = "sep=^\n" + (HEADER + ROWS).replace(";", "^")
    header, records = read(tmp_path, text, bank())
    assert (header.dialect.delimiter, records) == (b"^", ROWS.replace(";", "^"))


STATED = [
    # what the file says, keys of the profile, what is said of it
    (b"sep=\xa7\r\n", {"encoding": "cp1252"}, "'§', which is no ASCII sign that can be one"),
    (b"sep=\xa7\r\n", {"encoding": "cp1252", "delimiter": ";"}, "'§', which is no ASCII sign"),
    (b'"sep=\xa7"\n', {"encoding": "gbk"}, None),  # Half of a sign.
    (b"sep=\0\n", {}, r"'\\x00', which is no ASCII sign that can be one"),
    (b"sep=\x1f\n", {}, "which is no ASCII sign that can be one"),
    (b"sep=.\n", {}, "'.', which is no ASCII sign that can be one"),
    (b"sep=#\n", {"comment": "#"}, "'#', and the feed profile that comments begin with '#'"),
    (b"# x\nsep=#\n", {"comment": ["#-", "# "]}, "line 2: .* that comments begin with '# '"),
    (b"sep='\n", {"quote": "'"}, "and the feed profile that it is the quote"),
    (b"sep=\\\n", {"escape": "\\"}, "it is the quote, or an escape"),
]


@pytest.mark.parametrize(("above", "keys", "said"), STATED)
def test_a_sign_that_cannot_stand_between_cells_is_refused(
    tmp_path: Path, above: bytes, keys: dict[str, object], said: str | None
) -> None:
    path = tmp_path / "a.csv"
    sign = above.rstrip(b'"\r\n')[-1:]
    path.write_bytes(above + (HEADER + ROWS).encode().replace(b";", sign))
    profile = bank(**keys)
    with pytest.raises(ExtractRefused) as caught:
        read_header(open_content(path, profile.encoding), None, profile, Limits())
    if said is not None:
        assert caught.value.code == "malformed_header"
        assert re.search(said, str(caught.value))


@pytest.mark.parametrize("sign", ["\0", "\x1f", "."])
def test_no_draft_takes_such_a_sign_for_the_delimiter(sign: str) -> None:
    assert shape_of(f"sep={sign}\n{HEADER}{ROWS}").delimiter == ";"


def test_names_of_several_rows_are_joined(tmp_path: Path) -> None:
    mapped = {"Zahlung Nr.": "Id", "Betrag": "PaidAmount", "Mandant": "TenantsId"}
    profile = bank(header_line=2, header_lines=2, columns=mapped)
    text = "Auszug\nZahlung;Betrag\nNr.;;Mandant\n"
    header, records = read(tmp_path, text + ROWS, profile)
    assert header.names == ("Zahlung Nr.", "Betrag", "Mandant")
    assert (header.body_line, records) == (4, ROWS)


SPREAD = "spread"
TITLES = [
    # rows of a header, what the columns are called where titles are spread, and how far
    ("Id;Paid;;Fee;\n;Gross;Net;Gross;Net\n", "Id;Paid Gross;Paid Net;Fee Gross;Fee Net", SPREAD),
    (";USD;;EUR;;\nDay;Buy;Sell;Buy;Sell;\n", "Day;USD Buy;USD Sell;EUR Buy;EUR Sell", SPREAD),
    # A title that one row repeats ends where a row above begins another.
    (
        "2026;;2027;;\nQ1;;;Q2;\nA;B;A;B;C\n",
        "2026 Q1 A;2026 Q1 B;2027 A;2027 Q2 B;2027 Q2 C",
        3,
    ),
    # What stands behind all of them has none of them.
    (
        "Id;Paid;;Fee;;\n;Gross;Net;Gross;Net;Sum\n",
        "Id;Paid Gross;Paid Net;Fee Gross;Fee Net;Sum",
        2,
    ),
    ("Id;Paid;;Fee;\n;Gross;Net;Gross;Sum\n", "Id;Paid Gross;Net;Fee Gross;Sum", 1),
    (
        "Id;Paid;;;Fee;\n;Gross;Net;Tax;Gross;Net\n",
        "Id;Paid Gross;Paid Net;Paid Tax;Fee Gross;Fee Net",
        SPREAD,
    ),
    # One alone is no measure of another.
    ("Id;Paid;;\n;Gross;Net;Tax\n", "Id;Paid Gross;Paid Net;Paid Tax", SPREAD),
    # What has a name of its own ends it as well; what has none below stays without one.
    ("Paid;;Day;Text\nGross;Net;;\n", "Paid Gross;Paid Net;Day;Text", SPREAD),
    ("Id;Paid;;\n;Gross;;Net\n", "Id;Paid Gross;;Paid Net", SPREAD),
    ('"Id ";" Paid";" "\n;Gross;Net\n', "Id;Paid Gross;Paid Net", SPREAD),
    ("Id;Paid\n;Gross;Net\n", "Id;Paid Gross;Paid Net", SPREAD),
]


@pytest.mark.parametrize(("text", "names", "titles"), TITLES)
def test_a_title_stands_above_the_columns_it_is_merged_across(
    tmp_path: Path, text: str, names: str, titles: int | str
) -> None:
    rows = text.count("\n")
    columns = {names.split(";", maxsplit=1)[0]: "Id", names.split(";")[1]: "PaidAmount"}
    constants = REST | {"TenantsId": 7}
    keys: dict[str, object] = {
        "header_lines": rows,
        "header_titles": titles,
        "unknown_columns": "ignore",
        "delimiter": ";",
        "columns": columns,
        "constants": constants,
    }
    width = max(line.count(";") for line in text.splitlines())
    header, records = read(tmp_path, f"{text}1;2{';' * (width - 1)}\n", bank(**keys))
    assert ";".join(header.names).rstrip(";") == names
    assert header.body_line == rows + 1
    assert records == f"1;2{';' * (width - 1)}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Id;Paid;;Fee;;\n;Gross;Net;Gross;Net;Sum\n", "line 1: .* 'Fee' .* 'Sum' .* more columns"),
        ("Id;Paid;Fee;;;\n;Gross;Gross;Net;Sum;\n", "line 1: .* 'Fee' .* 'Net', 'Sum' "),
        ("x;;;;\nA;;B;;\nC;D;C;D;E\n", "line 1: .* 'B' .* 'E' "),
    ],
)
def test_a_title_is_not_guessed_to_stand_above_more_columns_than_any_other(
    tmp_path: Path, text: str, said: str
) -> None:
    keys: dict[str, object] = {
        "header_lines": text.count("\n"),
        "header_titles": "spread",
        "unknown_columns": "ignore",
        "delimiter": ";",
        "columns": {},
    }
    with pytest.raises(ExtractRefused, match=said) as caught:
        read(tmp_path, f"{text}1;2;3;4;5;\n", bank(**keys))
    assert caught.value.code == "untitled_columns"


@pytest.mark.parametrize(
    ("text", "keys", "code", "said"),
    [
        (HEADER + ROWS, {"header_line": 9}, "missing_header", "line 9: .*has 3 lines, and no text"),
        (HEADER + ROWS, {"header_line": 2}, "missing_header", "line 2: the first record is data"),
        ("sep=;\n" + HEADER, {"delimiter": ","}, "malformed_header", "says .* is ';', .* is ','"),
        ("x\ny\n", {"header_line": "found"}, "missing_column", "line 1: required columns"),
        (
            "x\n" * 100 + HEADER + ROWS,
            {"header_line": "found"},
            "missing_header",
            "Nor is any of the first 100 lines a header of payment. Further down none is",
        ),
        (
            "Auszug;11/2026\n" + HEADER.replace("Betrag", "Summe") + ROWS,
            {"header_line": "found"},
            "missing_column",
            "line 2: required columns are missing: Betrag. The feed profile names them, and there",
        ),
        (
            HEADER + ROWS,
            {"delimiter": ","},
            "missing_column",
            "Its only column .* record: it has no ',', the delimiter of the feed profile, but ';'",
        ),
        ("x\n" + HEADER, {}, "text_before_header", "or say header_line in a feed profile"),
        ("x\n" + BROKEN, {"columns": OF_BROKEN}, "text_before_header", "line 2 looks like one"),
        (
            "#" + BROKEN,
            {**HASHES, "header_line": "found", "columns": OF_BROKEN},
            "commented_header",
            "line 1: this is the header",
        ),
        ("Zahlung;Betrag\n", {"header_lines": 2}, "malformed_header", "never closed"),
        (f"#{HEADER}{ROWS}", HASHES, "commented_header", "line 1: .* begins with '#', as comments"),
        (f"# 1\n# {HEADER}{ROWS}", HASHES, "commented_header", "line 2: this is the header"),
        (f"#{HEADER}", HASHES, "commented_header", "names in the feed profile.* or take comment"),
        (
            f"x\n#{HEADER}{ROWS}",
            {**HASHES, "header_line": "found", "columns": {**COLUMNS, "#Zahlung": "Id"}},
            "commented_header",
            "line 2: this is the header",
        ),
        (f"# {HEADER}Nr.;Betrag;Mandant\n{ROWS}", HASHES, "missing_column", "line 2: required"),
        (f"# no header\n{ROWS}", HASHES, "missing_header", "line 2: the first record is data"),
    ],
)
def test_a_header_that_is_not_there(
    tmp_path: Path, text: str, keys: dict[str, object], code: str, said: str
) -> None:
    error = refused(tmp_path, text, bank(**keys))
    assert error.code == code
    with pytest.raises(ExtractRefused, match=said):
        raise error


def test_a_header_that_is_a_comment_is_not_needed_where_the_columns_have_names(
    tmp_path: Path,
) -> None:
    profile = bank(**HASHES, delimiter=";", names=[*COLUMNS])
    header, records = read(tmp_path, f"#{HEADER}{ROWS}", profile)
    assert header.fields == ("Id", "PaidAmount", "TenantsId")
    assert records == ROWS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n  \r\n"])
def test_the_footer_is_no_record_and_its_totals_are_read(
    tmp_path: Path, encoding: str, end: str
) -> None:
    keys = {} if encoding != "cp1252" else {"encoding": encoding}
    profile = bank(footer=[SUM, COUNT], header_line="found", **keys)
    text = "Größe\n" + HEADER + ROWS + FOOTER.rstrip("\n") + end
    header, records = read(tmp_path, text, profile, encoding)
    assert records == ROWS
    assert header.footer is not None
    assert header.footer.rows == 2
    assert header.footer.sums == {"PaidAmount": Decimal("1214.56")}


OF_EACH = r"Summe (?P<CurrenciesId>\w+);(?P<PaidAmount>[^;]*);"
IN_EURO = {
    "columns": {**COLUMNS, "Mandant": "CurrenciesId"},
    "constants": {name: text for name, text in REST.items() if name != "CurrenciesId"}
    | {"TenantsId": 7},
    "fields": {"CurrenciesId": {"map": {"EUR": "978", "USD": "840", "7": "7"}}},
}
EUR, USD = "Summe EUR;1.234,56;\n", "Summe USD;-20,00;\n"
ANY_SUM = r"Summe.*;(?P<PaidAmount>[^;]*);"
BY_CURRENCY: list[tuple[list[str], str, Any]] = [
    # patterns, the footer, the sums by currency; or what is said
    ([OF_EACH], EUR + USD, {"978": Decimal("1234.56"), "840": Decimal("-20.00")}),
    ([OF_EACH], USD, {"840": Decimal("-20.00")}),
    ([COUNT, OF_EACH], f"{EUR}2 Buchungen;;\n{USD}", {"978": Decimal("1234.56"), "840": -20}),
    ([OF_EACH, SUM], f"{EUR}{USD}Summe;1.214,56;\n", {"978": Decimal("1234.56"), "840": -20}),
    (
        [ANY_SUM, OF_EACH],
        f"{EUR}{USD}Summe;1.214,56;\n",
        {"978": Decimal("1234.56"), "840": -20},
    ),
    (
        [ANY_SUM, r"(Summe|2 Buchungen);.*", OF_EACH],
        f"{EUR}{USD}Summe;1.214,56;\n2 Buchungen;;\n",
        {"978": Decimal("1234.56"), "840": -20},
    ),
    (
        [OF_EACH, SUM],
        f"{EUR}{USD}Summe;1.214,57;\n",
        "states 1214.57 as the sum .* come to 1214.56",
    ),
    ([OF_EACH], EUR + EUR, {"978": Decimal("1234.56")}),
    ([OF_EACH], f"{EUR}Summe EUR;5,00;\n", "PaidAmount in currency 978 as 1234.56 and as 5.00"),
    ([OF_EACH], "Summe CHF;5,00;\n", "CurrenciesId as 'CHF', which is not a text that fields"),
    ([OF_EACH], "Summe EUR;x;\n", "states PaidAmount as 'x', which is no number"),
    ([OF_EACH], "", "no line at its end fits the pattern"),
    ([OF_EACH, COUNT], EUR, "no line at its end fits the pattern '.*Buchungen"),
    ([OF_EACH], f"{EUR}2 Buchungen;;\n", "no line at its end fits"),
]


@pytest.mark.parametrize(("patterns", "footer", "wanted"), BY_CURRENCY)
def test_a_footer_may_have_a_sum_for_each_currency(
    tmp_path: Path, patterns: list[str], footer: str, wanted: Any
) -> None:
    profile = bank(**IN_EURO, footer=patterns)
    text = HEADER + ROWS + footer
    if isinstance(wanted, str):
        assert re.search(wanted, str(refused(tmp_path, text, profile)))
        return
    header, records = read(tmp_path, text, profile)
    assert records == ROWS
    assert header.footer is not None
    assert header.footer.by_currency == {"PaidAmount": wanted}
    assert header.footer.sums == {"PaidAmount": sum(wanted.values())}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"constants": REST}, "constants.CurrenciesId says which one it is"),
        ({"footer": [r"(?P<CurrenciesId>.*);(?P<rows>\d+);"]}, "rows counts those of all"),
        ({"footer": ["Summe (?P<CurrenciesId>.*);.*"]}, "it has no sum"),
    ],
)
def test_a_line_of_a_currency_that_cannot_be_meant(keys: dict[str, Any], said: str) -> None:
    columns = COLUMNS if "constants" in keys else IN_EURO["columns"]
    fields = {} if "constants" in keys else IN_EURO["fields"]
    with pytest.raises(ProfileError, match=said):
        bank(**{**IN_EURO, "footer": [OF_EACH], "columns": columns, "fields": fields, **keys})


@pytest.mark.long
def test_a_file_that_was_cut_anywhere_is_refused(tmp_path: Path) -> None:
    """By its footer: whatever is left of the records, their end is not there."""
    profile = bank(footer=[SUM, COUNT])
    whole = HEADER + ROWS + FOOTER
    last = len(whole.rstrip("\n"))
    for size in range(len(HEADER), last):
        assert refused(tmp_path, whole[:size], profile).code == "incomplete_file", size
    assert read(tmp_path, whole[:last], profile)[1] == ROWS


@pytest.mark.parametrize(
    ("behind", "records"),
    [
        (FOOTER, ROWS),
        ("\n\n" + FOOTER, ROWS),
        ("Summe;1.214,56;\n\n2 Buchungen;;\n", ROWS),
        # In the middle it is a record, and so is the end of a text in quotes.
        ("Summe;1;\n4713;1;7\n" + FOOTER, ROWS + "Summe;1;\n4713;1;7\n"),
        ('1;"\nSumme;2;";7\n' + FOOTER, ROWS + '1;"\nSumme;2;";7\n'),
    ],
)
def test_where_the_records_end(tmp_path: Path, behind: str, records: str) -> None:
    _, found = read(tmp_path, HEADER + ROWS + behind, bank(footer=[SUM, COUNT]))
    assert found == records


@pytest.mark.parametrize("lines", [1, 2])
def test_a_pattern_takes_one_line_and_the_rest_are_records(tmp_path: Path, lines: int) -> None:
    behind = ["Total Energies;2;7\n", "Total;3;\n"]
    text = HEADER + ROWS + "".join(behind)
    _, found = read(tmp_path, text, bank(footer=["Total.*", "Total .*"][:lines]))
    assert found == ROWS + "".join(behind[:-lines])


@pytest.mark.parametrize("footer", [["Total.*", r"Total;\d;"], [r"Total;\d;", "Total.*"]])
@pytest.mark.parametrize("behind", ["Total;3;\nTotal of accounts;1;\n", "Total;x;\nTotal;3;\n"])
def test_a_line_is_left_to_the_pattern_that_no_other_fits(
    tmp_path: Path, footer: list[str], behind: str
) -> None:
    _, found = read(tmp_path, HEADER + ROWS + behind, bank(footer=footer))
    assert found == ROWS


def test_a_footer_that_states_two_numbers(tmp_path: Path) -> None:
    twice = bank(footer=[SUM, r"Saldo;(?P<PaidAmount>[^;]*);"])
    error = refused(tmp_path, HEADER + "Summe;1,00;\nSaldo;2,00;\n", twice)
    assert "states PaidAmount as '1,00' and as '2,00'. A footer has one sum of a field" in str(
        error
    )


def test_a_footer_that_states_one_number_twice(tmp_path: Path) -> None:
    """However it is written: `00012` by one line is `12` by the other."""
    patterns = [SUM, COUNT, r"Saldo;(?P<PaidAmount>[^;]*);", r"Ende;(?P<rows>\d+);"]
    footer = f"{FOOTER}Saldo;0001214,560;\nEnde;002;\n"
    header, _ = read(tmp_path, HEADER + ROWS + footer, bank(footer=patterns))
    assert header.footer is not None
    assert (header.footer.rows, header.footer.sums) == (2, {"PaidAmount": Decimal("1214.56")})


@pytest.mark.parametrize(
    ("behind", "keys", "said"),
    [
        # The cell is `1.214;56`: no more than its first half is taken.
        ('Summe;"1.214;56"', {}, """'Summe;(?P<PaidAmount>[^;]*).*' takes '"1.214'"""),
        ('Summe;"12";', {}, None),
        ("Summe;'12;5'", {"quote": "'"}, "takes ''12'"),
        ("Summe;'12';", {"quote": "'"}, None),
        ('Summe;"12;', {"quote": "none"}, """as '"12', which is no number"""),
        ('Summe;"12";', {"quote": "none"}, """as '"12"', which is no number"""),
        ('Summe;12"";', {}, """as '12""', which is no number"""),
    ],
)
def test_half_a_quoted_cell_is_no_total(
    tmp_path: Path, behind: str, keys: dict[str, Any], said: str | None
) -> None:
    profile = bank(footer=["Summe;(?P<PaidAmount>[^;]*).*"], delimiter=";", **keys)
    if said is not None:
        assert said in str(refused(tmp_path, f"{HEADER}{ROWS}{behind}\n", profile))
        return
    header, _ = read(tmp_path, f"{HEADER}{ROWS}{behind}\n", profile)
    assert header.footer is not None
    assert header.footer.sums == {"PaidAmount": Decimal(12)}


@pytest.mark.parametrize(
    "keys",
    [
        {"columns": {"Betrag": "PlannedAmount", "Bild": "PaymentPlansId"}},
        {"fields": {"PaymentPlansId": {"from": ["Bild"], "default": "1"}}},
        {"fields": {"PaymentPlansId": {"from": ["Zahlung", "Bild"]}}},
        {"fields": {"StatusCodesId": {"default": "1"}}},
    ],
)
def test_a_column_that_the_profile_names_is_there(tmp_path: Path, keys: dict[str, Any]) -> None:
    """An optional field too: half of a number would be another number."""
    optional = {"feed": "x", "record": "payment_plan_detail", "unknown_columns": "ignore"}
    mapped = {"Mandant": "PlannedCurrenciesId", **keys.get("columns", {})}
    profile = read_profile({**optional, **keys, "columns": mapped})
    error = refused(tmp_path, HEADER + ROWS, profile)
    assert error.code == "missing_column"
    assert re.search("(Bild|StatusCodesId). The feed profile names", str(error))


def test_a_column_of_the_fields_own_name_is_none_that_the_profile_names(tmp_path: Path) -> None:
    shape = {"feed": "x", "record": "payment_plan_detail", "columns": {"Bild": "PlannedAmount"}}
    header = "PlannedCurrenciesId;PlannedAmount;PaymentPlansId\n1;2.00;3\n"
    error = refused(tmp_path, header, read_profile(shape))
    assert (error.code, "missing: Bild. The feed" in str(error)) == ("missing_column", True)


def test_records_between_header_and_a_footer_far_away(tmp_path: Path) -> None:
    rows = ROWS * (2 * FOOTER_BYTES // len(ROWS))
    text, profile = HEADER + rows + FOOTER, bank(footer=[SUM, COUNT])
    _, found = read(tmp_path, text, profile, block_bytes=FOOTER_BYTES // 3)
    assert found == rows


@pytest.mark.parametrize(
    ("total", "amount"),
    [(",50", "0.5"), ("-,00", "0"), ("+,5", "0.5"), ("1e3", "1000"), ("2,5E-1", "0.25")],
)
def test_a_total_is_written_as_the_amounts_of_records_are(
    tmp_path: Path, total: str, amount: str
) -> None:
    footer = FOOTER.replace("1.214,56", total)
    header, _ = read(tmp_path, HEADER + ROWS + footer, bank(footer=[SUM, COUNT]))
    assert header.footer is not None
    assert header.footer.sums == {"PaidAmount": Decimal(amount)}


def test_a_total_is_scaled_as_the_amounts_of_records_are(tmp_path: Path) -> None:
    cents = {"PaidAmount": {"sum": ["Betrag"], "scale": "0.01"}}
    columns = {one: of for one, of in COLUMNS.items() if one != "Betrag"}
    profile = bank(footer=[SUM, COUNT], fields=cents, columns=columns)
    footer = FOOTER.replace("1.214,56", "1" * 30)
    header, _ = read(tmp_path, HEADER + ROWS + footer, profile)
    assert header.footer is not None
    assert header.footer.sums == {"PaidAmount": Decimal(f"{'1' * 28}.11")}


@pytest.mark.parametrize("size", [1, 2000, 5000])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_text_behind_a_footer_is_told_by_its_line(
    tmp_path: Path, size: int, line_end: str, encoding: str
) -> None:
    """Also in a file that is longer than its end is looked for in."""
    text = HEADER + ROWS * size + FOOTER + "\nx;y;z\n\n"
    lines = text.splitlines()
    sums, last = lines.index(FOOTER.splitlines()[0]) + 1, lines.index("x;y;z") + 1
    path = tmp_path / "a.csv"
    path.write_bytes(text.replace("\n", line_end).encode(encoding))
    content = open_content(path, encoding)
    with pytest.raises(ExtractRefused) as caught:
        read_header(content, None, bank(footer=[SUM, COUNT]), Limits())
    assert caught.value.code == "incomplete_file"
    told = f"; line {sums} does, and text stands behind it up to line {last}"
    assert told in str(caught.value)


def test_no_line_of_a_record_with_secrets_is_shown_for_a_footer(tmp_path: Path) -> None:
    profile = Profile(
        feed="x", record="user_account", delimiter=";", footer=("Ende",), unknown_columns="ignore"
    )
    names = "Id;UserName;Password"
    told = str(refused(tmp_path, f"{names}\n1;ann;hidden\n", profile))
    assert "no line at its end fits the pattern 'Ende'" in told
    assert "hidden" not in told


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (
            "Suma;1;\n2 Buchungen;;\n",
            "no line at its end fits the pattern 'Summe.*; it ends with 'Suma;1;' and '2 Buch",
        ),
        ("Summe;1;\n2 Buchungen;;\nx;y;z\n", "no line at its end fits the pattern 'Summe"),
        ("2 Buchungen;;\n\x1a", r"its last line is '\\x1a', which skip_lines = \['\\x1a'\] leaves"),
        ("Summe;1,234.56;\n2 Buchungen;;\n", "PaidAmount as '1,234.56', which is no number"),
        ("Summe;;\n2 Buchungen;;\n", "PaidAmount as '', which is no number"),
    ],
)
def test_a_footer_that_says_nothing_sure(tmp_path: Path, behind: str, said: str) -> None:
    error = refused(tmp_path, HEADER + ROWS + behind, bank(footer=[SUM, COUNT]))
    assert error.code == "incomplete_file"
    with pytest.raises(ExtractRefused, match=said):
        raise error


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"header_line": 0}, "header_line = 0 is no line. Write its number, 1 to 1000"),
        ({"header_line": "last"}, "header_line = 'last' is no line"),
        ({"header_line": True}, "header_line = true is no line"),
        ({"header_lines": 9}, "header_lines = 9 is out of range. Use 1 to 5"),
        ({"header_line": "found", "header_lines": 2}, "header_line cannot be found where"),
        ({"header_titles": "spread"}, "header_titles is for names in several rows"),
        (
            {"header_titles": "both"},
            "header_titles = 'both' does not say which columns .* kept, spread, or",
        ),
        ({"header_titles": 0}, "header_titles = 0 does not say which columns"),
        ({"header_titles": 2}, "header_titles is for names in several rows"),
        (
            {"delimiter": ";", "names": ["A"], "header_lines": 2, "header_titles": "spread"},
            "header_lines is not for files without a header",
        ),
        ({"unnamed_columns": 0}, "unnamed_columns = 0 is out of range. Use 1 to 100"),
        (
            {**UNNAMED, "delimiter": ";", "names": ["A"]},
            "unnamed_columns is not for files without a header",
        ),
        ({**UNNAMED, "sheet": 1}, "unnamed_columns is not for a sheet"),
        ({"unnamed_columns": 1}, 'State unknown_columns = "ignore"'),
        ({"footer": ["("]}, "footer: '.' is no pattern"),
        ({"footer": [".*"]}, "fits an empty line. Say what it"),
        ({"footer": ["Total", "Total"]}, "footer names a line twice"),
        ({"footer": ["Total (?P<Total>.*)"]}, "footer names 'Total', not rows, or an amount"),
        ({"footer": "Total"}, "footer = 'Total' is not a list of texts"),
    ],
)
def test_a_profile_that_cannot_be_meant(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        bank(**keys)


def test_a_header_is_found_by_the_columns_of_a_record_that_is_stated() -> None:
    with pytest.raises(ProfileError, match="found by the columns of a record"):
        read_profile({"feed": "bank", "header_line": "found"})


def test_what_manifest_and_footer_state_has_to_agree() -> None:
    footer = ExtractFooter(0, 2, {"PaidAmount": Decimal("5.00")})
    by_currency = {
        "PaidAmount": {"1": Decimal(2), "2": Decimal(3)},
        "DiscountAmount": {"": Decimal(1)},
    }
    entry = ManifestEntry("manifest.json", rows=None, sums=by_currency, bytes=9)
    both = with_footer(entry, footer, "a.csv")
    assert (both.manifest, both.rows, both.bytes) == ("manifest.json and its footer", 2, 9)
    assert both.sums == by_currency
    for other in (
        ManifestEntry("m", rows=3),
        ManifestEntry("m", sums={"PaidAmount": {"": Decimal(4)}}),
    ):
        with pytest.raises(ExtractRefused, match=r"(3|4) by m, (2|5.00) by the footer"):
            with_footer(other, footer, "a.csv")
    own = {"PaidAmount": {"1": Decimal(1), "2": Decimal(4)}}
    finer = ExtractFooter(0, 2, {"PaidAmount": Decimal(5)}, own)
    total = ManifestEntry("m", sums={"PaidAmount": {"": Decimal(5)}})
    assert with_footer(total, finer, "a.csv").sums == own
    with pytest.raises(ExtractRefused, match="in currency 1: 2 by manifest"):
        with_footer(entry, finer, "a.csv")


def test_a_file_says_its_delimiter_also_above_the_line_that_the_profile_names(
    tmp_path: Path,
) -> None:
    text = "sep=~\nKontoauszug\n" + (HEADER + ROWS).replace(";", "~")
    assert read(tmp_path, text, bank(header_line=3))[1] == ROWS.replace(";", "~")


def test_totals_are_as_wide_as_the_numbers_of_records(tmp_path: Path) -> None:
    text = HEADER + ROWS + FOOTER.replace("1.214,56", wide("1.214,56"))
    header, _ = read(tmp_path, text, bank(footer=[SUM, COUNT], width="folded"))
    assert header.footer is not None
    assert header.footer.sums == {"PaidAmount": Decimal("1214.56")}
    assert "no number" in str(refused(tmp_path, text, bank(footer=[SUM, COUNT])))


@pytest.mark.long
def test_a_count_of_rows_is_no_share(tmp_path: Path) -> None:
    profile = bank(footer=[COUNT], percent="points", thousands=".")
    header, _ = read(tmp_path, HEADER + ROWS + "1.002 Buchungen;;\n", profile)
    assert header.footer is not None
    assert header.footer.rows == 1002
    header, _ = read(tmp_path, f"{HEADER}{'1' * 30} Buchungen;;\n", bank(footer=[COUNT]))
    assert header.footer is not None
    assert header.footer.rows == int("1" * 30), "which the rows of no file are"


@pytest.mark.long
def test_the_last_record_ends_where_the_footer_begins_whatever_the_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER + ROWS + FOOTER)
    content = open_content(path, None)
    header = read_header(content, None, bank(footer=[SUM, COUNT]), Limits())
    ends = []
    for block_bytes in range(1, len(ROWS) + 2):
        chunks = read_chunks(content, header, first_place(header), block_bytes)
        ends.append([end for chunk in chunks for end in chunk.positions()["byte_end"]])
    assert ends == [[len(HEADER) + ROWS.index("4712") - 1, len(HEADER + ROWS) - 1]] * len(ends)
