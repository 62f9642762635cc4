"""A database as the first versions of attakit made it, before there were migrations, with data."""

import base64
import json
from hashlib import sha256

from sqlalchemy import JSON, MetaData, create_engine, inspect, null
from sqlalchemy.engine import make_url

KINDS = {
    "sqlite": {
        "counted": "INTEGER NOT NULL",
        "autoincrement": "AUTOINCREMENT",
        "serial": "INTEGER",
        "big": "INTEGER",
        "bytes": "BLOB",
        "image": "X'89504E47'",
        "true": "1",
        "false": "0",
    },
    "postgresql": {
        "counted": "BIGSERIAL NOT NULL",
        "autoincrement": "",
        "serial": "SERIAL",
        "big": "BIGINT",
        "bytes": "BYTEA",
        "image": r"'\x89504E47'",
        "true": "TRUE",
        "false": "FALSE",
    },
}

TABLES = """
CREATE TABLE facts (name VARCHAR NOT NULL, value JSON NOT NULL, PRIMARY KEY (name));
CREATE TABLE samples (
    number {counted} PRIMARY KEY {autoincrement}, sample VARCHAR NOT NULL, content {bytes},
    size INTEGER NOT NULL, version INTEGER NOT NULL, guess INTEGER NOT NULL,
    confidence FLOAT NOT NULL, entropy FLOAT NOT NULL, at FLOAT NOT NULL, turn INTEGER,
    forgotten FLOAT, forgotten_turn INTEGER, UNIQUE (sample)
);
CREATE INDEX ix_samples_at ON samples (at);
CREATE INDEX ix_samples_turn ON samples (turn);
CREATE TABLE turns (
    number {serial} NOT NULL, samples JSON NOT NULL, allowance INTEGER NOT NULL,
    audit JSON NOT NULL, settled JSON NOT NULL, forgotten JSON NOT NULL, at FLOAT NOT NULL,
    numbers JSON, PRIMARY KEY (number)
);
CREATE TABLE versions (
    number {serial} NOT NULL, turn INTEGER NOT NULL, file VARCHAR NOT NULL,
    weights VARCHAR NOT NULL, labels INTEGER NOT NULL, at FLOAT NOT NULL,
    PRIMARY KEY (number), UNIQUE (turn)
);
CREATE TABLE events (
    number {counted}, at FLOAT NOT NULL, kind VARCHAR NOT NULL, who VARCHAR NOT NULL,
    details JSON NOT NULL, PRIMARY KEY (number)
);
CREATE INDEX ix_events_kind ON events (kind);
CREATE TABLE tokens (
    name VARCHAR NOT NULL, role VARCHAR NOT NULL, hash VARCHAR NOT NULL, created FLOAT NOT NULL,
    revoked FLOAT, PRIMARY KEY (name), UNIQUE (hash)
);
CREATE TABLE questions (
    question {counted}, sample VARCHAR NOT NULL, turn INTEGER NOT NULL, copy INTEGER NOT NULL,
    purpose VARCHAR NOT NULL, version INTEGER NOT NULL, score FLOAT NOT NULL,
    guesses JSON NOT NULL, at FLOAT NOT NULL, state VARCHAR NOT NULL, label INTEGER,
    wanted INTEGER NOT NULL, decided FLOAT, settled FLOAT, taken INTEGER,
    PRIMARY KEY (question), UNIQUE (sample, turn, copy, purpose),
    FOREIGN KEY(sample) REFERENCES samples (sample)
);
CREATE INDEX ix_questions_sample ON questions (sample);
CREATE INDEX questions_by_state ON questions (state, question);
CREATE TABLE gates (
    version INTEGER NOT NULL, passed BOOLEAN NOT NULL, reason VARCHAR NOT NULL,
    numbers JSON NOT NULL, at FLOAT NOT NULL, PRIMARY KEY (version),
    FOREIGN KEY(version) REFERENCES versions (number)
);
CREATE TABLE promotions (
    promotion {counted}, key VARCHAR, version INTEGER NOT NULL, reason VARCHAR NOT NULL,
    who VARCHAR NOT NULL, at FLOAT NOT NULL, PRIMARY KEY (promotion), UNIQUE (key),
    FOREIGN KEY(version) REFERENCES versions (number)
);
CREATE TABLE leases (
    question {big} NOT NULL, annotator VARCHAR NOT NULL, until FLOAT NOT NULL,
    PRIMARY KEY (question, annotator), FOREIGN KEY(question) REFERENCES questions (question)
);
CREATE TABLE answers (
    answer {counted}, question {big} NOT NULL, key VARCHAR NOT NULL, annotator VARCHAR NOT NULL,
    kind VARCHAR NOT NULL, label INTEGER, outcome VARCHAR NOT NULL, withdraws {big},
    at FLOAT NOT NULL, PRIMARY KEY (answer),
    FOREIGN KEY(question) REFERENCES questions (question), UNIQUE (key),
    FOREIGN KEY(withdraws) REFERENCES answers (answer)
);
CREATE INDEX ix_answers_question ON answers (question);
"""

# One question in each state; number 8 repeats number 2 as only imitating settings did, and 9 too.
# The token is "atk_old". Clock of the tests: 1,000,000.
ROWS = """
INSERT INTO facts VALUES ('schema', '1'), ('paused', 'true'), ('saved_turn', '1');
INSERT INTO samples (sample, content, size, version, guess, confidence, entropy, at, turn,
                     forgotten, forgotten_turn) VALUES
    ('a', {image}, 4, 0, 1, 0.1234567890123456, 0.25, 999990.5, 0, NULL, NULL),
    ('b', {image}, 4, 0, 2, 0.5, 0.25, 999991.0, 0, NULL, NULL),
    ('c', NULL, 0, 0, 1, 0.5, 0.25, 999992.0, 0, NULL, NULL),
    ('d', {image}, 4, 0, 1, 0.5, 0.25, 999993.0, 0, NULL, NULL),
    ('e', {image}, 4, 1, 1, 0.5, 0.25, 999994.0, 1, NULL, NULL),
    ('f', NULL, 0, 1, -1, 0.0, 0.0, 999995.0, 1, 999999.0, 1),
    ('g', {image}, 4, 1, 1, 0.5, 0.25, 999996.0, NULL, NULL, NULL);
INSERT INTO questions (sample, turn, copy, purpose, version, score, guesses, at, state, label,
                       wanted, decided, settled, taken) VALUES
    ('a', 0, 0, 'learn', 0, 0.7, '[[1, 0.6], [2, 0.4]]', 999991, 'open', NULL, 1, NULL, NULL, NULL),
    ('b', 0, 0, 'learn', 0, 0.7, '[[2, 0.9]]', 999991, 'answered', 2, 0, 999992, 999997, 1),
    ('c', 0, 0, 'learn', 0, 0.7, '[[1, 0.6]]', 999991, 'skipped', NULL, 0, 999992, 999997, 1),
    ('d', 0, 0, 'audit', 0, 0.7, '[[1, 0.6]]', 999991, 'none', NULL, 0, 999992, 999997, NULL),
    ('e', 1, 0, 'learn', 0, 0.7, '[[1, 0.6]]', 999995, 'expired', NULL, 0, NULL, 999998, NULL),
    ('f', 1, 0, 'learn', 0, 0.7, '[]', 999995, 'forgotten', NULL, 0, 999996, 999997, 1),
    ('e', 1, 0, 'audit', 0, 0.7, '[[1, 0.6]]', 999995, 'answered', 0, 0, 999996, 999997, NULL),
    ('b', 0, 1, 'learn', 0, 0.7, '[[2, 0.9]]', 999991, 'answered', 1, 0, 999992, 999997, NULL),
    ('b', 0, 2, 'learn', 0, 0.7, '[[2, 0.9]]', 999991, 'open', NULL, 1, NULL, NULL, NULL);
INSERT INTO leases VALUES (1, 'Ada', 1000030.0), (9, 'Bob', 1000030.0);
INSERT INTO answers (question, key, annotator, kind, label, outcome, withdraws, at) VALUES
    (2, 'k1', 'Ada', 'label', 1, 'accepted', NULL, 999991.5),
    (2, 'u1', 'Ada', 'undo', NULL, 'accepted', 1, 999991.6),
    (2, 'k2', 'Ada', 'label', 2, 'accepted', NULL, 999992.0),
    (2, 'k3', 'Bob', 'label', 0, 'conflict', NULL, 999993.0),
    (3, 'k4', 'Bob', 'skip', NULL, 'accepted', NULL, 999992.0),
    (4, 'k5', 'Bob', 'none', NULL, 'accepted', NULL, 999992.0),
    (6, 'forgotten 7', 'Ada', 'label', NULL, 'accepted', NULL, 999996.0),
    (7, 'k6', 'Ada', 'label', 0, 'accepted', NULL, 999996.0),
    (8, 'k7', 'Eve', 'label', 1, 'accepted', NULL, 999992.0),
    (3, 'k8', 'Ada', 'label', 2, 'late', NULL, 999999.0);
INSERT INTO turns VALUES
    (0, '["a", "b", "c", "d"]', 3, '["d"]', '[]', '[]', 999991.0, '{{"loss": null, "left": 7.0}}'),
    (1, '["e", "f"]', 2, '["e"]', '[2, 3, 6]', '["f"]', 999995.0, NULL);
INSERT INTO versions VALUES
    (0, -1, '', 'abc', 0, 999990.0), (1, 1, 'v1.safetensors', 'def', 2, 999998.0);
INSERT INTO gates VALUES (1, {true}, 'Passed.', '{{"trust": null, "score": 0.5}}', 999998.5);
INSERT INTO promotions (key, version, reason, who, at) VALUES
    ('start', 0, 'The source model.', 'learner', 999990.0),
    (NULL, 1, 'Passed.', 'learner', 999998.5);
INSERT INTO events (at, kind, who, details) VALUES
    (999991.0, 'question', 'learner', '{{"question": 1, "sample": "a", "score": 0.7}}'),
    (999999.0, 'forgotten', 'admin', '{{"sample": "f"}}');
INSERT INTO tokens VALUES
    ('ada', 'label', '{token}', 999990.0, NULL),
    ('bob', 'admin', 'not a hash', 999990.0, 999991.0);
"""
TOKEN = "atk_old"
_HASH = sha256(TOKEN.encode()).hexdigest()


def make_first_database(url, rows=ROWS):
    """Make the tables and rows with nothing but SQL."""
    kind = {**KINDS[make_url(url).get_backend_name()], "token": _HASH}
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in (TABLES + rows).format(**kind).split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    engine.dispose()


def fill_first_database(url, rows):
    """Make the tables with rows from a file: by table, each row by column, JSON as text."""
    make_first_database(url, rows="")
    engine = create_engine(url)
    tables = MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        for name, some in rows.items():
            table = tables.tables[name]
            for row in some:
                values = {key: _value(table.c[key], value) for key, value in row.items()}
                connection.execute(table.insert().values(values))
    engine.dispose()


def _value(column, stored):
    if stored is None:
        return null()
    if isinstance(stored, dict):
        return base64.b64decode(stored["base64"])
    return (
        json.loads(stored) if isinstance(column.type, JSON) and isinstance(stored, str) else stored
    )


def read_all(url):
    """All rows of all tables, by table; each row by column."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return {
                table: _read(connection, table) for table in inspect(connection).get_table_names()
            }
    finally:
        engine.dispose()


def _read(connection, table):
    rows = [dict(row._mapping) for row in connection.exec_driver_sql(f"SELECT * FROM {table}")]
    return sorted(rows, key=lambda row: [str(value) for value in row.values()][:2])
