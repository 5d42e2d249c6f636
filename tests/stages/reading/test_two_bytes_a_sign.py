"""Encodings in which a byte of ASCII may be the half of a sign: Shift-JIS, GBK, Big5."""

from pathlib import Path
from typing import Any

import pytest

from connectors.files.archived.blocks import blocks
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from flows.stages.rows.locate import Spot, locate
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

TEXTS = {
    # Each has a sign that ends with the byte of a bar or of a backslash.
    "cp932": ["ソ表ポ", 'ソ"表\nポ'],
    "shift_jis": ["ソ表ポ", 'ソ"表\nポ'],
    "gbk": ["誠黒乗", '誠"黒\n乗'],
    "gb18030": ["誠黒乗\U0001f600", '誠"黒\n乗'],
    "big5": ["功許", '功"許\n蓋'],
}
HEADER = "CommsGuid|CampaignActionsRequestsId|Comments\n"


@pytest.mark.long
@pytest.mark.parametrize("inherited", [True, False])
@pytest.mark.parametrize("encoding", TEXTS)
def test_no_half_of_a_sign_is_taken_for_a_delimiter(
    workspace: Workspace, rows: Any, tmp_path: Path, encoding: str, inherited: bool
) -> None:
    first, second = TEXTS[encoding]
    shape = {"feed": "x", "record": "form_reply", "delimiter": "|", "encoding": encoding}
    profile: Profile = read_profile(shape)
    quoted = '"' + second.replace('"', '""') + '"'
    text = f"{HEADER}g1|1|{first}\ng2|2|{quoted}\ng3|x|{first}\n".encode(encoding)
    path = tmp_path / "replies.csv"
    path.write_bytes(text + b"g4|4|a\x81 b\ng5|5|" + first.encode(encoding) + b"\n")
    batch = import_delivery(workspace, [str(path)], profile).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    asked = 'SELECT "Comments" FROM form_reply ORDER BY "CommsGuid"'
    assert rows(asked) == [(first,), (second,), (first,)]
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, batch.id, "replies.csv", Spot(record=3))
        (bad,) = locate(workspace, connection, batch.id, "replies.csv", Spot(record=4))
    assert (row.data, row.first_line) == (f"g3|x|{first}", 5)
    assert "Encoding" in bad.error_data
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "out", with_secrets=False)
    lines = rejects.read_bytes().splitlines(keepends=True)
    rejects.write_bytes(lines[0] + lines[1].replace(b"|x|", b"|3|"))
    stated = DEFAULT if inherited else profile
    corrected = import_delivery(workspace, [str(rejects)], stated, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    assert rows(asked) == [(first,), (second,), (first,), (first,)]


@pytest.mark.parametrize("encoding", TEXTS)
def test_it_is_read_alike_wherever_blocks_are_cut(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes((HEADER + TEXTS[encoding][0] * 9).encode(encoding) + b"\x81\n")
    content = open_content(path, encoding)
    whole = b"".join(blocks(content, 0, 1000))
    assert whole.decode("utf-8", "replace").startswith(HEADER + TEXTS[encoding][0] * 9)
    for size in range(1, 9):
        for start in range(0, len(whole), 5):
            assert b"".join(blocks(content, start, size)) == whole[start:]
