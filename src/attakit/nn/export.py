"""Export models to files for other programs: atomically, and verified by reading them back."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from attakit.errors import AttaError, ModelError, SettingError, check_choice
from attakit.files import atomic_write
from attakit.nn.blended import freeze_blended
from attakit.nn.classifier import Classifier
from attakit.nn.export_formats import FORMATS, Program, facts_text
from attakit.nn.frozen_head import FrozenHead
from attakit.nn.norm import uses_batch_statistics
from attakit.nn.seeding import torch_generator
from attakit.nn.weights import weights_hash

FormatName = Literal["safetensors", "torchscript", "torch-export", "onnx"]

TOLERANCE = 1e-3  # relative to the greatest logit; more is not rounding
_EXAMPLE = 2  # a batch of one would become a constant
_CHECKED = (1, 2, 5)  # batch sizes for comparing answers


@dataclass(frozen=True)
class ModelFacts:
    """The facts that a user of a model needs.

    Parameters
    ----------
    model
        Name of the architecture.
    classes
        Names of the classes, in the order of the logits.
    shape
        Shape of one input, without the batch.
    image_size
        Image size of the architecture, if it must be given.
    vocabulary
        Number of token ids, if inputs are texts.
    mean, std
        Normalisation of the inputs, per channel, after scaling to 0…1; None if there is none.
    origin
        Where the weights come from, in words.
    version
        Number of the version, for a model of a service.
    weights
        Hash of the weights.
    norm
        "stored" statistics of batch-norm layers, or those of each "batch".
    head_layers
        For a `FrozenHead`, the layers that its head reads; None for a plain model.
    """

    model: str
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    image_size: int | None = None
    vocabulary: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    origin: str = ""
    version: int | None = None
    weights: str = ""
    norm: Literal["stored", "batch"] = "stored"
    head_layers: tuple[str, ...] | None = None

    @staticmethod
    def of(found: Mapping[str, Any]) -> ModelFacts:
        """Read facts from plain values, as in a file; unknown names are ignored."""
        known = {name: found[name] for name in ModelFacts.__dataclass_fields__ if name in found}
        lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
        return ModelFacts(**{**known, **lists})


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    path: Path
    format: FormatName
    difference: float  # the greatest difference between answers of the file and of the model
    facts: ModelFacts


def export_model(
    model: nn.Module,
    path: Path,
    facts: ModelFacts,
    *,
    form: FormatName | None = None,
    replace_file: bool = False,
) -> Exported:
    """Write a model to a file, for batches of any size, and check the answers of that file.

    Parameters
    ----------
    model
        A module from a batch to logits. It is not changed. Evaluation mode is exported.
    path
        The file to write.
    facts
        Facts for the file. The hash of the weights and the norm statistics are filled in.
    form
        File format; by default derived from the ending.
    replace_file
        True if an existing file may be overwritten.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> facts = ModelFacts("linear", ("cat", "dog"), (4,))
    >>> with TemporaryDirectory() as folder:
    ...     export_model(nn.Linear(4, 2), Path(folder, "model.safetensors"), facts).difference
    0.0
    """
    name = choose_format(path, form)
    if path.exists() and not replace_file:
        raise SettingError(f"{path} exists already. Choose another file, or use --replace.")
    plain = _plain_copy(model)
    filled = _fill_in(plain, facts, name)
    content = _encode(name, plain, filled)
    difference = _compare(name, content, plain, filled)
    _write(path, content)
    return Exported(path, name, difference, filled)


def read_facts(path: Path) -> ModelFacts | None:
    """Return the facts in a file that `export_model` wrote; None if there are none."""
    name = choose_format(path)
    try:
        text = FORMATS[name].read_facts(str(path))
        return ModelFacts.of(json.loads(text)) if text else None
    except AttaError:
        raise
    except Exception as error:  # damaged files raise almost anything
        raise ModelError(
            f"read_facts: {path} is not a readable {name} file ({_first_line(error)}). Export the "
            f"model again."
        ) from error


def choose_format(path: Path, form: str | None = None) -> FormatName:
    """Return the file format, from the file's name unless it is given.

    >>> choose_format(Path("model.pt2"))
    'torch-export'
    """
    if form is not None:
        check_choice("export", "--format", form, FORMATS)
        return form  # type: ignore[return-value]
    for name, kind in FORMATS.items():
        if path.suffix.lower() in kind.endings:
            return name  # type: ignore[return-value]
    known = ", ".join(f"{kind.endings[0]} ({name})" for name, kind in FORMATS.items())
    raise SettingError(
        f"export: cannot derive the file format from the name {path.name!r}. Known endings: "
        f"{known}. Or set it with --format."
    )


def _plain_copy(model: nn.Module) -> nn.Module:
    """Return a copy of the caller's model, on the CPU and in evaluation mode."""
    inner = model.model if isinstance(model, Classifier) else model
    plain = copy.deepcopy(inner)
    freeze_blended(plain)
    plain = plain.cpu().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    evaluated: nn.Module = plain.eval().requires_grad_(False)
    return evaluated


def _fill_in(model: nn.Module, facts: ModelFacts, name: FormatName) -> ModelFacts:
    by_batch = facts.norm == "batch" or uses_batch_statistics(model)
    if by_batch and name != "safetensors":
        raise ModelError(
            "export: this model normalises with the statistics of each batch (like Tent, CoTTA "
            f"and batch_norm), so its answer to an input depends on the others. A {name} file "
            "would answer differently. Export its weights (.safetensors), or a model adapted with "
            "frozen statistics (simatta)."
        )
    norm: Literal["stored", "batch"] = "batch" if by_batch else "stored"
    layers = model.layers if isinstance(model, FrozenHead) else None
    return replace(facts, weights=weights_hash(model), norm=norm, head_layers=layers)


def _encode(name: FormatName, model: nn.Module, facts: ModelFacts) -> bytes:
    example = _inputs(_EXAMPLE, facts)
    try:
        with torch.no_grad():
            return FORMATS[name].encode(model, example, facts_text(asdict(facts)))
    except AttaError:
        raise
    except Exception as error:  # exporters raise almost anything
        raise ModelError(
            f"export: {type(model).__name__} cannot be written as {name} for inputs of shape "
            f"{facts.shape} ({_first_line(error)}). Try another format; safetensors always works."
        ) from error


def _compare(name: FormatName, content: bytes, model: nn.Module, facts: ModelFacts) -> float:
    """Return the greatest difference between the answers of file and model, or `ModelError`."""
    program = FORMATS[name].decode(content, model)
    greatest, allowed = 0.0, TOLERANCE
    for size in _CHECKED:
        inputs = _inputs(size, facts)
        wanted, got = _answers("model", model, inputs), _answers(name, program, inputs)
        allowed = max(allowed, TOLERANCE * float(wanted.abs().max()))
        greatest = max(greatest, float((wanted - got).abs().max()))
    if not greatest <= allowed:
        raise ModelError(
            f"export: the {name} file answers differently from the model (by up to "
            f"{greatest:.2g}), so it was not kept. Try another format."
        )
    return greatest


def _answers(who: str, program: Program, inputs: Tensor) -> Tensor:
    try:
        with torch.no_grad():
            logits = program(inputs)
    except Exception as error:  # runtimes do too
        raise ModelError(
            f"export: the {who} fails on {len(inputs)} inputs of shape {tuple(inputs.shape[1:])} "
            f"({_first_line(error)}). Check the shape of inputs, or try another format."
        ) from error
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(inputs):
        raise ModelError(
            f"export: the {who} must answer {len(inputs)} inputs with logits of shape "
            f"({len(inputs)}, classes), got {getattr(logits, 'shape', type(logits).__name__)}."
        )
    return logits


def _inputs(size: int, facts: ModelFacts) -> Tensor:
    draws = torch_generator(0, "export", size)
    if facts.vocabulary is not None:
        return torch.randint(facts.vocabulary, (size, *facts.shape), generator=draws)
    return torch.randn(size, *facts.shape, generator=draws)


def _write(path: Path, content: bytes) -> None:
    try:
        with atomic_write(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise ModelError(
            f"export: {path} cannot be written ({error}). Free some space or choose another file."
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
