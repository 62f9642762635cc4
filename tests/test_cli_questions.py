import csv
import io
import json
import sys

import pytest
from typer.testing import CliRunner

from attakit.cli import app, main
from attakit.errors import MissingExtra, SettingError, StateError
from attakit.service.saved_settings import SETTINGS_FILE, save_settings
from attakit.service.storage import Question, ServedSample, open_storage
from attakit.settings.service import ServiceSettings
from needed import hide_package

CLASSES = ("Maus", "größte Katze")


def call(*arguments, code=0):
    result = CliRunner().invoke(app, ["questions", *[str(argument) for argument in arguments]])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code
    return result.stdout


def fill(folder, url=None):
    with open_storage(folder, url) as storage:
        storage.samples.add([ServedSample(f"s{n}", None, 0, 0, 0.5, 0.5, 1.0) for n in range(2)])
        storage.questions.put(
            [Question(0, f"s{n}", 0, "learn", 0, 0.5, ((1, 0.9),), 1.0) for n in range(2)]
        )


@pytest.fixture
def live(tmp_path):
    """Folder of a service that has put two questions and is not running."""
    folder = tmp_path / "live"
    save_settings(ServiceSettings(folder=folder, classes=CLASSES))
    fill(folder)
    return folder


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.json"])
def test_questions_are_written_in_the_format_of_the_ending(live, tmp_path, name):
    told = call("export", live, "--out", tmp_path / name)

    text = (tmp_path / name).read_text(encoding="utf-8-sig")
    assert told == f"Wrote 2 questions to {tmp_path / name}.\n"
    assert "größte Katze" in text


def test_questions_go_to_standard_output_unless_told(live):
    lines = call("export", live).splitlines()

    assert [json.loads(line)["question"] for line in lines] == [1, 2]


def test_a_spreadsheet_knows_the_encoding(live, tmp_path):
    call("export", live, "-o", tmp_path / "out.csv", "--quiet")

    assert (tmp_path / "out.csv").read_bytes().startswith(b"\xef\xbb\xbfquestion,")


def test_a_table_goes_to_a_colleague_and_comes_back(live, tmp_path):
    file = tmp_path / "out.csv"
    call("export", live, "-o", file)
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"))))
    rows[0]["answer"] = "größte Katze"
    with file.open("w", encoding="utf-16", newline="") as table:  # "Unicode text" of spreadsheets
        writer = csv.DictWriter(table, rows[0], delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)

    first = call("import", live, file, "--annotator", "eve")
    second = json.loads(call("import", live, file, "--annotator", "eve", "--json"))

    assert first == "Answers: 1 taken, 1 blank.\n"
    assert (second["taken"], second["repeated"]) == (0, 1)
    with open_storage(live) as storage:
        assert [one.annotator for one in storage.questions.answers(1)] == ["eve"]


def test_lines_that_are_refused_are_told_with_their_numbers(live, tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("question,answer\n1,Maus\n2,Hund\n77,Maus\n")

    told = call("import", live, file, code=1).splitlines()

    assert told[0] == "Answers: 1 taken, 1 unknown, 1 refused."
    assert told[1].startswith("answers.csv, line 3: 'Hund' is not a class.")
    assert told[2] == "answers.csv, line 4: question '77' was never asked."


def test_problems_of_label_studio_are_counted_in_tasks(live, tmp_path):
    (tmp_path / "export.json").write_text('[{"data": {}}]')

    assert "export.json, task 1: " in call("import", live, tmp_path / "export.json", code=1)


def test_a_file_in_another_encoding_changes_nothing(live, tmp_path):
    file = tmp_path / "answers.csv"
    file.write_bytes("question,answer\n1,Maus\n2,größte Katze\n".encode("latin-1"))

    with pytest.raises(SettingError, match="not text in UTF-8"):
        call("import", live, file)

    with open_storage(live) as storage:
        assert storage.questions.answers(1) == ()


def test_a_missing_file_is_told(live, tmp_path):
    with pytest.raises(SettingError, match=r"no file .*answers\.csv"):
        call("import", live, tmp_path / "answers.csv")


def test_a_file_that_is_there_is_kept_unless_it_may_go(live, tmp_path):
    (tmp_path / "out.csv").write_text("mine")

    with pytest.raises(SettingError, match="--replace"):
        call("export", live, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "mine"

    call("export", live, "-o", tmp_path / "out.csv", "--replace")
    assert (tmp_path / "out.csv").read_text() != "mine"


def test_a_file_appears_only_when_it_is_whole(live, tmp_path, monkeypatch):
    file, began = tmp_path / "out.jsonl", []
    file.write_text("before")

    def fail(_storage, stream, *_others, **_options):
        stream.write("x" * 1_000_000)
        began.append(len(list(tmp_path.glob(".out.jsonl.*"))))
        raise StateError("The database is away.")

    monkeypatch.setattr("attakit.cli.questions.write_questions", fail)
    with pytest.raises(StateError):
        call("export", live, "-o", file, "--replace")

    assert began == [1]
    assert file.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"live", "out.jsonl"}


def test_a_folder_without_a_service_is_told_and_stays_empty(tmp_path):
    with pytest.raises(SettingError, match="no service in"):
        call("export", tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_service_does_as_well_as_its_folder(live, tmp_path):
    file = tmp_path / "service.toml"
    file.write_text(f'folder = "{live}"\nclasses = ["Maus", "größte Katze"]\n', encoding="utf-8")

    assert len(call("export", file).splitlines()) == 2


def test_a_folder_that_was_moved_is_still_the_service(live, tmp_path):
    live.rename(tmp_path / "moved")

    assert len(call("export", tmp_path / "moved").splitlines()) == 2
    assert not live.exists()


def test_another_database_can_be_named(live, tmp_path):
    url = f"sqlite:///{tmp_path / 'other.sqlite'}"
    fill(tmp_path, url)
    file = tmp_path / "answers.jsonl"
    file.write_text('{"question": 1, "answer": 0}')

    call("import", live, file, "--database", url)

    with open_storage(live) as own, open_storage(tmp_path, url) as other:
        assert own.questions.answers(1) == ()
        assert len(other.questions.answers(1)) == 1


def test_the_password_of_a_database_is_not_kept(tmp_path):
    url = "postgresql://ada:geheim@host/labels"
    settings = ServiceSettings(folder=tmp_path, classes=CLASSES, database=url)

    save_settings(settings)

    assert "geheim" not in (tmp_path / SETTINGS_FILE).read_text()
    with pytest.raises(SettingError, match=r"ada:\*\*\*@host.*ATTAKIT_DATABASE"):
        call("export", tmp_path)


def test_kept_settings_that_are_damaged_are_told(live):
    (live / SETTINGS_FILE).write_text("{")

    with pytest.raises(StateError, match="Start the service again"):
        call("export", live)


def test_the_interface_for_label_studio_is_printed(live):
    assert '<Choice value="größte Katze" />' in call("label-config", live)


def test_a_missing_package_is_named_with_the_command_that_gets_it(live, monkeypatch):
    hide_package(monkeypatch, "sqlalchemy", ("attakit.cli.questions", "attakit.service"))

    with pytest.raises(MissingExtra, match=r"sqlalchemy.*pip install 'attakit\[service\]'"):
        call("export", live)


def test_a_mistake_ends_in_one_line(live, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["attakit", "questions", "export", str(tmp_path)])

    with pytest.raises(SystemExit) as caught:
        main()

    told = capsys.readouterr()
    assert (caught.value.code, told.out) == (2, "")
    assert told.err.startswith("Error: There is no service in ")
