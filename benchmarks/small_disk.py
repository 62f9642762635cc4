"""A RAM disk of a few megabytes that tests can fill or make read-only. Needs root on Linux."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class SmallDisk:
    """A tmpfs that is mounted on a folder. `mount` raises OSError if that is not allowed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def mount(cls, folder: Path, megabytes: int) -> SmallDisk:
        disk = cls(folder)
        disk._mount("-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs")
        return disk

    def close(self) -> None:
        subprocess.run(["umount", "-l", self.folder], check=True)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Fill the disk inside the block."""
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1_000_000, 4096, 1):
                with suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
        yield
        filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Make the disk read-only inside the block. No file may be open for writing."""
        self._mount("-o", "remount,ro")
        yield
        self._mount("-o", "remount,rw")

    def _mount(self, *words: str) -> None:
        done = subprocess.run(["mount", *words, self.folder], capture_output=True, check=False)
        if done.returncode:
            raise OSError(done.stderr.decode().strip())
