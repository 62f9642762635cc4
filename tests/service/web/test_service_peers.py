"""Which user has opened a connection."""

import os
import socket

import pytest

from attakit.service.web.peers import is_other_user


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_connection_of_ones_own_is_known(family, host):
    with socket.socket(family) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        listener.listen()
        with socket.socket(family) as client:
            client.connect(listener.getsockname())

            assert not is_other_user(client.getsockname()[:2], listener.getsockname()[:2])


def test_users_are_read_from_the_table_of_the_system(tmp_path):
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
    row = "   0: 0100007F:C350 0100007F:1F40 01 00000000:00000000 00:00000000 00000000 {user} 0 1"
    (tmp_path / "tcp").write_text(f"{head}\n{row.format(user=os.getuid() + 1)}\n")

    assert is_other_user(("127.0.0.1", 50_000), ("127.0.0.1", 8000), tmp_path)
    assert not is_other_user(("127.0.0.1", 50_001), ("127.0.0.1", 8000), tmp_path)


def test_where_there_is_no_such_table_nothing_is_known(tmp_path):
    assert not is_other_user(("127.0.0.1", 50_000), ("127.0.0.1", 8000), tmp_path)
