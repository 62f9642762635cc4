import torch

from attakit.nn import seeded, torch_generator


def draw(*arguments) -> list[float]:
    with seeded(*arguments):
        return torch.rand(3).tolist()


def test_draws_depend_on_seed_purpose_and_step():
    assert draw(1, "dropout", 2) == draw(1, "dropout", 2)
    others = [draw(2, "dropout", 2), draw(1, "weights", 2), draw(1, "dropout", 3)]
    assert draw(1, "dropout", 2) not in others


def test_the_global_generator_goes_on_as_if_nothing_had_happened():
    before = torch.get_rng_state()
    draw(1, "dropout")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_of_its_own_draws_by_seed_purpose_and_step_too():
    def drawn(*arguments):
        return torch.rand(3, generator=torch_generator(*arguments)).tolist()

    before = torch.get_rng_state()
    assert drawn(1, "views", 2) == drawn(1, "views", 2)
    assert drawn(1, "views", 2) not in [drawn(2, "views", 2), drawn(1, "restore", 2)]
    assert torch.equal(torch.get_rng_state(), before)
