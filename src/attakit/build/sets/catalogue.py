"""Known image sets: their folders, domains, classes and usual stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from attakit.errors import unknown_name
from attakit.stream.corruptions import CORRUPTIONS, EXTRA_CORRUPTIONS


def plain(name: str) -> str:
    """Normalise the spelling of a name.

    >>> plain("Real World") == plain("real_world")
    True
    """
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def listed(names: Iterable[str], most: int = 10) -> str:
    """Join names with commas, and shorten long lists.

    >>> listed("abcd", most=2)
    'a, b and 2 more'
    """
    known = list(names)
    cut = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + cut


@dataclass(frozen=True, kw_only=True)
class ImageSet:
    """A data set of images: its content, and the paper's stream order.

    Examples
    --------
    >>> FOLDERS["office_home"].domain("RealWorld")
    'Real World'
    """

    title: str  # the usual name
    summary: str  # one line about it
    folders: tuple[str, ...]  # possible names of its folder in any spelling, the usual one first
    layout: str = "domain/class/image.jpg"  # where an image is below that folder
    source: str | None  # domain to train a model on; None if it is not among the domains
    targets: tuple[str, ...]  # domains of the stream, in order
    extras: tuple[str, ...] = ()  # domains that are streamed on request only
    class_count: int
    classes: tuple[str, ...] = ()  # names, if known
    images: dict[str, int] = field(default_factory=dict)  # images per domain in the published set
    files: str = ""  # description of its files, if images are not separate files
    spellings: dict[str, str] = field(default_factory=dict)  # other names of domains
    unchecked: str = "folders"  # data set of the same layout for any classes

    @property
    def domains(self) -> tuple[str, ...]:
        first = () if self.source is None else (self.source,)
        return tuple(dict.fromkeys((*first, *self.targets, *self.extras)))

    def find_domain(self, name: str) -> str | None:
        """Return the domain with this name in any spelling."""
        known = {plain(domain): domain for domain in self.domains} | self.spellings
        return known.get(plain(name))

    def domain(self, name: str) -> str:
        """Return the domain with this name in any spelling; raises if there is none."""
        found = self.find_domain(name)
        if found is None:
            raise unknown_name("domain", name, self.domains)
        return found

    def is_folder(self, name: str) -> bool:
        """True if a folder of this name may hold the data set."""
        return plain(name) in {plain(folder) for folder in self.folders}


_OFFICE_HOME_CLASSES = (
    "Alarm_Clock Backpack Batteries Bed Bike Bottle Bucket Calculator Calendar Candles Chair "
    "Clipboards Computer Couch Curtains Desk_Lamp Drill Eraser Exit_Sign Fan File_Cabinet "
    "Flipflops Flowers Folder Fork Glasses Hammer Helmet Kettle Keyboard Knives Lamp_Shade Laptop "
    "Marker Monitor Mop Mouse Mug Notebook Oven Pan Paper_Clip Pen Pencil Postit_Notes Printer "
    "Push_Pin Radio Refrigerator Ruler Scissors Screwdriver Shelf Sink Sneakers Soda Speaker Spoon "
    "TV Table Telephone ToothBrush Toys Trash_Can Webcam"
)

# Sources and orders are the paper's (section 5 and appendix "Details about the datasets"). Folder
# names are DomainBed's, from which the paper takes the sets.
FOLDERS: dict[str, ImageSet] = {
    "pacs": ImageSet(
        title="PACS",
        summary="PACS: photo → art painting → cartoon → sketch, 7 classes.",
        folders=("PACS", "kfold", "pacs_data"),
        source="photo",
        targets=("art_painting", "cartoon", "sketch"),
        class_count=7,
        classes=("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
        images={"photo": 1670, "art_painting": 2048, "cartoon": 2344, "sketch": 3929},
        spellings={"art": "art_painting", "artpaintings": "art_painting"},
    ),
    "vlcs": ImageSet(
        title="VLCS",
        summary="VLCS: Caltech101 → LabelMe → SUN09 → VOC2007, 5 classes.",
        folders=("VLCS",),
        source="Caltech101",
        targets=("LabelMe", "SUN09", "VOC2007"),
        class_count=5,
        classes=("bird", "car", "chair", "dog", "person"),
        images={"Caltech101": 1415, "LabelMe": 2656, "SUN09": 3282, "VOC2007": 3376},
        spellings={
            "caltech": "Caltech101",
            "sun": "SUN09",
            "voc": "VOC2007",
            "pascal": "VOC2007",
        },
    ),
    "office_home": ImageSet(
        title="Office-Home",
        summary="Office-Home: Real World → Art → Clipart → Product, 65 classes.",
        folders=("office_home", "OfficeHomeDataset_10072016", "OfficeHomeDataset"),
        source="Real World",
        targets=("Art", "Clipart", "Product"),
        class_count=65,
        classes=tuple(_OFFICE_HOME_CLASSES.split()),
        images={"Real World": 4357, "Art": 2427, "Clipart": 4365, "Product": 4439},
        spellings={"real": "Real World"},
    ),
}

# The paper adapts the last layer to brightness and streams the other fourteen (section 5.2).
TINY_IMAGENET_C = ImageSet(
    title="Tiny-ImageNet-C",
    summary="Tiny-ImageNet-C: brightness → the other 14 corruptions, 200 classes.",
    folders=("Tiny-ImageNet-C",),
    layout="corruption/severity/class/image.JPEG",
    source="brightness",
    targets=tuple(name for name in CORRUPTIONS if name != "brightness"),
    extras=EXTRA_CORRUPTIONS,
    class_count=200,
    images=dict.fromkeys((*CORRUPTIONS, *EXTRA_CORRUPTIONS), 10_000),  # at each severity
    unchecked="corrupted",
)

_CIFAR_10_CLASSES = "airplane automobile bird cat deer dog frog horse ship truck"
_CIFAR_100_CLASSES = (
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus "
    "butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch "
    "crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo "
    "keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse "
    "mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy "
    "porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper "
    "snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television "
    "tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm"
)

_CIFAR_IMAGES = 50_000  # 10,000 at each of five severities


def _cifar(names: str) -> ImageSet:
    classes = tuple(names.split())
    count = len(classes)
    return ImageSet(
        title=f"CIFAR-{count}-C",
        summary=f"CIFAR-{count}-C: clean CIFAR-{count} → 15 corruptions, {count} classes.",
        folders=(f"CIFAR-{count}-C",),
        layout="corruption.npy",
        source=None,
        targets=CORRUPTIONS,
        extras=EXTRA_CORRUPTIONS,
        class_count=count,
        classes=classes,
        images=dict.fromkeys((*CORRUPTIONS, *EXTRA_CORRUPTIONS), _CIFAR_IMAGES),
        files=(
            f"a file of bytes for each, of shape ({_CIFAR_IMAGES}, 32, 32, 3), severities 1 to 5 "
            f"one after another; and labels.npy, {_CIFAR_IMAGES:,} class numbers from 0 to "
            f"{count - 1}"
        ),
    )


CIFAR: dict[str, ImageSet] = {
    "cifar10_c": _cifar(_CIFAR_10_CLASSES),
    "cifar100_c": _cifar(_CIFAR_100_CLASSES),
}
