"""The user's own models, by import path: checked before and after the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attakit.build.construct import import_named
from attakit.errors import ModelError, SettingError
from attakit.nn.classifier import Classifier
from attakit.nn.weights import weights_hash


def is_import_path(name: str) -> bool:
    """True if a name has the form "package.module:function".

    >>> is_import_path("mylab.models:build"), is_import_path("resnet18")
    (True, False)
    """
    return ":" in name


def imported_model(name: str) -> nn.Module:
    """Call the function or class at an import path, without arguments, to get a model.

    >>> type(imported_model("attakit.nn:SmallCNN")).__name__
    'SmallCNN'
    """
    build = check_builder(name)
    try:
        model = build()
    except Exception as error:  # the user's code may raise anything
        raise ModelError(
            f"model.name: {name!r} is called without arguments and must return the model, but it "
            f"fails ({type(error).__name__}: {error}). Name a function that needs no arguments."
        ) from error
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"model.name: {name!r} must return a torch.nn.Module, got {type(model).__name__}."
        )
    return model


def check_builder(name: str) -> Callable[[], Any]:
    """Import what makes a model, and raise `SettingError` if it cannot, before calling it."""
    found = import_named(name, "model")
    is_module = isinstance(found, type) and issubclass(found, nn.Module)
    if not is_module and not inspect.isfunction(found):
        what = "another class" if isinstance(found, type) else f"a {type(found).__name__}"
        raise SettingError(
            f"model.name: {name!r} must be a Python function that returns a model, or a "
            f"torch.nn.Module class, but it is {what}."
        )
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise SettingError(
            f"model.name: {name!r} is called without arguments, but it needs some ({error}). Name "
            f"a function that needs no arguments."
        ) from error
    return found


def check_outputs(name: str, model: Classifier, inputs: Tensor, classes: Sequence[str]) -> None:
    """Raise `ModelError` unless a model accepts these inputs and has one output per class."""
    with torch.no_grad():
        outputs = model(inputs.to(model.device)).logits.shape[1]
    if outputs != len(classes):
        raise ModelError(
            f"model.name: {name} has {outputs} outputs, but there are {len(classes)} classes "
            f"({', '.join(classes)}). List one class for each output."
        )


def check_repeatable(name: str, model: nn.Module, again: nn.Module) -> None:
    """Raise `ModelError` if a model that was built twice has different weights."""
    if weights_hash(model) != weights_hash(again):
        raise ModelError(
            f"model.name: {name} returns different weights each time it is called. Let it load the "
            "trained ones, or set model.weights to their file."
        )
