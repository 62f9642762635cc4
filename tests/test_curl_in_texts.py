"""Every `curl` command of the page on serving succeeds on a service of the right kind."""

import re
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from PIL import Image
from torch import nn

from attakit.nn import Classifier, SmallText
from live_site import open_site
from needed import do_without

PAGE = Path(__file__).parent.parent / "docs/serving.md"
COMMANDS = re.findall(r"^    (curl .+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
ADDRESS = "http://localhost:8000"


def array_model():
    return Classifier(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10)))


def text_model():
    return Classifier(SmallText(classes=10, vocabulary=64))


KINDS = {
    "arrays": ({"kind": "array", "shape": (4,)}, array_model),
    "texts": ({"kind": "text", "tokenizer": "ngrams", "vocabulary": 64, "length": 8}, text_model),
}


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Three services: for images, arrays and texts."""
    if shutil.which("curl") is None:
        do_without("curl is not installed: the commands of docs/serving.md are not tried")
    folder = tmp_path_factory.mktemp("services")
    with ExitStack() as stack:
        found = {"images": stack.enter_context(open_site(folder / "images"))}
        for kind, (table, model) in KINDS.items():
            site = open_site(folder / kind, tables={"input": table}, model=model())
            found[kind] = stack.enter_context(site)
        yield found


def test_there_are_commands():
    assert len(COMMANDS) > 10


@pytest.mark.parametrize("command", COMMANDS)
def test_a_curl_command_succeeds(command, sites, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (8, 8), "brown").save("dog.jpg")
    Image.new("RGB", (8, 8), "grey").save("cat.png")
    kind = next((kind for kind in KINDS if f'"{kind}"' in command), "images")
    sample = COMMANDS.index(command)
    sites["images"].ask(1, start=sample)
    line = command.replace(ADDRESS, sites[kind].address).replace("SAMPLE", f"s{sample}")

    ended = subprocess.run(
        ["bash", "-c", line.replace("curl ", "curl --fail-with-body -sS ", 1)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
