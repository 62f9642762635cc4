"""The examples run as they stand, and show a gain."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
PERCENT = re.compile(r"(\d+\.\d) ?%")


def run_example(name, folder):
    """What an example prints, started in an empty folder."""
    command = [sys.executable, str(EXAMPLES / name)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def percents(text):
    return [float(found) for found in PERCENT.findall(text)]


@pytest.mark.parametrize(("name", "gain"), [("table.py", 5), ("text.py", 30)])
def test_labels_buy_accuracy_on_rows_and_texts(name, gain, tmp_path):
    without, adapted = percents(run_example(name, tmp_path))

    assert adapted > without + gain


def test_late_answers_survive_a_stop(tmp_path):
    stopped, started, end = run_example("late_answers.py", tmp_path).splitlines()

    assert started.removeprefix("started again") == stopped.removeprefix("stopped")
    assert percents(end)[0] > 70


def test_a_service_gets_answers_to_its_questions(tmp_path):
    *weeks, answering, _ = run_example("serving.py", tmp_path).splitlines()

    assert len(weeks) == 6
    assert 0 < int(re.search(r"(\d+) answers", weeks[-1])[1]) <= 200
    assert answering.startswith("version ")


def code_of(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def test_the_notebook_is_the_first_example_with_words():
    script = ast.parse((EXAMPLES / "images.py").read_text(encoding="utf-8"))
    notebook = nbformat.read(EXAMPLES / "images.ipynb", as_version=4)

    assert ast.dump(ast.parse(code_of(notebook))) == ast.dump(ast.Module(script.body[1:], []))


def test_labels_buy_accuracy_on_images_in_the_notebook(tmp_path):
    notebook = nbformat.read(EXAMPLES / "images.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    printed = "".join(output.text for output in notebook.cells[-1].outputs)
    without, batch_norm, adapted = percents(printed)

    assert adapted > batch_norm + 5 > without


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_says_how_to_start_it(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))

    assert f"python examples/{path.name}" in docstring
