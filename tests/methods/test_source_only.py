import pytest
import torch
from torch import nn

from attakit.errors import ModelError, StateError
from attakit.methods import SourceOnly, Tent
from attakit.nn import Classifier
from attakit.queries import Allowance, Answer, Query
from attakit.testing import tiny_batch, tiny_classifier


def test_it_answers_as_the_model_in_evaluation_mode():
    model, batch = tiny_classifier(), tiny_batch()
    step = SourceOnly(model).step(batch, Allowance(10))
    assert torch.equal(step.prediction.logits, model.eval()(batch.inputs))
    assert step.queries == ()


def test_it_never_changes():
    model = tiny_classifier()
    method = SourceOnly(model)
    for number in range(3):
        batch = tiny_batch(number)
        method.step(batch, Allowance(3))
        method.learn([Answer(Query(batch.samples[0], number), 1, "me")])
    before, after = model.state_dict(), method.model.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_classifier_is_copied_with_its_settings():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
    method = SourceOnly(Classifier(model, features="2"))
    assert method.predict(tiny_batch().inputs).features.shape == (8, 8)
    assert method.model.model is not model


def test_an_encoder_and_a_head_make_a_model():
    pair = Classifier((nn.Sequential(nn.Linear(4, 5), nn.ReLU()), nn.Linear(5, 3)))
    assert SourceOnly(pair).predict(tiny_batch().inputs).features.shape == (8, 5)


def test_what_is_no_model_is_refused():
    with pytest.raises(ModelError, match=r"must be a torch\.nn\.Module"):
        SourceOnly(lambda inputs: inputs)


def test_inputs_of_the_wrong_shape_are_named():
    with pytest.raises(ModelError, match=r"inputs of shape \(8, 5\)"):
        SourceOnly(tiny_classifier()).predict(torch.zeros(8, 5))


def test_an_empty_batch_gets_an_empty_answer():
    prediction = SourceOnly(tiny_classifier()).predict(torch.zeros(0, 4))
    assert prediction.logits.shape == (0, 3)
    assert prediction.features.shape == (0, 8)


def test_the_state_of_another_method_is_refused():
    state = Tent(tiny_classifier()).state_dict()
    with pytest.raises(
        StateError, match=r"SourceOnly: the saved state has \['model', 'optimizer', 'window'\]"
    ):
        SourceOnly(tiny_classifier()).load_state_dict(state)


def test_the_state_of_another_model_is_refused():
    state = SourceOnly(tiny_classifier(width=5)).state_dict()
    with pytest.raises(StateError, match="another model"):
        SourceOnly(tiny_classifier()).load_state_dict(state)


def test_stored_statistics_count_whatever_the_given_classifier_used():
    model, inputs = tiny_classifier().eval(), tiny_batch().inputs
    expected = model(inputs)
    given = Classifier(model)
    given.use_norm("batch")
    assert torch.equal(SourceOnly(given).predict(inputs).logits, expected)


def test_a_model_of_volumes_is_a_model_too():
    model = nn.Sequential(nn.Conv3d(1, 2, 3), nn.Flatten(), nn.Linear(2, 3))
    assert SourceOnly(model).predict(torch.zeros(2, 1, 3, 3, 3)).logits.shape == (2, 3)
