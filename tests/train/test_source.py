import copy

import pytest
import torch
from torch import Tensor, nn

from attakit.errors import ModelError, SettingError, StateError, StreamError
from attakit.nn import Classifier, seeded, weights_hash
from attakit.randomness import generator
from attakit.train.source import train_source
from attakit.train.source_samples import draw_epochs, split_positions


class Blobs:
    """Two clouds of points, one per class, that remember what was loaded."""

    def __init__(self, count: int = 40, classes: int = 2) -> None:
        numbers = torch.tensor(generator(0, "blobs").normal(size=(count, 4)), dtype=torch.float32)
        self.labels = torch.arange(count) % classes
        self.inputs = numbers + 3 * self.labels[:, None]
        self.loaded: list[list[int]] = []

    def __len__(self) -> int:
        return len(self.labels)

    def load(self, positions) -> Tensor:
        self.loaded.append(list(positions))
        return self.inputs[list(positions)]


def build(*, dropout: float = 0.0) -> nn.Module:
    with seeded(0, "test source"):
        return nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 2)
        )


def test_training_learns_and_says_what_happened():
    model, seen = build(), []
    result = train_source(
        model,
        Blobs(),
        updates=60,
        lr=0.02,
        norm="running",
        validate_every=25,
        progress=lambda update, numbers: seen.append((update, numbers)),
    )
    assert result.accuracy == 1.0
    assert len(result.losses) == 60
    assert sum(result.losses[-10:]) < 0.5 * sum(result.losses[:10])
    assert [one.update for one in result.validations] == [25, 50, 60]
    assert not any(module.training for module in model.modules())
    assert [update for update, _ in seen] == list(range(1, 61))
    assert [numbers["loss"] for _, numbers in seen] == list(result.losses)
    assert [update for update, numbers in seen if "accuracy" in numbers] == [25, 50, 60]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_same_seed_gives_the_same_weights_whatever_the_global_state(dropout):
    hashes, records = [], []
    for _ in range(2):
        torch.rand(7)
        model = build(dropout=dropout)
        records.append(train_source(model, Blobs(), updates=15, lr=0.01, norm="running"))
        hashes.append(weights_hash(model))
    assert hashes[0] == hashes[1]
    assert records[0] == records[1]
    other = build(dropout=dropout)
    train_source(other, Blobs(), updates=15, lr=0.01, norm="running", seed=1)
    assert weights_hash(other) != hashes[0]


class Stopped(Exception):
    pass


def stop_at(stop: int):
    def progress(update: int, numbers: dict[str, float]) -> None:
        if update == stop:
            raise Stopped

    return progress


@pytest.mark.parametrize("stop", [3, 20, 27])
def test_training_that_was_stopped_ends_with_the_same_weights(tmp_path, stop):
    settings = {"updates": 40, "lr": 0.02, "norm": "running", "validate_every": 10}
    whole, parts, saved = build(dropout=0.5), build(dropout=0.5), tmp_path / "saved.safetensors"
    expected = train_source(whole, Blobs(), **settings)
    with pytest.raises(Stopped):
        train_source(parts, Blobs(), **settings, checkpoint=saved, progress=stop_at(stop))
    again = build(dropout=0.5)
    assert train_source(again, Blobs(), **settings, checkpoint=saved) == expected
    assert weights_hash(again) == weights_hash(whole)


def test_the_checkpoint_of_another_training_is_refused(tmp_path):
    saved = tmp_path / "saved.safetensors"
    train_source(build(), Blobs(), updates=5, checkpoint=saved)
    with pytest.raises(StateError, match=r"another training.*lr=0\.0001.*Delete the file"):
        train_source(build(), Blobs(), updates=5, lr=0.1, checkpoint=saved)


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    train_source(build(dropout=0.5), Blobs(), updates=3)
    assert torch.equal(torch.get_rng_state(), before)


def test_held_out_samples_are_never_trained_on():
    samples = Blobs()
    result = train_source(build(), samples, updates=20, validate_every=20, held_out=0.25)
    trained = {position for batch in samples.loaded[:20] for position in batch}
    assert trained <= set(result.train_positions)
    assert len(result.held_out_positions) == 10
    assert sorted(result.train_positions + result.held_out_positions) == list(range(40))
    assert samples.loaded[20] == list(result.held_out_positions)


def test_validation_samples_of_their_own_hold_nothing_out():
    samples, others = Blobs(), Blobs(count=6)
    result = train_source(build(), samples, validation=others, updates=5)
    assert result.held_out_positions == ()
    assert len(result.train_positions) == 40
    assert others.loaded == [[0, 1, 2, 3, 4, 5]]


def test_frozen_statistics_stay_while_scales_train():
    model = build()
    before = copy.deepcopy(model[1].state_dict())
    train_source(model, Blobs(), updates=10, lr=0.01, norm="frozen", keep="last")
    after = model[1].state_dict()
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert torch.equal(after[name], before[name])
    assert not torch.equal(after["weight"], before["weight"])


def test_running_statistics_follow_the_data():
    model = build()
    train_source(model, Blobs(), updates=10, norm="running", keep="last")
    assert model[1].num_batches_tracked == 10
    assert model[1].running_mean.abs().sum() > 0.1


def test_running_statistics_bear_batches_of_one():
    result = train_source(build(), Blobs(), updates=5, batch_size=1, norm="running")
    assert len(result.losses) == 5


def test_the_best_weights_are_kept():
    # A learning rate this wild makes later validations worse than earlier ones.
    settings = {"updates": 30, "lr": 1.0, "validate_every": 1, "norm": "running"}
    best, last = build(), build()
    kept = train_source(best, Blobs(), keep="best", **settings)
    final = train_source(last, Blobs(), keep="last", **settings)
    top = max(kept.validations, key=lambda one: (one.accuracy, -one.loss))
    assert (kept.update, kept.accuracy) == (top.update, top.accuracy)
    assert kept.update < 30
    assert final.update == 30
    assert final.accuracy == final.validations[-1].accuracy
    assert kept.validations == final.validations
    early = build()
    train_source(early, Blobs(), keep="last", **(settings | {"updates": kept.update}))
    assert weights_hash(best) == weights_hash(early)
    assert weights_hash(best) != weights_hash(last)


def test_without_validation_the_last_weights_are_kept():
    result = train_source(build(), Blobs(), updates=4, held_out=0, keep="last")
    assert (result.update, result.accuracy, result.validations) == (4, None, ())


def test_training_lowers_the_loss():
    losses = train_source(build(), Blobs(), updates=30, lr=0.02).losses
    assert sum(losses[-5:]) < sum(losses[:5])


def test_frozen_parameters_do_not_train():
    model = build()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    train_source(model, Blobs(), updates=5, lr=0.1)
    assert torch.equal(model[0].weight, before)


def test_only_the_named_part_trains():
    model = build()
    before = copy.deepcopy(model.state_dict())

    train_source(model, Blobs(), updates=5, lr=0.1, trainable="head")

    changed = {name for name, value in model.state_dict().items() if not value.equal(before[name])}
    assert changed == {"4.weight", "4.bias"}


def test_images_are_trained_channels_last():
    layouts = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(3, 4, 3)
            self.head = nn.Linear(16, 2)

        def forward(self, images: Tensor) -> Tensor:
            layouts.append(images.is_contiguous(memory_format=torch.channels_last))
            return self.head(self.convolution(images).flatten(1))

    samples = Blobs()
    samples.inputs = samples.inputs[:, :1, None, None] * torch.ones(40, 3, 4, 4)
    model = Watched()
    train_source(model, samples, updates=2)
    assert layouts
    assert all(layouts)
    assert model.convolution.weight.is_contiguous(memory_format=torch.channels_last)


def test_one_logit_and_a_classifier_train_too():
    classifier = Classifier(nn.Sequential(nn.Linear(4, 1)))
    assert train_source(classifier, Blobs(), updates=80, lr=0.1).accuracy == 1.0


def test_an_epoch_shows_every_sample_once_in_an_order_of_its_own():
    batches = draw_epochs(range(10, 18), 4, seed=0)
    first, second = next(batches) + next(batches), next(batches) + next(batches)
    assert sorted(first) == sorted(second) == list(range(10, 18))
    assert first != second


def test_fewer_samples_than_a_batch_make_one_batch():
    assert sorted(next(draw_epochs([3, 5], 16, seed=0))) == [3, 5]


def test_the_split_follows_the_seed():
    assert split_positions(50, 0.2, seed=0) == split_positions(50, 0.2, seed=0)
    assert split_positions(50, 0.2, seed=0) != split_positions(50, 0.2, seed=1)
    assert [len(part) for part in split_positions(3, 0.01, seed=0)] == [2, 1]
    assert split_positions(3, 0, seed=0) == ([0, 1, 2], [])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"updates": 0}, "updates must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"validate_every": 0}, "validate_every must be at least 1, got 0"),
        ({"lr": 0.0}, "lr must be greater than 0, got 0.0"),
        ({"held_out": 1.5}, "held_out must be at least 0 and at most 1, got 1.5"),
        ({"held_out": 1.0}, "held_out=1.0 of 40 samples leaves none to train on"),
        ({"held_out": 0.0}, 'keep="best" needs samples to validate on, got held_out=0'),
        ({"norm": "batch"}, "norm must be one of frozen, running, got 'batch'"),
        ({"keep": "all"}, "keep must be one of best, last, got 'all'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        train_source(build(), Blobs(), **settings)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "no samples to train on"),
        (torch.zeros(40, 2, dtype=torch.long), r"40 samples come with labels of shape \(40, 2\)"),
        (torch.zeros(40), "labels must be class indices .* got torch.float32 from 0.0 to 0.0"),
        (torch.arange(40) - 1, "labels must be class indices .* from -1 to 38"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    samples = Blobs()
    samples.labels = labels
    with pytest.raises(StreamError, match=message):
        train_source(build(), samples)


def test_a_class_the_model_does_not_know_is_refused():
    with pytest.raises(ModelError, match=r"has the label 4, but the model knows 2 classes"):
        train_source(build(), Blobs(classes=5))


def test_a_loss_that_is_not_finite_is_refused_with_advice():
    samples = Blobs()
    samples.inputs[:] = torch.nan
    with pytest.raises(ModelError, match=r"loss became nan at update 1 with lr=0.0001. Lower lr"):
        train_source(build(), samples)


def test_a_model_with_nothing_to_train_is_refused():
    with pytest.raises(ModelError, match="no parameter requires a gradient"):
        train_source(build().requires_grad_(False), Blobs())
