"""A record that a line break divides, which nobody quoted: its parts say so, each of them."""

from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches.ledger import State
from connectors.settings import Settings
from flows.stages.examining.examine import examine
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

KEYS = {
    "feed": "dump",
    "record": "payment",
    "delimiter": ";",
    "quote": "none",
    "unknown_columns": "ignore",
    "constants": {
        "TenantsId": 7,
        "ActionsId": 1,
        "DebtsId": 5,
        "CurrenciesId": 978,
        "CurrencyRatesId": 9,
        "DiscountAmount": "0.00",
        "PaymentDate": "2026-11-01T00:00:00Z",
    },
}
DIVIDED = [
    # lines behind the header, the keys of the profile, of each rejected line those it belongs to
    (["1;a", "b;2", "2;c;3"], {}, {2: (2, 3), 3: (2, 3)}),
    (["1;a\\", "b;2", "2;c;3"], {"escape": "\\"}, {2: (2, 3), 3: (2, 3)}),
    (["1;a", "b", "c;2", "2;c;3"], {}, {2: (2, 4), 3: (2, 4), 4: (2, 4)}),
    (["1;a", "b;2", "2;c", "d;3"], {}, {2: (2, 3), 3: (2, 3), 4: (4, 5), 5: (4, 5)}),
    (["1;a\\;b", "c;2"], {"escape": "\\"}, {2: (2, 3), 3: (2, 3)}),
    (["1||a", "b||2"], {"delimiter": "||"}, {2: (2, 3), 3: (2, 3)}),
    # A line that is too short for another reason, and what nobody knows.
    (["1;a", "2;c;3", "b;2"], {}, {2: None, 4: None}),
    (["1;a", "b", "2;c;3"], {}, {2: None, 3: None}),
    (["1;a;", "1;a;2;3"], {}, {2: None, 3: None}),
    (['1;"a"', "b;2"], {"quote": '"'}, {2: None, 3: None}),
]


@pytest.mark.long(but=("lines0-keys0-parts0", "lines5-keys5-parts5"))
@pytest.mark.parametrize(("lines", "keys", "parts"), DIVIDED)
def test_each_part_of_a_divided_record_names_the_lines_of_all(
    still: Workspace,
    tmp_path: Path,
    lines: list[str],
    keys: dict[str, str],
    parts: dict[int, tuple[int, int] | None],
) -> None:
    profile = read_profile(KEYS | keys)
    path = tmp_path / "dump.csv"
    path.write_text("\n".join(["Id;Note;PaidAmount".replace(";", profile.delimiter or ""), *lines]))
    (verdict,) = examine(still.settings, [str(path)], profile)
    said = {one.line: one.errors[0]["Message"] for one in verdict.rejects}
    assert [*said] == [*parts], verdict.message
    for line, of in parts.items():
        told = "Lines {} to {} have together the fields of one record".format(*of or ("", ""))
        assert (told in said[line]) == bool(of), said[line]
        assert ("together" in said[line]) == bool(of), said[line]


COUNTED = [
    # a line, the keys of the profile, and what is said of it
    ("1;a", {}, "It has 2 fields instead of 3."),
    ("1", {}, "It has 1 field instead of 3."),
    ("1;a;2;3;4", {}, "It has 5 fields instead of 3."),
    ('1;"a;b"', {"quote": '"'}, "It has 2 fields instead of 3."),
    ("1;a\\;b", {"escape": "\\"}, "It has 2 fields instead of 3."),
    ("1;a\\", {"escape": "\\"}, "It has 2 fields instead of 3."),
    ("1;C:\\Users", {"escape": "\\"}, "It has 2 fields instead of 3."),
    ("1;C:\\Users;2;3", {"escape": "\\"}, "It has 4 fields instead of 3."),
    ("1;\\éa", {"escape": "\\"}, "It has 2 fields instead of 3."),
    ("1||a|b", {"delimiter": "||"}, "It has 2 fields instead of 3."),
    ("1||\\Ua|b\\||c", {"delimiter": "||", "escape": "\\"}, "It has 2 fields instead of 3."),
    ('1||"a||b"', {"delimiter": "||", "quote": '"'}, "It has 2 fields instead of 3."),
    ("1;a;2;", {"unnamed_columns": 2}, "It has 4 fields instead of 5, the last 2 without a name."),
    ("1;a;2", {"unnamed_columns": 2}, "It has 3 fields instead of 5, the last 2 without a name."),
]


@pytest.mark.parametrize(("line", "keys", "said"), COUNTED)
def test_a_record_of_another_width_says_how_many_fields_it_has(
    tmp_path: Path, line: str, keys: dict[str, Any], said: str
) -> None:
    profile = read_profile(KEYS | keys)
    path = tmp_path / "dump.csv"
    path.write_text("\n".join(["Id;Note;PaidAmount".replace(";", profile.delimiter or ""), line]))
    (verdict,) = examine(Settings(tmp_path / "home"), [str(path)], profile)
    (reject,) = verdict.rejects
    assert reject.errors[0]["Message"].endswith(said)


@pytest.mark.long
@pytest.mark.parametrize("at_once", [True, False])
def test_all_parts_are_corrected_by_the_whole_record_under_each_of_their_names(
    workspace: Workspace, rows: Any, tmp_path: Path, at_once: bool
) -> None:
    path = tmp_path / "dump.csv"
    path.write_text("Id;Note;PaidAmount\n1;a\\\nb;2.50\n2;c;3.00\n")
    profile = read_profile(KEYS | {"escape": "\\"})
    assert import_delivery(workspace, [str(path)], profile).batch.state is not State.COMPLETE
    (offered,) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    head, *parts = offered.read_text().splitlines()
    assert [part.partition(";")[0] for part in parts] == ["1:1", "1:2"]
    whole = [f"{name};1;a b;2.50" for name in ("1:1", "1:2")]
    told = rows("SELECT error_data FROM staged_payment WHERE error_data IS NOT NULL LIMIT 1")
    assert "the whole record in the row of each of them" in told[0][0]
    for number, lines in enumerate([whole] if at_once else [whole[:1], whole[1:]]):
        repair = tmp_path / f"repair-{number}.csv"
        repair.write_text("\n".join([head, *lines]) + "\n")
        ended = import_delivery(workspace, [str(repair)], DEFAULT, corrects=1)
        assert ended.batch.state is State.COMPLETE
    states = "SELECT record_number, state FROM staged_row WHERE batch_id = 1 ORDER BY 1"
    assert rows(states) == [(1, "corrected"), (2, "corrected"), (3, "inserted")]
    amounts = 'SELECT "Id", "PaidAmount"::text FROM payment ORDER BY 1'
    assert [(key, float(paid)) for key, paid in rows(amounts)] == [(1, 2.5), (2, 3.0)]
