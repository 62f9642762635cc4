"""The optional vision packages, imported in one place so that they work with a CPU-only torch."""

from __future__ import annotations

import importlib
import sys
from threading import RLock
from types import ModuleType

import torch

from attakit.errors import MissingExtra

_LOCK = RLock()
_MISSING_OPERATOR = "operator torchvision::nms does not exist"
_BOX_OPERATORS = ("nms", "qnms")
_BOX_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

# A library's operators vanish with the object that declared them.
_declared: list[torch.library.Library] = []


def import_torchvision() -> ModuleType:
    """Import torchvision, even if its compiled part does not fit the installed torch.

    The default torchvision of package indexes is built for CUDA. With a CPU-only torch its compiled
    operators do not load, and the import fails on the first of them. Models and transforms need
    none, so declaring their names is enough. Box operators stay unusable.

    Examples
    --------
    >>> import_torchvision().__name__
    'torchvision'
    """
    with _LOCK:
        try:
            return _import("torchvision")
        except RuntimeError as error:
            if _MISSING_OPERATOR not in str(error):
                raise
            _forget("torchvision")
            _declare_box_operators()
            return _import("torchvision")


def import_timm() -> ModuleType:
    """Import timm, which needs a working torchvision.

    Examples
    --------
    >>> import_timm().__name__
    'timm'
    """
    with _LOCK:
        import_torchvision()
        return _import("timm")


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"Named models need timm and torchvision, but {name} cannot be imported ({error}). "
            f"Install them with: pip install 'attakit[models]'"
        ) from error


def _forget(package: str) -> None:
    """Remove what a failed import left behind, so that the next one starts clean."""
    for name in list(sys.modules):
        if name.partition(".")[0] == package:
            del sys.modules[name]


def _declare_box_operators() -> None:
    if _declared:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in _BOX_OPERATORS:
        library.define(operator + _BOX_SIGNATURE)  # type: ignore[no-untyped-call]
    _declared.append(library)
