"""Adaptation methods, one per file."""

from attakit.methods.anchor_head import AnchorHead
from attakit.methods.asking import AskingMethod
from attakit.methods.base import BaseMethod
from attakit.methods.batch_norm import BatchNorm
from attakit.methods.bitta import BiTTA
from attakit.methods.cmf import CMF
from attakit.methods.cotta import CoTTA
from attakit.methods.cpatta import CPATTA
from attakit.methods.deyo import DeYO
from attakit.methods.eata import EATA
from attakit.methods.eatta import EATTA
from attakit.methods.enhanced import Enhanced
from attakit.methods.hiltta import HILTTA
from attakit.methods.lame import LAME
from attakit.methods.note import NOTE
from attakit.methods.pool import Pool, PoolAdaptation
from attakit.methods.rdumb import RDumb
from attakit.methods.reference import ReferenceSimATTA
from attakit.methods.roid import ROID
from attakit.methods.rotta import RoTTA
from attakit.methods.sar import SAR
from attakit.methods.simatta import SimATTA
from attakit.methods.source_only import SourceOnly
from attakit.methods.tent import Tent

METHODS: dict[str, type[BaseMethod]] = {
    "anchor_head": AnchorHead,
    "batch_norm": BatchNorm,
    "bitta": BiTTA,
    "cmf": CMF,
    "cotta": CoTTA,
    "cpatta": CPATTA,
    "deyo": DeYO,
    "eata": EATA,
    "eatta": EATTA,
    "enhanced": Enhanced,
    "hiltta": HILTTA,
    "lame": LAME,
    "note": NOTE,
    "rdumb": RDumb,
    "roid": ROID,
    "rotta": RoTTA,
    "sar": SAR,
    "simatta": SimATTA,
    "simatta_reference": ReferenceSimATTA,
    "source_only": SourceOnly,
    "tent": Tent,
}

__all__ = [
    "CMF",
    "CPATTA",
    "EATA",
    "EATTA",
    "HILTTA",
    "LAME",
    "METHODS",
    "NOTE",
    "ROID",
    "SAR",
    "AnchorHead",
    "AskingMethod",
    "BaseMethod",
    "BatchNorm",
    "BiTTA",
    "CoTTA",
    "DeYO",
    "Enhanced",
    "Pool",
    "PoolAdaptation",
    "RDumb",
    "ReferenceSimATTA",
    "RoTTA",
    "SimATTA",
    "SourceOnly",
    "Tent",
]
