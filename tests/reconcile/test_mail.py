"""The report by e-mail: who is sent what, once, and what becomes of it when it cannot be sent."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path
from socket import socket
from threading import Barrier
from typing import Any

import pytest
from cryptography import x509

from connectors.errors import (
    AccountRefused,
    MailRefused,
    MailUnusable,
    SettingsError,
    StatementRefused,
)
from connectors.mail import WAIT_SECONDS, MailSettings, Tls, read_mail_settings, send
from connectors.postgres.accounts import Account, keep_account
from connectors.postgres.auditing.audit import verify
from connectors.postgres.jobs import order_job
from connectors.postgres.runs.subscriptions import claim_mail, keep_subscription, list_subscriptions
from flows.report.reconciled.letter import letter
from flows.stages.jobs.work import do_job
from flows.stages.reconcile import mail
from flows.stages.reconcile.mail import mail_report
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.guards.roles import LOADER, MERGER
from schemas.jobs import JobKind
from tests.accounts.people import ADA, ANNA, BO, CLEO, OTTO, TESSA, add, logged_in
from tests.certificates import made
from tests.conftest import Once
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.governance.runs import found
from tests.governance.runs import reconcile as saved
from tests.reconcile.smtp_server import MailServer, mail_server
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.

SEVEN = "tenants 7"


def run(workspace: Workspace, *, tenant: int = 7) -> Reconciled:
    return reconcile(workspace, Asked(Scope(tenants=(tenant,)), date(2026, 1, 31), Rules()))


def subscribe(workspace: Workspace, account: Account, scope: str = SEVEN) -> None:
    with workspace.database.connect() as connection:
        keep_subscription(connection, account.name, scope, f"{account.name}@example.com")


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server() as running:
        monkeypatch.setenv("RECON_MAIL_SERVER", f"127.0.0.1:{running.port}")
        monkeypatch.setenv("RECON_MAIL_FROM", "recon@example.com")
        monkeypatch.setenv("RECON_MAIL_TLS", "none")
        monkeypatch.setenv("RECON_DESK_URL", "https://desk.example.com")
        yield running


@pytest.fixture
def place(workspace: Workspace, once: Once) -> Workspace:
    """A run of tenant 7, and people who are subscribed to those that follow."""

    def build() -> None:
        add(workspace, ANNA, BO)
        run(workspace)
        for one in (ANNA, BO):
            subscribe(workspace, one)

    return once(build)


@pytest.mark.long
def test_each_subscriber_is_sent_one_message(place: Workspace, post: MailServer) -> None:
    done = run(place).run
    assert sorted(post.to) == ["anna@example.com", "bo@example.com"]
    first = post.messages[0]
    assert first["Subject"].startswith("tenants 7, 2026-01-31: ")
    plain, page = (first.get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None
    assert page is not None
    for text in (plain.get_content(), page.get_content()):
        assert "be approved" in text, "whether it can be signed"
        assert f"https://desk.example.com/runs/{done.id}" in text
    assert "src=" not in page.get_content()
    (book,) = first.iter_attachments()
    folder = place.settings.reports / done.folder
    assert book.get_content() == (folder / "report.xlsx").read_bytes()

    assert mail_report(place, done.id)[1].sent == (), "nothing is sent again"
    run(place)
    assert len(post.to) == 4
    assert len({one["Message-ID"] for one in post.messages}) == 4


@pytest.mark.long
def test_a_workbook_that_is_too_large_stays(
    place: Workspace, post: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MOST_ATTACHED", 1)
    run(place)
    assert [*post.messages[0].iter_attachments()] == []


@pytest.mark.long
def test_a_message_that_is_too_large_for_the_server_comes_without_the_workbook(
    place: Workspace, post: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    run(place)
    large = max(map(len, post.raw))
    post.most_bytes = large - 10_000
    run(place)
    assert len(post.to) == 4
    for one in post.messages[2:]:
        assert [*one.iter_attachments()] == []
        plain = one.get_body(("plain",))
        assert plain is not None
        assert "The workbook is not attached" in plain.get_content()
    assert "refused" not in caplog.text
    post.most_bytes = 1_000
    done = run(place).run
    assert len(post.to) == 4
    assert "refused the message for anna@example.com: 552" in caplog.text
    assert "refused the message for bo@example.com: 552" in caplog.text
    post.most_bytes = None
    assert mail_report(place, done.id)[1].sent == ("anna", "bo")


@pytest.mark.long
def test_what_is_attached_fits_into_what_servers_take() -> None:
    told: dict[str, Any] = {
        "number": 7, "day": "2026-01-31", "verdict": "RECONCILED", "scope": SEVEN,
        "report_hash": "0" * 64, "report_text": "line\n" * 5_000, "account": "anna",
        "link": None, "workbook": bytes(mail.MOST_ATTACHED),
    }  # fmt: skip
    one = letter(sender="recon@example.com", address="anna@example.com", **told)
    assert len(one.as_bytes()) < 10_240_000, "message_size_limit of postfix where nobody set it"


@pytest.mark.long
def test_a_recipient_that_is_refused_keeps_nobody_from_theirs(
    place: Workspace, post: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    post.refused = {"anna@example.com"}
    done = run(place).run
    assert post.to == ["bo@example.com"]
    assert "refused anna@example.com: 550 no  such person" in caplog.text
    assert f"recon report mail {done.id}" in caplog.text
    caplog.clear()
    run(place)
    assert caplog.text.count("refused anna@example.com") == 1, "one that is wrong is tried once"
    assert len(post.to) == 2
    post.refused.clear()
    assert mail_report(place, done.id)[1].sent == ("anna",)


@pytest.mark.long
@pytest.mark.parametrize("said", ["421 4.7.0 closing", "550 no"])
@pytest.mark.parametrize("wrong", ["refusal", "answer"])
def test_a_server_that_closes_takes_nothing_of_anybody(wrong: str, said: str) -> None:
    """Else every subscriber of every run would be tried with it."""
    message = EmailMessage()
    message.set_content("the report")
    with mail_server() as post:
        post.refused = {"anna@example.com"} if wrong == "refusal" else set()
        setattr(post, wrong, said)
        settings = MailSettings("127.0.0.1", post.port, "recon@example.com", Tls.NONE)
        with pytest.raises(MailUnusable, match=said) as told:
            send(settings, message, "anna@example.com")
    assert isinstance(told.value, MailRefused) == (said == "550 no")


@pytest.mark.long
def test_a_server_that_dies_while_it_is_told_is_tried_again(
    place: Workspace, post: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    post.dies_in_data = True
    done = run(place)
    assert done.run.verdict
    assert "broke off: " in caplog.text
    post.dies_in_data = False
    assert mail_report(place, done.run.id)[1].sent == ("anna", "bo")


@pytest.mark.long
def test_what_was_taken_is_sent_however_the_server_takes_its_leave(
    place: Workspace, post: MailServer
) -> None:
    post.farewell = "421 too busy to say goodbye"
    done = run(place).run
    assert mail_report(place, done.id)[1].sent == ()
    assert sorted(post.to) == ["anna@example.com", "bo@example.com"]


@pytest.mark.long
def test_what_reached_nobody_is_sent_by_the_next_run(
    place: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run(place)
    assert "No mail server is set" in caplog.text
    with mail_server() as gone:
        monkeypatch.setenv("RECON_MAIL_SERVER", f"127.0.0.1:{gone.port}")
    monkeypatch.setenv("RECON_MAIL_FROM", "recon@example.com")
    monkeypatch.setenv("RECON_MAIL_TLS", "none")
    run(place)
    assert caplog.text.count("cannot be reached (ConnectionRefusedError)") == 1, "it is asked once"
    assert "1 more run waits" in caplog.text
    monkeypatch.setattr(mail, "MOST_SECONDS", 0.0)
    caplog.clear()
    run(place)
    assert "cannot be reached" in caplog.text, "what was just saved is tried"
    assert "2 more runs wait" in caplog.text
    monkeypatch.undo()
    monkeypatch.setenv("RECON_MAIL_FROM", "recon@example.com")
    monkeypatch.setenv("RECON_MAIL_TLS", "none")
    with mail_server() as post:
        monkeypatch.setenv("RECON_MAIL_SERVER", f"127.0.0.1:{post.port}")
        run(place)
    assert len(post.to) == 8, "of four runs"


@pytest.mark.long
def test_who_may_not_see_it_any_more_is_sent_nothing(place: Workspace, post: MailServer) -> None:
    with place.database.connect() as connection:
        keep_account(connection, replace(ANNA, disabled=True))
        keep_account(connection, replace(BO, tenants=(8,)))
    run(place)
    assert post.to == []
    with place.database.connect() as connection:
        keep_account(connection, replace(BO, tenants=(7,)))
    run(place)
    assert post.to == ["bo@example.com"] * 2


@pytest.mark.long
def test_two_senders_at_once_send_once(place: Workspace, post: MailServer) -> None:
    post.refused = {"anna@example.com", "bo@example.com"}
    done = run(place).run
    post.refused.clear()
    post.meeting = Barrier(2)  # Both are in the middle of sending before either goes on.
    with ThreadPoolExecutor(2) as senders:
        both = [senders.submit(mail_report, place, done.id) for _ in range(2)]
        sent = [name for one in both for name in one.result()[1].sent]
    assert sorted(sent) == ["anna", "bo"]
    assert sorted(post.to) == ["anna@example.com", "bo@example.com"]


@pytest.mark.long
def test_a_worker_sends_and_marks_nothing_but_what_it_sent(
    place: Workspace, post: MailServer, acting: As
) -> None:
    add(place, TESSA)  # Rows of others are shut from here on.
    worker = acting(MERGER)
    done = run(worker).run
    assert sorted(post.to) == ["anna@example.com", "bo@example.com"]
    with pytest.raises(StatementRefused), worker.database.connect() as connection:
        connection.execute("UPDATE report_mail SET sent_at = NULL")
    with pytest.raises(StatementRefused), acting(LOADER).database.connect() as connection:
        claim_mail(connection, done.id, [])


def test_an_account_of_some_tenants_is_not_told_who_else_is_sent_reports(
    place: Workspace, post: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It sees no other account, and the next run of any scope sends what waits of all."""
    add(place, TESSA)
    subscribe(place, TESSA)
    post.refused = {"anna@example.com"}
    done = run(logged_in(place, TESSA)).run
    assert sorted(post.to) == ["bo@example.com", "tessa@example.com"]
    assert "anna" not in caplog.text
    assert f"Subscribers wait for the report of reconciliation {done.id}" in caplog.text
    with pytest.raises(AccountRefused, match="names other accounts"):
        mail_report(logged_in(place, TESSA), done.id)
    post.refused.clear()
    assert mail_report(place, done.id)[1].sent == ("anna",)


def test_a_job_says_that_subscribers_wait_and_not_who(place: Workspace) -> None:
    add(place, OTTO)
    with logged_in(place, OTTO).database.connect() as connection:
        number = order_job(connection, JobKind.RECONCILE, {"run": 1}, None)
    said = do_job(place, number).message
    assert "Subscribers wait for it: `recon report mail 2` sends it" in said
    assert "anna" not in said


def sent_to(server: MailServer) -> None:
    settings = MailSettings("127.0.0.1", server.port, "recon@example.com", Tls.NONE)
    send(settings, EmailMessage(), "bo@example.com")


def test_a_server_that_goes_on_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as server:
        server.says_more = 10_000
        with pytest.raises(MailUnusable, match="sent more than an answer needs"):
            sent_to(server)
        server.says_more = 0
        sent_to(server)
        monkeypatch.setattr("connectors.mail.MESSAGE_SECONDS", 0.0)
        with pytest.raises(MailUnusable, match="not done in 0 s"):
            sent_to(server)
    assert server.to == ["bo@example.com"]


def test_a_server_that_looks_into_a_message_has_time_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float | None] = []
    wait = socket.settimeout

    def seen(one: socket, seconds: float | None) -> None:
        waits.append(seconds)
        wait(one, seconds)

    monkeypatch.setattr(socket, "settimeout", seen)
    with mail_server() as server:
        sent_to(server)
    longest = max(seconds or 0.0 for seconds in waits)
    assert longest > 240, "for the answer to a message"
    assert waits.index(longest) > 0
    assert (waits[0], waits[-1]) == (WAIT_SECONDS, WAIT_SECONDS), "and for no other"


def test_commands(place: Workspace, post: MailServer, recon: Any) -> None:
    address = ("--address", "a@example.com")
    as_page_one_has_it = "tenant 7"
    subscribed = recon("user", "subscribe", "anna", as_page_one_has_it, *address)
    assert f"the reports of {SEVEN} at a@example.com, from the next run on" in subscribed.stdout
    assert "no more reports" in recon("user", "unsubscribe", "bo", SEVEN).stdout
    restated = "tenants 7 as of 2026-01-29, restated: x; tenant 8"
    saved(place, found(), scope=restated)
    subscribe(place, BO, restated)
    ended = recon("user", "unsubscribe", "bo", restated)
    assert f"no more reports of {restated}" in ended.stdout, "as an earlier version named it"
    post.refused = {"a@example.com"}
    done = run(place).run
    refused = recon("report", "mail", str(done.id))
    assert (refused.returncode, "550" in refused.stdout) == (1, True)
    ran = recon("reconcile", "--tenant", "7", "--as-of", "2026-01-31")
    assert "recon: The report for anna was not mailed: " in ran.stderr
    post.refused.clear()
    assert "mailed to anna" in recon("report", "mail").stdout
    assert "Nobody else waits" in recon("report", "mail").stdout
    assert recon("report", str(done.id)).returncode in (0, 1)


@pytest.mark.long
def test_whose_subscriptions_somebody_keeps(workspace: Workspace) -> None:
    add(workspace, ADA, CLEO, TESSA)
    run(workspace)
    run(workspace, tenant=8)
    cleo, tessa = logged_in(workspace, CLEO), logged_in(workspace, TESSA)
    subscribe(cleo, CLEO)
    subscribe(logged_in(workspace, ADA), TESSA)
    with pytest.raises(AccountRefused, match="subscribing for another takes administrator"):
        subscribe(cleo, TESSA)
    with pytest.raises(AccountRefused, match="no reconciliation of a scope 'tenants 8'"):
        subscribe(tessa, TESSA, "tenants 8")
    with pytest.raises(AccountRefused, match="no reconciliation of a scope 'tenants 9'"):
        subscribe(cleo, CLEO, "tenants 9")
    with workspace.database.connect() as connection:
        (told,) = list_subscriptions(connection, "tessa")
        keep_subscription(connection, "tessa", SEVEN, None)
        assert list_subscriptions(connection, "tessa") == []
        assert verify(connection).broken is None
    assert told.address == "tessa@example.com"


SUBSCRIBED_BEHIND = [
    # what is done to the table; whose subscription is named
    ("UPDATE subscription SET address = 'eve@example.com' WHERE account = 'bo'", "bo"),
    ("UPDATE subscription SET scope_hash = 'x' WHERE account = 'bo'", "bo"),
    ("DELETE FROM subscription WHERE account = 'anna'", "anna"),
    (
        "INSERT INTO subscription (account, scope_hash, scope, address, event_id) "
        "SELECT 'cleo', scope_hash, scope, 'eve@example.com', event_id FROM subscription LIMIT 1",
        "cleo",
    ),
]


@pytest.mark.long(but=(f"{SUBSCRIBED_BEHIND[0][0]}-bo",))
@pytest.mark.parametrize(("statement", "name"), SUBSCRIBED_BEHIND)
def test_who_is_sent_reports_is_what_the_trail_says(
    place: Workspace, statement: str, name: str
) -> None:
    add(place, CLEO)
    with place.database.connect() as connection:
        keep_subscription(connection, "cleo", SEVEN, "cleo@example.com")
        keep_subscription(connection, "anna", SEVEN, "new@example.com")
        keep_subscription(connection, "cleo", SEVEN, None)
        assert verify(connection).broken is None
        connection.execute(statement)
        told = f"the subscription of {name!r} to the scope {SEVEN!r} is not what link"
        assert told in str(verify(connection).broken)


NO_ADDRESSES = [
    *("", "anna", "a@b\r\nBcc: c@d", "a@b, c@d", "<a@b>", "a..b@c", ".a@b", "a.@b"),
    f"{'a' * 65}@b",
]


@pytest.mark.long
def test_what_is_no_address(workspace: Workspace) -> None:
    add(workspace, ANNA)
    for address in NO_ADDRESSES:
        with (
            pytest.raises(AccountRefused, match="no address of e-mail"),
            workspace.database.connect() as connection,
        ):
            keep_subscription(connection, "anna", SEVEN, address)


@pytest.mark.long
def test_what_is_an_address_to_the_database_is_one_to_send_from(workspace: Workspace) -> None:
    add(workspace, ANNA)
    run(workspace)
    for address in ("o'brien@example.com", "a.b+c@d.example", f"{'a' * 64}@b"):
        with workspace.database.connect() as connection:
            keep_subscription(connection, "anna", SEVEN, address)
            assert [one.address for one in list_subscriptions(connection, "anna")] == [address]
        told = {"RECON_MAIL_SERVER": "mail.example:465", "RECON_MAIL_FROM": address}
        settings = read_mail_settings(told)
        assert settings is not None
        assert settings.sender == address


WHERE = [
    # link to the desk; whether the workbook is attached; what is said of it; of how to end it
    ("https://desk/runs/7", True, "is attached", "the page My account at the desk"),
    ("https://desk/runs/7", False, "is at the desk", "the page My account at the desk"),
    (None, False, "`recon report 7` says where", "`recon user unsubscribe`"),
]


@pytest.mark.parametrize(("link", "attached", "workbook", "way_out"), WHERE)
def test_a_message_says_where_all_of_it_is_and_how_to_be_sent_none(
    link: str | None, attached: bool, workbook: str, way_out: str
) -> None:
    one = letter(
        sender="recon@example.com", address="anna@example.com", account="anna", number=7,
        scope=SEVEN, day="2026-01-31", verdict="RECONCILED", report_hash="0" * 64,
        report_text="the report\n", link=link, workbook=b"PK" if attached else None,
    )  # fmt: skip
    for kind in ("plain", "html"):
        body = one.get_body((kind,))
        assert body is not None
        text = body.get_content()
        for told in (workbook, "the account anna is subscribed", way_out):
            assert told in text, kind
    assert '<pre style="white-space: pre-wrap; overflow-wrap: anywhere">' in text, (
        "a telephone is narrow"
    )


ENCODED = (
    "feed x\r\nBcc: eve@example.com\r\n\r\n<script>",
    "feed =?utf-8?q?x=0D=0ABcc:_eve@example.com?=",
    "feed =?utf-8?b?eA0KQmNjOiBlQGUuY29t?=",
)


@pytest.mark.parametrize("scope", ENCODED)
def test_no_name_begins_a_header_of_its_own(scope: str) -> None:
    told: dict[str, Any] = {
        "number": 7, "day": "2026-01-31", "verdict": "ODD\r\nBcc: eve@example.com",
        "scope": scope, "report_hash": "0" * 64,
        "report_text": "<script>\n", "account": "a\r\nb", "link": None, "workbook": None,
    }  # fmt: skip
    one = letter(sender="recon@example.com", address="anna@example.com", **told)
    content = one.as_bytes().decode()
    assert "\nBcc" not in content
    assert one["Bcc"] is None
    page = one.get_body(("html",))
    assert page is not None
    assert "<script>" not in page.get_content()
    with pytest.raises(ValueError, match="linefeed"):
        letter(sender="recon@example.com", address="a@b\r\nBcc: eve@example.com", **told)


PLACE = {"RECON_MAIL_SERVER": "mail.example.com:587", "RECON_MAIL_FROM": "recon@example.com"}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"RECON_MAIL_SERVER": "mail.example.com:0"}, "HOST:PORT"),
        ({"RECON_MAIL_SERVER": "fe80::1"}, "HOST:PORT"),
        ({"RECON_MAIL_SERVER": "anna:secret@mail.example.com"}, "HOST:PORT"),
        ({"RECON_MAIL_FROM": ""}, "RECON_MAIL_FROM"),
        ({"RECON_MAIL_FROM": "a@b\r\nBcc: c@d"}, "RECON_MAIL_FROM"),
        ({"RECON_MAIL_FROM": "<recon@example.com>"}, "RECON_MAIL_FROM"),
        ({"RECON_MAIL_FROM": "recon@example..com"}, "RECON_MAIL_FROM"),
        ({"RECON_MAIL_FROM": "recon@[x"}, "RECON_MAIL_FROM"),
        ({"RECON_MAIL_FROM": f"recon@{'a' * 250}.example.com"}, "RECON_MAIL_FROM"),
        ({"RECON_MAIL_USER": "änna", "RECON_MAIL_PASSWORD": "secret"}, "RECON_MAIL_USER"),
        ({"RECON_MAIL_USER": "anna", "RECON_MAIL_PASSWORD": "secretä"}, "RECON_MAIL_PASSWORD"),
        ({"RECON_MAIL_TLS": "none"}, "everybody on the way"),
        ({"RECON_MAIL_TLS": "maybe"}, "none of starttls, implicit, none"),
        ({"RECON_MAIL_USER": "anna"}, "together"),
        (
            {"RECON_MAIL_SERVER": "localhost:25", "RECON_MAIL_TLS": "none",
             "RECON_MAIL_USER": "anna", "RECON_MAIL_PASSWORD": "secret"},
            "for everybody to read",
        ),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used(changed: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        read_mail_settings(PLACE | changed)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("port", "tls"), [(587, Tls.STARTTLS), (465, Tls.IMPLICIT)])
def test_tls_follows_from_the_port(port: int, tls: Tls) -> None:
    told = PLACE | {"RECON_MAIL_USER": "anna", "RECON_MAIL_PASSWORD": "secret"}
    settings = read_mail_settings(told | {"RECON_MAIL_SERVER": f"mail.example.com:{port}"})
    assert settings is not None
    assert settings.tls is tls
    assert "secret" not in repr(settings)


def test_a_report_is_never_sent_without_tls_where_that_is_asked_for(
    place: Workspace, post: MailServer, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setenv("RECON_MAIL_TLS", "starttls")
    monkeypatch.setenv("RECON_MAIL_USER", "anna")
    monkeypatch.setenv("RECON_MAIL_PASSWORD", "secret")
    run(place)
    assert post.to == []
    assert "offers no STARTTLS" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("tls", [Tls.STARTTLS, Tls.IMPLICIT])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_password_is_told_to_a_server_that_is_trusted_and_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool, tls: Tls
) -> None:
    known = made(tmp_path, x509.IPAddress(ip_address("127.0.0.1")))
    message = EmailMessage()
    message["Subject"] = "recon"
    with mail_server(known.context) as server:
        server.implicit = tls is Tls.IMPLICIT
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(known.path))
        settings = MailSettings(
            "127.0.0.1", server.port, "recon@example.com", tls, user="anna", password="secret"
        )
        if trusted:
            send(settings, message, "bo@example.com")
        else:
            with pytest.raises(MailUnusable, match="is not trusted: self-signed") as refused:
                send(settings, message, "bo@example.com")
            assert "SSL_CERT_FILE" in str(refused.value)
        assert server.plain == ([] if server.implicit else ["EHLO", "STARTTLS"])
        assert server.logins == (["\0anna\0secret"] if trusted else [])
        assert server.to == (["bo@example.com"] if trusted else [])


@pytest.mark.parametrize(
    ("auth", "welcome", "told"),
    [
        ("PLAIN", "334 Continue please", "cannot be used"),
        ("XOAUTH2 NTLM", "", "offers no login that we know"),
        ("PLAIN", "535 anna secret", "refused RECON_MAIL_USER"),
    ],
)
def test_a_login_that_comes_to_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, auth: str, welcome: str, told: str
) -> None:
    known = made(tmp_path, x509.IPAddress(ip_address("127.0.0.1")))
    monkeypatch.setenv("SSL_CERT_FILE", str(known.path))
    with mail_server(known.context) as server:
        server.auth, server.welcome = auth, welcome
        settings = MailSettings(
            "127.0.0.1", server.port, "recon@example.com", user="anna", password="secret"
        )
        with pytest.raises(MailUnusable, match=told) as refused:
            send(settings, EmailMessage(), "bo@example.com")
    assert "secret" not in str(refused.value)


@pytest.mark.long
def test_a_setting_that_cannot_be_used_ends_no_run_that_is_saved(
    place: Workspace, post: MailServer, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setenv("RECON_MAIL_FROM", "<recon@example.com>")
    assert run(place).run.verdict
    assert "RECON_MAIL_FROM" in caplog.text


def test_a_host_that_is_no_name_cannot_be_used() -> None:
    settings = MailSettings("mail..example.com", 587, "recon@example.com")
    with pytest.raises(MailUnusable, match="cannot be used"):
        send(settings, EmailMessage(), "bo@example.com")
