"""Adaptation methods, one per file."""

from attakit.methods.anchor_head import AnchorHead
from attakit.methods.asking import AskingMethod
from attakit.methods.base import BaseMethod
from attakit.methods.batch_norm import BatchNorm
from attakit.methods.cotta import CoTTA
from attakit.methods.cpatta import CPATTA
from attakit.methods.eata import EATA
from attakit.methods.eatta import EATTA
from attakit.methods.enhanced import Enhanced
from attakit.methods.hiltta import HILTTA
from attakit.methods.pool import Pool, PoolAdaptation
from attakit.methods.reference import ReferenceSimATTA
from attakit.methods.sar import SAR
from attakit.methods.simatta import SimATTA
from attakit.methods.source_only import SourceOnly
from attakit.methods.tent import Tent

METHODS: dict[str, type[BaseMethod]] = {
    "anchor_head": AnchorHead,
    "batch_norm": BatchNorm,
    "cotta": CoTTA,
    "cpatta": CPATTA,
    "enhanced": Enhanced,
    "eata": EATA,
    "eatta": EATTA,
    "hiltta": HILTTA,
    "sar": SAR,
    "simatta": SimATTA,
    "simatta_reference": ReferenceSimATTA,
    "source_only": SourceOnly,
    "tent": Tent,
}

__all__ = [
    "CPATTA",
    "EATA",
    "EATTA",
    "HILTTA",
    "METHODS",
    "SAR",
    "AnchorHead",
    "AskingMethod",
    "BaseMethod",
    "BatchNorm",
    "CoTTA",
    "Enhanced",
    "Pool",
    "PoolAdaptation",
    "ReferenceSimATTA",
    "SimATTA",
    "SourceOnly",
    "Tent",
]
