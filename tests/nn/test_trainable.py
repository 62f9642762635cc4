import pytest
from torch import nn

from attakit.errors import ModelError, SettingError
from attakit.nn import (
    Classifier,
    SmallCNN,
    early_norm_parameters,
    find_stages,
    named_model,
    trainable_parameters,
)
from attakit.nn.trainable import block_layers


def names_that_train(classifier: Classifier, which: str) -> list[str]:
    """Check that exactly the returned parameters train, and give their names."""
    chosen = trainable_parameters(classifier, which)
    training = [name for name, one in classifier.model.named_parameters() if one.requires_grad]
    returned = {id(one) for one in chosen}
    assert len(returned) == len(chosen)
    named = dict(classifier.model.named_parameters())
    assert {id(named[name]) for name in training} == returned
    return training


def parts(names: list[str]) -> list[str]:
    return list(dict.fromkeys(name.split(".")[0] for name in names))


@pytest.fixture(scope="module")
def resnet():
    return Classifier(named_model("resnet18", classes=5))


@pytest.fixture(scope="module")
def vit():
    return Classifier(named_model("vit_tiny_patch16_224", classes=5, image_size=32))


def test_all_means_all(resnet):
    assert len(names_that_train(resnet, "all")) == len(list(resnet.parameters()))


def test_norm_means_scales_and_shifts(resnet):
    names = names_that_train(resnet, "norm")
    assert len(names) == 40
    assert all("bn" in name or "downsample.1" in name for name in names)


def test_head_means_the_last_layer(resnet):
    assert names_that_train(resnet, "head") == ["fc.weight", "fc.bias"]


def test_the_last_two_stages_of_a_resnet_are_layer4_and_fc(resnet):
    assert parts(names_that_train(resnet, "last:2")) == ["layer4", "fc"]


def test_blocks_of_a_vit_count_one_by_one(vit):
    names = names_that_train(vit, "last:3")
    assert {name for name in names if name.startswith("blocks")} == {
        name for name, _ in vit.model.named_parameters() if name.startswith("blocks.11.")
    }
    assert parts(names) == ["blocks", "norm", "head"]


def test_the_first_stage_of_a_vit_holds_its_embeddings(vit):
    stages = find_stages(vit.model)
    assert len(stages) == 1 + 12 + 1 + 1
    assert {id(vit.model.cls_token), id(vit.model.pos_embed)} <= {id(one) for one in stages[0]}
    assert set(names_that_train(vit, "last:15")) == set(dict(vit.model.named_parameters()))


def test_a_wrapped_model_is_opened_up():
    model = nn.Sequential(nn.Identity(), SmallCNN())
    assert parts(names_that_train(Classifier(model[1]), "last:2")) == ["hidden", "head"]
    names = names_that_train(Classifier(model), "last:2")
    assert [name.split(".")[1] for name in names] == ["hidden", "hidden", "head", "head"]


def test_an_encoder_with_a_small_head_is_opened_up():
    encoder = nn.Sequential(nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 10))
    names = names_that_train(Classifier((encoder, nn.Linear(10, 2))), "last:2")
    assert names == ["encoder.2.weight", "encoder.2.bias", "head.weight", "head.bias"]


def test_a_linear_model_is_one_stage():
    assert names_that_train(Classifier(nn.Linear(3, 2)), "last:1") == ["weight", "bias"]


def test_tied_parameters_train_once():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    assert len(trainable_parameters(Classifier(model), "last:2")) == 3


def test_a_later_choice_replaces_an_earlier_one(resnet):
    names_that_train(resnet, "all")
    assert len(names_that_train(resnet, "head")) == 2


@pytest.mark.parametrize("which", ["", "everything", "last", "last:0", "last:-1", "last:1.5", 3])
def test_unknown_choices_are_refused(resnet, which):
    with pytest.raises(SettingError, match="must be all, norm, head or last:N with N at least 1"):
        trainable_parameters(resnet, which)


def test_more_stages_than_there_are_is_refused_with_their_number():
    with pytest.raises(ModelError, match=r"SmallCNN has 5 stages, got last:6\. Use at most last:5"):
        trainable_parameters(Classifier(SmallCNN()), "last:6")


def test_norm_without_norm_layers_is_refused_with_advice():
    with pytest.raises(ModelError, match=r"no normalisation layers.*Choose all, head or last:N"):
        trainable_parameters(Classifier(nn.Linear(2, 2)), "norm")


def test_a_head_without_parameters_is_refused_with_advice():
    model = nn.Sequential(nn.Linear(2, 2), nn.Identity())
    with pytest.raises(ModelError, match=r"the head, a Identity, has no parameters\. Choose all"):
        trainable_parameters(Classifier(model, features="1"), "head")


def test_a_refusal_leaves_the_parameters_as_they_were():
    classifier = Classifier(nn.Linear(2, 2))
    with pytest.raises(ModelError):
        trainable_parameters(classifier, "norm")
    assert all(one.requires_grad for one in classifier.parameters())


def names_of_early_norms(classifier: Classifier, left_out: float) -> list[str]:
    chosen = {id(one) for one in early_norm_parameters(classifier, left_out)}
    named = list(classifier.model.named_parameters())
    assert {id(one) for _, one in named if one.requires_grad} == chosen
    return [name for name, one in named if id(one) in chosen]


def test_a_quarter_of_a_resnet_is_layer4(resnet):
    names = names_of_early_norms(resnet, 0.25)
    assert parts(names) == ["bn1", "layer1", "layer2", "layer3"]
    assert all("bn" in name or "downsample.1" in name for name in names)


def test_a_quarter_of_a_vit_is_its_last_three_blocks_and_the_final_norm(vit):
    names = names_of_early_norms(vit, 0.25)
    assert {int(name.split(".")[1]) for name in names} == set(range(9))
    assert parts(names) == ["blocks"]
    assert all("norm" in name for name in names)


def test_blocks_in_one_container_are_told_apart():
    model = named_model("efficientnet_lite0", classes=5)
    assert len(model.blocks) == 7
    names = names_of_early_norms(Classifier(model), 0.25)
    assert {name.split(".")[1] for name in names if name.startswith("blocks")} == set("01234")
    assert parts(names) == ["bn1", "blocks"]


def test_no_share_leaves_no_norm_layer_out(resnet, vit):
    for classifier in (resnet, vit):
        assert names_of_early_norms(classifier, 0.0) == names_that_train(classifier, "norm")


def test_a_norm_layer_on_its_own_is_no_block():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    assert names_of_early_norms(Classifier(model), 1.0) == ["1.weight", "1.bias"]


def test_leaving_out_every_block_is_refused_with_advice():
    with pytest.raises(ModelError, match=r"all norm layers of SmallCNN.*Exclude less than 1\.0"):
        early_norm_parameters(Classifier(SmallCNN()), 1.0)


def test_a_share_above_one_is_refused(resnet):
    with pytest.raises(SettingError, match=r"left_out must be at least 0 and at most 1, got 1\.5"):
        early_norm_parameters(resnet, 1.5)


def test_blocks_are_the_stages_of_a_resnet_and_the_blocks_of_a_vision_transformer():
    resnet = named_model("resnet18", classes=3)
    vit = named_model("vit_tiny_patch16_224", classes=3)

    stages = [resnet.layer1, resnet.layer2, resnet.layer3, resnet.layer4]
    assert block_layers(Classifier(resnet)) == stages
    assert block_layers(Classifier(vit)) == list(vit.blocks)
