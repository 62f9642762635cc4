"""Texts as inputs: a tokenizer by import path, rows of token ids, and a learner that uses them."""

import pytest
import torch
from torch import nn

from attakit.errors import SettingError, StreamError
from attakit.nn import seeded
from attakit.service.inputs import Inputs
from attakit.service.storage.rows import ServedSample
from attakit.settings.service import InputTable
from miniature_service import makes_miniatures

TABLE = {"kind": "text", "tokenizer": "own_tokens:encode", "length": 4, "vocabulary": 30}


@pytest.fixture(autouse=True)
def own_module(tmp_path, monkeypatch):
    """A module of the user's own with a tokenizer: one id per letter."""
    code = "def encode(texts):\n    return [[ord(one) - 96 for one in text] for text in texts]\n"
    (tmp_path / "own_tokens.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_text_becomes_token_ids_of_one_length():
    inputs = Inputs(InputTable(**TABLE))

    rows = inputs.stack(inputs.read_texts(["abc", "abcdef"]))

    assert rows.tolist() == [[1, 2, 3, 0], [1, 2, 3, 4]]
    assert (rows.dtype, inputs.shape) == (torch.int64, (4,))
    assert inputs.blank(2).dtype == torch.int64
    torch.testing.assert_close(inputs.decode(b"abc"), rows[0])
    assert inputs.picture(b"abc") is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"tokenizer": None}, "needs a tokenizer"),
        ({"tokenizer": "words"}, "must be an import path"),
        ({"tokenizer": "own_tokens:missing"}, "missing"),
    ],
)
def test_a_tokenizer_that_cannot_be_is_refused_at_the_start(change, complaint):
    with pytest.raises(SettingError, match=complaint):
        Inputs(InputTable(**{**TABLE, **change}))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (7, "must be a string, got int"),
        ("a" * 20_001, "20,001 characters"),
        ("é", "token ids must be whole numbers from 0 to 29"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused(text, complaint):
    with pytest.raises(StreamError, match=complaint):
        Inputs(InputTable(**TABLE)).read_texts([text])


def test_images_and_arrays_are_refused_with_what_to_send():
    inputs = Inputs(InputTable(**TABLE))

    with pytest.raises(StreamError, match=r"takes texts, not images. Send JSON with 'texts'"):
        inputs.read_images([b"x"])
    with pytest.raises(StreamError, match=r"takes texts, not arrays"):
        inputs.read_array([1])


class Bag(nn.Module):
    """Embeds token ids, and sums them up."""

    def __init__(self):
        super().__init__()
        with seeded(0, "bag"):
            self.embedding, self.head = nn.Embedding(30, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.head(self.embedding(inputs).mean(dim=1))


def test_a_learner_asks_about_texts_and_learns_from_answers(tmp_path):
    with makes_miniatures(tmp_path) as make:
        service = make(
            model=Bag().eval(),
            input=TABLE,
            method={"name": "anchor_head"},
            labels={"audit_share": 0.0, "per_1000": 500},
        )
        learner = service.start(Inputs(service.settings.input).decode)
        texts = ["ab", "cd", "efg", "hij", "kl", "mn", "op", "qr", "st", "uv"]
        service.storage.samples.add(
            [ServedSample(name, name.encode(), 0, 0, 0.5, 0.5, service.now) for name in texts]
        )
        learner.run_once()
        assert service.answer(lambda _: 1) > 0
        while learner.run_once():
            pass

        assert learner.memory.ledger.received > 0
