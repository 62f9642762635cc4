"""A person at work in a process of their own: `python answering_people.py WAY URL NAME`.

What was done is printed after it was committed.
"""

import sys
import time
from pathlib import Path
from random import Random

from attakit.service.storage import LabelRules, open_storage

FIRST = LabelRules(policy="first", settle_seconds=3600)
NEWEST = LabelRules(policy="newest", settle_seconds=3600)


def tell(*words):
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def answer_all(url, name):
    """Answer until nothing is left; some questions are given back, some answers taken back."""
    mood = Random(name)
    with open_storage(Path(), url, labels=FIRST) as storage:
        while lease := storage.questions.lease(name):
            number, begin = lease.question.question, time.monotonic()
            time.sleep(mood.uniform(0, 0.004))
            tell("held", number, begin, time.monotonic())
            if mood.random() < 0.2:
                storage.questions.release(number, name)
                continue
            key = f"{name}-{mood.random()}"
            outcome = storage.questions.answer(number, name, "label", 3, key)
            tell(outcome, number, key)
            if mood.random() < 0.1 and storage.questions.undo(name, f"undo-{key}"):
                tell("undone", number, key)


def answer_for_ever(url, name):
    """Change one's mind about the same questions until the process is killed."""
    with open_storage(Path(), url, labels=NEWEST) as storage:
        numbers = [one.question for one in storage.questions.recent(1000)]
        step = 0
        while True:
            key = f"{name}-{step}"
            number, label = numbers[step % len(numbers)], step // len(numbers)
            tell(storage.questions.answer(number, name, "label", label, key), number, key)
            step += 1


WAYS = {"all": answer_all, "for-ever": answer_for_ever}

if __name__ == "__main__":
    way, *arguments = sys.argv[1:]
    WAYS[way](*arguments)
