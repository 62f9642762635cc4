"""Dropout in use: where features are dropped, and that nothing stays behind."""

import pytest
import torch
from torch import nn

from attakit.nn import Classifier
from attakit.nn.dropout import Dropping
from attakit.nn.small import SmallCNN


def counting(monkeypatch):
    shapes = []

    def dropout(values, share, training):
        shapes.append((tuple(values.shape), share, training))
        return values

    monkeypatch.setattr("torch.nn.functional.dropout", dropout)
    return shapes


def test_features_are_dropped_behind_every_block(monkeypatch):
    shapes = counting(monkeypatch)
    model = Classifier(SmallCNN())
    inputs = torch.zeros(2, 1, 16, 16)

    with Dropping(model, 0.3).on():
        model(inputs)

    assert [shape[1] for shape, *_ in shapes] == [16, 32, 64]
    assert {each[1:] for each in shapes} == {(0.3, True)}


def test_without_blocks_they_are_dropped_in_front_of_the_last_layer(monkeypatch):
    model = Classifier(nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3)))
    model(torch.zeros(2, 4))
    shapes = counting(monkeypatch)

    with Dropping(model, 0.3).on():
        model(torch.zeros(2, 4))

    assert [shape for shape, *_ in shapes] == [(2, 6)]


def test_layers_of_the_model_come_first_and_idle_ones_do_not_count():
    layers = [nn.Dropout(0.5), nn.Dropout(0.0)]
    model = Classifier(nn.Sequential(nn.Linear(4, 6), *layers, nn.Linear(6, 3))).eval()
    dropping = Dropping(model, 0.3)

    with dropping.on():
        assert [layer.training for layer in layers] == [True, False]
    assert dropping.layers == layers[:1]
    assert not any(layer.training for layer in model.modules())


def test_nothing_stays_behind_after_an_error():
    model = Classifier(SmallCNN()).eval()
    inputs = torch.rand(2, 1, 16, 16)
    before = model(inputs).logits

    with pytest.raises(RuntimeError), Dropping(model, 0.9).on():
        raise RuntimeError

    assert torch.equal(model(inputs).logits, before)
