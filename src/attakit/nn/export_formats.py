"""Convert a model to the bytes of a file, and such bytes back to a program."""

from __future__ import annotations

import copy
import importlib
import io
import json
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from attakit.errors import MissingExtra

Program = Callable[[Tensor], Tensor]
FACTS = "attakit"  # key of the facts about a model in its file
_FACTS_FILE = f"{FACTS}.json"
_INPUT, _OUTPUT = "input", "logits"


@dataclass(frozen=True)
class Format:
    """One file format.

    Parameters
    ----------
    endings
        File endings, the usual one first.
    encode
        Function from a model, an example batch and the facts as text to the bytes of a file.
    decode
        Function from such bytes to a program. The model provides the architecture if the file has
        none.
    read_facts
        Function from a file name to the text that `encode` got; "" if there is none.
    """

    endings: tuple[str, ...]
    encode: Callable[[nn.Module, Tensor, str], bytes]
    decode: Callable[[bytes, nn.Module], Program]
    read_facts: Callable[[str], str]


def _encode_weights(model: nn.Module, _example: Tensor, facts: str) -> bytes:
    # Copies, because safetensors refuses tensors that share memory (tied weights).
    tensors = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    return save(tensors, metadata={FACTS: facts})


def _decode_weights(content: bytes, model: nn.Module) -> Program:
    fresh = copy.deepcopy(model)
    for tensor in fresh.state_dict().values():
        tensor.detach().zero_()  # so that a missing tensor is noticed
    fresh.load_state_dict(load(content))
    return fresh


def _weights_facts(path: str) -> str:
    with safe_open(path, framework="pt") as file:
        return str((file.metadata() or {}).get(FACTS, ""))


def _encode_torchscript(model: nn.Module, example: Tensor, facts: str) -> bytes:
    buffer = io.BytesIO()
    # Torch prefers torch.export, and warns about branches that attakit checks itself.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, example)  # type: ignore[no-untyped-call]
        torch.jit.save(traced, buffer, _extra_files={_FACTS_FILE: facts})
    return buffer.getvalue()


def _decode_torchscript(content: bytes, _model: nn.Module) -> Program:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program: Program = torch.jit.load(io.BytesIO(content), map_location="cpu")  # type: ignore[no-untyped-call]
    return program


def _torchscript_facts(path: str) -> str:
    found = {_FACTS_FILE: ""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.load(path, map_location="cpu", _extra_files=found)  # type: ignore[no-untyped-call]
    return _text(found[_FACTS_FILE])


def _encode_program(model: nn.Module, example: Tensor, facts: str) -> bytes:
    buffer = io.BytesIO()
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, (example,), dynamic_shapes=({0: batch},))
    torch.export.save(program, buffer, extra_files={_FACTS_FILE: facts})
    return buffer.getvalue()


def _decode_program(content: bytes, _model: nn.Module) -> Program:
    return torch.export.load(io.BytesIO(content)).module()


def _program_facts(path: str) -> str:
    found: dict[str, Any] = {_FACTS_FILE: ""}
    torch.export.load(path, extra_files=found)
    return _text(found[_FACTS_FILE])


def _encode_onnx(model: nn.Module, example: Tensor, facts: str) -> bytes:
    onnx = import_onnx()
    buffer = io.BytesIO()
    axes = {_INPUT: {0: "batch"}, _OUTPUT: {0: "batch"}}
    # The exporter that torch prefers needs another package, onnxscript. This one prints the whole
    # graph when it fails.
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (example,),
            buffer,  # type: ignore[arg-type]
            dynamo=False,
            input_names=[_INPUT],
            output_names=[_OUTPUT],
            dynamic_axes=axes,
        )
    graph = onnx.load_from_string(buffer.getvalue())
    onnx.helper.set_model_props(graph, {FACTS: facts})
    onnx.checker.check_model(graph)
    content: bytes = graph.SerializeToString()
    return content


def _decode_onnx(content: bytes, _model: nn.Module) -> Program:
    import_onnx()
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        reference = importlib.import_module("onnx.reference")
        session = reference.ReferenceEvaluator(content)
    else:
        session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return lambda inputs: torch.from_numpy(session.run(None, {_INPUT: inputs.numpy()})[0])


def _onnx_facts(path: str) -> str:
    graph = import_onnx().load(path)
    return next((str(prop.value) for prop in graph.metadata_props if prop.key == FACTS), "")


def import_onnx() -> ModuleType:
    """Import onnx, or raise an error that says how to install it.

    >>> import_onnx().__name__
    'onnx'
    """
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise MissingExtra(
            f"ONNX files need the package onnx, which cannot be imported ({error}). Install it "
            "with: pip install 'attakit[onnx]'"
        ) from error


def _text(content: str | bytes) -> str:
    return content.decode() if isinstance(content, bytes) else content


def facts_text(facts: Mapping[str, Any]) -> str:
    """Return facts as one line of JSON, for files.

    >>> facts_text({"classes": ["größer"]})
    '{"classes": ["größer"]}'
    """
    return json.dumps(facts, ensure_ascii=False)


FORMATS: dict[str, Format] = {
    "safetensors": Format((".safetensors",), _encode_weights, _decode_weights, _weights_facts),
    "torchscript": Format(
        (".ts", ".pt"), _encode_torchscript, _decode_torchscript, _torchscript_facts
    ),
    "torch-export": Format((".pt2",), _encode_program, _decode_program, _program_facts),
    "onnx": Format((".onnx",), _encode_onnx, _decode_onnx, _onnx_facts),
}
