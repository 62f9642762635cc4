import errno

import pytest
from torch import OutOfMemoryError

from attakit.errors import SettingError
from attakit.messages import explain, is_user_error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            FileExistsError(17, "File exists", "s.toml"),
            "File exists: s.toml. A file is where a folder should be. Move it, or choose another "
            "folder.",
        ),
        (
            PermissionError(13, "Permission denied", "out"),
            "Permission denied: out. Choose another place, or get permission to use this one.",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/steps.jsonl"),
            "No space left on device: runs/steps.jsonl. Free some space and run the command again.",
        ),
        (OSError("timed out"), "timed out. Fix this and run the command again."),
        (SettingError("seed must be 0 or more, got -1."), "seed must be 0 or more, got -1."),
        (
            OutOfMemoryError("CUDA out of memory.\nTried to allocate …"),
            "CUDA out of memory. Lower stream.batch_size, or set model.device to another device.",
        ),
    ],
)
def test_an_error_that_users_can_fix_is_one_line_that_says_how(error, told):
    assert is_user_error(error)
    assert explain(error) == told


def test_a_fault_of_the_program_is_no_user_error():
    assert not is_user_error(KeyError("labels"))
    assert explain(KeyError("labels")) == "KeyError: 'labels'"
