"""Sources of batches: data sets, orders, and streams that hide the labels."""

from attakit.stream.batches import Rounds, Stream, Truth
from attakit.stream.corrupted_set import Recipe, WrittenCounts, write_corrupted
from attakit.stream.corruptions import CORRUPTIONS, EXTRA_CORRUPTIONS, corrupt_image
from attakit.stream.digits import Digits, digits
from attakit.stream.images import IMAGENET_MEAN, IMAGENET_STD, ImageFolders, ImageSamples
from attakit.stream.iterables import from_iterable
from attakit.stream.order import (
    ORDERS,
    Arrangement,
    Order,
    Place,
    arrange,
    correlated,
    domain_after_domain,
    gradual,
    random_splits,
    recurring,
)
from attakit.stream.samples import ArraySamples, Domains, Joined, Samples, Subset
from attakit.stream.toy import blobs

__all__ = [
    "CORRUPTIONS",
    "EXTRA_CORRUPTIONS",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "ORDERS",
    "Arrangement",
    "ArraySamples",
    "Digits",
    "Domains",
    "ImageFolders",
    "ImageSamples",
    "Joined",
    "Order",
    "Place",
    "Recipe",
    "Rounds",
    "Samples",
    "Stream",
    "Subset",
    "Truth",
    "WrittenCounts",
    "arrange",
    "blobs",
    "correlated",
    "corrupt_image",
    "digits",
    "domain_after_domain",
    "from_iterable",
    "gradual",
    "random_splits",
    "recurring",
    "write_corrupted",
]
