"""The tables of a service file, checked when read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from attakit.class_names import same_names
from attakit.settings.experiment import (
    Count,
    MethodTable,
    ModelTable,
    PacedTable,
    Positive,
    Rate,
    Table,
)

Seconds = Annotated[float, Field(ge=0)]
_SEVERAL = ("majority", "reliability")  # policies by which several people answer a question
Margin = Annotated[float, Field(ge=0, le=1)]


def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) < 2 or len({*names}) < len(names) or not all(name.strip() for name in names):
        raise PydanticCustomError("classes", "a list of at least two names, all different")
    same = same_names(names)
    if same is not None:
        raise PydanticCustomError(
            "classes",
            "names that differ in more than surrounding spaces or the form of their accents: "
            "files of answers cannot distinguish {one} from {other}",
            {"one": repr(same[0]), "other": repr(same[1])},
        )
    return names


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise PydanticCustomError("web_address", "an http or https address")
    return url


ClassNames = Annotated[tuple[str, ...], AfterValidator(_different)]
WebAddress = Annotated[str, AfterValidator(_web_address)]


class InputTable(Table):
    """[input]: what a request holds, and how it becomes a tensor."""

    kind: Literal["image", "array", "text"] = "image"
    size: Positive = 224  # images are scaled to size × size
    channels: Literal[1, 3] = 3
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # ImageNet's
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    shape: tuple[Positive, ...] = ()  # shape of one array, for kind = "array"
    columns: tuple[str, ...] = ()  # names of an array's numbers, shown to people
    tokenizer: str | None = None  # for kind = "text"
    vocabulary: Annotated[int, Field(ge=3)] = 4096  # token ids are below this
    length: Positive = 64  # token ids of a text


class LiveMethodTable(MethodTable):
    """[method]: as in an experiment, with another default. A folder keeps its first method."""

    name: str = "anchor_head"


class ServiceLabelsTable(PacedTable):
    """[labels]: how many questions may be asked, how fast, and when an answer counts."""

    per_hour: Count | Literal["unlimited"] = "unlimited"
    per_class: Count | Literal["unlimited"] = "unlimited"  # by predicted class
    audit_share: Rate = 0.3  # share of questions drawn uniformly and never learned from
    early_audit_share: Rate = 0.5  # share for the first 20 of them, if it is larger
    check_share: Annotated[float, Field(ge=0, lt=1)] = 0.25  # to check people, until believed
    policy: Literal["first", "majority", "reliability", "newest"] = "first"
    answers: Positive = 1  # people who answer each question, for majority and reliability
    lease_seconds: Seconds = 60.0
    settle_seconds: Seconds = 5.0  # an answer can be undone for this time
    expiry_seconds: Seconds = 86_400.0
    webhook: WebAddress | None = None

    @field_validator("answers")
    @classmethod
    def _can_be_paid(cls, answers: int, info: ValidationInfo) -> int:
        budget = info.data.get("budget")
        asks_several = info.data.get("policy") in _SEVERAL
        if asks_several and isinstance(budget, int) and 0 < budget < answers:
            raise PydanticCustomError("answers", f"at most budget, which is {budget}")
        return answers

    @property
    def cost(self) -> int:
        """Labels of the budget that one question costs: one for each person who must answer."""
        return self.answers if self.policy in _SEVERAL else 1


class LabellingTable(Table):
    """[labelling]: what annotators see."""

    instructions: str = ""
    about: dict[str, str] = Field(default={})  # a sentence about a class, by its name
    examples: Path | None = None  # folder with one subfolder of images per class


class LearningTable(Table):
    """[learning]: when the learner takes a turn, and how much of the machine it uses."""

    batch_size: Positive = 50
    batch_seconds: Seconds = 30.0  # after this time a smaller batch is used
    keep: Rate = 1.0  # share of the inputs that is stored for the learner
    backlog: Positive = 1000  # if more samples wait, a batch is drawn and the others are skipped
    checkpoint_every: Positive = 5  # turns
    threads: Positive = 1
    niceness: Annotated[int, Field(ge=0, le=19)] = 10


class GateTable(Table):
    """[gate]: what a candidate must prove before it is promoted."""

    every: Positive = 1  # turns with training between two candidates
    audit_window: Positive = 200  # how many of the newest audit answers count
    audit_needed: Annotated[Positive, Field(validate_default=True)] = 8
    audit_margin: Margin = 0.05
    source_margin: Margin = 0.05
    trust: Margin = 0.02  # required agreement with the source model, from chance (0) to 1
    known: Path | None = None  # folder of examples whose class is certain, to check people
    second_opinions: bool = False  # believe people who agree with each other
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.9
    roll_back: bool = True
    keep_versions: Positive = 20

    @field_validator("audit_needed")
    @classmethod
    def _can_be_reached(cls, needed: int, info: ValidationInfo) -> int:
        window = info.data.get("audit_window", needed)
        if needed > window:
            raise PydanticCustomError("audit_needed", f"at most audit_window, which is {window}")
        return needed


class DriftTable(Table):
    """[drift]: drift alarms, and how much faster to ask for labels after one."""

    delta: Annotated[float, Field(gt=0, lt=1)] = 0.002
    boost: Annotated[float, Field(ge=1)] = 2.0
    boost_turns: Count = 10


class RetentionTable(Table):
    """[retention]: how much of the data to keep. The first limit that is reached applies."""

    images: Count = 10_000
    days: Annotated[float, Field(ge=0)] = 30.0
    megabytes: Annotated[float, Field(ge=0)] = 500.0


class ServerTable(Table):
    """[server]: where the server listens, and what it refuses."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    open: bool = False  # no token for the user who runs it, on loopback
    threads: Positive = 1
    batch_size: Positive = 32  # inputs of concurrent requests that share one forward pass
    batch_milliseconds: Annotated[float, Field(ge=0)] = 2.0
    request_megabytes: Annotated[float, Field(gt=0)] = 20.0
    held_megabytes: Annotated[float, Field(gt=0)] = 200.0  # limit for all requests together
    inputs_per_request: Positive = 256
    pixels: Positive = 20_000_000
    requests_per_minute: Positive = 6_000  # per token
    unknown_per_minute: Positive = 600  # per address, without a token
    connections: Annotated[int, Field(ge=4)] = 500
    head_seconds: Annotated[float, Field(gt=0)] = 10.0  # to receive the head of a request
    body_seconds: Annotated[float, Field(gt=0)] = 20.0  # to receive a body; large ones get more:
    body_kilobytes_per_second: Annotated[float, Field(gt=0)] = 10.0


class RayTable(Table):
    """[ray]: how a service spreads over a Ray cluster."""

    min_replicas: Positive = 2
    max_replicas: Positive = 10
    requests_per_replica: Positive = 16  # concurrent requests before another replica starts


class ServiceSettings(Table):
    """A service: a model, a method, annotators, and a folder for its data.

    Examples
    --------
    >>> ServiceSettings(folder="live", classes=("cat", "dog")).labels.budget
    300
    """

    folder: Path = Path("service")
    database: str | None = None  # URL; SQLite in the folder if not given
    files: str | None = None  # "database" or URL of an object store; in the folder if not given
    classes: ClassNames
    seed: int = 0
    model: ModelTable = ModelTable()
    input: InputTable = InputTable()
    method: LiveMethodTable = LiveMethodTable()
    labels: ServiceLabelsTable = ServiceLabelsTable()
    labelling: LabellingTable = LabellingTable()
    learning: LearningTable = LearningTable()
    gate: GateTable = GateTable()
    drift: DriftTable = DriftTable()
    retention: RetentionTable = RetentionTable()
    server: ServerTable = ServerTable()
    ray: RayTable = RayTable()
