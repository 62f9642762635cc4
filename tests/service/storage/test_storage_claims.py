"""Claims: of several processes on a database, one has a role at a time."""

import threading

import pytest
from sqlalchemy import text

from attakit.errors import StateError
from attakit.service.storage import open_storage
from attakit.service.storage import storage as storage_module


@pytest.fixture
def two(postgres_url, tmp_path):
    """Two connections to the same deployment, as of two machines."""
    with open_storage(tmp_path, postgres_url) as one, open_storage(tmp_path, postgres_url) as other:
        yield one, other


def test_a_role_is_held_by_one_until_it_gives_it_up(two):
    first, second = (each.claim("learner") for each in two)

    assert not first.is_taken()
    assert (first.hold(), second.hold(), first.hold()) == (True, False, True)
    assert second.is_taken()
    first.release()

    assert second.hold()
    assert not first.hold()
    for claim in (second, first):
        claim.release()
    assert not first.is_taken()


def test_roles_of_other_names_and_other_schemas_do_not_meet(two, new_postgres_schema, tmp_path):
    first = two[0].claim("learner")
    assert first.hold()

    webhook = two[1].claim("webhook")
    assert webhook.hold()
    webhook.release()
    with open_storage(tmp_path, new_postgres_schema("elsewhere")) as elsewhere:
        claim = elsewhere.claim("learner")
        assert not claim.is_taken()
        assert claim.hold()
        claim.release()
    first.release()


def test_who_loses_the_connection_loses_the_role_and_notices_it(two):
    first, second = (each.claim("learner") for each in two)
    assert first.hold()
    pid = first._connection.scalar(text("SELECT pg_backend_pid()"))
    with two[1]._database.write() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})

    assert second.hold()
    assert not first.hold()
    second.release()
    assert first.hold()
    first.release()


def test_a_role_is_always_held_on_sqlite_which_has_one_process_tree(tmp_path):
    with open_storage(tmp_path) as storage:
        claim = storage.claim("learner")
        assert claim.hold()
        assert claim.is_taken()
        assert not storage.is_shared


def test_who_starts_at_the_same_time_waits_for_the_other_and_not_for_ever(two, monkeypatch):
    order = []

    def start(storage, name):
        with storage.alone("start"):
            order.append(name)

    with two[0].alone("start"):
        other = threading.Thread(target=start, args=(two[1], "second"))
        other.start()
        order.append("first")
        monkeypatch.setattr(storage_module, "_PATIENCE", 0.0)
        with pytest.raises(StateError, match="has not finished 'start'"), two[1].alone("start"):
            pass
    other.join()

    assert order == ["first", "second"]


def test_of_several_that_change_a_value_each_sees_what_the_others_did(two):
    first, second = (each.key_values for each in two)

    assert first.change("secret", lambda old: old or "a") == "a"
    assert second.change("secret", lambda old: old or "b") == "a"
    threads = [
        threading.Thread(target=values.change, args=("count", lambda old: (old or 0) + 1))
        for values in (first, second) * 10
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert first.get("count") == 20
