"""A live service and its client: samples go in, questions come out, answers go back.

    pip install 'attakit[service]'
    python examples/serving.py

Starts a service for the sensors of examples/table.py on a free port. Then it plays the machine that
sends rows, and the mechanic who answers questions. In practice the mechanic uses the labelling
page, and everyone has a token (docs/serving.md).
"""

import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from table import measure

from attakit.client import Client

SETTINGS = """
folder = "live"
classes = ["steady", "worn", "broken"]

[model]
name = "table:train"  # a function that returns the model

[input]
kind = "array"
shape = [4]

[labels]
budget = 200
per_1000 = 60
audit_share = 0.3
settle_seconds = 0.0  # an answer counts at once, and cannot be undone

[learning]
batch_size = 50
batch_seconds = 1.0
niceness = 0  # here the learner is as important as the server
"""


@contextmanager
def serving(folder):
    """Run `attakit serve` inside the block, and yield its address."""
    (folder / "service.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "attakit", "serve", str(folder / "service.toml")]
    command += ["--folder", str(folder / "live"), "--open", "--port", "0"]
    here = Path(__file__).parent  # where the service finds the module `table`
    with (folder / "log").open("w") as log:
        service = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            first = next(service.stdout, None)
            if first is None:  # the log has one line that says what is missing
                sys.exit((folder / "log").read_text().strip())
            yield first.removeprefix("Serving on ").strip()
        finally:
            service.terminate()
            service.wait()


def send_week(client, week, truth):
    """The machine: send a week of rows, and count right answers. Record the true class of each."""
    rows, states = measure(seed=week, drift=week)
    right = 0
    for place in range(0, len(rows), 50):
        answers = client.predict(list(rows[place : place + 50]))
        for answer, state in zip(answers, states[place : place + 50], strict=True):
            truth[answer.sample] = int(state)
            right += answer.label == state
    return right / len(rows)


def answer_questions(client, truth, seconds=2.0):
    """The mechanic: answer what the service asks, until it has seen all rows and a bit longer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if client.status().waiting:
            end = time.monotonic() + seconds
        question = client.lease()
        if question is None:
            time.sleep(0.2)
        else:
            client.answer(question.question, truth[question.sample])


if __name__ == "__main__":
    truth = {}
    with (
        TemporaryDirectory() as folder,
        serving(Path(folder)) as address,
        Client(address, annotator="mechanic") as client,
    ):
        for week in range(1, 7):
            right = send_week(client, week, truth)
            answer_questions(client, truth)
            answered = client.status().labels.answered
            print(f"week {week}: {right:.1%} right; {answered} answers so far")
        judged = [version for version in client.versions() if version.reason]
        print(f"version {client.status().version} answers; of the last candidate the gate says:")
        print(judged[0].reason if judged else "nothing yet")
