"""Keys of writes: one for each effect that is asked for, whoever sends it and however often."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import RowsUnsent
from connectors.postgres.push.lane import unanswered_error
from connectors.postgres.push.sends import SendDecision
from connectors.postgres.schema.upgrade import bring_up_to_date
from flows.stages.chosen_sends import ChosenSends, sends_of
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.derived.push_keys import AskingRow, push_key
from schemas.operations import PUSHES
from tests.push.conftest import PUSHED, deliver, towards
from tests.push.deliveries import row_of, stored, tones
from tests.service.faulty_server import OK, FaultyServer, always, status
from tests.stages.payments import line, write


@pytest.mark.long
def test_a_put_of_a_content_that_was_overwritten_since_is_another_effect(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A host that honours keys would answer as it did the first time, and change nothing."""
    one, other = line(1, amount="1"), line(1, amount="2")
    second = write(tmp_path / "b.csv", other)
    with FaultyServer() as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, write(tmp_path / "a.csv", one))
        deliver(place, second)
        deliver(place, write(tmp_path / "c.csv", one, line(2)))
        # What was overwritten is sent again.
        undo_batch(place, 3, by=None, reason="wrong month")
        push_batch(place, 2)
        undo_batch(place, 2, by=None, reason="wrong month")
        push_batch(place, 1)
        # The very file once more.
        deliver(place, second)
        assert [row_of(seen.body) for seen in server.requests] == [1, 1, 1, 2, 1, 1, 1]
        assert len({*keys(server)}) == 7
        (shown,) = sends_of(place, 4, ChosenSends())
        assert shown.push_key == keys(server)[-1]


@pytest.mark.long
def test_a_put_keeps_its_key_until_its_row_is_sent_anew(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """Attempts and runs do not change it; who says `resend` asks for it anew."""
    wrong = stored(1, 99.0)
    with FaultyServer(lambda seen: status(503) if seen.number <= 7 else wrong) as server:
        place = towards(workspace, server.url, attempts=2)
        with pytest.raises(RowsUnsent):
            deliver(place, write(tmp_path / "a.csv", line(1)))
        while sent(1) == {1: "unsent"}:
            with suppress(RowsUnsent):
                push_batch(place, 1)
        assert sent(1) == {1: "differs"}
        assert len({*keys(server)}) == 1
        server.plan = always(OK)
        differing = ChosenSends(states=("differs",))
        resolve(place, 1, differing, SendDecision.RESEND, by=None, reason="it was mended there")
        push_batch(place, 1)
        assert sent(1) == {1: "acknowledged"}
        assert len({*keys(server)}) == 2


@pytest.mark.long
def test_a_post_with_another_secret_is_another_effect(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "gateways.csv"
    path.write_text(
        "TenantsId,PaymentActionsId,Name,NotifyUrl,RedirectUrl\n1,1,a,https://n,https://r\n"
    )
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        for batch, secret in enumerate(("wrong", "right"), 1):
            feed = replace(PUSHED, record="payment_gateway", constants={"ServiceKey": secret})
            import_delivery(place, [str(path)], feed)
            undo_batch(place, batch, by=None, reason="wrong key")
        assert len({*keys(server)}) == 2


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_no_secret_is_in_a_key(method: str) -> None:
    """It could be held against a guess at one. Records of one's own with secrets can be PUT too."""
    asking = AskingRow("sha256", 1, datetime(2026, 1, 1, tzinfo=UTC), 0, "profile")
    keys_of = (
        [push_key(operation, canonical, (1,), asking) for canonical in ('{"Id":1}', '{"Id":2}')]
        for operation in (
            replace(PUSHES[record], method=method) for record in ("payment_gateway", "message_tone")
        )
    )
    assert [len({*found}) for found in keys_of] == [1, 2]


@pytest.mark.long
def test_what_an_earlier_version_had_of_posts_in_doubt_is_put_right(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """It had them as unsent before it sent them once more, and left those it did not come to."""
    url = str(workspace.settings.database_url)
    with FaultyServer() as server:
        deliver(towards(workspace, server.url), tones(tmp_path / "t.csv", 3))
    with psycopg.connect(url) as owner:
        owner.execute(
            """UPDATE recon.send SET own_key = TRUE,
                state = CASE record_number WHEN 3 THEN 'in_doubt' ELSE 'unsent' END,
                error_data = CASE WHEN record_number <> 2 THEN %s END""",
            [unanswered_error(PUSHES["message_tone"])],
        )
        owner.execute("UPDATE recon.alembic_version SET version_num = '0026'")
        # Later steps find what that version had.
        owner.execute(
            "ALTER TABLE recon.send DROP carried_out, DROP decision, DROP decision_number, "
            "DROP earlier, DROP follows"
        )
        owner.execute("DROP TABLE recon.earlier_send")
        owner.execute("ALTER TABLE recon.secret_constant DROP salt")
        owner.execute(
            "DROP INDEX recon.batch_corrects, recon.batch_listings, recon.event_batch, "
            "recon.event_what, recon.receipt_batch, recon.extract_name"
        )
        owner.execute(
            "ALTER TABLE recon.account ADD failed integer NOT NULL, ADD failed_at timestamptz"
        )
    bring_up_to_date(url, 10, "migrate")
    assert rows("SELECT record_number, state, own_key FROM send ORDER BY 1") == [
        (1, "in_doubt", False),
        (2, "unsent", True),
        (3, "in_doubt", False),
    ]


def keys(server: FaultyServer) -> list[str]:
    return [seen.push_key for seen in server.requests]
