"""What the folder offers, and what it must not need."""

import subprocess
import sys

import attakit.label


def test_public_names_are_listed_in_order_and_exist() -> None:
    names = attakit.label.__all__

    assert names == sorted(names)
    assert all(getattr(attakit.label, name).__name__ == name for name in names)


def test_labelling_works_without_torch() -> None:
    program = "import sys, attakit.label; sys.exit('torch' in sys.modules)"

    finished = subprocess.run([sys.executable, "-c", program], check=False)

    assert finished.returncode == 0
