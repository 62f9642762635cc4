"""A service in miniature for each test.

Its database is SQLite, unless a module or test says otherwise by its own `database_kind`.
"""

import pytest

from miniature_service import decode, makes_miniatures


@pytest.fixture
def database_kind():
    return "sqlite"


@pytest.fixture
def miniature(tmp_path, database_kind, request):
    """Makes services, each with a folder and a database of its own."""
    on_server = database_kind == "postgres"
    new_schema = request.getfixturevalue("new_postgres_schema") if on_server else None
    with makes_miniatures(tmp_path, new_schema) as make:
        yield make


@pytest.fixture(scope="module")
def shared_miniature(tmp_path_factory):
    with makes_miniatures(tmp_path_factory.mktemp("shared")) as make:
        yield make


@pytest.fixture(name="decode")
def give_decode():
    return decode
