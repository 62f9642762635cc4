import pytest

from attakit.build.exportable import model_from_file
from attakit.errors import StateError, UnknownName
from attakit.nn import SmallCNN, save_weights
from attakit.nn.export import ModelFacts, export_model


def test_plain_weights_do_not_say_what_they_are(tmp_path):
    save_weights(SmallCNN(), tmp_path / "model.safetensors")

    with pytest.raises(StateError, match="does not say of which model"):
        model_from_file(tmp_path / "model.safetensors")


def test_a_file_cannot_name_code_to_import(tmp_path):
    facts = ModelFacts(
        model="attakit.nn:SmallCNN", classes=tuple("0123456789"), shape=(1, 28, 28), origin="me"
    )
    export_model(SmallCNN().eval(), tmp_path / "model.safetensors", facts)

    with pytest.raises(UnknownName, match=r"attakit\.nn:SmallCNN"):
        model_from_file(tmp_path / "model.safetensors")
