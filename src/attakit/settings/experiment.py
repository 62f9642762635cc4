"""The tables of an experiment file, which describes one run. They are checked when read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from attakit.settings.paper_settings import AS_IN_PAPER, with_paper_settings

# Strict, because true is not a number and 0.5 is not a count.
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Share = Annotated[float, Field(strict=True, ge=0, lt=1)]
Rate = Annotated[float, Field(strict=True, ge=0, le=1)]

DEFAULT_SELECTOR = "incremental"
DEFAULT_TRAINER = "distilling"


class Table(BaseModel):
    """A table of an experiment file. Frozen; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OpenTable(BaseModel):
    """A table with a few fixed keys. Every other key is a setting of the thing it names."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class RowsTable(Table):
    """Keys that [stream.table] and [stream.text] share: a file of rows, and its columns."""

    file: Path
    label: str = "label"
    domain: str | None = None
    time: str | None = None
    periods: Annotated[int, Field(strict=True, ge=2)] | Literal["year", "month", "day"] = 5


class TabularTable(RowsTable):
    """[stream.table]: a file with one sample per row, and numbers or categories in its columns."""

    features: tuple[str, ...] = ()
    missing: Literal["refuse", "fill"] = "refuse"


class TextTable(RowsTable):
    """[stream.text]: a file with one text, or one list of token ids, per row."""

    text: str = "text"
    tokens: str | None = None
    tokenizer: str = "words"
    vocabulary: Annotated[int, Field(strict=True, ge=3)] = 4096
    length: Positive = 64


class StreamTable(Table):
    """[stream]: which data, in which order."""

    name: str = "digits"
    root: Path | None = None
    source: str | None = None
    targets: tuple[str, ...] = ()
    order: str = "domain_after_domain"
    order_settings: dict[str, Any] = {}
    batch_size: Positive = 100
    size: Annotated[int, Field(strict=True, ge=8)] | None = None
    severity: Annotated[int, Field(strict=True, ge=1, le=5)] = 5
    held_out: Share = 0.2
    share: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    rest: bool = False
    skip_corrupt: bool = False
    table: TabularTable | None = None
    text: TextTable | None = None

    @field_validator("targets")
    @classmethod
    def _each_once(cls, targets: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(targets)) < len(targets):
            raise PydanticCustomError("targets", "different names, each domain once")
        return targets

    @field_validator("rest")
    @classmethod
    def _share_leaves_some(cls, rest: bool, info: ValidationInfo) -> bool:
        if rest and info.data.get("share") == 1:
            raise PydanticCustomError(
                "rest", "left out if share is 1, because rest takes what the share leaves"
            )
        return rest


class ModelTable(Table):
    """[model]: which classifier, with which weights, on which device."""

    name: str = "small_cnn"
    weights: Path | None = None
    image_size: Annotated[int, Field(ge=1)] | None = None
    features: str | None = None
    device: str = "auto"
    precision: Literal["full", "mixed"] = "full"


class MethodTable(OpenTable):
    """[method]: which method; every other key is one of its own settings."""

    name: str = "simatta"
    label: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_in_paper(cls, given: Any) -> Any:
        if not isinstance(given, dict) or AS_IN_PAPER not in given:
            return given
        name = given.get("name", cls.model_fields["name"].default)
        return with_paper_settings(given) if name == "simatta" else given


class PacedTable(Table):
    """The part of [labels] that experiments and services share: how many labels, and how fast."""

    budget: Count | Literal["unlimited"] = 300
    per_1000: Annotated[float, Field(strict=True, ge=0)] | None = None
    spread_over: Positive | None = None
    first: Count = 10
    at_drift: Count = 8
    question: Literal["class", "yes_no"] | None = None
    yes_no_price: Annotated[float, Field(strict=True, gt=0)] = 1.0

    @field_validator("spread_over")
    @classmethod
    def _can_be_spread(cls, samples: int | None, info: ValidationInfo) -> int | None:
        if samples is not None and info.data.get("per_1000") is not None:
            raise PydanticCustomError("spread_over", "left out if per_1000 is given")
        if samples is not None and info.data.get("budget") == "unlimited":
            raise PydanticCustomError("spread_over", "left out if the budget is unlimited")
        return samples


class ModelOracleTable(Table):
    """[labels.model]: a model that answers, and when people answer instead."""

    function: str | None = None
    url: str | None = None
    people: Literal["known", "ask"] | None = None
    least_confidence: Rate = 0.0
    soft: bool = True
    weight: Annotated[float, Field(strict=True, ge=0)] = 1.0
    price: Annotated[float, Field(strict=True, ge=0)] | None = None
    batch_size: Positive = 16
    retries: Count = 2
    pause: Annotated[float, Field(strict=True, ge=0)] = 1.0
    timeout: Annotated[float, Field(strict=True, gt=0)] = 30.0
    send_files: bool = False
    token_variable: str | None = None

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if (self.function is None) == (self.url is None):
            raise PydanticCustomError("model", "a table with either a function or a url")
        return self


class CrowdTable(Table):
    """[labels.crowd]: simulated people; some of them answer each question."""

    noise: Annotated[tuple[Rate, ...], Field(min_length=1)] = (0.05, 0.1, 0.3, 0.5, 0.7)
    answers: Positive = 3
    settle: Literal["majority", "reliability"] = "reliability"
    soft: bool = True


class LabelsTable(PacedTable):
    """[labels]: how many questions may be asked, how fast, and who answers."""

    matched: Count | None = None
    buffer: Count = 0
    oracle: Literal["known", "ask", "model", "crowd"] = "known"
    model: ModelOracleTable | None = None
    crowd: CrowdTable | None = None
    delay: Count = 0
    jitter: Count = 0
    noise: Rate = 0.0
    skips: Rate = 0.0
    expiry: Count = 0
    wait: Annotated[float, Field(strict=True, ge=0)] = 0.0

    @field_validator("model", "crowd")
    @classmethod
    def _belongs_to_the_oracle(cls, table: Table | None, info: ValidationInfo) -> Table | None:
        if table is not None and info.data.get("oracle") != info.field_name:
            message = f'left out if oracle is not "{info.field_name}"'
            raise PydanticCustomError("oracle", message)
        return table

    @property
    def limit(self) -> int | None:
        """The label budget; None without a limit."""
        if self.matched is not None:
            return self.matched
        return None if self.budget == "unlimited" else self.budget


class PoolTable(Table):
    """[pool]: adapt in rounds over all targets as one pool, instead of along a stream."""

    rounds: Positive = 10
    updates: Positive = 1000
    lr: Annotated[float, Field(strict=True, gt=0)] = 1e-3
    momentum: Rate = 0.9
    batch_size: Positive = 16
    norm: Literal["frozen", "batch", "running"] = "frozen"
    trainable: str = "all"
    selector: str | dict[str, Any] = "uniform"
    label: str | None = None

    @property
    def name(self) -> str:
        """The name in tables, unless a label is set."""
        named = self.selector if isinstance(self.selector, str) else self.selector.get("name")
        return f"pool, {named or DEFAULT_SELECTOR}"


class TrainingTable(Table):
    """[training]: how the source model is trained, for `attakit pretrain`."""

    updates: Positive = 3000
    lr: Annotated[float, Field(strict=True, gt=0)] = 1e-4
    batch_size: Positive = 16
    trainable: str = "all"
    norm: Literal["frozen", "running"] = "frozen"
    validate_every: Positive = 100
    keep: Literal["best", "last"] = "best"
    weights: Path = Path("checkpoints/source.safetensors")


class ReportTable(Table):
    """[report]: where results go, and what is measured in addition to the stream."""

    folder: Path = Path("runs/run")
    source_every: Count = 10
    save_every: Count = 5
    post_adaptation: bool = True
    domains_after_each: bool = False
    pictures: bool = True
    features: bool = False
    model: bool = False


class Experiment(Table):
    """One run: a stream, a model, a method, labels, a seed, and a folder for the results.

    Examples
    --------
    >>> Experiment().stream.name
    'digits'
    """

    seed: Annotated[int, Field(strict=True)] = 0
    threads: Annotated[int, Field(strict=True, ge=0, le=1_024)] = 0
    stream: StreamTable = StreamTable()
    model: ModelTable = ModelTable()
    method: MethodTable = MethodTable()
    pool: PoolTable | None = None
    labels: LabelsTable = LabelsTable()
    training: TrainingTable = TrainingTable()
    report: ReportTable = ReportTable()

    @property
    def label(self) -> str:
        """The name of this method in tables."""
        table = self.method if self.pool is None else self.pool
        return table.label or table.name

    @property
    def asks(self) -> bool:
        """True if a person at the keyboard answers."""
        return self.labels.oracle == "ask"
