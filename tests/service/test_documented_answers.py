"""What `docs/push.md` says that an answer means, held against what it is taken for."""

import json
import re
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from connectors.service import Verdict
from connectors.service.classify import ClassifiedResponse, Classifier
from connectors.service.connection import Reply
from connectors.service.encoding import read_record
from tests.service.outbox import request

PAGE = Path(__file__).parents[2] / "docs" / "push.md"
NAMED = re.compile(r"(?:(?:, | or )?(?:any other )?\d(?:\d\d|xx))+")
SILENT = " without a ResponseStatus"
ANSWERS = {
    # what the page says of the row: verdict, whether it may be carried out, whether a stop
    "refused": (Verdict.REFUSED, False, False),
    "unsent; refused where it is answered so once more": (Verdict.REFUSED, False, True),
    "unsent": (None, False, True),
    "a PUT is unsent, a POST is in doubt": (None, True, True),
    "sent again after the pause": (None, False, False),
    "a PUT is sent again, a POST is in doubt": (None, True, False),
}
"""The first that a cell begins with is meant."""
SAID = {"ResponseStatus": {"ErrorCode": "Said", "Message": "no"}}


def documented(*, said: bool) -> dict[str, str]:
    """What becomes of a row, by status or hundred of statuses; `said`: with a ResponseStatus."""
    table = PAGE.read_text().partition("## What an answer means")[2].partition("\n\nA record")[0]
    found = {"4xx": "refused"} if said else {}
    for line in table.strip().splitlines()[2:]:
        answer, row, _ = line.strip("| ").split(" | ")
        named = NAMED.match(answer)
        if not named or answer[named.end() :].startswith(" that says") or answer[:3] == "2xx":
            continue
        if not (said and answer[named.end() :].startswith(SILENT)):
            found |= dict.fromkeys(re.findall(r"\d(?:\d\d|xx)", named[0]), row)
    return found


def taken_for(status: int, body: object) -> ClassifiedResponse:
    made = request("AddMessageTone", 1)
    headers = {"content-type": "application/json", "location": "/login"}
    reply = Reply(status, headers, json.dumps(body).encode() if body else b"", "length")
    return Classifier(ZoneInfo("UTC"), ()).single(made, read_record(made.jsondata), reply)


@pytest.mark.parametrize("said", [True, False])
def test_every_status_is_taken_for_what_the_page_says(said: bool) -> None:
    rows = documented(said=said)
    other = {}
    for status in range(300, 600):
        row = rows.get(str(status)) or rows[f"{status // 100}xx"]
        meant = next(meaning for text, meaning in ANSWERS.items() if row.startswith(text))
        found = taken_for(status, SAID if said else None)
        if (found.verdict, found.in_doubt, found.stop is not None) != meant:
            other[status] = (row, found)
    assert other == {}, f"change {PAGE.name} and what is decided together"
