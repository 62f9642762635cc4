import io
import json
import sys

import onnx.reference
import onnxruntime
import pytest
import torch
from safetensors import safe_open
from torch import nn

from attakit.errors import MissingExtra, ModelError, SettingError
from attakit.nn import (
    Classifier,
    ModelFacts,
    export_model,
    load_weights,
    named_model,
    read_facts,
    use_batch_statistics,
    use_stored_statistics,
    weights_hash,
)
from attakit.nn.export_formats import FORMATS

ENDINGS = {name: kind.endings[0] for name, kind in FORMATS.items()}
DIGITS = ModelFacts(
    "small_cnn", ("zéro", "一"), (1, 24, 24), mean=(0.1,), std=(0.3,), origin="a test", version=3
)


@pytest.fixture
def adapted():
    """A small model whose batch-norm statistics are not those it was born with."""
    model = named_model("small_cnn", classes=2)
    model.train()
    with torch.no_grad():
        model(2 + torch.randn(32, 1, 24, 24, generator=torch.Generator().manual_seed(1)))
    return model.eval()


def answers_of(path, inputs):
    """What a program says that knows nothing of attakit."""
    if path.suffix in (".ts", ".pt"):
        with pytest.warns(DeprecationWarning, match="torch.jit.load"):
            return torch.jit.load(path)(inputs)
    if path.suffix == ".pt2":
        return torch.export.load(path).module()(inputs)
    session = onnxruntime.InferenceSession(str(path))
    return torch.from_numpy(session.run(["logits"], {"input": inputs.numpy()})[0])


@pytest.mark.parametrize("name", [".ts", ".pt", ".pt2", ".onnx"])
def test_a_program_answers_batches_of_any_size_as_the_model_does(adapted, tmp_path, name):
    exported = export_model(adapted, tmp_path / f"model{name}", DIGITS)

    for size in (1, 2, 7):
        inputs = torch.randn(size, 1, 24, 24, generator=torch.Generator().manual_seed(size))
        assert torch.allclose(answers_of(exported.path, inputs), adapted(inputs), atol=1e-4)
    assert exported.difference < 1e-4


def test_the_weights_fit_the_architecture_again(adapted, tmp_path):
    exported = export_model(adapted, tmp_path / "model.safetensors", DIGITS)

    other = named_model("small_cnn", classes=2, seed=5)
    load_weights(other, exported.path)

    assert weights_hash(other) == weights_hash(adapted) == exported.facts.weights
    assert exported.difference == 0


@pytest.mark.parametrize("name", FORMATS)
def test_a_residual_network_of_timm_can_be_exported(tmp_path, name):
    model = named_model("resnet18", classes=3)
    facts = ModelFacts("resnet18", ("a", "b", "c"), (3, 32, 32))

    exported = export_model(model, tmp_path / f"model{ENDINGS[name]}", facts)

    assert exported.format == name
    assert exported.difference < 1e-3


@pytest.mark.parametrize("name", FORMATS)
def test_the_facts_are_in_the_file(adapted, tmp_path, name):
    exported = export_model(adapted, tmp_path / f"model{ENDINGS[name]}", DIGITS)

    read = read_facts(exported.path)

    assert read == exported.facts
    assert (read.classes, read.shape, read.version) == (("zéro", "一"), (1, 24, 24), 3)
    assert read.weights == weights_hash(adapted)


def test_facts_can_be_read_without_this_library(adapted, tmp_path):
    export_model(adapted, tmp_path / "model.safetensors", DIGITS)

    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        facts = json.loads(file.metadata()["attakit"])

    assert facts["classes"] == ["zéro", "一"]
    assert facts["mean"] == [0.1]


def test_weights_of_others_have_no_facts(tmp_path):
    path = tmp_path / "plain.safetensors"
    path.write_bytes(FORMATS["safetensors"].encode(nn.Linear(1, 1), torch.zeros(1, 1), ""))

    assert read_facts(path) is None


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_told_from_one_without_facts(tmp_path, name):
    path = tmp_path / f"model{ENDINGS[name]}"
    path.write_bytes(b"no model")

    with pytest.raises(ModelError, match="not a readable"):
        read_facts(path)


def test_a_classifier_is_exported_as_the_model_inside_in_evaluation_mode(adapted, tmp_path):
    classifier = Classifier(adapted).train()

    exported = export_model(classifier, tmp_path / "model.ts", DIGITS)

    inputs = torch.randn(3, 1, 24, 24)
    assert torch.allclose(answers_of(exported.path, inputs), adapted.eval()(inputs), atol=1e-5)


def test_the_model_itself_is_not_changed(adapted, tmp_path):
    adapted.train()
    before = weights_hash(adapted)

    export_model(adapted, tmp_path / "model.onnx", DIGITS)

    assert weights_hash(adapted) == before
    assert adapted.training


@pytest.mark.parametrize("name", [".ts", ".pt2", ".onnx"])
def test_no_program_is_made_of_a_model_that_goes_by_batch_statistics(adapted, tmp_path, name):
    use_batch_statistics(adapted)

    with pytest.raises(ModelError, match="statistics of each batch"):
        export_model(adapted, tmp_path / f"model{name}", DIGITS)

    assert list(tmp_path.iterdir()) == []


def test_statistics_that_are_frozen_again_can_be_exported(adapted, tmp_path):
    use_batch_statistics(adapted)
    use_stored_statistics(adapted)

    exported = export_model(adapted, tmp_path / "model.ts", DIGITS)

    inputs = torch.randn(3, 1, 24, 24)
    assert torch.allclose(answers_of(exported.path, inputs), adapted(inputs), atol=1e-5)


def test_weights_of_a_model_that_goes_by_batch_statistics_say_so(adapted, tmp_path):
    use_batch_statistics(adapted)

    exported = export_model(adapted, tmp_path / "model.safetensors", DIGITS)

    assert read_facts(exported.path).norm == "batch"


def test_a_format_that_is_named_goes_before_the_ending(adapted, tmp_path):
    exported = export_model(adapted, tmp_path / "model.bin", DIGITS, form="torch-export")

    program = torch.export.load(io.BytesIO(exported.path.read_bytes())).module()
    assert program(torch.zeros(4, 1, 24, 24)).shape == (4, 2)


def test_an_unknown_ending_names_the_known_ones(adapted, tmp_path):
    with pytest.raises(SettingError, match=r"model\.h5.*\.safetensors.*\.ts.*\.pt2.*\.onnx"):
        export_model(adapted, tmp_path / "model.h5", DIGITS)


def test_an_unknown_format_names_the_known_ones(adapted, tmp_path):
    with pytest.raises(SettingError, match="one of safetensors, torchscript, torch-export, onnx"):
        export_model(adapted, tmp_path / "model.pt", DIGITS, form="keras")


def test_a_file_that_is_there_is_kept_unless_it_may_go(adapted, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_text("mine")

    with pytest.raises(SettingError, match="--replace"):
        export_model(adapted, path, DIGITS)
    assert path.read_text() == "mine"

    export_model(adapted, path, DIGITS, replace_file=True)
    assert read_facts(path) is not None


def test_the_missing_package_is_named_with_the_command_that_gets_it(adapted, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(MissingExtra, match=r"pip install 'attakit\[onnx\]'"):
        export_model(adapted, tmp_path / "model.onnx", DIGITS)


def test_without_onnxruntime_what_was_written_is_checked_all_the_same(
    adapted, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    asked = []
    evaluator = onnx.reference.ReferenceEvaluator
    monkeypatch.setattr(
        onnx.reference,
        "ReferenceEvaluator",
        lambda content: asked.append(content) or evaluator(content),
    )

    exported = export_model(adapted, tmp_path / "model.onnx", DIGITS)

    assert len(asked) == 1
    assert exported.difference < 1e-4


def test_inputs_of_a_wrong_shape_are_told(adapted, tmp_path):
    facts = ModelFacts("small_cnn", ("a", "b"), (3, 24, 24))

    with pytest.raises(ModelError, match=r"shape \(3, 24, 24\)"):
        export_model(adapted, tmp_path / "model.ts", facts)


def test_what_a_format_cannot_express_is_told_in_one_line(adapted, tmp_path, capsys):
    facts = ModelFacts("small_cnn", ("a", "b"), (1, 16, 16))  # pooled to a size it has not

    with pytest.raises(ModelError, match="cannot be written as onnx") as caught:
        export_model(adapted, tmp_path / "model.onnx", facts)

    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


class Branching(nn.Module):
    """Answers large batches otherwise, which a trace of a small one cannot know."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, inputs):
        return self.head(inputs) * (10 if len(inputs) > 3 else 1)


def test_a_file_that_answers_otherwise_is_not_kept(tmp_path):
    with pytest.raises(ModelError, match="answers differently"):
        export_model(Branching(), tmp_path / "model.ts", ModelFacts("own", ("a", "b"), (4,)))

    assert list(tmp_path.iterdir()) == []


def test_a_model_that_gives_no_logits_is_refused(tmp_path):
    facts = ModelFacts("own", ("a", "b"), (4,))

    with pytest.raises(ModelError, match="logits of shape"):
        export_model(nn.Flatten(0), tmp_path / "model.safetensors", facts)


def test_a_file_that_cannot_be_written_is_told(adapted, tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(ModelError, match="cannot be written"):
        export_model(adapted, tmp_path / "file" / "model.safetensors", DIGITS)
