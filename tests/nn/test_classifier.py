import copy
from collections import namedtuple
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from attakit.errors import ModelError, SettingError
from attakit.nn import Classifier, SmallCNN, named_model, seeded, use_batch_statistics

IMAGES = torch.linspace(-1, 1, 4 * 3 * 16 * 16).reshape(4, 3, 16, 16)
TOKENS = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9], [0, 0, 1]])
TABLE = torch.linspace(-1, 1, 20).reshape(4, 5)


class TokenTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(self.embedding(tokens)).mean(dim=1))


class HeadFirst(nn.Module):
    """Registers its linear layers in another order than they run."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(7, 3)
        self.body = nn.Linear(5, 7)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.body(inputs).relu())


class Returning(nn.Module):
    """A linear model whose logits pass through a function."""

    def __init__(self, change, outputs: int = 3) -> None:
        super().__init__()
        self.change = change
        self.linear = nn.Linear(5, outputs)

    def forward(self, inputs: Tensor) -> object:
        return self.change(self.linear(inputs))


class TokenHead(nn.Module):
    """Classifies every token and averages the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(input=self.embedding(tokens)).mean(dim=1)


def conv_net(norm: nn.Module) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)
    )


def token_embedding() -> nn.Module:
    return nn.Sequential(nn.Embedding(10, 6), nn.Flatten(), nn.Linear(18, 3))


MODELS = {
    "batch norm": (lambda: conv_net(nn.BatchNorm2d(8)), IMAGES, 8),
    "group norm": (lambda: conv_net(nn.GroupNorm(2, 8)), IMAGES, 8),
    "no norm": (lambda: conv_net(nn.Identity()), IMAGES, 8),
    "small cnn": (lambda: SmallCNN(classes=3, channels=3), IMAGES, 64),
    "mlp": (lambda: nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3)), TABLE, 6),
    "linear": (lambda: nn.Linear(5, 3), TABLE, 5),
    "tokens": (token_embedding, TOKENS, 18),
    "transformer": (TokenTransformer, TOKENS, 8),
    "token head": (TokenHead, TOKENS, 8),
    "head first": (HeadFirst, TABLE, 7),
    "resnet18": (lambda: named_model("resnet18", classes=3), IMAGES.repeat(1, 1, 2, 2), 512),
    "vit": (
        lambda: named_model("vit_tiny_patch16_224", classes=3, image_size=32),
        IMAGES.repeat(1, 1, 2, 2),
        192,
    ),
}


@pytest.fixture(params=MODELS, ids=lambda name: name.replace(" ", "-"))
def case(request):
    build, inputs, dim = MODELS[request.param]
    with seeded(0, "test model"):
        return build().eval(), inputs, dim


def test_one_pass_gives_logits_and_features(case):
    model, inputs, dim = case
    prediction = Classifier(model)(inputs)
    assert prediction.logits.shape == (4, 3)
    assert prediction.features.shape == (4, dim)
    torch.testing.assert_close(prediction.logits, model(inputs))


@pytest.mark.parametrize("gradients", [True, False])
def test_two_passes_are_equal(case, gradients):
    model, inputs, _ = case
    classifier = Classifier(model)
    with torch.set_grad_enabled(gradients):
        first, second = classifier(inputs), classifier(inputs)
    assert torch.equal(first.logits, second.logits)
    assert torch.equal(first.features, second.features)


def test_features_are_what_the_head_turns_into_logits(case):
    model, inputs, _ = case
    classifier = Classifier(model)
    prediction = classifier(inputs)
    torch.testing.assert_close(classifier.head(prediction.features), prediction.logits)


def test_no_hook_and_no_state_stays_behind(case):
    model, inputs, _ = case
    names = list(model.state_dict())
    classifier = Classifier(model)
    classifier(inputs)
    assert not any(layer._forward_pre_hooks for layer in model.modules())
    assert [name.removeprefix("model.") for name in classifier.state_dict()] == names


def test_a_deep_copy_answers_alike_and_shares_nothing(case):
    model, inputs, _ = case
    classifier = Classifier(model)
    before = classifier(inputs)
    twin = copy.deepcopy(classifier)
    assert torch.equal(twin(inputs).logits, before.logits)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert torch.equal(classifier(inputs).logits, before.logits)
    assert twin.head is not classifier.head


def test_gradients_reach_the_first_layer(case):
    model, inputs, _ = case
    Classifier(model)(inputs).logits.square().sum().backward()
    gradient = next(model.parameters()).grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


def test_an_empty_batch_gives_empty_rows():
    prediction = Classifier(conv_net(nn.BatchNorm2d(8)).eval())(IMAGES[:0])
    assert prediction.logits.shape == (0, 3)
    assert prediction.features.shape == (0, 8)


@pytest.mark.parametrize("change", [lambda logit: logit, lambda logit: logit.squeeze(1)])
def test_one_logit_counts_as_two_classes(change):
    model = Returning(change, outputs=1)
    logits = Classifier(model)(TABLE).logits
    assert logits.shape == (4, 2)
    torch.testing.assert_close(logits.softmax(1)[:, 1], model(TABLE).reshape(4).sigmoid())


def test_one_logit_squeezed_away_for_a_single_sample_still_counts():
    model = Returning(Tensor.squeeze, outputs=1)
    assert Classifier(model)(TABLE[:1]).logits.tolist() == [[0.0, model(TABLE[:1]).item()]]


def test_two_logits_stay_as_they_are():
    model = nn.Linear(5, 2)
    assert torch.equal(Classifier(model)(TABLE).logits, model(TABLE))


@pytest.mark.parametrize(
    "change",
    [
        lambda logits: SimpleNamespace(logits=logits),
        lambda logits: {"logits": logits, "loss": None},
        namedtuple("Output", ["logits"]),
    ],
)
def test_objects_with_logits_are_understood(change):
    model = Returning(change)
    assert torch.equal(Classifier(model)(TABLE).logits, model.linear(TABLE))


def test_an_encoder_and_a_head_make_a_classifier():
    encoder, head = nn.Conv2d(3, 2, 3), nn.Linear(2 * 14 * 14, 3)
    prediction = Classifier((encoder, head))(IMAGES)
    # In the classifier's layout: in another one a convolution may round differently.
    images = IMAGES.to(memory_format=torch.channels_last)
    assert torch.equal(prediction.features, encoder(images).flatten(1))
    assert torch.equal(prediction.logits, head(prediction.features))


def test_a_named_layer_gives_its_input_as_features():
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))
    prediction = Classifier(model, features="1")(TABLE)
    assert torch.equal(prediction.features, model[0](TABLE))


def test_a_convolution_as_head_gives_averaged_features():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.Conv2d(8, 3, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    prediction = Classifier(model, features="1")(IMAGES)
    torch.testing.assert_close(prediction.features, model[0](IMAGES).mean(dim=(2, 3)))


def test_the_head_is_the_layer_that_ran_last():
    model = HeadFirst()
    classifier = Classifier(model)
    classifier(TABLE)
    assert classifier.head is model.head


def test_a_head_taken_too_early_is_contradicted_with_advice():
    classifier = Classifier(HeadFirst())
    assert classifier.head is classifier.model.body
    with pytest.raises(ModelError, match=r"'head', but before it was 'body'.*features=\"head\""):
        classifier(TABLE)


def test_mixed_precision_stays_close_to_full_precision():
    with seeded(0, "mixed"):
        model = conv_net(nn.BatchNorm2d(8)).eval()
    full, mixed = Classifier(model)(IMAGES), Classifier(model, precision="mixed")(IMAGES)
    assert mixed.logits.dtype == mixed.features.dtype == torch.float32
    assert not torch.equal(mixed.logits, full.logits)
    torch.testing.assert_close(mixed.logits, full.logits, rtol=0.05, atol=0.02)


def test_mixed_precision_trains():
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))
    Classifier(model, precision="mixed")(TABLE).logits.sum().backward()
    assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())


def test_an_unknown_precision_is_refused():
    with pytest.raises(SettingError, match="precision must be one of full, mixed, got 'half'"):
        Classifier(nn.Linear(2, 2), precision="half")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("resnet18", r"must be a torch.nn.Module or an \(encoder, head\) pair, got str"),
        (nn.ReLU(), "ReLU has no parameters.*Pass the trained model"),
        (nn.Conv2d(3, 2, 1), r"Conv2d has no linear layer.*features=.*\(encoder, head\)"),
        ((nn.Linear(2, 2),), r"must be two modules, \(encoder, head\), got \(Linear\)"),
        ((nn.Linear(2, 2), "head"), r"must be two modules.*got \(Linear, str\)"),
    ],
)
def test_what_cannot_be_a_classifier_is_refused(model, message):
    with pytest.raises(ModelError, match=message):
        Classifier(model)


def test_an_unknown_layer_is_refused_with_the_nearest_name():
    with pytest.raises(ModelError, match=r"no layer named 'heed'. Did you mean 'head'\? Its last"):
        Classifier(HeadFirst(), features="heed")


def test_a_layer_name_beside_a_pair_is_refused():
    with pytest.raises(ModelError, match="leave out features='1'"):
        Classifier((nn.Linear(2, 2), nn.Linear(2, 2)), features="1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda logits: (logits, logits), "returned tuple; it must return a tensor of logits"),
        (lambda logits: None, "returned NoneType"),
        (lambda logits: logits.argmax(dim=1), "torch.int64 numbers, which look like decided"),
        (lambda logits: logits[:, :, None], r"shape \(4, 3, 1\); expected \(4, classes\)"),
        (lambda logits: logits[:2], r"shape \(2, 3\); expected \(4, classes\)"),
    ],
)
def test_outputs_that_are_no_logits_are_refused(change, message):
    with pytest.raises(ModelError, match=message):
        Classifier(Returning(change))(TABLE)


def test_logits_per_pixel_are_refused():
    model = nn.Conv2d(3, 5, 1)
    with pytest.raises(ModelError, match=r"4 inputs gave logits of shape \(4, 5, 16, 16\)"):
        Classifier(nn.Sequential(model), features="0")(IMAGES)


def test_inputs_of_the_wrong_size_are_refused():
    with pytest.raises(ModelError, match=r"Linear failed on inputs of shape \(4, 5\), type torch"):
        Classifier(nn.Linear(6, 2))(TABLE)


def test_a_vit_refuses_images_of_another_size_with_advice():
    model = named_model("vit_tiny_patch16_224", classes=3, image_size=32)
    with pytest.raises(ModelError, match=r"failed on inputs of shape \(4, 3, 16, 16\)"):
        Classifier(model)(IMAGES)


def test_tokens_out_of_range_are_refused():
    with pytest.raises(ModelError, match=r"type torch.int64.*index out of range"):
        Classifier(TokenHead())(TOKENS + 100)


@pytest.mark.parametrize("inputs", [[1.0, 2.0], torch.tensor(1.0)])
def test_inputs_that_are_no_batch_are_refused(inputs):
    with pytest.raises(ModelError, match="must be a tensor whose first dimension is the batch"):
        Classifier(nn.Linear(2, 2))(inputs)


def test_a_layer_that_does_not_run_is_refused():
    model = nn.ModuleDict({"used": nn.Linear(5, 3), "unused": nn.Linear(3, 3)})
    model.forward = lambda inputs: model["used"](inputs)
    with pytest.raises(ModelError, match=r"did not run\. Name another one"):
        Classifier(model, features="unused")(TABLE)


def test_features_without_a_row_per_input_are_refused():
    model = nn.Sequential(nn.Flatten(0), nn.Linear(20, 12), nn.Unflatten(0, (4, 3)))
    with pytest.raises(ModelError, match=r"features of shape \(20,\); the first dimension must"):
        Classifier(model)(TABLE)


def test_out_of_memory_is_passed_on_as_it_is():
    def fail(logits: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("full")

    with pytest.raises(torch.OutOfMemoryError):
        Classifier(Returning(fail))(TABLE)


def test_a_failure_leaves_no_hook():
    model = nn.Sequential(nn.Linear(6, 2))
    with pytest.raises(ModelError):
        Classifier(model)(TABLE)
    assert not model[0]._forward_pre_hooks


def test_batch_statistics_leave_a_classifier_copyable():
    model = conv_net(nn.BatchNorm2d(8)).eval()
    use_batch_statistics(model)
    classifier = Classifier(model)
    twin = copy.deepcopy(classifier)
    assert torch.equal(twin(IMAGES).logits, classifier(IMAGES).logits)
    twin.model[1].weight.data.zero_()
    assert not torch.equal(twin(IMAGES).logits, classifier(IMAGES).logits)


def test_frozen_statistics_come_back_after_those_of_the_batch():
    classifier = Classifier(nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 2))).eval()
    before = classifier(TABLE).logits

    classifier.use_norm("batch")
    changed = classifier(TABLE).logits
    classifier.use_norm("frozen")

    assert not torch.equal(changed, before)
    assert torch.equal(classifier(TABLE).logits, before)


class Viewing(nn.Module):
    """Flattens its maps with `view`, which only works in the usual memory layout."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(2, 3, 3)
        self.head = nn.Linear(12, 4)

    def forward(self, images):
        return self.head(self.convolution(images).view(len(images), 12))


@pytest.mark.parametrize("channels", [1, 3])
def test_images_have_their_channels_last_inside_a_model(channels):
    model = SmallCNN(channels=channels).eval()
    strides = []
    model.block1[0].register_forward_hook(lambda _, __, maps: strides.append(maps.stride()[1]))
    images = torch.randn(3, channels, 28, 28, generator=torch.Generator().manual_seed(0))
    found = Classifier(model)(images).logits
    assert strides == [1]
    assert torch.allclose(found, model(images), atol=1e-5)


def test_a_model_that_needs_the_usual_layout_gets_it():
    model, images = Viewing(), torch.ones(5, 2, 4, 4)
    classifier = Classifier(model)
    assert torch.equal(classifier(images).logits, model(images))
    assert torch.equal(classifier(images).logits, model(images))
