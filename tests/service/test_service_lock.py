import pytest

from attakit.errors import StateError
from attakit.service.lock import exclusive_lock


def test_one_works_on_a_folder_and_the_next_after_it(tmp_path):
    path = tmp_path / "live" / "server.lock"

    with (
        exclusive_lock(path),
        pytest.raises(StateError, match="The server: another one works on"),
        exclusive_lock(path),
    ):
        pass
    with exclusive_lock(path):
        pass
