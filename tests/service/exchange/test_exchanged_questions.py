"""Questions leave in pieces, so that their images need not fit into memory."""

import pytest

from attakit.service.exchange import questions, questions_in_pieces

CLASSES = ("cat", "größer; Hund", "=SUM(1)", "三毛猫")


@pytest.mark.parametrize("form", ["csv", "jsonl", "label-studio"])
def test_pieces_make_the_same_file(service, exported, form, monkeypatch):
    monkeypatch.setattr(questions, "_PIECE", 10)

    pieces = list(questions_in_pieces(service, form, classes=CLASSES, everything=True))

    assert len(pieces) > 3
    assert "".join(pieces) == exported(form, everything=True)


def test_images_are_read_one_after_the_other_while_the_file_leaves(service, monkeypatch):
    monkeypatch.setattr(questions, "_PIECE", 10)
    read = []

    def note(names):
        read.extend(names)
        return {}

    monkeypatch.setattr(service.samples, "contents", note)

    pieces = questions_in_pieces(service, "label-studio", classes=CLASSES)
    next(pieces)

    assert read == ["=s0"]
