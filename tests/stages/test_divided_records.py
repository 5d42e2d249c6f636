"""A record that a line break divides, which nobody quoted: its parts say so, each of them."""

from pathlib import Path

import pytest

from connectors.files.profile_file import read_profile
from flows.stages.examine import examine
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


@pytest.mark.parametrize(("lines", "keys", "parts"), DIVIDED)
def test_each_part_of_a_divided_record_names_the_lines_of_all(
    workspace: Workspace,
    tmp_path: Path,
    lines: list[str],
    keys: dict[str, str],
    parts: dict[int, tuple[int, int] | None],
) -> None:
    profile = read_profile(KEYS | keys)
    path = tmp_path / "dump.csv"
    path.write_text("\n".join(["Id;Note;PaidAmount".replace(";", profile.delimiter or ""), *lines]))
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    said = {one.line: one.errors[0]["Message"] for one in verdict.rejects}
    assert [*said] == [*parts], verdict.message
    for line, of in parts.items():
        told = "Lines {} to {} have together the fields of one record".format(*of or ("", ""))
        assert (told in said[line]) == bool(of), said[line]
        assert ("together" in said[line]) == bool(of), said[line]
