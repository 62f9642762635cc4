import dataclasses

import torch
import torch.nn.functional as F

from attakit.nn import SmallCNN
from attakit.nn.classifier import Classifier
from attakit.nn.seeding import seeded
from attakit.nn.tail import Kept, find_tail
from attakit.targets import Targets
from attakit.train.tail_training import (
    Lesson,
    features_after,
    gain_of_training,
    is_clear,
    movement,
    train_tail,
)

DEPTHS = ["block3.0", "hidden.2"]
SIDE = 12


def strokes(count, seed=0):
    """Images with a bright stroke in one of three places, and which place it is."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    inputs = 0.3 * torch.rand(count, 1, SIDE, SIDE, generator=random)
    for place, label in enumerate(labels.tolist()):
        inputs[place, 0, 4 * label : 4 * label + 3] += 1
    return inputs, labels


def lesson_of(labels=None, count=24):
    with seeded(0, "model"):
        classifier = Classifier(SmallCNN(classes=3, width=4, hidden=8)).eval()
    inputs, known = strokes(count)
    tail = find_tail(classifier, inputs, DEPTHS)
    with torch.no_grad():
        entry = tail.source.model.block1(inputs)
    statistics = tuple(
        tuple(each.expand(count, -1) for each in (norm.running_mean, norm.running_var))
        for norm in tail.norm_layers(classifier)
    )
    dim = 8 + 8 + 16 * 9  # the penultimate features, and those of the two depths
    targets = Targets.of_labels(known if labels is None else labels, 3)
    return tail, Lesson.of(tail, Kept(entry, statistics, torch.zeros(count, dim)), targets), known


def test_the_last_stages_learn_and_the_source_stays():
    tail, lesson, labels = lesson_of()
    before = {name: each.clone() for name, each in tail.source.state_dict().items()}
    trained = train_tail(tail, lesson, seed=0)
    moved, shift = movement(tail, trained, lesson)
    _, logits = features_after(tail, trained, lesson, moved, shift)
    loss, first = (F.cross_entropy(each, labels) for each in (logits, lesson.offsets))
    assert loss < first
    assert all(torch.equal(before[name], each) for name, each in tail.source.state_dict().items())
    fixed = dict(trained.model.named_parameters())["block1.0.weight"]
    assert torch.equal(fixed, tail.source.model.block1[0].weight)


def test_training_depends_on_the_samples_and_the_seed_alone():
    tail, lesson, _ = lesson_of()
    one, same, other = (train_tail(tail, lesson, seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_labels_that_mean_nothing_do_not_speak_for_training():
    random = torch.Generator().manual_seed(3)
    tail, lesson, _ = lesson_of(torch.randint(0, 3, (24,), generator=random))
    gain, error = gain_of_training(tail, lesson, penalty=0.1, hedge=0.3, seed=0)
    assert not is_clear(gain, error)


def test_training_is_compared_on_samples_that_it_has_not_seen():
    tail, lesson, _ = lesson_of()
    weak = gain_of_training(tail, lesson, penalty=1e4, hedge=0.3, seed=0)
    assert is_clear(*weak)  # a head that is held to the network cannot learn, training can


def test_the_gain_counts_samples_by_the_weights_of_their_answers():
    tail, lesson, labels = lesson_of()
    late = torch.arange(24) >= 12

    wrong = torch.where(late, (labels + 1) % 3, labels)

    def gain(weight):
        targets = Targets.of_labels(wrong, 3, torch.where(late, weight, 1.0))
        found = dataclasses.replace(lesson, targets=targets)
        return gain_of_training(tail, found, penalty=1e4, hedge=0.3, seed=0)[0]

    assert gain(0.01) > gain(1.0)
    assert gain(0.01) > 0


def test_samples_that_all_count_nothing_show_no_gain():
    tail, lesson, labels = lesson_of()
    nothing = Targets.of_labels(labels, 3, torch.zeros(24))
    found = dataclasses.replace(lesson, targets=nothing)
    assert gain_of_training(tail, found, penalty=1e4, hedge=0.3, seed=0) == (0.0, 0.0)
