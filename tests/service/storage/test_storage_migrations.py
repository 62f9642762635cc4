"""An upgrade never costs anybody a label: databases of earlier versions, opened with this one."""

import logging
import math
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from attakit.errors import StateError
from attakit.service.storage import migrations, open_storage, schema, sqlite
from attakit.service.storage.tables import metadata, revisions
from first_database import TOKEN, make_first_database, read_all
from service_records import ask, open_at_once, say

MIGRATIONS = Path(migrations.__file__).parent
REPEATS = {8: "learn repeat 1", 9: "learn repeat 2"}
DIE_IN_THE_MIDDLE = """
import os, sys
from pathlib import Path
from attakit.service.storage import open_storage, schema

schema._check_references = lambda *_: os._exit(9)
open_storage(Path("unused"), sys.argv[1])
"""
OPEN_TWICE = """
import sys
from pathlib import Path
from attakit.service.storage import open_storage

for _ in range(2):
    open_storage(Path("unused"), sys.argv[1]).close()
assert not {"alembic", "torch"} & set(sys.modules)
"""


@pytest.fixture
def first(database):
    """URL of a database with the first tables, and rows in all of them."""
    make_first_database(database)
    return database


def backups(folder):
    return sorted(one.name for one in folder.iterdir() if "before-upgrade" in one.name)


def test_an_upgrade_keeps_every_row(first, open_database):
    before = read_all(first)
    assert all(before.values()), "every table has rows"

    open_database().close()

    after = read_all(first)
    assert after.pop(revisions.name) == [{"version_num": schema.HEAD}]
    for row in before["questions"]:
        del row["copy"]
        row |= {"source_guess": None, "source_entropy": None, "proposed": None}
        row |= {"weight": None, "chances": None}
        row["refunded"] = True if row["state"] == "none" else None
        row["purpose"] = REPEATS.get(row["question"], row["purpose"])
    for row in before["answers"]:
        row |= {"comment": None, "flagged": None}
    for row in before["turns"]:
        row["checks"] = None
    for row in before["samples"]:
        row |= {"caller_id": None, "text": None, "notes": None}
    before["facts"] = [
        {**row, "value": after["facts"][at]["value"]} if row["name"] == "schema" else row
        for at, row in enumerate(before["facts"])
    ]
    assert after == before


def test_what_people_said_is_read_after_an_upgrade(first, open_database):
    storage = open_database()
    questions = storage.questions.get(range(1, 10))

    assert [(one.sample, one.turn, one.state, one.label) for one in questions] == [
        ("a", 0, "open", None),
        ("b", 0, "answered", 2),
        ("c", 0, "skipped", None),
        ("d", 0, "none", None),
        ("e", 1, "expired", None),
        ("f", 1, "forgotten", None),
        ("e", 1, "answered", 0),
        ("b", 0, "answered", 1),
        ("b", 0, "open", None),
    ]
    assert questions[0].guesses == ((1, 0.6), (2, 0.4))
    given = storage.questions.answers(2)
    assert [
        (one.annotator, one.label, one.outcome, one.withdrawn, one.counts) for one in given
    ] == [
        ("Ada", 1, "accepted", True, False),
        ("Ada", 2, "accepted", False, True),
        ("Bob", 0, "conflict", False, False),
    ]
    assert [one.label for one in storage.questions.answers(8)] == [1]
    assert [one.question for one in storage.questions.audited(10)] == [7, 4]


def test_all_else_is_read_after_an_upgrade(first, open_database):
    storage = open_database()

    assert storage.samples.contents(["a", "c"]) == {"a": b"\x89PNG"}
    assert storage.samples.get("a").confidence == 0.1234567890123456
    assert storage.samples.state("f") == "forgotten"
    assert storage.samples.untaken_names() == ("g",)
    (second, numbers), (_, done) = storage.turns.recent(2)
    assert (second.settled, second.forgotten, numbers) == ((2, 3, 6), ("f",), None)
    assert math.isnan(done["loss"])
    assert storage.versions.get([1])[1].gate.reason == "Passed."
    assert [one.version for one in storage.versions.promotions(5)] == [1, 0]
    assert not storage.versions.promote(0, "Again.", "learner", key="start")
    assert [one.kind for one in storage.events.recent(5)] == ["forgotten", "question"]
    assert storage.tokens.check(TOKEN) == ("ada", "label")
    assert [one.name for one in storage.tokens.all() if one.revoked] == ["bob"]
    assert (storage.key_values.get("paused"), storage.key_values.get("saved_turn")) == (True, 1)


def test_work_continues_after_an_upgrade(first, open_database, clock):
    storage = open_database()

    assert storage.questions.lease("Ada").question.question == 1
    assert say(storage, 1, "Ada", 2) == "accepted"
    assert storage.questions.answer(2, "Ada", "label", 2, "k2") == "repeated"
    assert ask(storage, "new") == (10,)
    assert ask(storage, "a", turn=0) == (1,)  # put again by a turn that runs twice
    clock.sleep(6)
    assert storage.questions.settle() == 1
    assert [one.question for one in storage.questions.settled()][-1] == 1


def test_a_repeated_question_is_answered_but_not_learned_from(first, open_database):
    storage = open_database()

    assert say(storage, 9, "Bob", 2) == "accepted"
    purposes = {one.question: one.purpose for one in storage.questions.of_turn(0)}
    assert purposes == {1: "learn", 2: "learn", 3: "learn", 4: "audit", **REPEATS}


def test_an_upgrade_that_fails_changes_nothing(first, open_database, monkeypatch):
    def fail(*_):
        raise StateError("The power is gone.")

    before = read_all(first)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_check_references", fail)
        with pytest.raises(StateError, match="The power is gone"):
            open_database()
    assert read_all(first) == before

    assert open_database().questions.counts().asked == 9


def test_a_process_that_dies_in_an_upgrade_changes_nothing(first, open_database):
    before = read_all(first)
    died = subprocess.run([sys.executable, "-c", DIE_IN_THE_MIDDLE, first], env=os.environ)
    assert died.returncode == 9
    assert read_all(first) == before

    assert open_database().questions.counts().asked == 9


def test_of_several_that_open_an_old_database_one_upgrades_it(first, tmp_path, caplog):
    caplog.set_level(logging.INFO, schema.__name__)

    assert open_at_once(tmp_path, first) == []
    upgrades = [one for one in caplog.messages if one.startswith("upgraded the tables")]
    assert len(upgrades) == len({*upgrades}) == int(schema.HEAD) - 1
    assert len(read_all(first)["answers"]) == 10


def test_a_database_that_needs_no_upgrade_is_opened_without_alembic(database):
    opened = subprocess.run([sys.executable, "-c", OPEN_TWICE, database], capture_output=True)

    assert (opened.returncode, opened.stdout, opened.stderr) == (0, b"", b"")


def test_tables_of_a_newer_version_are_refused_with_what_to_do(open_database, database, tmp_path):
    open_database().close()
    engine = create_engine(database)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {revisions.name} SET version_num = '0999'"))
    engine.dispose()
    before = read_all(database)

    with pytest.raises(
        StateError, match=r"revision '0999', .* Install the version of attakit that"
    ):
        open_database()

    assert read_all(database) == before
    assert backups(tmp_path) == []


def test_new_tables_are_those_that_all_migrations_make(open_database, database, new_place):
    open_database().close()
    created = describe(database)
    other = new_place()
    migrate_from_nothing(other)

    assert describe(other) == created
    assert read_all(other)["facts"] == read_all(database)["facts"]


def test_an_upgraded_database_has_the_same_tables_as_a_new_one(first, open_database, new_place):
    open_database().close()
    other = new_place()
    open_storage(Path("unused"), other).close()

    assert describe(first) == describe(other)


def test_migrations_and_tables_agree_for_alembic(database):
    migrate_from_nothing(database)
    options = {"version_table": revisions.name, "include_object": is_not_the_revision}
    engine = create_engine(database)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, metadata)
    engine.dispose()

    assert differences == []


def is_not_the_revision(_thing, name, kind, _reflected, _other):
    return (kind, name) != ("table", revisions.name)


def test_the_newest_migration_is_the_revision_of_new_tables():
    scripts = ScriptDirectory(str(MIGRATIONS), version_locations=[str(MIGRATIONS)])

    assert scripts.get_heads() == [schema.HEAD]


@pytest.fixture
def new_place(database, tmp_path, request):
    """Makes a second empty database of the same kind."""

    def make():
        if database.startswith("sqlite"):
            return f"sqlite:///{tmp_path / 'other.sqlite'}"
        return request.getfixturevalue("new_postgres_schema")("other")

    return make


def migrate_from_nothing(url):
    engine = create_engine(url)
    with engine.begin() as connection:
        schema.upgrade_tables(connection, schema.find_migrations(None, "it"), "it")
    engine.dispose()


def describe(url):
    """What a database has, whatever made it."""
    engine = create_engine(url)
    with engine.connect() as connection:
        seen = inspect(connection)
        found = {table: describe_table(seen, table) for table in seen.get_table_names()}
    engine.dispose()
    return found


def describe_table(seen, table):
    columns = [
        (one["name"], repr(one["type"]), one["nullable"], one.get("default"))
        for one in seen.get_columns(table)
    ]
    keys = [
        (one["constrained_columns"], one["referred_table"], one["referred_columns"])
        for one in seen.get_foreign_keys(table)
    ]
    indexes = [(one["name"], one["column_names"], one["unique"]) for one in seen.get_indexes(table)]
    unique = [(one["name"], one["column_names"]) for one in seen.get_unique_constraints(table)]
    primary = seen.get_pk_constraint(table)["constrained_columns"]
    return columns, primary, *(sorted(map(repr, part)) for part in (keys, indexes, unique))


@pytest.fixture
def old_file(tmp_path):
    """A SQLite file with the first tables."""
    file = tmp_path / "service.sqlite"
    make_first_database(f"sqlite:///{file}")
    return file


def test_before_an_upgrade_the_file_is_copied_for_its_owner_alone(old_file, tmp_path, caplog):
    before = read_all(f"sqlite:///{old_file}")

    open_storage(tmp_path).close()
    open_storage(tmp_path).close()

    (name,) = backups(tmp_path)
    assert name == "service.sqlite.before-upgrade-from-0001"
    assert name in caplog.text
    assert read_all(f"sqlite:///{tmp_path / name}") == before
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_copy_from_before_an_upgrade_does_not_outlive_what_it_must_forget(old_file, tmp_path):
    with open_storage(tmp_path) as storage:
        assert storage.samples.forget("a", "admin")

    assert backups(tmp_path) == []


def test_without_a_copy_there_is_no_upgrade(old_file, tmp_path, monkeypatch):
    def fail(_path):
        raise OSError(28, "No space left on device")

    before = read_all(f"sqlite:///{old_file}")
    with monkeypatch.context() as patch:
        patch.setattr(
            sqlite, "make_private_file", lambda path: fail(path) if "before" in path.name else None
        )
        with pytest.raises(StateError, match=r"No space left on device.*Free some space"):
            open_storage(tmp_path)
    assert read_all(f"sqlite:///{old_file}") == before

    open_storage(tmp_path).close()


def test_broken_references_are_not_carried_over(old_file, tmp_path):
    with closing(sqlite3.connect(old_file)) as connection:
        connection.execute("UPDATE answers SET question = 77 WHERE answer = 5")
        connection.commit()

    with pytest.raises(StateError, match=r"'answers' refers to a missing row of 'questions'"):
        open_storage(tmp_path)


def test_after_an_upgrade_references_are_checked_again(old_file, tmp_path):
    with open_storage(tmp_path) as storage, storage._database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
