import json

import pytest
import torch
from typer.testing import CliRunner

from attakit.bench.run import run_experiment
from attakit.cli import app
from attakit.errors import MissingExtra, SettingError, StateError
from attakit.nn import (
    FrozenHead,
    SmallCNN,
    named_model,
    read_facts,
    save_weights,
    weights_hash,
)
from attakit.nn.head_files import save_difference
from attakit.service.saved_settings import save_settings
from attakit.service.storage import Version, open_storage
from attakit.settings.service import ServiceSettings
from needed import hide_package


def call(*arguments):
    result = CliRunner().invoke(app, ["export", *[str(argument) for argument in arguments]])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture
def live(tmp_path):
    """Folder of a service with the versions 0, 1 and 2, of which 1 answers and 2 has no file."""
    folder = tmp_path / "live"
    save_settings(
        ServiceSettings(
            folder=folder,
            classes=("a", "b"),
            input={"size": 24, "channels": 1, "mean": (0.5,), "std": (0.25,)},
        )
    )
    with open_storage(folder) as storage:
        for number in range(3):
            file = f"{number}.safetensors"
            model = named_model("small_cnn", classes=2, seed=number)
            storage.versions.add(
                Version(number, number - 1, file, weights_hash(model), 10 * number, 5.0)
            )
            if number < 2:
                save_weights(model, folder / "versions" / file)
        storage.versions.promote(1, "passed", "learner")
    return folder


def test_the_version_that_answers_is_exported(live, tmp_path):
    told = json.loads(call(live, tmp_path / "model.safetensors", "--json"))

    facts = read_facts(tmp_path / "model.safetensors")
    assert facts.weights == told["weights"]
    assert facts.weights == weights_hash(named_model("small_cnn", classes=2, seed=1))
    assert (told["version"], told["format"], told["difference"]) == (1, "safetensors", 0)
    assert (facts.classes, facts.shape) == (("a", "b"), (1, 24, 24))
    assert (facts.mean, facts.std) == ((0.5,), (0.25,))
    assert facts.origin == "version 1 of a service, after 10 labels"


def test_any_version_can_be_exported_as_a_program(live, tmp_path):
    told = call(live, tmp_path / "model.onnx", "--version", 0)

    assert "version 0 of a service" in told
    assert "differ from the model's by at most" in told
    assert read_facts(tmp_path / "model.onnx").version == 0


def test_a_version_that_never_was_is_told_with_those_that_are(live, tmp_path):
    with pytest.raises(SettingError, match=r"no version 9\. Its versions: 0, 1, 2\."):
        call(live, tmp_path / "model.ts", "--version", 9)


def test_a_version_whose_weights_are_gone_is_told(live, tmp_path):
    with pytest.raises(StateError, match="weights of version 2 are gone"):
        call(live, tmp_path / "model.ts", "--version", 2)


def test_a_service_that_promoted_nothing_says_so(tmp_path):
    save_settings(ServiceSettings(folder=tmp_path / "new", classes=("a", "b")))

    with pytest.raises(StateError, match="promoted no version yet"):
        call(tmp_path / "new", tmp_path / "model.ts")


def test_the_model_of_a_run_is_exported(small_run, tmp_path):
    experiment = small_run(report={"model": True})
    run_experiment(experiment)

    call(experiment.report.folder, tmp_path / "out" / "model.ts", "--quiet")

    with pytest.warns(DeprecationWarning, match=r"torch\.jit\.load"):
        program = torch.jit.load(tmp_path / "out" / "model.ts")
    assert program(torch.zeros(3, 1, 28, 28)).shape == (3, 10)


def test_the_source_model_of_an_experiment_is_exported(quick_digits, tmp_path):
    model = SmallCNN()
    save_weights(model, tmp_path / "weights.safetensors")
    (tmp_path / "e.toml").write_text("")
    setting = f'model.weights="{tmp_path / "weights.safetensors"}"'

    call(tmp_path / "e.toml", tmp_path / "model.safetensors", "--set", setting)

    assert read_facts(tmp_path / "model.safetensors").weights == weights_hash(model)


def test_a_model_whose_statistics_are_frozen_says_so(live, tmp_path):
    source = named_model("small_cnn", classes=2, seed=0)
    changed = FrozenHead(named_model("small_cnn", classes=2, seed=0)).eval()
    changed.network.block1[1].running_mean += 1
    save_weights(source, live / "versions" / "source.safetensors")
    save_difference(changed, source, live / "versions" / "3.safetensors")
    with open_storage(live) as storage:
        storage.versions.add(Version(3, 5, "3.safetensors", weights_hash(changed), 40, 6.0))

    said = call(live, tmp_path / "model.ts", "--version", 3)

    assert "Its statistics are frozen: it no longer follows the stream." in said
    assert "frozen" not in call(live, tmp_path / "other.ts", "--version", 1)


def test_a_folder_that_holds_neither_is_told(tmp_path):
    with pytest.raises(SettingError, match="neither the folder of a run"):
        call(tmp_path, tmp_path / "model.ts")
    with pytest.raises(SettingError, match="neither the folder of a run"):
        call(tmp_path / "nowhere", tmp_path / "model.ts")


def test_versions_are_for_services(tmp_path):
    with pytest.raises(SettingError, match="--version and --database are for services"):
        call(tmp_path, tmp_path / "model.ts", "--version", 1)


def test_settings_are_for_experiment_files(live, tmp_path):
    with pytest.raises(SettingError, match="--set is for experiment files"):
        call(live, tmp_path / "model.ts", "--set", "seed=1")


def test_an_unknown_ending_is_told_before_a_model_is_built(live, tmp_path):
    with pytest.raises(SettingError, match="Known endings"):
        call(live, tmp_path / "model.xyz")


def test_a_file_that_is_there_is_kept_unless_it_may_go(live, tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_text("mine")

    with pytest.raises(SettingError, match="--replace"):
        call(live, file)
    assert file.read_text() == "mine"

    call(live, file, "--replace")
    assert read_facts(file).version == 1


def test_only_services_need_the_packages_of_the_service(live, tmp_path, monkeypatch):
    hide_package(monkeypatch, "sqlalchemy", ("attakit.cli.export", "attakit.service"))

    with pytest.raises(SettingError, match="neither the folder of a run"):
        call(tmp_path, tmp_path / "model.ts")
    with pytest.raises(MissingExtra, match=r"sqlalchemy.*pip install 'attakit\[service\]'"):
        call(live, tmp_path / "model.ts")
