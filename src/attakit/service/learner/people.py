"""People: the learner's oracle, backed by the table of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attakit.label.ledger import Ledger
from attakit.nn.entropy import softmax_entropy
from attakit.queries import Answer, Query, SampleId
from attakit.records import Prediction
from attakit.service.storage.questions import QuestionStore
from attakit.service.storage.rows import Purpose, Question, Turn

ANNOTATOR = "people"
GUESSES = 3


@dataclass(frozen=True, slots=True)
class SamplePrediction:
    """The asking model's prediction for a sample."""

    entropy: float
    guesses: tuple[tuple[int, float], ...]  # class index and probability, likeliest first


def sample_predictions(
    samples: Sequence[SampleId], prediction: Prediction
) -> dict[SampleId, SamplePrediction]:
    """Describe the prediction for each sample, as people see it.

    >>> import torch
    >>> seen = sample_predictions(["a"], Prediction(torch.tensor([[0.0, 9.0]]), torch.zeros(1, 1)))
    >>> seen["a"].guesses[0][0]
    1
    """
    likeliest = prediction.logits.softmax(dim=1).topk(min(GUESSES, prediction.logits.shape[1]))
    rows = zip(
        samples,
        softmax_entropy(prediction.logits).tolist(),
        likeliest.indices.tolist(),
        likeliest.values.tolist(),
        strict=True,
    )
    return {
        name: SamplePrediction(entropy, tuple(zip(classes, chances, strict=True)))
        for name, entropy, classes, chances in rows
    }


class People:
    """Asks the questions of a turn, and returns exactly the outcomes that the turn names.

    `soft` says that the method learns from the chances of classes.
    """

    def __init__(
        self, questions: QuestionStore, ledger: Ledger, classes: int, *, soft: bool = False
    ) -> None:
        self._questions = questions
        self._ledger = ledger
        self._classes = classes
        self._soft = soft
        self._turn = Turn(-1, (), 0)
        self._version = 0
        self._predictions: dict[SampleId, SamplePrediction] = {}
        self._source: dict[SampleId, SamplePrediction] = {}
        self._settled: tuple[Question, ...] = ()

    def begin(self, turn: Turn, version: int) -> None:
        """Start a turn. The asking model was made from the given version."""
        self._turn = turn
        self._version = version
        self._predictions = {}
        self._source = {}
        self._settled = self._questions.get(turn.settled)

    def record(self, predictions: Mapping[SampleId, SamplePrediction]) -> None:
        """Record the asking model's predictions, before it asks about the samples."""
        self._predictions.update(predictions)

    def record_source(self, predictions: Mapping[SampleId, SamplePrediction]) -> None:
        """Record the source model's predictions, to compare people with it later."""
        self._source.update(predictions)

    @property
    def entropies(self) -> list[float]:
        """The model's entropy for each sample of this turn."""
        return [one.entropy for one in self._predictions.values()]

    @property
    def settled(self) -> tuple[Question, ...]:
        """The outcomes that the turn names."""
        return self._settled

    @property
    def pending(self) -> int:
        """Number of questions whose outcome has not been handed over."""
        return len(self._ledger.open)

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask the questions of the method."""
        self._put(queries, "learn")

    def ask_audit(self, queries: Sequence[Query]) -> None:
        """Ask the randomly drawn audit questions, which are never learned from."""
        self._put(queries, "audit")

    def ask_checks(
        self, queries: Sequence[Query], predictions: Mapping[SampleId, SamplePrediction]
    ) -> None:
        """Ask questions that check people. The source model's predictions are shown with them."""
        self._questions.put(
            [self._question(query, "check", predictions[query.sample]) for query in queries]
        )

    def collect(self) -> tuple[Answer, ...]:
        """Return the outcomes that the method may learn from."""
        return self._outcomes("learn")

    def collect_audit(self) -> tuple[Answer, ...]:
        """Return the audit outcomes. They only settle the account."""
        return self._outcomes("audit")

    def collect_checks(self) -> tuple[Answer, ...]:
        """Return the outcomes of questions that check people. They only settle the account."""
        return self._outcomes("check")

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do nothing: the table is the record."""

    def _put(self, queries: Sequence[Query], purpose: Purpose) -> None:
        self._questions.put(
            [self._question(query, purpose, self._predictions[query.sample]) for query in queries]
        )

    def _question(self, query: Query, purpose: Purpose, prediction: SamplePrediction) -> Question:
        source = self._source.get(query.sample)
        return Question(
            question=0,
            sample=query.sample,
            turn=query.step,
            purpose=purpose,
            version=self._version,
            score=prediction.entropy,
            guesses=prediction.guesses,
            at=self._turn.at,
            source_guess=None if source is None else source.guesses[0][0],
            source_entropy=None if source is None else source.entropy,
            proposed=query.proposed,
        )

    def _outcomes(self, purpose: Purpose) -> tuple[Answer, ...]:
        # What was said about a forgotten sample is gone, but stays paid. With a refund, the budget
        # would depend on whether the learner was stopped before or after.
        wanted = [
            one for one in self._settled if one.purpose == purpose and one.state != "forgotten"
        ]
        return tuple(to_answer(one, self._classes, soft=self._soft) for one in wanted)


def to_query(question: Question) -> Query:
    """Turn a question of the table into a `Query`."""
    return Query(SampleId(question.sample), question.turn, question.proposed)


def to_answer(question: Question, classes: int, *, soft: bool = False) -> Answer:
    """Turn the outcome of a question into an `Answer`.

    "None of these" excludes all classes that people can choose. No classifier learns from it, but a
    person looked, so it is paid. If the answers of several people were weighted, a `soft` answer
    has a probability for each class. Otherwise it is the most likely class, with a weight.
    """
    query = to_query(question)
    if question.state == "no":
        return Answer.no(query, ANNOTATOR)
    if question.state == "none" and not question.refunded:
        return Answer(query, None, ANNOTATOR, excluded=tuple(range(classes)))
    if soft and question.chances is not None:
        return Answer(query, None, ANNOTATOR, chances=question.chances)
    weight = 1.0 if question.weight is None else question.weight
    return Answer(query, question.label, ANNOTATOR, weight=weight)
