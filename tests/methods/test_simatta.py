"""SimATTA on cases small enough to follow by hand."""

import copy

import pytest
import torch
from torch import nn

from attakit.errors import SettingError
from attakit.methods import SimATTA
from attakit.nn import SmallCNN
from attakit.nn.entropy import softmax_entropy
from attakit.nn.seeding import seeded
from attakit.nn.steady import steady_statistics
from attakit.queries import Allowance, Answer, SampleId
from attakit.records import Batch, Selection, Training
from attakit.select import HighestEntropy, IncrementalClustering, LabelRate
from attakit.testing import tiny_batch, tiny_classifier
from attakit.testing.methods import answers_to, same_state
from attakit.train.balanced import BalancedTrainer
from attakit.train.distilling import DistillingTrainer
from attakit.train.weighting import Weighting


class LogitsAsInputs(nn.Module):
    """Two classes; an input (a, b) has logits a and b, so entropy is chosen by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.head.weight.copy_(torch.eye(2))

    def forward(self, inputs):
        return self.head(inputs)


# Margins 20 (sure of class 0), -20 (sure of class 1), 1 and 0 (unsure).
MARGINS = {"sure0": 20.0, "sure1": -20.0, "unsure": 1.0, "torn": 0.0}


def batch(step: int = 0) -> Batch:
    names = tuple(SampleId(f"{name}{step or ''}") for name in MARGINS)
    return Batch(step, names, torch.tensor([[margin, 0.0] for margin in MARGINS.values()]))


class NoTraining:
    """A trainer that leaves the model alone."""

    def fit(self, model, low, high, step):
        return Training(updates=1)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class ChooseFirst:
    """A selector that takes the first candidates."""

    def select(self, candidates, known, limit, step):
        return Selection(candidates.samples[:limit])


def simatta(**settings) -> SimATTA:
    rate = LabelRate(per_1000=1000)  # asks about all that may be asked about
    defaults = {"selector": ChooseFirst(), "trainer": NoTraining(), "rate": rate}
    return SimATTA(LogitsAsInputs(), **(defaults | settings))


def turn(method: SimATTA, batch: Batch, allowance: int = 10, label: int = 1):
    step = method.step(batch, Allowance(allowance))
    method.learn([Answer(query, label, "test") for query in step.queries])
    return step


def test_fixed_bounds_part_the_batch_into_asked_and_trusted():
    method = simatta(low_entropy_bound=1e-4, high_entropy_bound=0.1)

    step = turn(method, batch())

    assert [query.sample for query in step.queries] == ["unsure", "torn"]
    assert set(method.low_entropy_anchors.rows.samples) == {"sure0", "sure1"}
    assert set(method.high_entropy_anchors.rows.samples) == {"unsure", "torn"}


def test_pseudo_labels_are_those_of_the_frozen_source_model():
    method = simatta(low_entropy_bound=1e-4, high_entropy_bound=0.1)
    with torch.no_grad():
        method.model.model.head.weight.copy_(-torch.eye(2))  # the adapting model is turned round

    turn(method, batch())

    rows = method.low_entropy_anchors.rows
    assert dict(zip(rows.samples, rows.labels.tolist(), strict=True)) == {"sure0": 0, "sure1": 1}


def test_uncertainty_is_that_of_the_adapting_model():
    method = simatta(low_entropy_bound=1e-4, high_entropy_bound=0.1)
    with torch.no_grad():
        method.model.model.head.weight.zero_()

    step = turn(method, batch())

    assert len(step.queries) == 4


@pytest.mark.parametrize(("include", "asked"), [(False, 1), (True, 2)])
def test_a_sample_exactly_at_the_high_bound_is_asked_only_when_included(include, asked):
    at = float(softmax_entropy(torch.tensor([[1.0, 0.0]])))
    method = simatta(low_entropy_bound=0.0, high_entropy_bound=at, include_bound=include)

    assert len(method.step(batch(), Allowance(10)).queries) == asked


def test_an_asked_sample_is_not_trusted_too():
    method = simatta(low_entropy_bound=1e-4, high_entropy_bound=0.0)

    step = turn(method, batch(), allowance=1)

    assert [query.sample for query in step.queries] == ["sure0"]
    assert set(method.low_entropy_anchors.rows.samples) == {"sure1"}


def test_an_asked_sample_is_trusted_too_as_in_the_paper():
    method = simatta(low_entropy_bound=1e-4, high_entropy_bound=0.0, trust_asked=True)

    turn(method, batch(), allowance=1)

    assert set(method.low_entropy_anchors.rows.samples) == {"sure0", "sure1"}


@pytest.mark.parametrize(("capacity", "kept"), [(3, 3), ("unlimited", 20)])
def test_trusted_samples_are_bounded_by_the_capacity(capacity, kept):
    method = simatta(low_entropy_bound=1e-4, high_entropy_bound=9.0, low_entropy_capacity=capacity)

    for step in range(10):
        turn(method, batch(step))

    assert len(method.low_entropy_anchors) == kept


def test_low_bound_zero_leaves_source_like_samples_out():
    method = simatta(low_entropy_bound=0.0, high_entropy_bound=0.1)

    turn(method, batch())

    assert len(method.low_entropy_anchors) == 0


def test_fitted_low_bound_trusts_the_surest_twentieth_of_the_source_model():
    method = simatta(high_entropy_bound=9.0)
    inputs = torch.zeros(40, 2)
    inputs[:, 0] = torch.linspace(-4, 4, 40)  # sure at both ends
    names = tuple(SampleId(f"{number}") for number in range(40))

    turn(method, Batch(0, names, inputs))

    assert set(method.low_entropy_anchors.rows.samples) == {"0", "39"}


def test_a_waiting_sample_counts_as_known_until_it_is_answered():
    class Remember(ChooseFirst):
        known: tuple[str, ...] = ()

        def select(self, candidates, known, limit, step):
            self.known = known.samples
            return super().select(candidates, known, limit, step)

    selector = Remember()
    method = simatta(selector=selector, low_entropy_bound=0.0, high_entropy_bound=0.1)
    first = method.step(batch(0), Allowance(1))
    method.learn([])

    method.step(batch(1), Allowance(0))
    method.step(batch(2), Allowance(1))
    assert selector.known == ("unsure",)

    method.learn([Answer(first.queries[0], None, "skipped")])
    method.step(batch(3), Allowance(1))
    assert "unsure" not in selector.known


def test_incremental_clustering_is_switched_off_by_another_selector():
    inputs = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    candidates = Batch(0, (SampleId("a"), SampleId("b"), SampleId("c")), inputs)
    by_entropy = simatta(selector=HighestEntropy(), high_entropy_bound=0.0, low_entropy_bound=0.0)
    by_clusters = simatta(
        selector=IncrementalClustering(), high_entropy_bound=0.0, low_entropy_bound=0.0
    )

    assert [query.sample for query in by_entropy.step(candidates, Allowance(1)).queries] == ["a"]
    assert [query.sample for query in by_clusters.step(candidates, Allowance(1)).queries] == ["c"]


def test_source_model_and_callers_model_never_change():
    model = tiny_classifier()
    before = copy.deepcopy(model.state_dict())
    method = SimATTA(model, high_entropy_bound=0.0)
    source = copy.deepcopy(method.source_model.state_dict())
    trained = copy.deepcopy(method.adapted_model.state_dict())

    for number in range(3):
        step = method.step(tiny_batch(number), Allowance(4))
        method.learn(answers_to(step.queries))

    assert same_state(before, model.state_dict())
    assert same_state(source, method.source_model.state_dict())
    assert not same_state(trained, method.adapted_model.state_dict())


@pytest.mark.parametrize("trainable", ["all", "norm", "head", "last:1"])
def test_only_the_chosen_parameters_train(trainable):
    method = SimATTA(tiny_classifier(), high_entropy_bound=0.0, trainable=trainable, norm="frozen")
    before = copy.deepcopy(method.model.state_dict())

    step = method.step(tiny_batch(), Allowance(4))
    method.learn(answers_to(step.queries))

    after = method.model.state_dict()
    changed = {
        name.removeprefix("model.") for name in before if not before[name].equal(after[name])
    }
    expected = {
        "all": {"0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"},
        "norm": {"1.weight", "1.bias"},
        "head": {"3.weight", "3.bias"},
        "last:1": {"3.weight", "3.bias"},
    }
    assert changed == expected[trainable]


def test_learning_reports_anchor_counts_and_weights():
    method = SimATTA(
        tiny_classifier(),
        high_entropy_bound=0.0,
        low_entropy_bound=0.0,
        trainer=BalancedTrainer(weighting=Weighting(rule=0.3)),
    )

    step = method.step(tiny_batch(), Allowance(4))
    training = method.learn(answers_to(step.queries))

    assert training.numbers["high_anchors"] == len(step.queries)
    assert training.updates > 0
    assert step.numbers["uncertain"] == 8


def learned(method: SimATTA, steps: int = 4, labels: int = 3) -> list[Training]:
    """What training reports, with labels for the first two batches only."""
    trainings = []
    for number in range(steps):
        step = method.step(tiny_batch(number, size=20), Allowance(labels if number < 2 else 0))
        trainings.append(method.learn(answers_to(step.queries)))
    return trainings


def test_by_default_nothing_is_trained_when_nothing_new_was_learned():
    method = SimATTA(tiny_classifier(), high_entropy_bound=0.0)

    updates = [training.updates for training in learned(method)]

    assert min(updates[:2]) > 0
    assert updates[2:] == [0, 0]


def test_as_in_the_paper_every_step_trains_with_the_source_statistics():
    paper = SimATTA.as_in_paper(tiny_classifier())
    short = BalancedTrainer(max_updates=3)
    method = SimATTA.as_in_paper(tiny_classifier(), high_entropy_bound=0.0, trainer=short)

    updates = [training.updates for training in learned(method)]

    assert updates == [3, 3, 3, 3]
    assert method.model.norm == "frozen"
    assert all(parameter.requires_grad for parameter in method.model.parameters())
    assert isinstance(paper.trainer, BalancedTrainer)
    assert paper.trainer.max_updates == 100
    assert (paper.bounds.low, paper.bounds.high) == (1e-4, 1e-2)
    assert paper.source_like_anchors.capacity is None
    assert paper.trainer.weighting.low_weight(low_count=1, high_count=3) == 0.25


def test_anchors_keep_activations_where_the_front_is_frozen():
    method = SimATTA(tiny_classifier(), high_entropy_bound=0.0, trainable="head")

    learned(method)

    for anchors in (method.labelled_anchors, method.source_like_anchors):
        assert anchors.rows.activations.shape == (len(anchors), 8)
        assert anchors.rows.inputs.shape == (len(anchors), 4)


def test_a_split_network_is_found_again_after_loading():
    first, second = (
        SimATTA(tiny_classifier(), high_entropy_bound=0.0, trainable="head") for _ in range(2)
    )
    step = first.step(tiny_batch(size=20), Allowance(3))
    second.load_state_dict(first.state_dict())

    for method in (first, second):
        method.learn(answers_to(step.queries))

    assert same_state(first.state_dict(), second.state_dict())


def test_the_adapted_model_shares_the_parameters_of_the_method():
    method = SimATTA(tiny_classifier())
    for one, other in zip(
        method.adapted_model.parameters(), method.model.model.parameters(), strict=True
    ):
        assert one is other


def test_the_adapted_model_has_the_blended_statistics_frozen_in_it():
    method = SimATTA(tiny_classifier())
    method.model.use_norm("blended", source_share=0.5)
    before = method.adapted_model[1].running_mean.clone()

    learned(method)
    model = method.adapted_model

    assert not torch.equal(model[1].running_mean, before)
    inputs = tiny_batch(9).inputs
    alone = torch.cat([model(each[None]) for each in inputs])
    torch.testing.assert_close(model(inputs), alone)


def two_styles(step: int = 0, count: int = 60) -> Batch:
    """Images of two styles in turn, dark and quiet or bright and noisy."""
    random = torch.Generator().manual_seed(step)
    images = torch.randn(count, 1, 28, 28, generator=random)
    images[1::2] = 8 + 3 * images[1::2]
    names = tuple(SampleId(f"{step}-{number}") for number in range(count))
    return Batch(step, names, images)


def on_two_styles(**settings) -> SimATTA:
    with seeded(0, "weights"):
        network = SmallCNN()
    method = SimATTA(network, high_entropy_bound=0.0, **settings)
    for number in range(2):
        step = method.step(two_styles(number), Allowance(3))
        method.learn(answers_to(step.queries))
    return method


def groups_of(method: SimATTA) -> list[list[int]]:
    """The groups of both styles."""
    method.predict(two_styles(5).inputs)
    groups = method.model.stream.grouping.members.argmax(dim=1)
    return [sorted(set(groups[start::2].tolist())) for start in range(2)]


def test_styles_of_a_mixed_stream_have_their_own_statistics():
    assert groups_of(on_two_styles()) in ([[0], [1]], [[1], [0]])
    assert groups_of(on_two_styles(styles=1)) == [[0], [0]]


@pytest.mark.parametrize("settings", [{"trainable": "last:2"}, {"norm": "frozen"}])
def test_a_network_that_does_not_train_from_the_front_or_blend_has_no_styles(settings):
    method = on_two_styles(**settings)
    assert method.styles.state is None


def test_the_adapted_model_of_a_mixed_stream_answers_every_style_alone():
    method, plain = on_two_styles(), on_two_styles(styles=1).adapted_model
    model = method.adapted_model
    inputs = two_styles(5).inputs

    with torch.no_grad():
        together = model(inputs)
        alone = torch.cat([model(each[None]) for each in inputs])
        one_style = plain(inputs).log_softmax(dim=1)
        with steady_statistics(method.model):
            expected = method.model(inputs).logits.log_softmax(dim=1)

    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(together, expected, rtol=1e-2, atol=1e-2)
    assert not torch.allclose(together, one_style, atol=0.05)


def test_a_forgotten_sample_leaves_no_style_behind():
    method = on_two_styles()
    before = len(method.styles.samples)
    method.forget([SampleId("1-0"), SampleId("1-1")])
    assert len(method.styles.samples) == before - 2
    assert len(method.styles.state.memory) == before - 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"styles": 0}, "styles must be at least 1, got 0"),
        ({"low_entropy_capacity": 0}, "low_entropy_capacity must be at least 1, got 0"),
        ({"low_entropy_bound": "high"}, "low_entropy_bound must be a number or 'auto'"),
        ({"norm": "group"}, "norm must be one of frozen, batch, running, blended, got 'group'"),
        ({"trainable": "some"}, "some"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        SimATTA(tiny_classifier(), **settings)


@pytest.mark.parametrize("trainer", [BalancedTrainer(max_updates=30), DistillingTrainer()])
def test_a_no_makes_the_proposed_class_less_likely(trainer):
    rate = LabelRate(per_1000=1000)
    method = SimATTA(
        tiny_classifier(),
        low_entropy_bound=0.0,
        high_entropy_bound=0.0,
        selector=ChooseFirst(),
        rate=rate,
        question="yes_no",
        trainer=trainer,
        norm="frozen",
    )
    first = tiny_batch()
    (query,) = method.step(first, Allowance(0, yes_no=1)).queries
    row = first.samples.index(query.sample)
    before = method.predict(first.inputs).logits.softmax(dim=1)[row, query.proposed]

    training = method.learn([Answer.no(query, "me")])

    after = method.predict(first.inputs).logits.softmax(dim=1)[row, query.proposed]
    assert training.updates > 0
    assert after < before


def bright(count, seed):
    """Images like those of the source."""
    return torch.rand(count, 1, 28, 28, generator=torch.Generator().manual_seed(seed))


def test_with_a_card_source_samples_get_the_source_models_answer():
    with seeded(0, "card"):
        model = SmallCNN().eval()
    method = SimATTA(model, source_card="auto", source_inputs=bright(200, 0))
    for step in range(3):
        names = tuple(SampleId(f"{step}-{place}") for place in range(40))
        seen = Batch(step, names, 0.2 * bright(40, step + 1) - 2)
        method.learn(answers_to(method.step(seen, Allowance(10)).queries))
    inputs = bright(40, 9)
    found = method.predict(inputs).logits.softmax(dim=1)
    assert torch.allclose(found, model(inputs).softmax(dim=1), atol=0.05)


def test_a_state_from_before_there_was_a_card_still_loads():
    method = SimATTA(tiny_classifier())
    state = method.state_dict()
    del state["home"]
    SimATTA(tiny_classifier()).load_state_dict(state)
