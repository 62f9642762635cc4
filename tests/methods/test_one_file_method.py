"""A new method that asks for labels is one file, and works everywhere without another edit."""

import importlib
import json
from collections import Counter

import pytest
from typer.testing import CliRunner

from attakit.bench.run_folder import MODEL_FILE
from attakit.cli import app
from attakit.methods import METHODS
from attakit.report.features import FEATURES_FILE
from attakit.report.runs import read_run
from attakit.service.learner.gate import source_like_rows
from attakit.testing import check_method, tiny_classifier
from miniature_service import Miniature
from test_cli_bench import Here

FILE = '''
"""Anchored head: ask at random, train the head on answers and on what the source is sure about."""

from dataclasses import replace

from torch.optim import SGD

from attakit.methods.asking import AskingMethod
from attakit.nn.entropy import softmax_entropy
from attakit.nn.trainable import trainable_parameters
from attakit.records import Training
from attakit.select.uniform import Uniform
from attakit.store.anchors import Anchors
from attakit.store.waiting import waiting_rows
from attakit.train.answers import answer_loss


class AnchoredHead(AskingMethod):
    """Asks at random.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr
        Of the gradient step.
    seed
        Of the questions.
    """

    stateful = ("model", "waiting", "rate", "sure", "answered")

    def __init__(self, model, *, lr=0.05, seed=0):
        super().__init__(model, selector=Uniform(seed=seed))
        self.sure = Anchors(capacity=20, seed=seed)
        self.answered = Anchors()
        self.lr = lr
        self.trained = trainable_parameters(self.model, "head")

    @property
    def source_like_anchors(self):
        return self.sure

    @property
    def labelled_anchors(self):
        return self.answered

    def respond(self, batch, allowance):
        step = super().respond(batch, allowance)
        rows = waiting_rows(batch, step.prediction)
        surest = [softmax_entropy(rows.logits).argmin().item()]
        rows = rows.take(surest)
        self.sure.add(replace(rows, labels=rows.logits.argmax(dim=1)))
        return step

    def learn(self, answers):
        labelled = self.waiting.resolve(answers)
        if labelled is not None:
            self.answered.add(labelled)
        if len(self.answered) == 0:
            return Training()
        rows = self.answered.rows
        optimizer = SGD(self.trained, lr=self.lr)
        loss = answer_loss(self.model(rows.inputs).logits, rows)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return Training(1, {"loss": loss.item()})
'''
STREAM = '{ targets = ["outline"], share = 0.08, batch_size = 16 }'
REPORT = (
    "{ source_every = 0, save_every = 2, post_adaptation = false, features = true, model = true }"
)


@pytest.fixture(params=["entry in METHODS", "import path"])
def method(request, tmp_path, monkeypatch):
    """How an experiment names the method of the file."""
    (tmp_path / "anchored_head.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    if request.param == "import path":
        return "anchored_head:AnchoredHead"
    kind = importlib.import_module("anchored_head").AnchoredHead
    monkeypatch.setitem(METHODS, "anchored_head", kind)
    return "anchored_head"


def call(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_keeps_the_promises_of_methods(method):
    check_method(importlib.import_module("anchored_head").AnchoredHead)


def test_it_runs_and_its_run_is_shown(method, tmp_path, quick_digits):
    (tmp_path / "run.toml").write_text(
        f'threads = 1\nstream = {STREAM}\nmethod = {{ name = "{method}", label = "Anchored" }}\n'
        f"labels = {{ budget = 6 }}\nreport = {REPORT}\n"
    )

    call("run", "run.toml", "--set", "report.folder=out", "--quiet")

    assert read_run(tmp_path / "out").end["labels"] == 6
    assert (tmp_path / "out" / MODEL_FILE).exists()
    lines = (tmp_path / "out" / FEATURES_FILE).read_text().splitlines()
    recorded = {name for line in lines for name in json.loads(line).get("sets", {})}
    assert {"low", "high"} <= recorded
    assert "Anchored" in call("table", "out")
    call("report", "out", "--out", "page.html")
    assert "Anchored" in (tmp_path / "page.html").read_text()


def test_a_suite_multiplies_it_by_budgets(method, tmp_path, quick_digits, monkeypatch):
    monkeypatch.setattr("attakit.cli.bench.LocalExecutor", Here)
    (tmp_path / "suite.toml").write_text(
        f'name = "small"\n[base]\nthreads = 1\nstream = {STREAM}\nreport = {REPORT}\n'
        f'[grid]\nbudgets = [2, 4]\n[[grid.methods]]\nlabel = "Anchored"\n'
        f'method = {{ name = "{method}" }}\n[[grid.methods]]\nlabel = "Tent"\n'
        f'method = {{ name = "tent" }}\n'
    )

    summary = json.loads(call("bench", "suite.toml", "--json"))

    labels = {
        cell["folder"].rpartition("after_domain/")[2]: cell["labels"] for cell in summary["cells"]
    }
    assert labels == {"2/anchored-0": 2, "4/anchored-0": 4, "tent-0": 0}


def test_a_service_learns_with_it_within_its_limits(method, tmp_path):
    service = Miniature(
        tmp_path / "service",
        model=tiny_classifier().eval(),
        method={"name": method},
        labels={"budget": 100, "per_class": 2, "audit_share": 0.3},
        gate={"every": 1, "audit_needed": 1, "trust": 0.0, "audit_margin": 1.0},
    )
    learner = service.start()
    for number in range(6):
        service.serve_batch(number)
        while learner.run_once():
            pass
        service.answer(lambda question: 1)
    while learner.run_once():
        pass

    questions = service.storage.questions.recent(100)
    asked = Counter(one.guesses[0][0] for one in questions if one.purpose == "learn")
    assert asked
    assert max(asked.values()) <= 2
    assert any(one.purpose == "audit" for one in questions)
    assert len(source_like_rows(learner.memory)) == 6
    versions = service.storage.versions.all()
    assert len(versions) > 1
    assert any("candidate_source_like" in one.gate.numbers for one in versions if one.gate)
    named = learner.memory.method.answered.rows.samples
    learner.memory.forget(named[:1])
    assert named[0] not in learner.memory.method.answered.rows.samples
    service.storage.close()
