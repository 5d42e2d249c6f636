"""Escapes, delimiters of several signs, blanks before quotes: imported, shown and corrected."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from connectors.errors import ExtractRefused, ProfileError
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from connectors.settings import Limits
from flows.stages.examining.try_profile import try_profile
from flows.stages.rows.locate import Spot, locate
from flows.stages.rows.made_of import made_fields
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.stages.payments import HEADER, line


class Form(NamedTuple):
    """A way to write texts, and form replies in it: two good ones, a wrong and a broken one."""

    keys: dict[str, Any]
    rows: tuple[str, str, str, str]
    texts: tuple[str | None, str | None]
    """The comments of the good ones."""
    rejects: tuple[str, str]
    """How the other two are given to be corrected, behind the column of our own."""
    delimiter: str = ","


ESCAPED = Form(
    {"escape": "\\", "delimiter": "\t"},
    (
        'g1\t1\tAnn\\tMarie\\n\\\\ \\"x\\"',
        '"g2"\t"2"\t"a\\"b\\\nc"',
        "g3\tx\\,y\t\\N",
        "g4\t4\t\\q",
    ),
    ('Ann\tMarie\n\\ "x"', 'a"b\nc'),
    ("g3\tx,y\t", '"g4\t4\t\\q"'),
    "\t",
)
FORMS = {
    "escapes": ESCAPED,
    "two bars": Form(
        {"delimiter": "||"},
        ("g1||1||a|b,c", '"g2"||2||"a||b""\n|"', "g3||x||", "g4||4"),
        ("a|b,c", 'a||b"\n|'),
        ("g3,x,", "g4,4"),
    ),
    "tildes": Form(
        {"delimiter": "~|~", "escape": "\\"},
        (r"g1~|~1~|~a~|b\~|~c\\", "g2~|~2~|~\\N", 'g3~|~x~|~""', "g4~|~4~|~5~|~6"),
        (r"a~|b~|~c" + "\\", None),
        ('g3,x,""', "g4,4,5,6"),
    ),
    "no quotes": Form(
        {"quote": "none", "delimiter": "\t"},
        ('g1\t1\t"he said', 'g2\t2\tshe" ""', 'g3\tx\ta "b"', "g4\t4"),
        ('"he said', 'she" ""'),
        ('g3\tx\t"a ""b"""', "g4\t4"),
        "\t",
    ),
    "controls": Form(
        {"quote": "none", "delimiter": "\t"},
        ("g1\t1\t\x01a\x01", "g2\t2\t\x01b", "g3\tx\t\x01c\x01", "g4\t\x014"),
        ("\x01a\x01", "\x01b"),
        ("g3\tx\t\x01c\x01", "g4\t\x014"),
        "\t",
    ),
    "a control as delimiter": Form(
        {"quote": "none", "delimiter": "\x01"},
        ('g1\x011\x01"he said', 'g2\x012\x01she" ""', 'g3\x01x\x01a "b"', "g4\x014"),
        ('"he said', 'she" ""'),
        ('g3\x01x\x01"a ""b"""', "g4\x014"),
        "\x01",
    ),
    "blanks": Form(
        {"blanks": "dropped"},
        ('g1, 1, "a, b"', ' "g2" ,2 , "=1 ""x"" , y" ', 'g3, x, "c, d"', 'g4, 4, "a" b'),
        ("a, b", '=1 "x" , y'),
        ('g3, x,"c, d"', '"g4, 4, ""a"" b"'),
    ),
}


def written(folder: Path, form: Form, *rows: str) -> str:
    delimiter = form.keys.get("delimiter", ",")
    header = delimiter.join(["CommsGuid", "CampaignActionsRequestsId", "Comments"])
    path = folder / "replies.csv"
    path.write_text("\r\n".join([header, *rows, ""]), newline="")
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize("inherited", [True, False])
@pytest.mark.parametrize("title", FORMS)
def test_texts_are_imported_shown_and_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path, title: str, inherited: bool
) -> None:
    form = FORMS[title]
    profile = read_profile({"feed": "replies", "record": "form_reply", **form.keys})
    path = written(tmp_path, form, *form.rows)
    batch = import_delivery(workspace, [path], profile).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    texts = rows('SELECT "Comments" FROM form_reply ORDER BY "CommsGuid"')
    assert texts == [(one,) for one in form.texts]
    with workspace.database.connect() as connection:
        for number, text in enumerate(form.rows, 1):
            (row,) = locate(workspace, connection, batch.id, "replies.csv", Spot(record=number))
            assert row.data == text
            assert Path(path).read_bytes()[row.byte_start : row.byte_end].decode() == text
            made = made_fields(workspace, connection, row, row.data)
            became = [one.becomes or None for one in made if one.field == "Comments"]
            assert became == [*form.texts[number - 1 : number]] or number > 2
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    with rejects.open(newline="") as file:
        top, wrong, broken, _ = file.read().split("\r\n")
    sign = form.delimiter
    assert top == sign.join(["ReconRow", "CommsGuid", "CampaignActionsRequestsId", "Comments"])
    assert tuple(one.split(sign, 1)[1] for one in (wrong, broken)) == form.rejects
    (of_wrong, _), (of_broken, _) = (one.split(sign, 1) for one in (wrong, broken))
    right = [
        sign.join([of_wrong, "g3", "3", "three"]),
        sign.join([of_broken, "g4", "4", '"# four"']),
    ]
    rejects.write_text("\r\n".join([top, *right, ""]), newline="")
    stated = DEFAULT if inherited else profile
    corrected = import_delivery(workspace, [str(rejects)], stated, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    texts = rows('SELECT "Comments" FROM form_reply ORDER BY "CommsGuid"')
    assert texts == [*((one,) for one in form.texts), ("three",), ("# four",)]


@pytest.mark.parametrize("title", FORMS)
def test_a_profile_is_tried(still: Workspace, tmp_path: Path, title: str) -> None:
    form = FORMS[title]
    profile = read_profile({"feed": "replies", "record": "form_reply", **form.keys})
    path = written(tmp_path, form, *form.rows)
    tried = try_profile(still.settings, path, profile, record=None, rows=4)
    assert [one.text for one in tried.rows] == [*form.rows]
    assert [one.values["Comments"][1] for one in tried.rows[:2]] == [*form.texts]
    assert len(tried.verdict.rejects) == 2


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"delimiter": "a|"}, "has 'a' in it"),
        ({"delimiter": '|"'}, "has the quote in it"),
        ({"delimiter": ";", "quote": ";"}, "They must differ"),
        ({"quote": "\x01"}, "which recon has for its own use"),
        *(
            ({"delimiter": delimiter, "quote": "none", **keys}, "which recon puts around cells")
            for delimiter in ("\x01", "|\x01")
            for keys in (
                {"skip_lines": ["Account (?P<A>.*)"]},
                {"unpivot": {"keep": ["A"], "name": "B", "value": "C"}, "record": "currency_rate"},
            )
        ),
        ({"delimiter": ", ", "blanks": "dropped"}, "has a blank in it"),
        ({"delimiter": "||\\", "escape": "\\"}, "is a sign of quote, delimiter or comment too"),
        ({"escape": "^"}, "not an allowed value"),
        ({"escape": "\\", "sheet": 1}, "escape is not for a sheet"),
        ({"delimiter": "||", "sheet": 1}, "delimiter is not for a sheet"),
        (
            {
                "record": "payment",
                "positions": {"Id": "1-4"},
                "escape": "\\",
            },
            "escape is not for lines without a sign",
        ),
        (
            {"delimiter": "||", "unpivot": {"keep": ["a"], "name": "b", "value": "c"}},
            "a delimiter of several signs is not for a table",
        ),
    ],
)
def test_a_profile_that_cannot_be_meant(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        read_profile({"feed": "x", **keys})


@pytest.mark.parametrize(
    ("keys", "text", "said"),
    [
        ({"delimiter": "||"}, 'Comms"Guid||Comments\na||b\n', "a quote stands within a field"),
        ({"delimiter": "||"}, '"CommsGuid||Comments\na||b\n', "is never closed"),
        ({"delimiter": "||"}, "sep=;\nCommsGuid;Comments\na;b\n", "the feed profile that it is"),
        ({"escape": "\\"}, "sep=\\\nCommsGuid;Comments\na;b\n", "the file says that its delimiter"),
        (
            {"quote": "none", "skip_lines": ["Reply (?P<CommsGuid>.*)"]},
            "sep=\x01\nCampaignActionsRequestsId\x01Comments\n1\x01b\n",
            "the file says that its delimiter",
        ),
    ],
)
def test_a_header_that_is_none(
    tmp_path: Path, keys: dict[str, object], text: str, said: str
) -> None:
    path = tmp_path / "replies.csv"
    path.write_text(text)
    profile = read_profile({"feed": "x", "record": "form_reply", **keys})
    with pytest.raises(ExtractRefused, match=said):
        read_header(open_content(path), None, profile, Limits())


def test_a_header_may_be_quoted_and_of_two_rows(tmp_path: Path) -> None:
    path = tmp_path / "replies.csv"
    path.write_text('"Comms\n"||"My ""Text"""||Number\nGuid||||\na||b||1\n')
    columns = {"Comms Guid": "CommsGuid", 'My "Text"': "Comments"}
    columns["Number"] = "CampaignActionsRequestsId"
    profile = read_profile({"feed": "x", "delimiter": "||", "header_lines": 2, "columns": columns})
    header = read_header(open_content(path), None, profile, Limits())
    assert header.fields == ("CommsGuid", "Comments", "CampaignActionsRequestsId")
    assert (header.body_line, path.read_bytes()[header.body_start :]) == (4, b"a||b||1\n")


@pytest.mark.long
def test_thousands_as_swiss_locales_write_them(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "payments.csv"
    sign = "\N{RIGHT SINGLE QUOTATION MARK}"
    path.write_text(
        "\n".join([HEADER, line(1, amount=f"1{sign}234{sign}567.50"), line(2, amount="7.00")])
    )
    profile = read_profile({"feed": "bank", "thousands": sign})
    assert import_delivery(workspace, [str(path)], profile).batch.state is State.COMPLETE
    assert rows('SELECT "PaidAmount"::text FROM payment ORDER BY "Id"') == [
        ("1234567.50",),
        ("7.00",),
    ]
