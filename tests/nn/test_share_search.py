import copy

import pytest
import torch
from torch import Tensor, nn

from attakit.nn import Classifier
from attakit.nn.share_search import ROW_SHARES as SHARES
from attakit.nn.share_search import ShareSearch
from attakit.queries import Answer, Query

HOME, AWAY = 0.0, 2.0  # means of source samples and of the stream's


class Halves(nn.Module):
    """Says class 1 for what lies above the mean that batch norm takes off, and counts its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(1)
        self.head = nn.Linear(1, 2)
        self.rows = 0
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[-4.0], [4.0]]))
            self.head.bias.zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        self.rows += len(inputs)
        logits: Tensor = self.head(self.norm(inputs))
        return logits


def stream(count: int, mean: float, seed: int = 0) -> Tensor:
    signs = torch.arange(count) % 2 * 2.0 - 1.0
    noise = torch.randn(count, generator=torch.Generator().manual_seed(seed))
    return (mean + signs + 0.2 * noise)[:, None]


def searching(**settings) -> Classifier:
    found = Classifier(Halves()).eval()
    found.use_norm("blended", source_share="auto", **settings)
    return found


@torch.no_grad()
def follow(classifier: Classifier, batches) -> list[Tensor]:
    found = []
    for batch in batches:
        found.append(classifier(batch).logits)
        classifier.keep_statistics()
    return found


def test_a_shifted_stream_gets_the_share_that_spreads_its_answers_over_the_classes():
    classifier = searching()
    follow(classifier, [stream(64, AWAY)])
    assert classifier.stream.share.value == min(SHARES)


def test_the_source_s_statistics_stay_where_mixing_brings_little():
    classifier = searching()
    follow(classifier, [stream(64, 0.1)])
    assert classifier.stream.share.value == 1.0


def test_the_batch_that_the_share_was_found_on_is_answered_with_it():
    classifier, fixed = searching(), Classifier(Halves()).eval()
    fixed.use_norm("blended", source_share=min(SHARES))
    batch = stream(64, AWAY)
    assert torch.equal(follow(classifier, [batch])[0], follow(fixed, [batch])[0])


def test_single_samples_find_the_share_that_a_batch_finds():
    classifier = searching()
    follow(classifier, stream(40, AWAY).split(1))
    assert classifier.stream.share.value == min(SHARES)


def test_a_pass_alone_changes_nothing():
    classifier = searching()
    before = copy.deepcopy(classifier.state_dict())
    with torch.no_grad():
        one, other = (classifier(stream(64, AWAY)).logits for _ in range(2))
    assert torch.equal(one, other)
    assert str(classifier.state_dict()) == str(before)


def test_the_search_ends_after_some_samples():
    classifier = searching()
    follow(classifier, [stream(100, AWAY)])
    first = classifier.model.rows
    follow(classifier, [stream(100, AWAY)])
    assert first == 100 + 32 * len(SHARES)
    assert classifier.model.rows - first == 100


def test_labels_outweigh_the_spread_of_the_answers():
    # All of class 1, which the source's statistics know: a spread over the classes is wrong.
    classifier = searching()
    inputs = stream(64, -0.5)[1::2]
    follow(classifier, [inputs])
    share = classifier.stream.share
    assert share.value == min(SHARES)
    names = [f"sample {place}" for place in range(len(inputs))]
    classifier.stream.compare_shares(classifier.model, names, inputs)
    share.learn([Answer(Query(name, 0), 1, "me") for name in names])
    assert share.value == max(SHARES)
    share.forget(names)
    assert share.value == min(SHARES)


def test_skipped_questions_do_not_count():
    classifier = searching()
    follow(classifier, [stream(64, AWAY)])
    share = classifier.stream.share
    classifier.stream.compare_shares(classifier.model, ["one"], stream(1, AWAY))
    share.learn([Answer(Query("one", 0), None, "me")])
    assert share.learned == {}
    assert share.held == {}


def test_at_most_sixteen_labelled_samples_are_compared():
    classifier = searching()
    names = [f"sample {place}" for place in range(50)]
    classifier.stream.compare_shares(classifier.model, names, stream(50, AWAY))
    assert len(classifier.stream.share.held) == 16


def test_a_new_domain_is_searched_again():
    classifier = searching()
    follow(classifier, [stream(64, AWAY)])
    share, before = classifier.stream.share, classifier.model.rows
    classifier.stream.search_again(classifier.model, stream(20, HOME))
    assert share.seen == 20
    follow(classifier, [stream(64, HOME)])
    assert share.seen == 32
    assert classifier.model.rows - before == 64 + 32 * len(SHARES)


@pytest.mark.parametrize("stop", [8, 24, 40])
def test_a_search_that_is_saved_continues_the_same(stop):
    rows, whole, parts = stream(60, AWAY).split(1), searching(), searching()
    expected = follow(whole, rows)
    follow(parts, rows[:stop])
    again = searching()
    again.load_state_dict(parts.state_dict())
    assert torch.equal(torch.cat(follow(again, rows[stop:])), torch.cat(expected[stop:]))


def test_a_copy_searches_by_itself():
    classifier = searching()
    other = copy.deepcopy(classifier)
    follow(other, [stream(64, AWAY)])
    assert classifier.stream.share.seen == 0
    assert other.stream.share.seen == 32


@pytest.mark.parametrize("policy", ["frozen", "batch", "blended"])
def test_another_policy_ends_the_search(policy):
    classifier = searching()
    classifier.use_norm(policy)
    follow(classifier, [stream(64, AWAY)])
    assert classifier.model.rows == 64


def test_a_model_without_batch_norm_has_nothing_to_search():
    classifier = Classifier(nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 2))).eval()
    classifier.use_norm("blended", source_share="auto")
    follow(classifier, [stream(64, AWAY)])
    assert list(classifier.stream.state_dict()) == []


def test_training_passes_are_not_searched():
    classifier = searching()
    classifier(stream(64, AWAY))
    assert classifier.model.rows == 64


@pytest.mark.parametrize(
    ("entropies", "expected"),
    [
        pytest.param([1.88, 1.85, 1.73, 1.50], 0.8, id="vague answers lose although spread"),
        pytest.param([0.60, 0.60, 0.60, 0.60], 0.45, id="of sure ones the spread counts"),
    ],
)
def test_answers_must_be_spread_and_tell_something(entropies, expected):
    # What 32 images of PACS sketch gave with an EfficientNet-Lite0; the second row is made up.
    skewed = torch.tensor([[0.16, 0.16], [0.15, 0.15], [0.17, 0.17], [0.24, 0.24]])
    answers = torch.cat([skewed, ((1 - skewed.sum(dim=1)) / 5)[:, None].expand(-1, 5)], dim=1)
    search = ShareSearch([], first=0.65)
    known = {**search.get_extra_state(), "seen": 32, "answers": 32 * answers}
    search.set_extra_state({**known, "entropies": 32 * torch.tensor(entropies)})
    search.forget(())
    assert search.value == expected
