"""The public names of the folder."""

import attakit.stream


def test_the_public_names_exist_and_are_listed_once():
    names = attakit.stream.__all__

    assert len(set(names)) == len(names)
    assert all(hasattr(attakit.stream, name) for name in names)
