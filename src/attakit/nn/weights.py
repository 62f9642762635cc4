"""Weights in files: loaded without running any code, saved atomically."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from attakit.errors import ModelError, UnwritableFile
from attakit.files import atomic_write
from attakit.nn.classifier import Classifier
from attakit.nn.weight_files import read_tensors

_PREFIXES = ("module.", "model.")  # left by DataParallel, and by wrappers such as Classifier
_SHOWN = 5
_HASH_LENGTH = 16


def load_weights(
    module: nn.Module, path: Path | str, *, allow_new_head: bool = False
) -> tuple[str, ...]:
    """Load weights into a module, all or nothing, and return the names that the file lacks.

    Parameters
    ----------
    module
        The module, changed in place. Numbers are cast to its types.
    path
        A .safetensors file, or a .pt, .pth, .bin or .ckpt file with only tensors in it: a state
        dict, directly or under "state_dict" or "model".
    allow_new_head
        True if the last linear layer may be missing or have another shape in the file, as in
        fine-tuning for other classes. It then stays as it is, except that random weights above
        torch's usual range are scaled down to it.
    """
    module = _unwrapped(module)
    own = module.state_dict()
    found = _match_prefix(read_tensors(Path(path)), own)
    new = _new_head(module, own, found) if allow_new_head else ()
    found = {name: tensor for name, tensor in found.items() if name not in new}
    _check_names(path, own, found, new)
    check_tensors(path, own, found)
    cast = {name: tensor.to(own[name].dtype) for name, tensor in found.items()}
    module.load_state_dict(cast, strict=False)
    _limit_head(module, new)
    return new


def save_weights(module: nn.Module, path: Path | str, *, sync: bool = False) -> None:
    """Save a module's weights as safetensors. A crash leaves the old file or the new, never half.

    With `sync`, the file is on disk when this returns, and survives a power cut.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_weights(nn.Linear(2, 1), Path(folder, "model.safetensors"))
    ...     load_weights(nn.Linear(2, 1), Path(folder, "model.safetensors"))
    ()
    """
    save_tensors(_unwrapped(module).state_dict(), Path(path), sync=sync)


def save_tensors(
    tensors: Mapping[str, Tensor],
    path: Path,
    *,
    sync: bool = False,
    metadata: dict[str, str] | None = None,
) -> None:
    """Save tensors by name as safetensors, atomically, with metadata if there is any."""
    make_room(path)
    # Copies, because safetensors refuses tensors that share memory (tied weights).
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    try:
        with atomic_write(path, sync=sync) as draft:
            save_file(copies, draft, metadata)
    except (OSError, SafetensorError) as error:
        raise _unwritable(path, error) from error


def make_room(path: Path) -> None:
    """Create the folder for weights, or raise an error before a long training."""
    if path.suffix != ".safetensors":
        raise ModelError(
            f"save_weights: weights are saved as safetensors, got the file name {path.name!r}. "
            f"Give it the ending .safetensors."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def weights_hash(module: nn.Module) -> str:
    """Return a short name for a module's weights. Only equal weights have equal names.

    Examples
    --------
    >>> weights_hash(nn.ReLU()) == weights_hash(nn.Tanh())
    True
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(_unwrapped(module).state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()[:_HASH_LENGTH]


def _unwritable(path: Path, error: Exception) -> UnwritableFile:
    return UnwritableFile(
        f"save_weights: {path} cannot be written ({error}). Free some space or choose another file."
    )


def _unwrapped(module: nn.Module) -> nn.Module:
    """Return the caller's model, so that files fit it with and without a Classifier around it."""
    return module.model if isinstance(module, Classifier) else module


def _match_prefix(found: dict[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for prefix in _PREFIXES * 2:
        theirs = all(name.startswith(prefix) for name in found)
        ours = all(name.startswith(prefix) for name in own)
        if theirs and not ours:
            found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
    return found


def _new_head(
    module: nn.Module, own: Mapping[str, Tensor], found: Mapping[str, Tensor]
) -> tuple[str, ...]:
    """Return the names of the last linear layer's tensors, if the file's do not fit."""
    linear = [name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    if not linear:
        return ()
    names = [f"{linear[-1]}.{part}".lstrip(".") for part in ("weight", "bias")]
    present = tuple(name for name in names if name in own)
    fits = all(name in found and found[name].shape == own[name].shape for name in present)
    return () if fits else present


def _limit_head(module: nn.Module, new: tuple[str, ...]) -> None:
    """Scale a new head down to the range in which torch draws linear layers.

    Some architectures draw much larger ones. Their first answers are sure and wrong, and
    the gradients of fine-tuning then destroy the pretrained layers.
    """
    own = module.state_dict(keep_vars=True)
    for name in new:
        tensor = own[name].detach()
        if tensor.ndim == 2:
            usual = tensor.shape[1] ** -0.5
            largest = float(tensor.abs().max())
            if largest > usual * (1 + 1e-6):
                tensor.mul_(usual / largest)


def _check_names(
    path: Path | str, own: Mapping[str, Tensor], found: Mapping[str, Tensor], new: tuple[str, ...]
) -> None:
    missing = [
        name
        for name in own
        # Absent from files older than the counter, and used only without a momentum.
        if name not in found and name not in new and not name.endswith("num_batches_tracked")
    ]
    unexpected = [name for name in found if name not in own]
    if missing or unexpected:
        raise ModelError(
            f"load_weights: {path} does not fit the model. Missing in the file: "
            f"{_listed(missing)}. Not in the model: {_listed(unexpected)}. Load weights of the "
            f"same architecture; allow_new_head=True lets the last linear layer be missing."
        )


def check_tensors(path: Path | str, own: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    """Raise `ModelError` unless tensors from a file have the model's shapes and are finite."""
    misfits = [
        f"{name} {tuple(tensor.shape)} instead of {tuple(own[name].shape)}"
        for name, tensor in found.items()
        if tensor.shape != own[name].shape
    ]
    if misfits:
        raise ModelError(
            f"load_weights: {path} has tensors of other shapes: {_listed(misfits)}. Load weights "
            f"of the same architecture and number of classes; only training for other classes may "
            f"start from them (`attakit pretrain`, or allow_new_head=True)."
        )
    broken = [name for name, tensor in found.items() if not tensor.isfinite().all()]
    if broken:
        raise ModelError(
            f"load_weights: {path} holds numbers that are not finite, in {_listed(broken)}. The "
            "training that wrote it diverged, or the file is damaged. Use another file."
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) or "nothing"
    rest = len(names) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
