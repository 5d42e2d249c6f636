"""The header of a file that begins like another one is what it is when it is read alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ExtractRefused
from connectors.files.archived.archive import store
from connectors.files.incoming.delivery import Source
from connectors.files.layout.header import read_header
from connectors.files.layout.known_headers import KnownHeaders
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.text.content import Content, open_kept
from connectors.settings import Limits
from tests.stages.payments import HEADER, line

LIMITS = Limits()
OTHER = HEADER.replace("Id,TenantsId", "TenantsId,Id", 1)
BODIES = (line(1), f"{line(2)}\n{line(3)}", "", "\n\n", '"a\nb",1', f"{HEADER}\n{line(4)}")
HEADS = {
    "plain": f"{HEADER}\n",
    "CRLF": f"{HEADER}\r\n",
    "other order": f"{OTHER}\n",
    "semicolons": f"{HEADER.replace(',', ';')}\n",
    "quoted": HEADER.replace("Id,", '"Id",', 1) + "\n",
    "a quote that goes on": HEADER.replace("Id,", '"Id\n",', 1) + "\n",
    "blank above": f"\n{HEADER}\n",
    "separator": f"sep=;\n{HEADER.replace(',', ';')}\n",
    "not ended": HEADER,
    "old line ends": f"{HEADER}\r{line(9)}\r",
    "a column twice": f"{HEADER},Id\n",
    "text above": f"Payments of May\n{HEADER}\n",
}
PROFILES: dict[str, dict[str, Any]] = {
    "none": {},
    "delimiter": {"delimiter": ";"},
    "encoding": {"encoding": "windows-1252"},
    "found": {"header_line": "found"},
    "no header": {"record": "payment", "names": tuple(HEADER.split(","))},
    "two lines": {"header_lines": 2},
    "comments": {"comment": ("P",)},
}


def read(headers: KnownHeaders, content: Content) -> object:
    try:
        return headers.read(content, None)
    except ExtractRefused as refusal:
        return refusal.code, str(refusal)


def alone(content: Content, profile: Profile) -> object:
    try:
        return read_header(content, None, profile, LIMITS)
    except ExtractRefused as refusal:
        return refusal.code, str(refusal)


@pytest.mark.long(but=("none",))
@pytest.mark.parametrize("title", PROFILES)
def test_a_known_header_is_the_one_that_is_read(tmp_path: Path, title: str) -> None:
    profile = replace(DEFAULT, **PROFILES[title])
    headers = KnownHeaders(profile, LIMITS)
    for head, body, mark in (
        (head, body, mark) for head in HEADS.values() for body in BODIES for mark in ("", "\ufeff")
    ):
        path = tmp_path / "a.csv"
        path.write_bytes((mark + head + body).encode())
        source = Source(path.name, str(path), str(tmp_path), path.name)
        stored = store(source, tmp_path / "archive", LIMITS, lasting=False)
        content = open_kept(stored.evidence, profile.encoding, name="a.csv")
        assert read(headers, content) == alone(content, profile), (head, body)
