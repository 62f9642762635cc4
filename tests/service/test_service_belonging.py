"""A folder, a database and the classes of a service belong together."""

import pytest

from attakit.errors import SettingError, StateError
from attakit.service.belonging import check_belonging
from attakit.service.load import parse_settings


def settings(folder, *classes):
    return parse_settings({"folder": str(folder), "classes": classes or ("cat", "dog")})


def test_a_service_can_be_started_again_and_its_folder_moved(storage, tmp_path):
    check_belonging(settings(tmp_path / "a"), storage)
    check_belonging(settings(tmp_path / "a"), storage)

    (tmp_path / "a").rename(tmp_path / "b")

    check_belonging(settings(tmp_path / "b"), storage)


def test_a_database_serves_one_folder_only(storage, tmp_path):
    check_belonging(settings(tmp_path / "a"), storage)

    with pytest.raises(StateError, match="belongs to a service in another folder than"):
        check_belonging(settings(tmp_path / "b"), storage)


@pytest.mark.parametrize("classes", [("dog", "cat"), ("cat", "dog", "cow")])
def test_the_classes_of_a_service_stay_what_they_are(storage, tmp_path, classes):
    check_belonging(settings(tmp_path / "a"), storage)

    with pytest.raises(SettingError, match="has the classes cat, dog, in this order, got"):
        check_belonging(settings(tmp_path / "a", *classes), storage)
