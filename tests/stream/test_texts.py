import subprocess
import sys

import pytest

from attakit.errors import StreamError
from attakit.stream.texts import NgramTokenizer, WordTokenizer, pad_tokens


def test_words_that_the_source_lacks_are_all_the_same_token():
    tokenizer = WordTokenizer.fit(["one two two"], vocabulary=10)
    assert tokenizer(["two one three four"]) == [[2, 3, 1, 1]]


def test_a_vocabulary_holds_no_more_ids_than_it_may():
    tokenizer = WordTokenizer.fit(["a a b b c d"], vocabulary=4)
    assert max(id_ for row in tokenizer(["a b c d"]) for id_ in row) == 3


def test_words_that_look_alike_share_pieces():
    first, second, other = (set(row) for row in NgramTokenizer(4096)(["dollar", "dollars", "peso"]))
    assert len(first & second) >= 5
    assert not first & other


def test_pieces_have_the_same_ids_in_every_process():
    code = "from attakit.stream.texts import NgramTokenizer as N; print(N(99)(['été']))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert printed.stdout.strip() == str(NgramTokenizer(99)(["été"]))


@pytest.mark.parametrize("token", [-1, 10, 2.5, "a"])
def test_an_id_outside_the_vocabulary_is_refused(token):
    with pytest.raises(StreamError, match="whole numbers from 0 to 9"):
        pad_tokens([[token]], length=4, vocabulary=10, who="tokens")
