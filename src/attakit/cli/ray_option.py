"""The option `--ray [ADDRESS]`, which several commands have."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from typer.core import TyperCommand


class RayCommand(TyperCommand):
    """Accepts `--ray` without an address, which Typer cannot declare."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = []
        for word, after in pairwise([*args, "--"]):
            given.append(word)
            if word == "--ray" and (after.startswith("-") or after.endswith(".toml")):
                given.append("")
        return super().parse_args(ctx, given)
