"""Records for tests of the service: samples as they are served, and questions about them."""

from threading import Thread

from attakit.service.storage import LabelRules, Question, ServedSample, Turn, open_storage

NOW = 1_000_000.0


def served(*names, at=NOW, content=b"image"):
    return [ServedSample(name, content, 0, 1, 0.9, 0.3, at) for name in names]


def question(sample, *, at=NOW, turn=0, purpose="learn", guess=1, proposed=None):
    guesses = ((guess, 0.6), (guess + 1, 0.4))
    return Question(0, sample, turn, purpose, 2, 0.7, guesses, at, proposed=proposed)


def turn(number, *samples, **others):
    return Turn(number, samples, allowance=3, at=NOW, **others)


def ask(storage, *names, **others):
    """Serve samples and ask about them."""
    storage.samples.add(served(*names))
    return storage.questions.put([question(name, **others) for name in names])


def say(storage, question, who, choice, key=None):
    """Answer with a class, or with "yes", "no", "skip" or "none"."""
    kind, label = (choice, None) if isinstance(choice, str) else ("label", choice)
    return storage.questions.answer(question, who, kind, label, key or f"{who} {question} {choice}")


def open_at_once(folder, database):
    """Open a database in six threads at once; return what they raised."""
    errors = []

    def open_it():
        try:
            open_storage(folder, database, labels=LabelRules()).close()
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors
