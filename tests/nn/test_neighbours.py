import torch
import torch.nn.functional as F

from attakit.nn.neighbours import smooth


def chances(count, seed=0):
    return torch.rand(count, 3, generator=torch.Generator().manual_seed(seed)).softmax(1)


def features(count, seed=1):
    return F.normalize(torch.randn(count, 4, generator=torch.Generator().manual_seed(seed)), dim=1)


def test_an_outlier_among_alike_samples_is_outvoted():
    given = torch.tensor([[0.9, 0.1]] * 5 + [[0.4, 0.6]])
    alike = F.normalize(torch.ones(6, 4), dim=1)
    assert smooth(given, alike).argmax(1).tolist() == [0] * 6


def test_the_result_is_the_update_written_out_for_two_samples():
    given, rows = chances(2), features(2)
    similar = max(0.0, float(rows[0] @ rows[1]))
    expected = given
    for _ in range(5):
        expected = (given.log() + 0.7 * similar * expected.flip(0)).softmax(1)
    assert torch.allclose(smooth(given, rows, strength=0.7), expected, atol=1e-6)


def test_samples_that_point_elsewhere_do_not_count():
    given = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    opposite = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert torch.allclose(smooth(given, opposite), given)


def test_one_sample_or_no_strength_changes_nothing():
    assert torch.equal(smooth(chances(1), features(1)), chances(1))
    assert torch.equal(smooth(chances(4), features(4), strength=0.0), chances(4))


def test_the_order_of_samples_does_not_matter():
    order = torch.tensor([3, 0, 4, 1, 2])
    one = smooth(chances(5), features(5), neighbours=2)
    other = smooth(chances(5)[order], features(5)[order], neighbours=2)
    assert torch.allclose(one[order], other, atol=1e-6)
