"""Fields that are made of other columns than one of their own, and what of it is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ProfileError
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.profiles.profile_file import load_profile, read_profile
from connectors.postgres.batches.ledger import State
from connectors.settings import Settings
from flows.stages.examining.examine import FileVerdict, examine
from flows.stages.examining.try_profile import try_profile
from flows.stages.rows.locate import Spot, locate
from flows.stages.rows.made_of import made_fields
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.tables import EXTRACTS
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.

HEADER = "No;Amount;D/C;Booked;Time;Currency;Reference\n"
GOOD = "1;12.50;D;01.11.2026;09:30;EUR;Debt 5 of Ann\n"
SHAPE: dict[str, Any] = {
    "feed": "bank",
    "record": "payment",
    "date_format": "%d.%m.%Y %H:%M",
    "offset": "+01:00",
    "columns": {"No": "Id"},
    "constants": {"TenantsId": 7, "ActionsId": 1, "CurrencyRatesId": 9},
    "fields": {
        "PaidAmount": {"from": ["Amount", "D/C"], "negative": ["1D"], "positive": ["1C"]},
        "DiscountAmount": {"from": ["Amount"], "part": r"\.(\d\d)$", "default": "0.00"},
        "PaymentDate": {"from": ["Booked", "Time"], "join": " "},
        "CurrenciesId": {"from": ["Currency"], "map": {"EUR": 1, "GBP": "3"}, "default": "1"},
        "DebtsId": {"from": ["Reference"], "part": r"Debt (\d+)"},
    },
}
PROFILE = read_profile(SHAPE)

MONTHS = [f"M{letter}." for letter in "abcdefghijkl"]


def checked(workspace: Workspace, folder: Path, *rows: str, header: str = HEADER) -> FileVerdict:
    path = folder / "a.csv"
    path.write_text(header + "".join(rows))
    (verdict,) = examine(workspace.settings, [str(path)], PROFILE)
    return verdict


@pytest.mark.long
def test_a_field_is_made_of_columns(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        HEADER + GOOD + "2;7.00;C;02.11.2026;10:00;GBP;paid: Debt 6\n" + "3;;;;;;\n"
        "4;1.25;C;03.11.2026;10:00;;Debt 7, Debt 8\n"
    )
    batch = import_delivery(workspace, [str(path)], PROFILE).batch
    found = rows(
        'SELECT "Id", "PaidAmount"::text, "DiscountAmount"::text, "PaymentDate"::text, '
        '"CurrenciesId", "DebtsId" FROM payment ORDER BY 1'
    )
    assert [(*one[:3], *one[4:]) for one in found] == [
        (1, "-12.50", "50", 1, 5),
        (2, "7.00", "0", 3, 6),
        (4, "1.25", "25", 1, 7),
    ]
    assert [one[3][:16] for one in found] == [
        "2026-11-01 08:30", "2026-11-02 09:00", "2026-11-03 09:00",
    ]  # fmt: skip
    assert batch.state is State.COMPLETE_WITH_ERRORS


@pytest.mark.long
def test_quotes_around_nothing_are_no_number_and_a_text(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """A default is for a cell that says nothing; of a text, quotes say that it is empty."""
    profile = read_profile(
        {
            "feed": "files",
            "record": "invoice_file",
            "fields": {
                "DebtsId": {"from": ["DebtsId"], "default": "5"},
                "InvoiceUrl": {"from": ["InvoiceUrl"], "default": "https://none"},
            },
        }
    )
    path = tmp_path / "a.csv"
    path.write_text('Id,TenantsId,DebtsId,InvoiceUrl\n1,7,,\n2,7,"",https://i\n3,7,6,""\n')
    import_delivery(workspace, [str(path)], profile)
    assert rows('SELECT "Id", "DebtsId", "InvoiceUrl" FROM invoice_file ORDER BY 1') == [
        (1, 5, "https://none"),
        (2, 5, "https://i"),
        (3, 6, ""),
    ]


def test_two_amounts_are_not_written_together_to_a_third(still: Workspace, tmp_path: Path) -> None:
    """As of a statement with a column for debits and one for credits."""
    fields = {**SHAPE["fields"], "PaidAmount": {"from": ["Amount", "Credit"]}}
    profile = read_profile({**SHAPE, "fields": fields, "unknown_columns": "ignore"})
    path = tmp_path / "a.csv"
    rows = [GOOD.replace("\n", end) for end in (";3.10\n", ";\n")]
    path.write_text(HEADER.replace("\n", ";Credit\n") + "".join(rows))
    (verdict,) = examine(still.settings, [str(path)], profile)
    (reject,) = verdict.rejects
    assert "12.503.10 (more than one of its columns has a number)" in str(reject)


@pytest.mark.long
def test_a_row_that_is_rejected_is_corrected_in_the_columns_it_came_in(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER + GOOD.replace("EUR", "eur"))
    batch = import_delivery(workspace, [str(path)], PROFILE).batch
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    assert rejects.read_text().startswith("ReconRow;" + HEADER)
    rejects.write_text(rejects.read_text().replace("eur", "EUR"))
    corrected = import_delivery(workspace, [str(rejects)], DEFAULT, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    assert rows('SELECT "CurrenciesId" FROM payment') == [(1,)]


@pytest.mark.long
def test_what_a_sender_leaves_out_is_put_around_a_cell(
    workspace: Workspace, rows: Any, recon: Any, tmp_path: Path
) -> None:
    """Days without their year, and numbers that begin anew each year."""
    fields = {
        **SHAPE["fields"],
        "Id": {"from": ["No"], "part": r"^R-(\d*)$", "prefix": "2026"},
        "PaymentDate": {"from": ["Booked"], "suffix": "2026", "date_format": "%d%m%Y"},
    }
    profile = read_profile({**SHAPE, "columns": {}, "fields": fields, "unknown_columns": "ignore"})
    path = tmp_path / "a.csv"
    good = ";12.50;D;{};09:30;EUR;Debt 5\n"
    days = ["R-001" + good.format("2511"), "R-002" + good.format("2902")]
    odd = ["R-003" + good.format(""), "X-4" + good.format("0101"), good.format("0101")]
    odd.append("R-" + good.format("0101"))
    path.write_text(HEADER + "".join([*days, *odd]))
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    said = {reject.line: reject.errors[0]["Message"] for reject in verdict.rejects}
    assert "29022026 (not written as %d%m%Y: no such day" in said[3]
    assert "'PaymentDate' must not be empty" in said[4]
    assert r"X-4 (no part of it fits ^R-(\d*)$)" in said[5]
    assert "'Id' must not be empty" in said[6]
    assert "'Id' must not be empty" in said[7]
    import_delivery(workspace, [str(path)], profile)
    assert rows('SELECT "Id", "PaymentDate"::date::text FROM payment') == [(2026001, "2026-11-24")]
    _, out, _ = recon("row", "1", "a.csv", "--line", "2", "--json")
    made = {one["field"]: one["comes_from"] for one in json.loads(out)["rows"][0]["fields"]}
    assert made["Id"] == "No, '2026' before it"
    assert made["PaymentDate"] == "Booked, '2026' behind it"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("EUR", "USD", "USD (none of those that are mapped: EUR, GBP)"),
        ("EUR", "eur", "eur (none of those that are mapped: EUR, GBP)"),
        ("Debt 5", "Dept 5", r"Dept 5 of Ann (no part of it fits Debt (\d+))"),
        ("12.50", "12.5", r"12.5 (no part of it fits \.(\d\d)$)"),
        (";D;", ";X;", "12.50X (decimal sign is '.'; minus one is 1D; plus one is 1C)"),
        (";D;", ";;", "12.50 (decimal sign is '.'; minus one is 1D; plus one is 1C)"),
        ("09:30", "", "01.11.2026"),
        ("09:30", "25:30", "01.11.2026 25:30"),
    ],
)
def test_what_a_field_cannot_be_made_of_is_rejected_as_it_was_delivered(
    still: Workspace, tmp_path: Path, before: str, after: str, said: str
) -> None:
    verdict = checked(still, tmp_path, GOOD.replace(before, after, 1))
    (reject,) = verdict.rejects
    assert said in reject.errors[0]["Message"]


@pytest.mark.parametrize(
    ("header", "code", "said"),
    [
        (HEADER.replace("Time", "Clock"), "missing_column", "missing: Time"),
        (HEADER.replace("Time", "Time;PaymentDate"), "inconsistent_columns", "have: PaymentDate"),
        (HEADER.replace("Time", "Time;Clock"), "inconsistent_columns", "not have: Clock"),
    ],
)
def test_a_file_without_the_columns_is_refused(
    still: Workspace, tmp_path: Path, header: str, code: str, said: str
) -> None:
    verdict = checked(still, tmp_path, header=header)
    assert verdict.refused == code
    assert said in (verdict.message or "")


def test_a_lookup_may_have_line_breaks_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "currencies.csv").write_text('code,id\n"E\nUR",1\n"G\u2028B",3\n')
    path = tmp_path / "bank.toml"
    path.write_text('feed = "bank"\n[fields.CurrenciesId]\nlookup = "currencies.csv"\n')
    assert load_profile(path).fields["CurrenciesId"]["map"] == {"E\nUR": "1", "G\u2028B": "3"}


def test_a_lookup_is_a_part_of_the_profile(tmp_path: Path) -> None:
    (tmp_path / "currencies.csv").write_text('code,id\nEUR,1\n"GBP",3\nEUR,1\n')
    path = tmp_path / "bank.toml"
    path.write_text('feed = "bank"\n[fields.CurrenciesId]\nlookup = "currencies.csv"\n')
    profile = load_profile(path)
    shape = {"feed": "bank", "fields": {"CurrenciesId": {"map": {"EUR": 1, "GBP": 3}}}}
    assert profile == read_profile(shape)
    assert profile.hash == read_profile(shape).hash != Profile(feed="bank").hash


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "line 3: fields.CurrenciesId.lookup: .*cannot be read: No such file"),
        ("code,id\nEUR\n", "line 2 has 1 cell, not two"),
        ("code,id\nEUR,1\nEUR,2\n", "line 3 says that 'EUR' stands for '2', .* says '1'"),
        ('code,id\n"EUR,1\n', "is not CSV in UTF-8"),
        (
            "code,id\nUSD,1\n\nEUR,x\n",
            "lookup: .*currencies.csv, line 4: EUR = 'x' is not a whole number",
        ),
        ("code,id\nEUR,1\nEUR new,x\n", "currencies.csv, line 3: EUR new = 'x' is not a whole"),
        ("EUR,1\nGBP,2\n", "has no header: line 1 ends with '1', a number"),
        ("code,id\n", "fields.CurrenciesId.lookup: .* has no entry"),
        ("code,id\n" + "".join(f"{n},1\n" for n in range(10_001)), "has 10001 lines; the limit is"),
    ],
)
def test_a_lookup_that_says_nothing_sure_is_refused(
    tmp_path: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "currencies.csv").write_text(text)
    path = tmp_path / "bank.toml"
    path.write_text('feed = "bank"\n[fields.CurrenciesId]\nlookup = "currencies.csv"\n')
    with pytest.raises(ProfileError, match=said):
        load_profile(path)


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [
        (
            "PaidAmount",
            {"from": ["A", "B"], "join": " ", "thousands": "blank"},
            "would read as one",
        ),
        ("PaidAmount", {"from": ["A", "B"], "join": "'", "thousands": "'"}, "would read as one"),
        *(
            ("PaidAmount", {"from": ["A", "B"], "join": join}, "would read as one")
            for join in (".", "e", "-", "0")
        ),
        *(
            (
                "PaidAmount",
                {"from": ["Debit", "Credit"], "join": "C", key: [one]},
                "a sum: name one",
            )
            for key, one in (("negative", "1C"), ("positive", "C1"))
        ),
        ("PaymentDate", {"from": ["A", "B"], "join": "1"}, "would be read as digits of a time"),
        (
            "PaymentDate",
            {"from": ["A", "B"], "date_format": "%d%m%Y", "date_zeros": "dropped"},
            "do not show where one ends. Join them by a sign that date_format has there too",
        ),
        (
            "PaymentDate",
            {"date_format": "%d %B %Y", "months": [f"{n}月" for n in range(1, 13)]},
            "have digits in them",
        ),
        ("PaidAmount", {"negative": [" 1"]}, "blanks around it, which a number never has"),
        ("PaidAmount", {"blanks": "dropped", "map": {" a": "1"}}, "which blanks drops"),
        ("PaidAmount", {"negative": ["-.1"]}, "the decimal sign, or that between thousands"),
        ("PaidAmount", {"currency": ["Rs.1", "Rs1"]}, "could be that of a number"),
        ("PaidAmount", {"currency": [".1"]}, "could be that of a number"),
        ("PaymentDate", {"date_format": "%d.%m.%Y %B", "months": MONTHS}, "stands in it twice"),
        ("PaymentDate", {"zone": "localtime"}, "is no IANA time zone"),
        ("PaidAmount", {"blanks": "dropped", "null": [" N/A"]}, "with blanks around it"),
        ("PaidAmount", {"prefix": "1"}, "PaidAmount is none of them"),
        ("PaymentDate", {"date_format": "unix", "suffix": "0"}, "PaymentDate is none of them"),
        ("CurrenciesId", {"map": {"a": "1"}, "prefix": "0"}, "a cell that is mapped is looked up"),
        ("CurrenciesId", {"suffix": ""}, "CurrenciesId.suffix is empty"),
        ("DebtsId", {"sum": ["A"], "prefix": "0"}, "sum and fields.DebtsId.prefix both say"),
        ("PaidAmount", {"from": []}, "PaidAmount.from = .* are not one or more columns"),
        ("PaidAmount", {"from": ["A", " a"]}, "from = .* are not one or more columns, each"),
        ("PaidAmount", {"from": "A"}, "from = 'A' is not a list of texts"),
        ("PaidAmount", {"join": " "}, "PaidAmount.join is for several columns"),
        ("PaidAmount", {"part": "("}, "part: '.' is no pattern"),
        ("PaidAmount", {"part": "x"}, "has 0 groups. Put the part"),
        ("PaidAmount", {"part": "(x)(y)"}, "has 2 groups. Put the part"),
        ("PaidAmount", {"map": {}}, "PaidAmount.map is empty"),
        (
            "PaidAmount",
            {"map": {"a": "b"}},
            "PaidAmount.map.a = 'b' is not a number written plainly",
        ),
        ("PaidAmount", {"default": "1,5"}, "PaidAmount.default = '1,5' is not a number written"),
        ("Id", {"default": "1"}, "columns and fields.Id.from both|"),
        ("TenantsId", {"default": "1"}, "constants.TenantsId and fields.TenantsId.default both"),
        ("Id", {"from": ["A"]}, "columns and fields.Id.from both say what Id is"),
        ("PaidAmount", {"frm": ["A"]}, "fields.PaidAmount.frm is not a key. Did you mean from"),
        ("PaidAmount", {"lokup": "a.csv"}, "lokup is not a key. Did you mean lookup"),
    ],
)
def test_a_profile_that_cannot_be_meant(name: str, told: dict[str, object], said: str) -> None:
    shape = {**SHAPE, "fields": {name: told}}
    if name == "Id" and "default" in told:
        read_profile(shape)
        return
    with pytest.raises(ProfileError, match=said):
        read_profile(shape)


def test_secrets_are_not_mapped() -> None:
    shape = {"feed": "x", "record": "client_registration"}
    with pytest.raises(ProfileError, match="is not for a secret"):
        read_profile({**shape, "fields": {"Password": {"map": {"a": "b"}}}})


TONES = [
    # a row, the name that it has; None: rejected; what is said of it
    ("7,1,T-1 calm (old)", "quiet", None),
    ("7,2,T-2 loud", "loud", None),
    ("7,3,", "plain", None),
    ("7,4,T-x calm", None, r"T-x calm (no part of it fits T-\d (\w+))"),
    ("7,5,T-5 odd", None, "T-5 odd (none of those that are mapped: calm, loud)"),
    ('7,6,""', None, r" (no part of it fits T-\d (\w+))"),
]


@pytest.mark.long
def test_a_text_is_a_part_of_another_and_what_that_stands_for(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    name = {"part": r"T-\d (\w+)", "map": {"calm": "quiet", "loud": "loud"}, "default": "plain"}
    profile = read_profile({"feed": "x", "record": "message_tone", "fields": {"Name": name}})
    path = tmp_path / "tones.csv"
    path.write_text("TenantsId,AvatarsId,Name\n" + "".join(f"{one}\n" for one, *_ in TONES))
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    said = {one.line: [error["Message"] for error in one.errors] for one in verdict.rejects}
    assert said == {
        line: [f"'Name' does not match the feed profile: {why}."]
        for line, (_, _, why) in enumerate(TONES, 2)
        if why
    }
    batch = import_delivery(workspace, [str(path)], profile).batch
    found = rows('SELECT "Name" FROM message_tone ORDER BY "AvatarsId"')
    assert found == [(text,) for _, text, _ in TONES if text]
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    top, *wrong = rejects.read_text().splitlines()
    assert [one.split(",", 1)[1] for one in wrong] == [row for row, text, _ in TONES if not text]
    right = wrong[0].replace("T-x", "T-4")
    rejects.write_text(f"{top}\n{right}\n")
    corrected = import_delivery(workspace, [str(rejects)], DEFAULT, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, batch.id, "tones.csv", Spot(line=5))
        made = {one.field: one.becomes for one in made_fields(workspace, connection, row, row.data)}
    assert made["Name"] == r"T-x calm (no part of it fits T-\d (\w+))"
    alone = read_profile(
        {"feed": "x", "record": "message_tone", "fields": {"Name": {"part": "(l.*)"}}}
    )
    (verdict,) = examine(workspace.settings, [str(path)], alone)
    assert [one.line for one in verdict.rejects] == [4, 6, 7]
    assert "T-5 odd (no part of it fits (l.*))" in str([*verdict.rejects][1])


def test_a_text_between_an_equals_sign_and_quotes_keeps_its_zeros(
    still: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "tones.csv"
    path.write_text('TenantsId,AvatarsId,Name\n="7",3,="00123"\n="7",3,00124\n')
    part = {"part": '^="(.*)"$'}
    shape = {"feed": "x", "quote": "none", "fields": {"TenantsId": part, "Name": part}}
    tried = try_profile(still.settings, str(path), read_profile(shape), record=None, rows=2)
    first, second = tried.rows
    assert (first.errors, first.values["Name"]) == ([], ('="00123"', "00123"))
    assert [one["FieldName"] for one in second.errors] == ["Name"]


@pytest.mark.long
def test_a_row_shows_how_each_of_its_fields_came_about(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER + GOOD.replace("EUR", "USD"))
    import_delivery(workspace, [str(path)], PROFILE)
    _, out, _ = recon("row", "1", "a.csv", "--line", "2", "--json")
    made = {one["field"]: [*one.values()][1:] for one in json.loads(out)["rows"][0]["fields"]}
    assert made == {
        "Id": ["No", "1", "1"],
        "TenantsId": ["constant '7'", None, "7"],
        "ActionsId": ["constant '1'", None, "1"],
        "DebtsId": ["Reference", "Debt 5 of Ann", "5"],
        "PaymentDate": ["Booked and Time", "01.11.2026 | 09:30", "2026-11-01T09:30:00+01:00"],
        "PaidAmount": ["Amount and D/C", "12.50 | D", "-12.50"],
        "DiscountAmount": ["Amount, or '0.00' where it is empty", "12.50", "50"],
        "CurrenciesId": [
            "Currency, or '1' where it is empty",
            "USD",
            "USD (none of those that are mapped: EUR, GBP)",
        ],
        "CurrencyRatesId": ["constant '9'", None, "9"],
    }
    _, out, _ = recon("row", "1", "a.csv", "--line", "2")
    assert "DebtsId Reference Debt 5 of Ann 5" in " ".join(out.split())


@pytest.mark.long
def test_a_row_with_secrets_shows_nothing_of_its_fields(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    path = tmp_path / "registrations.csv"
    path.write_text(
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
        "no-address,Ann,Lee,canary-secret,canary-secret,Acme\n"
    )
    import_delivery(workspace, [str(path)], DEFAULT)
    _, out, _ = recon("row", "1", "registrations.csv", "--line", "2", "--json")
    assert json.loads(out)["rows"][0]["fields"] == []
    assert "canary" not in out


@pytest.mark.long
def test_equal_rows_are_one_record_where_that_is_said(recon: Any, tmp_path: Path) -> None:
    """Two equal items of one order, whose number is made of what they say, may be two."""
    profile, path = tmp_path / "shop.toml", tmp_path / "items.csv"
    profile.write_text(
        'feed = "shop"\nrecord = "invoice_file"\n[fields.Id]\nkey = ["DebtsId", "InvoiceUrl"]\n'
        "[constants]\nTenantsId = 7\n"
    )
    path.write_text("DebtsId,InvoiceUrl\n1,a\n1,a\n2,a\n")
    given = (str(path), "--profile", str(profile))
    assert recon("import", *given)[0] == 1
    assert json.loads(recon("import", *given, "--json")[1])["verdicts"] == {
        "invoice_file": {"conflict": 2, "inserted": 1}
    }
    assert recon("check", *given)[1].count("EqualRows") == 2
    recon("undo", "1", "--reason", "one record")
    profile.write_text(profile.read_text() + '[policy]\nrepeats = "superseded"\n')
    code, out, _ = recon("import", str(path), "--profile", str(profile))
    assert code == 0
    said = "invoice_file: 1 row superseded: another row of this delivery with the same key counts"
    assert said in out.splitlines()
    told = "1 superseded by another row with the same key"
    assert f"3 rows, 0 with errors, {told}" in recon("check", *given)[1]
    assert f"3 of 3 rows pass, {told}" in recon("profile", "try", *given)[1]


RATES = "EffectiveDate,FromCurrenciesId,ToCurrenciesId,ExchangeRate\n"


def test_an_import_says_which_records_of_other_feeds_it_updated(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    """Of banks whose key says nothing of the bank, the later one takes all."""
    path, profile, told = tmp_path / "rates.csv", tmp_path / "bank.toml", []
    for feed, rates in (
        ("ecb", {2: "24.290", 3: "24.3"}),
        ("cnb", {2: "24.315", 3: "24.3"}),
        ("ecb", {2: "24.290", 3: "24.4"}),
    ):
        profile.write_text(
            f'feed = "{feed}"\nrecord = "currency_rate"\n[constants]\nTenantsId = 7\n'
            '[fields.Id]\nkey = ["EffectiveDate", "FromCurrenciesId", "ToCurrenciesId"]\n'
        )
        rows = (f"2026-11-{day:02}T00:00:00Z,978,203,{rate}\n" for day, rate in rates.items())
        path.write_text(RATES + "".join(rows))
        code, out, err = recon("import", str(path), "--profile", str(profile))
        assert code == 0, err
        told.append([one for one in out.splitlines() if " feed " in one])
    assert told == [
        [],
        ["currency_rate: 1 of 1 updated record was delivered by feed ecb before"],
        ["currency_rate: 1 of 2 updated records was delivered by feed cnb before"],
    ]
    again = json.loads(recon("import", str(path), "--profile", str(profile), "--json")[1])
    assert (again["batch"], again["of_other_feeds"]) == (3, {"currency_rate": {"cnb": 1}})
    page = (workspace.settings.reports / "batch-3" / "report.html").read_text()
    assert "Updated what feed cnb delivered before." in page
    for feed, rate, of in (("seven", "24.5", "(not shown)"), ("seven-too", "24.6", "seven")):
        # Who is bound to a tenant reads its batches, and of no others whose feed they are of.
        profile.write_text(
            f'feed = "{feed}"\nrecord = "currency_rate"\ntenant = 7\n[constants]\nTenantsId = 7\n'
            '[fields.Id]\nkey = ["EffectiveDate", "FromCurrenciesId", "ToCurrenciesId"]\n'
        )
        path.write_text(f"{RATES}2026-11-03T00:00:00Z,978,203,{rate}\n")
        again = json.loads(recon("import", str(path), "--profile", str(profile), "--json")[1])
        assert (again["of_other_feeds"], again["messages"]) == ({"currency_rate": {of: 1}}, [])
    # The feed gets a namespace: what it delivers once more would be there twice.
    profile.write_text(profile.read_text() + 'namespace = "seven"\n')
    path.write_text(f"{RATES}2026-11-03T00:00:00Z,978,203,24.7\n")
    again = json.loads(recon("import", str(path), "--profile", str(profile), "--json")[1])
    assert again["verdicts"] == {"currency_rate": {"inserted": 1}}
    (said,) = (one for one in again["messages"] if "delivered in batch" not in one)
    assert said.startswith("Id is made of another key or namespace than in batch 5, the last one")
    profile.write_text(profile.read_text().replace('namespace = "seven"', 'namespace = "other"'))
    code, _, err = recon("import", str(path), "--profile", str(profile), "--corrects", "6")
    assert (code, "In batch 6 Id has the namespace seven, and in this profile" in err) == (2, True)
    # The same bytes, by a copy of the profile: another number, or tenant, would double its money.
    copy = tmp_path / "copy.toml"
    copy.write_text(profile.read_text().replace("seven-too", "eight"))
    again = json.loads(recon("import", str(path), "--profile", str(copy), "--json")[1])
    (told,) = again["messages"]
    assert told.startswith(
        "rates.csv: batch 6 took these bytes in feed seven-too as rates.csv, and"
    )


def test_of_a_row_that_was_merged_before_no_other_one_is_said_to_count(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("Data,HasError,Merged,BatchId\na,,true,1\n")
    assert "1 row, 0 with errors, 1 merged before\n" in recon("check", str(path))[1]
    _, out, _ = recon("import", str(path))
    said = "insert_batch_data: 1 row superseded: it says that it was merged before"
    assert said in out.splitlines()
    page = (workspace.settings.reports / "batch-1" / "report.html").read_text()
    assert "The row says of itself that it was merged before." in page


DAYS = {"date_format": "%d.%m.%Y", "offset": "Z"}
WRITTEN = [
    # a field, how the feed writes it, a cell that is none, what is said of it
    ("PaymentDate", DAYS, "31.11.2026", "not written as %d.%m.%Y"),
    ("PaymentDate", DAYS, "1-11-26", "not written as %d.%m.%Y"),
    (
        "PaymentDate",
        {"date_format": "excel", "offset": "Z"},
        "20,5",
        "not a number of days of excel",
    ),
    ("PaidAmount", {"decimal": ","}, "1.50", "decimal sign is ','"),
    ("PaidAmount", {"negative": ["1 DR"]}, "5 CR", "decimal sign is '.'; minus one is 1 DR"),
    ("DebtsId", {"thousands": ","}, "12,34", "decimal sign is '.'; thousands sign is ','"),
    ("CurrenciesId", {"map": {"EUR": 1}}, "USD 5", "none of those that are mapped: EUR"),
]
MADE = [
    # how it is made, the cells of its columns, what is quoted
    ({"from": ["A"]}, "{}", "", "{}"),
    ({"from": ["A"], "blanks": "dropped"}, " {} ", "", " {} "),
    ({"from": ["A", "B"]}, "", "{}", "{}"),
    ({"from": ["A", "B"]}, "{}", "", "{}"),
    ({"from": ["A", "B"], "join": " "}, "x", "{}", "x {}"),
    ({"from": ["A"], "prefix": "9"}, "{}", "", "9{}"),
    ({"from": ["A"], "suffix": "9"}, "{}", "", "{}9"),
    ({"from": ["A"], "part": "of (.*)"}, "sum of {}", "", "sum of {}"),
    ({"from": ["A", "B"], "part": "of (.*)"}, "sum of", " {}", "{}"),
    ({"from": ["A"], "part": "of (.*)"}, "sum: {}", "", "sum: {} (no part of it fits of (.*))"),
]


@pytest.mark.parametrize(("made", "first", "second", "quoted"), MADE)
def test_what_is_said_of_a_cell_is_said_however_its_field_is_made(
    tmp_path: Path, made: dict[str, Any], first: str, second: str, quoted: str
) -> None:
    path, columns = tmp_path / "a.csv", EXTRACTS["payment"].columns
    constants = {name: "2026-11-01T00:00:00Z" if name == "PaymentDate" else "1" for name in columns}
    for field, written, cell, said in WRITTEN:
        if made.keys() & {"prefix", "suffix"} and written != DAYS:
            continue  # Amounts and mapped cells are not completed.
        rest = {name: value for name, value in constants.items() if name != field}
        feed = {"feed": "bank", "record": "payment", "delimiter": ";", "unknown_columns": "ignore"}
        profile = read_profile({**feed, "fields": {field: made | written}, "constants": rest})
        path.write_text(f"A;B\n{first.format(cell)};{second.format(cell)}\n")
        (verdict,) = examine(Settings(tmp_path), [str(path)], profile)
        (reject,) = verdict.rejects
        message = reject.errors[0]["Message"]
        assert quoted.format(cell) in message
        assert "no part of it" in quoted or f" ({said}" in message
        assert "ISO 8601" not in message
