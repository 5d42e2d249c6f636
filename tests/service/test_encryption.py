"""TLS is verified: a certificate that is not trusted, or is another host's, gets not one byte."""

import ipaddress
import signal
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from connectors.errors import SettingsError
from connectors.service import Verdict
from tests.certificates import Certificate, made
from tests.service.faulty_server import LOST, Accept, Ending, FaultyServer, Reply, always, at
from tests.service.outbox import by_number, client, requests

A, D = Verdict.ACKNOWLEDGED, Verdict.IN_DOUBT


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    return made(tmp_path_factory.mktemp("ours"), address)


@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
def test_a_run_that_was_taken_over_while_it_connected_sends_nothing(
    ours: Certificate, operation: str
) -> None:
    """A process is frozen in the middle of a handshake, and thaws when its rows are another's."""
    taken: list[str] = []

    def accept(number: int) -> Accept:
        taken.append("taken over")
        return Accept.SERVE

    with FaultyServer(tls=ours.context, accept=accept) as server:
        with client(server.url, ca_file=ours.path, concurrency=1) as service:
            service.may_not_send = lambda: taken[0] if taken else None
            answers = by_number(service.send(requests(operation, 3)))
        assert server.requests == []
    assert {answer.verdict for answer in answers} == {Verdict.UNSENT}
    assert "aken over" in answers[0].errors[0]["Message"]


def test_a_post_that_found_no_connection_after_an_outage_is_tried_again(ours: Certificate) -> None:
    """The first answers, and loses a row; on the second it says that it is back; the third ends."""

    def stuck(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stuck)
    signal.alarm(20)
    try:
        with (
            FaultyServer(
                at({2: LOST}),
                tls=ours.context,
                accept=lambda number: Accept.RESET if number == 3 else Accept.SERVE,
            ) as server,
            client(server.url, ca_file=ours.path, concurrency=1) as service,
        ):
            answers = by_number(service.send(requests("AddMessageTone", 3)))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert [answer.verdict for answer in answers] == [A, D, A]
    assert (len(server.asked), server.connections) == (1, 4)


@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
def test_an_encrypted_service(ours: Certificate, operation: str) -> None:
    with FaultyServer(at({5: LOST}), tls=ours.context) as server:
        assert server.url.startswith("https://")
        with client(server.url, ca_file=ours.path, concurrency=2) as service:
            answers = by_number(service.send(requests(operation, 30)))
    lost = {Verdict.ACKNOWLEDGED} if operation == "EditPayment" else {Verdict.IN_DOUBT}
    assert {answer.verdict for answer in answers} == {Verdict.ACKNOWLEDGED} | lost
    # Another one behind the lost answer; and one behind the question whether the service is back.
    assert server.connections == (3 if operation == "EditPayment" else 4)
    assert len(server.effects) == len({effect.push_key for effect in server.effects}) == 30 or (
        operation == "EditPayment"
    )


def test_a_certificate_that_is_not_trusted(ours: Certificate) -> None:
    with FaultyServer(tls=ours.context) as server, client(server.url, concurrency=1) as service:
        answers = list(service.send(requests("EditPayment", 50)))
        assert service.stopped is not None
        assert "is not trusted" in service.stopped
    assert {answer.verdict for answer in answers} == {Verdict.UNSENT}
    assert sum(answer.attempts for answer in answers) == 1
    assert server.requests == []


def test_the_certificate_of_another_host(tmp_path: Path) -> None:
    other = made(tmp_path, x509.DNSName("other.example"))
    with (
        FaultyServer(tls=other.context) as server,
        client(server.url, ca_file=other.path, concurrency=1) as service,
    ):
        answers = list(service.send(requests("EditPayment", 5)))
    assert {answer.verdict for answer in answers} == {Verdict.UNSENT}
    assert server.requests == []


@pytest.mark.long
def test_a_handshake_that_never_ends(ours: Certificate) -> None:
    with (
        FaultyServer(accept=always_silent, tls=ours.context) as server,
        client(
            server.url, ca_file=ours.path, connect_seconds=0.2, attempts=2, concurrency=1
        ) as service,
    ):
        (answer,) = service.send(requests("AddMessageTone", 1))
    assert (answer.verdict, answer.attempts) == (Verdict.UNSENT, 2)


def always_silent(number: int) -> Accept:
    return Accept.NEVER_READ


def test_plain_text_where_encryption_is_expected() -> None:
    with FaultyServer(always(LOST)) as server:
        url = server.url.replace("http://", "https://")
        with client(url, attempts=2, concurrency=1) as service:
            (answer,) = service.send(requests("AddMessageTone", 1))
    assert answer.verdict is Verdict.UNSENT
    assert server.effects == []


@pytest.mark.long(but=("1-EditPayment",))
@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
@pytest.mark.parametrize("batch", [1, 4])
def test_a_port_for_tls_that_is_spoken_to_in_clear(
    ours: Certificate, operation: str, batch: int
) -> None:
    with FaultyServer(tls=ours.context) as server:
        url = server.url.replace("https://", "http://")
        with client(url, batch=batch, concurrency=2) as service:
            answers = list(service.send(requests(operation, 20)))
        assert service.stopped is not None
        assert "https://" in service.stopped
    assert {answer.verdict for answer in answers} == {Verdict.UNSENT}
    assert sum(answer.attempts for answer in answers) <= 2 * batch


def test_a_port_that_takes_tls_and_plain_text_may_have_read_what_was_sent_in_clear(
    ours: Certificate,
) -> None:
    """That it speaks TLS as well says nothing of a POST whose answer is lost."""
    with FaultyServer(always(LOST), tls=ours.context, clear=True) as server:
        url = server.url.replace("https://", "http://")
        with client(url, concurrency=1) as service:
            (answer,) = service.send(requests("AddMessageTone", 1))
    assert len(server.effects) == 1
    assert answer.verdict is Verdict.IN_DOUBT


SAID_IN_CLEAR = [
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 67\r\n\r\n"
    b"<html>400 The plain HTTP request was sent to HTTPS port</html>     ",
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
    b"\x15\x03\x01\x00\x02\x02\x46",
]


@pytest.mark.parametrize("said", SAID_IN_CLEAR)
@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
def test_what_servers_say_in_clear_at_a_port_for_tls(operation: str, said: bytes) -> None:
    plan = always(Reply(body=said, ending=Ending.RAW, applied=False))
    with FaultyServer(plan) as server, client(server.url, concurrency=1) as service:
        answers = list(service.send(requests(operation, 5)))
    assert {answer.verdict for answer in answers} == {Verdict.UNSENT}
    assert "https://" in str(service.stopped)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("operation", ["EditPayment", "AddMessageTone"])
def test_a_client_certificate_that_is_asked_for(
    ours: Certificate, operation: str, version: ssl.TLSVersion
) -> None:
    strict = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    strict.load_cert_chain(ours.path)
    strict.load_verify_locations(ours.path)
    strict.verify_mode = ssl.CERT_REQUIRED
    strict.maximum_version = version
    with (
        FaultyServer(tls=strict) as server,
        client(server.url, ca_file=ours.path, concurrency=2) as service,
    ):
        answers = list(service.send(requests(operation, 20)))
    assert {answer.verdict for answer in answers} == {Verdict.UNSENT}
    assert "client certificate" in str(service.stopped)
    assert server.requests == []


def test_certificates_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "none.pem"
    with (
        pytest.raises(SettingsError, match=f"RECON_SERVICE_CA_FILE={path} .*Name a file of"),
        client("https://127.0.0.1:1", ca_file=path),
    ):
        pytest.fail("certificates that are not there were read")
