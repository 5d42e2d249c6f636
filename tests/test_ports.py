"""Where a server of a test has ended, nobody answers: not the next server either."""

import errno
import socket

import pytest

from tests.ports import LOOPBACK, own_port
from tests.service.faulty_server import FaultyServer


def test_the_place_of_a_server_that_ended_is_nobodys() -> None:
    with FaultyServer() as server:
        pass
    place = (LOOPBACK, int(server.url.rpartition(":")[2]))
    with socket.socket() as asked:
        assert asked.connect_ex(place) == errno.ECONNREFUSED
    with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind(place)


def test_a_port_is_listened_at_as_often_as_its_owner_wants() -> None:
    port = own_port()
    for _ in range(2):
        with socket.create_server((LOOPBACK, port)), socket.socket() as asked:
            assert asked.connect_ex((LOOPBACK, port)) == 0
