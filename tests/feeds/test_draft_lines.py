"""What a draft says of lines: of headers, footers, other kinds of lines, and encodings."""

import json
import re
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from connectors.files.drafting.shape import shape_of
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.dialect import Dialect, RecordFault
from flows.stages.draft.encoding import encoding_of
from tests.extracts.cut_records import read as read_records
from tests.feeds.test_draft import drafted
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.

BOTH = "all of them look like one; header_lines where names have several rows"
SIGNS = [
    # the text, what the draft says of its signs
    ("Id||Paid\n1||2.50\n2||3.50\n", ['delimiter = "||"']),
    ("Id|Paid|Note\n1|2.50||\n2|3.50|a||b\n", ['delimiter = "|"']),
    ("Id||Paid||Note\n1||2.50||\n2||3.50||a | b\n3||4||c\n", ['delimiter = "||"']),
    (
        'Id~|~Paid~|~Note\n1~|~2.50~|~\n2~|~~|~a~|b\n3~|~4~|~"c"\n4~|~1~|~5" x\n',
        ['delimiter = "~|~"'],
    ),
    ("Id|Paid|Note\n1||a\n2||b\n", ['delimiter = "|"']),
    ("# a\nId;Paid\n# b\n1;2.50\n", ['# ? comment = "#"  # 2 lines begin so']),
    # What has all cells may be a record, or the header.
    (
        "Id;Paid\n#1;2.50\n#2;3.50\n",
        [
            '# ? 2 lines begin with # and have all cells: records, or comment = "#"',
            '# ? "Paid" = "PaidAmount"  # such as 2.50',
        ],
    ),
    ("#;Paid\n1;2.50\n2;3.50\n", []),
    (
        "#;Paid\n1;2.50\n# 2\n2;3.50\n",
        ['# ? comment = "#"  # 1 line begins so, and the header too: it would be none'],
    ),
    ("Id\n# 1\n2\n", ['# ? 1 line begins with # and has all cells: records, or comment = "#"']),
    (
        'Id\tPaid\tNote\n1\t2.50\t\\N\n2\t3.50\t"a\\"b"\n3\t1\tC:\\\n',
        ['# ? escape = "\\\\"  # 2 lines have \\N or \\"'],
    ),
    # Where there are escapes, cells are read by them, and a day of digits needs no name.
    (
        "Id|Dt|Text\n1|20261101|a\\|b\n"
        '2|20261102|\\"q\\" C:\\\\x\n3|20261103|\\N\n4|20261104|C:\\x\n',
        [
            '# ? escape = "\\\\"  # 2 lines have \\N or \\"',
            "#   what is said of cells and rows below is said of them read so",
            "# ? 1 row without the 3 cells of the others, line 5: 4|20261104|C:\\x",
            '#   1 with quotes or escapes out of place; quote = "none" where they are text',
            '# ? date_format = "%Y%m%d"  # of "Dt", such as 20261101',
            '# ? "Text" = ""  # such as a|b',
        ],
    ),
    (
        "'Id','Paid','Note'\n'1','2,5','it''s, so'\n'2','12,5',''\n'3','3,5','x'\n",
        [
            """# ? quote = "'"  # 4 lines have cells between such signs, and none between \"""",
            "#   what is said of cells and rows below is said of them read so",
            'decimal = ","',
            '# ? "Paid" = "PaidAmount"  # such as 2,5',
        ],
    ),
    # What is between them beside cells in quotes is text.
    ("Id;Paid;Note\n1;2;'a'\n2;3;'b'\n", []),
    ("Id;Paid;Note\n1;2;'a'\n2;3;\"b\"\n", ['# ? "Note" = ""  # such as \'a\'']),
    ("Id;Paid\n1;2.50\n", []),
    # A column without a name, and names of two.
    (
        "Id;PaidAmount;\n1;2.50;\n",
        ['unknown_columns = "ignore"  # ? without it every column has to be mapped'],
    ),
    (
        "Bank\nId;;Paid\n1;x;2.50\n",
        [
            "# ? Nothing can be made of columns without a name, which have cells: 2.",
            '# ? names = ["Id", "Column 2", "Paid"]',
            "# ? first_line = 3",
        ],
    ),
    (
        "Id;;Paid\n1;2026-11-01;2.50\n2;2026-11-02;3.50\n3;2026-11-03;4\n4;x;5\n",
        ["# ? column 2: 1 of 4 cells is not of ISO 8601, such as x"],
    ),
    (
        "Id;Paid;paid;Paid 2\n1;2.50;x;y\n",
        [
            '# ? Several columns are called "Paid", "paid": a file is refused if one is read.',
            '# ? names = ["Id", "Paid", "paid 3", "Paid 2"]',
            "# ? first_line = 2",
        ],
    ),
    (
        ";USD;;EUR;\nId;Buy;Sell;Buy;Sell\n1;1.10;1.20;2.10;2.20\n",
        [
            '# ? Several columns are called "Buy", "Sell": a file is refused if one is read.',
            '# Where titles stand above several columns: header_lines, header_titles = "spread".',
        ],
    ),
    (
        "Bank\nId;Paid\n1;2.50;;\n2;3.50;;\n",
        [
            'header_line = 2  # or "found", where that differs by file',
            '# ? unnamed_columns = 2  # with unknown_columns = "ignore"',
        ],
    ),
    (
        "Id;Paid\n1;2.50;\n2;3.50;x\n",
        [
            '# ? unnamed_columns = 1  # with unknown_columns = "ignore"',
            "#   1 row has a text there, such as x: it would be left out",
            'delimiter = ";"',
        ],
    ),
    (
        "Id;Paid;Note\n1;2.50\n2;3.50\n",
        ["# ? Rows have 1 cell less than the header has names: they would be rejected."],
    ),
    ("A;B\nId;Paid\n1;2.50\n", ["# ? header_line = 1 or 2  # " + BOTH]),
    # A header has up to five rows: what goes on like that is a list of texts.
    ("A;B\n" + "a;b\n" * 5 + "1;2.50\n", ['delimiter = ";"']),
    ("No|Paid\n 1| 2.50\n 2|30.50\n", ['# ? blanks = "dropped"  # 3 cells have blanks around']),
    (
        "No;In;Out\n1;2.50; \n" + "2;;3.50\n" * 20,
        ['# ? blanks = "dropped"  # 1 cell has blanks alone, which are no number and no time'],
    ),
    ("7;a\n8;b\n", ['# ? names = ["Column 1", "Column 2"]', '# ? "Column 1" = ""  # such as 7']),
    ("Bank\n7;a\n8;b\n", ["# ? first_line = 2"]),
    # Names may begin as values do, or a record as names.
    (
        "Id;1st reminder\n7;a\n8;b\n",
        [
            '# ? Names in line 1 begin as values do: "1st reminder".',
            "#   Where it is a record, name all columns (names, first_line = 1).",
            '# ? "1st reminder" = ""  # such as a',
        ],
    ),
    (
        "Report;Open items\nDoc;Total;0;30\n7;2.50;1;2\nSum;2.50;;\n",
        [
            'header_line = 2  # or "found", where that differs by file',
            '# ? Names in line 2 begin as values do: "0", "30".',
        ],
    ),
    (
        "Doc;2026\n7;a\nDoc;2026\n8;b\n",
        [
            '# ? Names in line 1 begin as values do: "2026".',
            "# ? skip_lines = ['Doc;2026']  # 1 line between rows",
        ],
    ),
    (
        "Smith;2.50\nJones;3.50\n",
        [
            '# ? Names in line 1 begin as values do: "2.50".',
            '# ? "Smith" = ""  # such as Jones',
        ],
    ),
    ("Id\n1\n2\n", ['# ? delimiter = ","  # no sign divides most of its lines; or [positions]']),
    # The commas are those of names, and not where the columns end.
    (
        "HDR 202611\n0123Ray, Ann    75\n0124Smith, John 80\n0125Lee, Bo     99\n",
        [
            '# ? delimiter = ","  # or [positions]: 3 of 4 lines have 18 signs, with this one at '
            "different places",
            '# ? blanks = "dropped"  # 3 cells have blanks around',
        ],
    ),
    ("Id,Name\n1,Ray  Ann\n2,Lee\n3,Bo\n", ['delimiter = ","']),
    # Decimal commas divide as many lines, a title another number of cells.
    ("Datum;Betrag, EUR;Text\na;4,50;x\na;5,50;x;y\n", ['delimiter = ";"']),
    ("Name;City\n1;Smith, John\n2;Ray, Ann, Dr\n", ['delimiter = ";"']),
    (
        'Id;Paid\n1;"2\n3;4\n',
        [
            '# ? 1 row without the 2 cells of the others, line 2: 1;"2',
            '#   1 with quotes out of place; quote = "none" where they are text',
        ],
    ),
]


TWO_TABLES = "id;label\na;A\nb;B\nc;C\nd;D\ne;E\ndate;a;b\n1;2;3\n2;3;4\n3;4;5\n"


@pytest.mark.parametrize(
    ("text", "is_told"), [(TWO_TABLES, True), (TWO_TABLES.replace("2;3;4", "2;3"), False)]
)
def test_a_second_table_below_the_first_is_named(
    tmp_path: Path, text: str, *, is_told: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    told = "#   4 of them have 3 cells, from line 7 on: where these are the records, "
    assert (f"{told}header_line = 7" in drafted(str(path))[0]) == is_told


@pytest.mark.parametrize(("text", "said"), SIGNS)
def test_a_draft_says_what_stands_beside_the_cells(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    lines = drafted(str(path))[0].splitlines()
    assert [line for line in lines if line in said] == said
    marked = [
        [
            one
            for one in some
            if re.match(r"# \? (blanks|comment|escape|unnamed_columns|header_line) =", one)
        ]
        for some in (lines, said)
    ]
    assert marked[0] == marked[1]


@pytest.mark.parametrize("rows", ["1;2.50;01.11.2026\n", "a;b;c\n" * 2, "x;1;2\n7;y;\n", "1;2\n"])
@pytest.mark.parametrize("above", ["", "report\n", "Open items;November\n"])
@pytest.mark.parametrize(
    "header",
    ["Doc;Due;2026", "Doc;1st;2nd", "A;A;3", "Doc;;3", "0;30;60", "Doc;Due;Total", "a@b;1;"],
)
def test_no_column_is_mapped_that_the_names_of_a_draft_lack(
    tmp_path: Path, header: str, above: str, rows: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{above}{header}\n{rows}")
    text = drafted(str(path))[0]
    columns = text.split("[columns]")[1].split("[constants]")[0]
    mapped = re.findall(r'^# \? "(.*)" = "', columns, re.MULTILINE)
    named = re.search(r"^# \? names = (.*)$", text, re.MULTILINE)
    assert not named or {*mapped} <= {*json.loads(named[1])}


RECORDS = "No;Paid;On;Text\n4711;1.234,56;01.11.2026;a\n4712;-20,00;02.11.2026;b\n"
ENDS = [
    # what the file ends with, the lines that are no records, the first row that is odd
    ('4713;5,00;03.11.2026;"two\nlines"\n', [], None),
    ('4713;5,00;03.11.2026;"a\nSumme;1"\n', [], None),
    ("4713;5,00;03.11.2026;b;x\n", [], "4713;5,00;03.11.2026;b;x"),
    ("4713;5,00;03.11.2026\n", [], "4713;5,00;03.11.2026"),
    ("4713;5,00;03.1", [], "4713;5,00;03.1"),
    ("4713;;03.11.2026;\n", [], None),
    # A name that begins as a total does is one sign, and a wrong number another.
    ("4713;5,00;03.11.2026;Total SE\n", [], None),
    ("x4713;5,00;03.11.2026;c\n", [], None),
    ("Summe;1.214,56;;\n", ["Summe;1.214,56;;"], None),
    ("Summe;1.214,56\n2 Buchungen\n", ["Summe;1.214,56", "2 Buchungen"], None),
    (";;Total;1.214,56\n\n", [";;Total;1.214,56"], None),
    (" Total;1.214,56 \t\n", ["Total;1.214,56"], None),
    ("4713;5,00;03.11.2026;c\nEnd of file\n", ["End of file"], None),
    ("4713;5,00\nTotal;1\n", ["Total;1"], "4713;5,00"),
    ("Total;1\n4713;5,00;03.11.2026;c\n", [], "Total;1"),
]


@pytest.mark.parametrize(("end", "behind", "odd"), ENDS)
def test_only_what_can_be_no_record_is_offered_as_a_footer(
    tmp_path: Path, end: str, behind: list[str], odd: str | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(RECORDS + end)
    lines = drafted(str(path))[0].splitlines()
    begin = "# Behind the records: "
    assert [line.removeprefix(begin) for line in lines if line.startswith(begin)] == behind
    assert any(line.startswith("# ? footer") for line in lines) == bool(behind)
    told = [line for line in lines if line.startswith("# ? 1 row without the 4 cells")]
    assert [line.partition(": ")[2] for line in told] == ([odd] if odd else [])
    # Of a large file only the beginning and the end are looked at.
    rows = RECORDS.partition("\n")[2]
    shape = shape_of(RECORDS + rows, "of a cut line\n" + rows * 4 + end)
    assert (shape.behind, [one.text for one in shape.odd]) == (tuple(behind), [odd] * bool(odd))


ROWS = "4713;5,00;03.11.2026;c\n4714;6,00;03.11.2026;\n"
ACCOUNT = "#   Account becomes a column of the rows below; where it is none, write .* for it"
EMPTY = r'[ \t]*(?:"[ \t]*")?[ \t]*'
BETWEEN = [
    # lines above the header and between the rows, what is said of them
    ("Account: 1\n", "Account: 2\n", ["'Account: *(?P<Account>.*)'", "1 line", ACCOUNT]),
    ("", "Account: 2\nAccount: A3\n", ["'Account: *(?P<Account>.*)'", "2 lines", ACCOUNT]),
    ("", "Text: 2\nText: 3\n", [r"'Text: \d+'", "2 lines"]),
    # Rows of delimiters alone, as spreadsheets write those without a cell.
    ("", ";;;\n", ["'[;]+'", "1 line"]),
    ("", ";;;\n ; ;;\n;;\n", ["'[ ;]+'", "3 lines"]),
    ("", ";;;\n----\n\n", ["'[\\-]+', '[;]+'", "2 lines"]),
    ("", '"";"";"";""\n;"";;\n', ['\'(?:"")?(?:;(?:"")?)+\'', "2 lines"]),
    ("", '"";;" ";\n"" ;"";"";""\n', [f"'{EMPTY}(?:;{EMPTY})+'", "2 lines"]),
    ("", '";";;;\n', []),
    # Of two kinds with one name the first says it: what is below it is no other one.
    (
        "",
        "Account: 2\nEnd of account: 5\n" * 2,
        [r"'Account: *(?P<Account>.*)', 'End of account: \d+'", "4 lines", ACCOUNT],
    ),
    ("", "Account;2;;\nAccount;3;;\n", ["'Account;(?P<Account>[^;]*).*'", "2 lines", ACCOUNT]),
    (
        "",
        "Account;2;Currency;EUR\nAccount;3;Currency;EUR\n",
        ["'Account;(?P<Account>[^;]*);Currency;(?P<Currency>[^;]*).*'", "2 lines", ACCOUNT],
    ),
    (
        "",
        "Account: 2 Currency: EUR\nAccount: 3 Currency: USD\n",
        ["'Account: *(?P<Account>.*?) *Currency: *(?P<Currency>.*)'", "2 lines", ACCOUNT],
    ),
    (
        "",
        '"Account: 2"\n"Account: 3"\n',
        ['\'"Account: *(?P<Account>[^"]*)".*\'', "2 lines", ACCOUNT],
    ),
    (
        "",
        "Account: 2;;;\nAccount: 3;;;\n",
        ["'Account: *(?P<Account>[^;]*).*'", "2 lines", ACCOUNT],
    ),
    (
        "",
        "Account  47 A\nAccount  51 B\n",
        [r"'Account\s+(?P<Account>[0-9]+).*'", "2 lines", ACCOUNT],
    ),
    # A sum below rows says nothing of those behind it, and may be longer on another page.
    ("", "Sum;;5,00;\nSum;;6,00;\n", ["'Sum.*'", "2 lines"]),
    ("", "Sum of 2: 5,00\nSum of 3: 6,00\n", ["'Sum of.*'", "2 lines"]),
    # What no group can be called, and no pattern can have.
    ("", "हिन्दी 47 a\nहिन्दी 51 b\n", ["'हिन्दी.*'", "2 lines"]),
    ("", "ReconRow: 4\nReconRow: 5\n", [r"'ReconRow: \d+'", "2 lines"]),
    ("", "a\0b;4\na\0b;5\n", []),
    ("", "No;Paid;On;Text\n", ["'No;Paid;On;Text'", "1 line"]),
    ("Page 1 (of 2)\n", "Page 2 (of 2)\n", [r"'Page \d+ \(of \d+\)'", "1 line"]),
    ("", "It's 4 B\nIt's 5 A\n", ['"It\'s.*"', "2 lines"]),
    ("", "----\n-;---;-\n", [r"'[\-;]+'", "2 lines"]),
    # What may be a record, or its beginning, is left to whoever decides.
    ("", "4720;7,00\n4721;8,00\n", []),
    ("", "N/A;7,00;03.11.2026;c\nN/A;8,00;03.11.2026;c\n", []),
    ("", "Account: 2\n", []),
    ("", "x;-;-;-\n", []),
    ("", '4730;7,00;03.11.2026;"Account: 1\nAccount: 2\nAccount: 3"\n', []),
]


@pytest.mark.parametrize(("above", "between", "said"), BETWEEN)
def test_lines_of_other_kinds_are_told_by_patterns(
    tmp_path: Path, above: str, between: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(above + RECORDS + between + ROWS)
    lines = drafted(str(path))[0].splitlines()
    told = [line for line in lines if line.startswith(("# ? skip_lines", "#   Account"))]
    wanted = [f"# ? skip_lines = [{said[0]}]  # {said[1]} between rows", *said[2:]] if said else []
    assert told == wanted
    # So read, every line below the header is one of these, or a row.
    patterns = [kind.pattern for kind in shape_of(above + RECORDS + between + ROWS).kinds]
    profile = read_profile({"feed": "x", "skip_lines": patterns})
    body = RECORDS.partition("\n")[2] + (between if said else "") + ROWS
    dialect = Dialect(b";", skip_lines=profile.skip_lines)
    found, _ = read_records(body.encode(), 4, dialect)
    assert [one.fault for one in found] == [RecordFault.NONE] * 4


ENCODED = [
    # what a file is written in, its header, the lines of the draft about that
    ("utf-8", "Nr;Empfänger", []),
    ("utf-16", "Nr;Empfänger", []),
    ("utf-16-be", "Nr;Empfänger", ['encoding = "utf-16-be"  # ? It looks like it, and no']),
    (
        "cp1252",
        "Nr;Empfänger",
        ['encoding = "cp1252"  # ? It is not UTF-8. Is this right: Nr;Empf'],
    ),
    # What may be in several encodings is in none that is stated: only a reader knows the words.
    ("cp1252", "Nr;Destinatário", ['# ? encoding = "cp1252"  # It is not', '#   or "cp1257"']),
    ("cp932", "番号;日付", ['encoding = "cp932"  # ? It is not UTF-8. Is this right: 番号;日']),
    ("gbk", "编号;日期", ['# ? encoding = "gbk"  # It is not UTF-8. Is this right: 编号;日期']),
    ("cp949", "번호;날짜", ['#   or "cp949": 번호;날짜']),
    ("cp950", "號碼;日期", ['#   or "cp950": 號碼;日']),
]


@pytest.mark.parametrize(("encoding", "header", "said"), ENCODED)
def test_a_draft_names_the_encodings_that_a_text_can_be_in(
    tmp_path: Path, encoding: str, header: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f"{header}\n1;2026-11-01\n2;2026-11-02\n".encode(encoding))
    lines = drafted(str(path))[0].splitlines()
    told = [line for line in lines if re.match(r'(# \? )?encoding = |#   or "', line)]
    assert bool(told) == bool(said)
    assert [any(line.startswith(one) for line in told) for one in said] == [True] * len(said)


CODE_PAGES = {
    "cp1250": ("Bankowość żółć źdźbło", "Příliš žluťoučký kůň", "Őrült rövidítésű", "ŻÓŁĆ"),
    "cp1251": ("Счёт на оплату", "Платіж за послуги", "СЧЕТ № 5", "счёт «Ромашка»"),
    "cp1252": ("São João Conceição", "élève à l'école où", "5 € für Käse", "STRAßE 5", "Grøn Ærø"),
    "cp1253": ("Τιμολόγιο πληρωμής", "ΤΙΜΟΛΟΓΙΟ"),
    "cp1254": ("Ödeme işlemi güncellendi", "İstanbul şubesi"),
    "cp1255": ("חשבון תשלום",),
    "cp1256": ("فاتورة الدفع",),
    "cp1257": ("Mokėjimas už paslaugas", "Rēķins par pakalpojumiem"),
    "iso8859-2": ("Bankowość źródło", "Šťastný žák"),
    "cp850": ("Überweisung für Käse", "Käse"),
    "cp852": ("Bankowość źródło",),
    "cp866": ("Счет на оплату",),
    "koi8-r": ("Счет на оплату",),
    "cp932": ("振込手数料", "支払い先 ﾌﾘｺﾐ"),
    "gbk": ("付款人名称", "农业银行"),
    "cp949": ("입금 내역", "거래처 이름"),
    "cp950": ("付款人名稱",),
}


@pytest.mark.parametrize("encoding", CODE_PAGES)
def test_the_encoding_of_a_text_is_among_those_that_are_offered(encoding: str) -> None:
    for text in CODE_PAGES[encoding]:
        found = encoding_of(f"Id;Text\n1;{text}\n".encode(encoding))
        assert encoding in (found.encoding, *found.others)
        assert read_profile({"feed": "x", "encoding": found.encoding})
        assert len(found.others) < 6


@pytest.mark.parametrize(
    ("text", "encoding", "never"),
    [
        ("Bankowość żółć źdźbło", "cp1250", {"cp1252", "cp932"}),
        ("Τιμολόγιο πληρωμής", "cp1253", {"cp1252"}),
        ("Счёт на оплату", "cp1251", {"gbk", "cp1252"}),
        ("0123456JOSÉ DA SILVA", "cp1252", {"cp932"}),
        ("Müller", "cp1252", {"cp850", "cp852", "cp1251"}),
        ("振込手数料", "cp932", {"cp1252"}),
    ],
)
def test_no_encoding_is_offered_whose_text_is_no_words(
    text: str, encoding: str, never: set[str]
) -> None:
    found = encoding_of(f"Id;Text\n1;{text}\n".encode(encoding))
    assert found.encoding == encoding
    assert never.isdisjoint(found.others)


def test_the_line_that_is_shown_is_one_in_which_encodings_differ(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("Nr;Name\n1;Müller\n2;Grön\n3;São João\n".encode("cp1252"))
    told = drafted(str(path))[0].split("delimiter")[0].splitlines()[5:]
    assert told == [
        '# ? encoding = "cp1252"  # It is not UTF-8. Is this right: 3;São João',
        '#   or "cp1250": 3;Săo Joăo',
        '#   or "cp1257": 3;Sćo Joćo',
    ]


MUELLER = "1;Müller\n".encode()
MIXED = [
    # lines, what the draft says of their encoding
    (
        MUELLER * 500 + "2;Möller Köln\n".encode("cp1252") + MUELLER * 499,
        [
            '# ? encoding = "utf-8"  # 1 of 1,000 lines beyond ASCII is not, line 502',
            "#   in it: 1;Müller",
            '#   or "cp1252": 2;Möller Köln',
        ],
    ),
    (
        MUELLER * 5 + "2;Möller\n3;Böll\n".encode("cp1252"),
        [
            '# ? encoding = "utf-8"  # 2 of 7 lines beyond ASCII are not, the first line 7',
            "#   in it: 1;Müller",
            '#   or "cp1252": 2;Möller',
        ],
    ),
    (
        "2;Möller\n3;Böll\n".encode("cp1252") + MUELLER,
        [
            'encoding = "cp1252"  # ? It is not UTF-8. Is this right: 2;Möller',
            "# ? 1 of 3 lines beyond ASCII is UTF-8 all the same: 1;Müller",
        ],
    ),
    (MUELLER * 3, []),
]


@pytest.mark.parametrize(("lines", "said"), MIXED)
def test_lines_in_two_encodings_are_told_and_one_of_each_is_shown(
    tmp_path: Path, lines: bytes, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"Nr;Name\n" + lines)
    told = drafted(str(path))[0].split("delimiter")[0].splitlines()[5:]
    assert told == said


HEADING = "Konto;DE02;Währung;EUR\n"
HEADERS = [
    # a text whose heading may be a header too, and what is said of its header
    (HEADING + RECORDS, ["# ? header_line = 1 or 2"]),
    (HEADING + RECORDS + HEADING.replace("2", "3") + RECORDS, ["header_line = 2"]),
    # Words alone are rows as well, also those that are there twice.
    ("Name;City\nSmith;Rome\nRay;Paris\nSmith;Rome\n", []),
    # Rows have a cell that the header lacks, and some begin with a word as it does.
    ("Type;No;Paid;Text\nSALE;1;9;Shop;\nFEE;2;1;Shop;\nSALE;3;2;4711;\n", []),
    ("Bank\nType;No;Paid;Ref\nSALE;1;9;n/a;\nFEE;2;1;22;\nSALE;3;2;4711;\n", ["header_line = 2"]),
    # A rule is no row of names.
    (RECORDS.replace("\n", "\n-----;----;--;-----\n", 1), []),
]


@pytest.mark.parametrize(("text", "said"), HEADERS)
def test_a_header_that_is_printed_anew_is_the_header(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    lines = drafted(str(path))[0].splitlines()
    told = [line.partition("  #")[0] for line in lines if "header_line =" in line]
    assert told == said


def test_lines_of_other_kinds_hide_no_footer() -> None:
    page = HEADING + RECORDS + ROWS + "Summe;5,00;;\n"
    shape = shape_of(page + page.replace("2;W", "3;W") + "Gesamt;10,00;;\n8 Buchungen;;;\n")
    assert shape.behind == ("Gesamt;10,00;;", "8 Buchungen;;;")
    assert [kind.names for kind in shape.kinds] == [(), (), ("Konto", "Währung")]


@pytest.mark.long
def test_a_text_of_many_short_rows_is_divided(tmp_path: Path) -> None:
    """Each row is held against what all have in common, and not against each of them."""
    path = tmp_path / "a.csv"
    path.write_text("No;Paid;Text\n" + "".join(f"{row};1,50;row {row}\n" for row in range(40_000)))
    assert "header_line" not in drafted(str(path))[0]


def test_a_workbook_has_no_lines_of_other_kinds() -> None:
    text = RECORDS + "Account: 2,,\n" * 2 + ROWS
    assert (len(shape_of(text).kinds), shape_of(text, of_workbook=True).kinds) == (1, ())


@pytest.mark.parametrize("sign", ["\u2028", "\x0b", "\x0c", "\x1c", "\x85"])
def test_a_sign_that_ends_no_line_of_a_file_is_text(sign: str) -> None:
    shape = shape_of(f"{RECORDS}{sign}4713;5,00;03.11.2026;a{sign}b\n")
    assert (shape.odd, shape.rows[-1]) == ((), (f"{sign}4713", "5,00", "03.11.2026", f"a{sign}b"))


@pytest.mark.long
@given(st.data())
def test_an_odd_row_hides_neither_the_header_nor_the_delimiter(data: st.DataObject) -> None:
    width, unnamed = data.draw(st.integers(2, 5)), data.draw(st.integers(0, 1))
    header = ["Datum", "Betrag", "Text", "Mandant", "Ref"][:width]
    rows = [
        [*["01.11.2026", f"{n},50", "abc", "7", "x1"][:width], *[""] * unnamed]
        for n in range(data.draw(st.integers(4, 7)))
    ]
    odd = data.draw(st.sampled_from(rows))
    odd[-1:] = data.draw(st.sampled_from([[], ["z", "y"], ["z", "y", "x"]]))
    above = data.draw(st.lists(st.sampled_from(["Bank", "Konto;1;2", ""]), max_size=3))
    lines = [*above, *(";".join(row) for row in (header, *rows))]
    usual = width + unnamed - 1
    counts = Counter(line.count(";") for line in lines)
    # Else others may be the records, or those above may be.
    assume(all(counts[usual] > count for signs, count in counts.items() if signs != usual))
    alike = sum(line.count(";") == usual for line in above)
    assume(alike < len(rows) - 1)
    # With as many cells as the records it may be their header, and the header an odd row.
    assume(not (alike and unnamed))
    shape = shape_of("\n".join(lines))
    assert (shape.delimiter, shape.headed, shape.header_line) == (";", True, len(above) + 1)
    assert len(shape.rows) == len(rows) - 1
    assert [record.cells for record in shape.odd] == [tuple(odd)]


@pytest.mark.long
def test_a_file_of_one_line_for_its_encoding_is_looked_at_piece_by_piece() -> None:
    """Lines may end with CR alone; and what is asked of a line is a part of it."""
    for end in ("\r", " "):
        text = f"1;Müller in Grünau{end}".encode("cp1252") * 4_000
        tracemalloc.start()
        assert encoding_of(text).encoding == "cp1252"
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 100 * len(text)
