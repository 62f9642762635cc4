import pytest

from attakit.errors import SettingError, UnknownName
from attakit.service.storage import Event, Token
from service_records import NOW


def test_a_token_tells_who_it_is_and_what_they_may_do(storage):
    ada = storage.tokens.create("Ada", "label")
    root = storage.tokens.create("root", "admin")

    assert storage.tokens.check(ada) == ("Ada", "label")
    assert storage.tokens.check(root) == ("root", "admin")
    for wrong in ("", "atk_", ada[:-1], ada + "x", "half\ud800"):
        assert storage.tokens.check(wrong) is None


def test_tokens_are_not_kept(storage):
    token = storage.tokens.create("Ada", "label")
    with storage._database.read() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM tokens").all()

    assert len(rows) == 1
    assert token not in repr(rows)
    assert token not in repr(storage.events.recent(9))


def test_a_revoked_token_counts_no_more_but_doors_stay_closed(storage, clock):
    assert storage.tokens.any() is False
    token = storage.tokens.create("Ada", "label")
    clock.sleep(1)
    storage.tokens.revoke("Ada")
    storage.tokens.revoke("Ada", "root")

    assert storage.tokens.check(token) is None
    assert storage.tokens.any() is True
    assert storage.tokens.all() == (Token("Ada", "label", NOW, NOW + 1),)
    assert len(storage.events.recent(9, kind="token revoked")) == 1


def test_a_name_is_used_once(storage):
    storage.tokens.create("Ada", "label")
    storage.tokens.revoke("Ada")

    with pytest.raises(SettingError, match="'Ada' was used before"):
        storage.tokens.create("Ada", "admin")


@pytest.mark.parametrize(
    ("name", "role", "told"),
    [
        ("", "label", "1 to 64 printable"),
        (" Ada", "label", "no space at its ends"),
        ("A\x00da", "label", "printable"),
        ("x" * 65, "label", "1 to 64"),
        ("local", "label", "used by the service itself"),
        ("Ada", "boss", "role must be one of predict, label, admin, got 'boss'"),
    ],
)
def test_names_and_roles_that_cannot_be_are_refused(storage, name, role, told):
    with pytest.raises(SettingError, match=told):
        storage.tokens.create(name, role)

    assert storage.tokens.all() == ()


def test_an_unknown_token_cannot_be_revoked(storage):
    with pytest.raises(UnknownName, match="No token exists"):
        storage.tokens.revoke("Ada")
    storage.tokens.create("Ada", "label")
    with pytest.raises(UnknownName, match="Did you mean 'Ada'"):
        storage.tokens.revoke("Adda")


def test_facts_are_kept_and_replaced(storage):
    assert storage.key_values.get("saved_turn") is None
    assert storage.key_values.get("saved_turn", -1) == -1
    storage.key_values.set("saved_turn", 3)
    storage.key_values.set("saved_turn", 4)
    storage.key_values.set("paused", False)

    assert storage.key_values.get("saved_turn", -1) == 4
    assert storage.key_values.get("paused", True) is False


def test_events_are_read_newest_first_and_by_kind(storage, clock):
    storage.events.add("alarm", "learner", what="entropy", value=0.5)
    clock.sleep(1)
    storage.events.add("pause", "Ada")

    newest, oldest = storage.events.recent(5)

    assert newest == Event(newest.number, NOW + 1, "pause", "Ada", {})
    assert oldest.details == {"what": "entropy", "value": 0.5}
    assert storage.events.recent(5, kind="alarm") == (oldest,)
    assert storage.events.recent(1) == (newest,)
