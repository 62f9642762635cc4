import sqlite3
from contextlib import closing
from threading import Timer

import pytest
from sqlalchemy import create_engine, text

from attakit.errors import LabelError, MissingExtra, SettingError, StateError
from attakit.service.storage import LabelRules, database, open_storage, sqlite
from attakit.service.storage.tables import revisions
from service_records import ask, open_at_once, question, served


def run(url, statement):
    engine = create_engine(url)
    with engine.begin() as connection:
        rows = connection.execute(text(statement))
        found = rows.all() if rows.returns_rows else []
    engine.dispose()
    return found


def test_what_was_written_is_there_after_opening_again(open_database):
    with open_database() as storage:
        ask(storage, "a", "b")
        storage.key_values.set("paused", True)

    with open_database() as again:
        assert again.questions.counts().open == 2
        assert again.key_values.get("paused") is True


def test_a_database_of_another_schema_is_refused(open_database, database):
    open_database().close()
    run(database, f"DROP TABLE {revisions.name}")
    run(database, "UPDATE facts SET value = '7' WHERE name = 'schema'")

    with pytest.raises(StateError, match="revision 'schema 7', the newest known is"):
        open_database()


def test_tables_of_another_program_are_refused(open_database, database):
    run(database, "CREATE TABLE facts (colour VARCHAR)")

    with pytest.raises(StateError, match="was created by attakit"):
        open_database()


def test_several_may_open_a_new_database_at_once(database, tmp_path):
    assert open_at_once(tmp_path, database) == []


def test_a_new_file_that_somebody_else_holds_is_waited_for(tmp_path):
    # SQLite itself waits for nobody while it changes the kind of journal.
    (tmp_path / "service.sqlite").touch()
    holder = sqlite3.connect(tmp_path / "service.sqlite", check_same_thread=False)
    with closing(holder):
        holder.execute("BEGIN IMMEDIATE")
        later = Timer(0.3, holder.rollback)
        later.start()

        open_storage(tmp_path, labels=LabelRules()).close()
        later.join()


def test_a_failed_transaction_leaves_nothing(storage):
    storage.samples.add(served("a"))
    with pytest.raises(LabelError, match="which is unknown"):
        storage.questions.put([question("a"), question("unknown")])

    assert storage.questions.counts().asked == 0
    assert storage.events.recent(10) == ()


def test_sqlite_keeps_what_was_committed_through_a_loss_of_power(tmp_path):
    with open_storage(tmp_path) as storage, storage._database.read() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }

    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }


def test_the_folder_of_the_sqlite_file_is_made(tmp_path):
    open_storage(tmp_path / "new" / "folder").close()

    assert (tmp_path / "new" / "folder" / "service.sqlite").exists()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "service.sqlite").write_bytes(b"These are only words. " * 200)

    with pytest.raises(StateError, match="file is not a database"):
        open_storage(tmp_path)


def test_a_locked_file_is_waited_for_and_then_explained(tmp_path, monkeypatch):
    open_storage(tmp_path).close()
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0)
    with closing(sqlite3.connect(tmp_path / "service.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StateError, match="database is locked"):
            open_storage(tmp_path)


def test_lost_connections_to_postgres_are_made_again(postgres_url, tmp_path):
    with open_storage(tmp_path, postgres_url) as storage:
        storage.key_values.set("paused", True)
        run(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )

        assert storage.key_values.get("paused") is True


def test_a_password_is_never_shown(tmp_path):
    url = "postgresql://ada:hunter2@127.0.0.1:1/labels?application_name=hunter2"

    with pytest.raises(StateError, match=r"'labels' on 127\.0\.0\.1") as caught:
        open_storage(tmp_path, url)

    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("not a url, hunter2", "is not a URL"),
        ("postgresql://ada:hunter2@host:port/labels", "is not a URL"),
        (
            "mysql://ada:hunter2@host/labels",
            "must be SQLite or PostgreSQL, got a URL for 'mysql'",
        ),
        ("sqlite://", "would not survive a restart"),
        ("sqlite:///:memory:", "would not survive a restart"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_with_what_to_give(tmp_path, url, told):
    with pytest.raises(SettingError, match=told) as caught:
        open_storage(tmp_path, url)

    assert "hunter2" not in str(caught.value)


def test_without_its_driver_postgres_says_what_to_install(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ModuleNotFoundError("No module named 'psycopg'")

    monkeypatch.setattr(database, "create_engine", fail)

    with pytest.raises(MissingExtra, match=r"attakit\[postgres\]"):
        open_storage(tmp_path, "postgresql://host/labels")
