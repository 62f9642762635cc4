"""Operations on models: any classifier, its norm layers, weights and devices."""

from attakit.nn.augment import augment, shuffle_patches
from attakit.nn.classifier import PRECISIONS, Classifier, EncoderHead, Precision
from attakit.nn.devices import available_devices, choose_device, place, prepare
from attakit.nn.entropy import softmax_entropy, symmetric_cross_entropy
from attakit.nn.export import Exported, ModelFacts, export_model, read_facts
from attakit.nn.fisher import FisherPenalty, diagonal_fisher
from attakit.nn.frozen_head import FrozenHead
from attakit.nn.named import OWN_MODELS, named_model
from attakit.nn.norm import (
    NORM_POLICIES,
    NormPolicy,
    is_norm_layer,
    moving_statistics,
    norm_parameters,
    robust_statistics,
    use_batch_statistics,
    use_stored_statistics,
    uses_batch_statistics,
)
from attakit.nn.origin import Origin
from attakit.nn.priors import correct_prior
from attakit.nn.seeding import seeded, torch_generator
from attakit.nn.sharpness import ascended
from attakit.nn.small import SmallCNN
from attakit.nn.small_vectors import SmallMLP, SmallText
from attakit.nn.source_card import SourceCard, load_card, make_card, save_card
from attakit.nn.trainable import early_norm_parameters, find_stages, trainable_parameters
from attakit.nn.vision import import_timm, import_torchvision
from attakit.nn.weights import load_weights, save_weights, weights_hash

__all__ = [
    "NORM_POLICIES",
    "OWN_MODELS",
    "PRECISIONS",
    "Classifier",
    "EncoderHead",
    "Exported",
    "FisherPenalty",
    "FrozenHead",
    "ModelFacts",
    "NormPolicy",
    "Origin",
    "Precision",
    "SmallCNN",
    "SmallMLP",
    "SmallText",
    "SourceCard",
    "ascended",
    "augment",
    "available_devices",
    "choose_device",
    "correct_prior",
    "diagonal_fisher",
    "early_norm_parameters",
    "export_model",
    "find_stages",
    "import_timm",
    "import_torchvision",
    "is_norm_layer",
    "load_card",
    "load_weights",
    "make_card",
    "moving_statistics",
    "named_model",
    "norm_parameters",
    "place",
    "prepare",
    "read_facts",
    "robust_statistics",
    "save_card",
    "save_weights",
    "seeded",
    "shuffle_patches",
    "softmax_entropy",
    "symmetric_cross_entropy",
    "torch_generator",
    "trainable_parameters",
    "use_batch_statistics",
    "use_stored_statistics",
    "uses_batch_statistics",
    "weights_hash",
]
