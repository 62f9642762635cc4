import pytest

from attakit.messages import explain


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            FileExistsError(17, "File exists", "s.toml"),
            "The system refused: File exists: s.toml. A file is where a folder should be: move it "
            "away, or name another folder.",
        ),
        (
            PermissionError(13, "Permission denied", "out"),
            "The system refused: Permission denied: out. Name another place, or ask for the right "
            "to use this one.",
        ),
    ],
)
def test_what_the_system_refuses_is_told_with_what_to_do(error, told):
    assert explain(error) == told
