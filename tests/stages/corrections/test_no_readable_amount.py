"""A batch report says of how many rejected rows no amount could be read, whatever was wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.files.text.dialect import RecordFault
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.reasons import OF_ROW
from tests.stages.payments import HEADER, line

FAULTY = {
    "NulCharacter": line(2).encode().replace(b",0.5,", b",0\0.5,"),
    "Encoding": line(2).encode().replace(b",0.5,", b",\xff,"),
    "StrayQuote": line(2).encode().replace(b",0.5,", b',0"5,'),
    "TooFewFields": b"2,7",
    "TooManyFields": line(2).encode() + b",1,2,3",
    "StrayEscape": line(2).encode().replace(b",0.5,", b",0\\q5,"),
}
PROFILE = replace(DEFAULT, escape="\\")


@pytest.mark.long
@pytest.mark.parametrize("code", FAULTY)
def test_a_row_whose_fields_were_not_read_has_no_readable_amount(
    workspace: Workspace, tmp_path: Path, code: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\n".join([HEADER.encode(), line(1).encode(), FAULTY[code], b""]))
    import_delivery(workspace, [str(path)], PROFILE)
    told = (workspace.settings.reports / "batch-1" / "report.txt").read_text()
    assert code in told
    assert "1 rejected row has no readable PaidAmount" in told


def test_these_are_the_faults_of_a_record() -> None:
    faults = {fault.name.title().replace("_", "") for fault in RecordFault if fault}
    assert faults == set(OF_ROW)
