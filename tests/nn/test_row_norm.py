import torch
from torch import nn

from attakit.nn.row_norm import LayerRows, normalise_rows, normalised_by
from attakit.nn.vision import import_timm

BatchNormAct2d = import_timm().layers.BatchNormAct2d


class Rectified(nn.BatchNorm2d):
    """A batch norm with an activation inside, as model libraries have them."""

    def forward(self, inputs):
        return super().forward(inputs).relu()


def layer(kind=nn.BatchNorm2d):
    made = kind(3).eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for tensor in (made.weight, made.bias, made.running_mean):
            tensor.copy_(torch.randn(3, generator=random))
        made.running_var.copy_(torch.rand(3, generator=random) + 0.5)
    return made


def images(count=5):
    return torch.randn(count, 3, 4, 4, generator=torch.Generator().manual_seed(1))


def rows_of(norm, count=5):
    return norm.running_mean.expand(count, -1), norm.running_var.expand(count, -1)


def test_with_the_stored_statistics_in_every_row_a_layer_answers_as_usual():
    for kind in (nn.BatchNorm2d, Rectified, BatchNormAct2d):
        norm = layer(kind)
        found = normalise_rows(norm, images(), *rows_of(norm))
        assert torch.allclose(found, norm(images()), atol=1e-5)


def test_each_sample_has_statistics_of_its_own():
    norm = layer()
    mean, variance = rows_of(norm)
    mean = mean + torch.arange(5.0)[:, None]
    found = normalise_rows(norm, images() + torch.arange(5.0).view(5, 1, 1, 1), mean, variance)
    assert torch.allclose(found, norm(images()), atol=1e-4)


def test_an_activation_of_timm_runs_without_a_second_normalisation(monkeypatch):
    norm = layer(BatchNormAct2d)
    monkeypatch.setattr(BatchNormAct2d, "forward", None)
    assert normalise_rows(norm, images(), *rows_of(norm)).min() == 0


def test_statistics_follow_when_weights_move_all_samples_alike():
    norm = layer()
    mean, variance = rows_of(norm)
    before = LayerRows(mean, variance)
    with normalised_by([norm], [before]):
        norm(images())
    after = LayerRows(mean, variance, before.found)
    with normalised_by([norm], [after]):
        found = norm(2 * images() + 7)
    assert after.moved[1].allclose(torch.full((3,), 4.0), atol=1e-3)
    distance = after.moved[0]
    assert torch.allclose(
        found, normalise_rows(norm, 2 * images() + 7, mean + distance, 4 * variance), atol=1e-3
    )


def test_afterwards_a_layer_is_as_before():
    norm = layer()
    expected = norm(images())
    with normalised_by([norm], [LayerRows(*(torch.ones(5, 3),) * 2)]):
        assert not torch.allclose(norm(images()), expected)
    assert torch.equal(norm(images()), expected)
    assert "forward" not in norm.__dict__
