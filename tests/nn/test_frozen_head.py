"""A network with a head, frozen: it answers as its method does, in attakit and elsewhere."""

import onnxruntime
import pytest
import torch
from torch import nn

from attakit.errors import ModelError
from attakit.methods import AnchorHead
from attakit.nn import (
    Classifier,
    FrozenHead,
    ModelFacts,
    SmallCNN,
    export_model,
    named_model,
    prepare,
    read_facts,
    save_weights,
    weights_hash,
)
from attakit.nn.head_files import difference, load_model, save_difference
from attakit.nn.seeding import seeded
from attakit.queries import Allowance, Answer
from attakit.records import Batch
from attakit.testing import tiny_classifier

VECTOR, DIGIT, IMAGE = (4,), (1, 28, 28), (3, 32, 32)


def plain():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))


def one_logit():
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))


def squeezed():
    return nn.Sequential(one_logit(), nn.Flatten(0))


MODELS = {
    "batch norm": (tiny_classifier, VECTOR),
    "no norm": (plain, VECTOR),
    "one logit": (one_logit, VECTOR),
    "one number per sample": (squeezed, VECTOR),
    "one linear layer": (lambda: nn.Linear(4, 3), VECTOR),
    "convolutions": (SmallCNN, DIGIT),
    "residual": (lambda: named_model("resnet18", classes=3), IMAGE),
}


def adapted(name, labelled=True, **settings):
    """A method after two batches and some labels, the second batch, and its answer to it."""
    build, shape = MODELS[name]
    with seeded(0, "model"):
        model = build()
    method = AnchorHead(model, smoothing=0.0, competing=False, **settings)
    random = torch.Generator().manual_seed(0)
    for number in range(2):
        samples = tuple(f"{number}-{place}" for place in range(20))
        batch = Batch(number, samples, 1 + torch.randn(20, *shape, generator=random))
        step = method.step(batch, Allowance(10))
        if labelled and number == 0:
            given = enumerate(step.queries)
            method.learn([Answer(query, place % 2, "me") for place, query in given])
    return method, batch.inputs, step.prediction.logits


@pytest.mark.parametrize("name", MODELS)
def test_it_answers_as_the_method_did_on_the_same_statistics(name):
    method, inputs, logits = adapted(name)
    with torch.no_grad():
        assert torch.allclose(method.adapted_model(inputs), logits, atol=1e-5)


def test_it_answers_each_sample_by_itself_and_without_a_memory():
    method, inputs, _ = adapted("convolutions")
    model = method.adapted_model
    alone = torch.cat([model(row[None]) for row in inputs])
    assert torch.allclose(model(inputs), alone, atol=1e-5)
    assert torch.equal(model(inputs), model(inputs))


def test_it_stays_as_it_is_while_the_method_goes_on():
    method, inputs, _ = adapted("batch norm")
    model = method.adapted_model
    before = model(inputs)
    step = method.step(Batch(2, tuple("abcdefgh"), 5 + inputs[:8]), Allowance(8))
    method.learn([Answer(query, 2, "me") for query in step.queries])
    assert torch.equal(model(inputs), before)
    assert not torch.allclose(method.adapted_model(inputs), before, atol=1e-3)


def test_without_labels_it_is_the_network_on_the_streams_statistics():
    method, inputs, logits = adapted("batch norm", labelled=False)
    model = method.adapted_model
    assert model.weights is None
    assert torch.allclose(model(inputs), logits, atol=1e-5)


def test_before_the_first_batch_it_is_the_source_model():
    inputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    source = tiny_classifier().eval()
    model = AnchorHead(source).adapted_model
    assert torch.allclose(model(inputs), source(inputs).log_softmax(1), atol=1e-6)
    assert not difference(model, source)


def run_program(path, inputs):
    if path.suffix == ".onnx":
        session = onnxruntime.InferenceSession(str(path))
        return torch.from_numpy(session.run(["logits"], {"input": inputs.numpy()})[0])
    if path.suffix == ".pt2":
        return torch.export.load(path).module()(inputs)
    with pytest.warns(DeprecationWarning, match="torch.jit.load"):
        return torch.jit.load(path)(inputs)


@pytest.mark.parametrize("ending", [".ts", ".pt2", ".onnx"])
@pytest.mark.parametrize("name", MODELS)
def test_exported_programs_answer_batches_of_any_size_as_it_does(tmp_path, name, ending):
    method, inputs, logits = adapted(name)
    facts = ModelFacts("own", ("a", "b", "c"), MODELS[name][1])
    done = export_model(method.adapted_model, tmp_path / f"model{ending}", facts)
    for size in (1, 20):
        answers = run_program(done.path, inputs[:size])
        assert torch.allclose(answers, logits[:size], atol=1e-3)
    assert done.facts.norm == "stored"


def test_exported_weights_say_which_layers_the_head_reads_and_can_be_loaded(tmp_path):
    method, inputs, logits = adapted("convolutions")
    facts = ModelFacts("small_cnn", tuple("0123456789"), DIGIT)
    path = export_model(method.adapted_model, tmp_path / "model.safetensors", facts).path
    assert read_facts(path).head_layers == ("head", "block3.0", "hidden.2")
    with torch.no_grad():
        assert torch.allclose(load_model(SmallCNN(), path)(inputs), logits, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_of_what_differs_is_small_and_gives_the_same_model(tmp_path, name):
    method, inputs, _ = adapted(name)
    model, path = method.adapted_model, tmp_path / "version.safetensors"
    with seeded(0, "model"):
        source = prepare(MODELS[name][0](), torch.device("cpu"))
    before = weights_hash(source)
    save_difference(model, source, path)
    again = load_model(source, path)
    assert weights_hash(again) == weights_hash(model)
    assert torch.equal(again(inputs), model(inputs))
    assert weights_hash(source) == before
    assert path.stat().st_size < 100_000


def test_a_network_that_was_trained_is_saved_with_what_changed(tmp_path):
    method, inputs, _ = adapted("batch norm")
    with torch.no_grad():
        method.model.model[0].weight += 1
    model, source, path = method.adapted_model, tiny_classifier(), tmp_path / "version.safetensors"
    save_difference(model, source, path)
    before = source[0].weight.clone()
    assert torch.equal(load_model(source, path)(inputs), model(inputs))
    assert torch.equal(source[0].weight, before)


def test_plain_weights_are_loaded_into_a_copy(tmp_path):
    path, source = tmp_path / "plain.safetensors", tiny_classifier()
    save_weights(tiny_classifier(seed=1), path)
    before = weights_hash(source)
    assert weights_hash(load_model(source, path)) == weights_hash(tiny_classifier(seed=1))
    assert weights_hash(source) == before


def test_a_head_for_another_network_is_refused(tmp_path):
    method, _, _ = adapted("convolutions")
    path = tmp_path / "version.safetensors"
    save_difference(method.adapted_model, SmallCNN(), path)
    with pytest.raises(ModelError, match="does not fit the model it should add a head to"):
        load_model(tiny_classifier(), path)


def test_a_classifier_around_it_shows_the_networks_features():
    method, inputs, logits = adapted("convolutions")
    with torch.no_grad():
        prediction = Classifier(method.adapted_model).eval()(inputs)
    assert torch.allclose(prediction.logits, logits, atol=1e-5)
    assert prediction.features.shape == (20, 64)


def test_the_layers_can_be_named():
    method, _, _ = adapted("convolutions", layers=["block2.0"])
    assert isinstance(method.adapted_model, FrozenHead)
    assert method.adapted_model.layers == ("head", "block2.0")
