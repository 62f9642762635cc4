"""Adaptation methods, one per file."""

from attakit.methods.anchor_head import AnchorHead
from attakit.methods.base import BaseMethod
from attakit.methods.batch_norm import BatchNorm
from attakit.methods.cotta import CoTTA
from attakit.methods.eata import EATA
from attakit.methods.enhanced import Enhanced
from attakit.methods.sar import SAR
from attakit.methods.simatta import SimATTA
from attakit.methods.source_only import SourceOnly
from attakit.methods.tent import Tent

METHODS: dict[str, type[BaseMethod]] = {
    "anchor_head": AnchorHead,
    "batch_norm": BatchNorm,
    "cotta": CoTTA,
    "enhanced": Enhanced,
    "eata": EATA,
    "sar": SAR,
    "simatta": SimATTA,
    "source_only": SourceOnly,
    "tent": Tent,
}

__all__ = [
    "EATA",
    "METHODS",
    "SAR",
    "AnchorHead",
    "BaseMethod",
    "BatchNorm",
    "CoTTA",
    "Enhanced",
    "SimATTA",
    "SourceOnly",
    "Tent",
]
