"""The files in deploy/ fit the code: commands, options, limits, paths and names of metrics."""

import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer.main
import yaml

from attakit.cli.commands import COMMANDS, load_command
from attakit.service.supervisor import GAVE_UP, PATIENCE
from attakit.settings.load import load_service
from attakit.settings.service import ServerTable

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
GIVEN_BY_PEOPLE = {"source.safetensors", "metrics-token"}


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def check_command(words):
    """Parse a command line of attakit without running it."""
    name, *arguments = words
    command = typer.main.get_command(load_command(name))
    return command.make_context(name, arguments).params


def unit(name):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str
    parser.read_string((DEPLOY / "systemd" / name).read_text())
    return parser


def test_the_service_file_of_the_examples_is_valid():
    settings = load_service(DEPLOY / "service.toml")

    assert (settings.files, settings.server.host) == ("database", "0.0.0.0")


def test_compose_starts_two_servers_and_a_learner_with_commands_that_exist(compose):
    commands = {
        name: check_command(service["command"])
        for name, service in compose["services"].items()
        if service.get("image") == "attakit"
    }

    assert {name for name, given in commands.items() if given.get("no_learner")} == {
        "server-1",
        "server-2",
    }
    assert set(commands) == {"server-1", "server-2", "learner"}
    assert compose["services"]["learner"]["command"][0] == "learn"
    assert set(compose["services"]) >= {"database", "nginx", "prometheus", "grafana"}


def test_what_compose_mounts_and_builds_from_is_there(compose):
    for service in compose["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("./") and source[2:] not in GIVEN_BY_PEOPLE:
                assert (DEPLOY / source).exists(), source
            elif not source.startswith("./"):
                assert source in compose["volumes"]
        for needed in service.get("depends_on", []):
            assert needed in compose["services"]
    build = compose["services"]["server-1"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


def test_compose_waits_for_the_learner_and_believes_its_own_network_alone(compose):
    learner = compose["services"]["learner"]
    (network,) = compose["networks"]["default"]["ipam"]["config"]

    assert float(learner["stop_grace_period"].removesuffix("s")) > PATIENCE
    assert learner["environment"]["FORWARDED_ALLOW_IPS"] == network["subnet"]


def test_the_image_copies_and_installs_what_exists_and_does_not_run_as_root():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    copied = [word for line in lines if line.startswith("COPY") for word in line.split()[1:-1]]
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    (extras,) = re.findall(r"'\.\[([a-z,]+)\]'", "\n".join(lines))
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert all((ROOT / name).exists() for name in copied)
    assert {f"!{name}" for name in copied} == set(kept) - {"*"}
    assert set(extras.split(",")) <= known["optional-dependencies"].keys()
    assert "USER attakit" in lines
    assert 'ENTRYPOINT ["attakit"]' in lines


def test_nginx_has_the_limits_of_the_server():
    text = (DEPLOY / "nginx.conf").read_text()
    server = ServerTable()

    def value(directive):
        return re.search(rf"^ *{directive} ([^;]+);", text, re.MULTILINE)[1]

    assert value("client_max_body_size") == f"{server.request_megabytes:g}m"
    assert value("client_header_timeout") == f"{server.head_seconds:g}s"
    assert value("client_body_timeout") == f"{server.body_seconds:g}s"
    assert f"zone=requests:10m rate={server.requests_per_minute}r/m" in text
    assert value("large_client_header_buffers") == "4 16k"
    assert text.count("{") == text.count("}")


def test_nginx_and_prometheus_ask_the_servers_of_compose(compose):
    text = (DEPLOY / "nginx.conf").read_text()
    port = load_service(DEPLOY / "service.toml").server.port
    servers = {f"{name}:{port}" for name in compose["services"] if name.startswith("server-")}
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]

    assert set(re.findall(r"server (server-\S+)", text)) == servers
    assert set(job["static_configs"][0]["targets"]) == servers


@pytest.mark.parametrize("name", ["attakit-server@.service", "attakit-learner.service"])
def test_units_of_systemd_run_commands_that_exist_and_wait_for_the_learner(name):
    service = unit(name)["Service"]
    program, *words = shlex.split(service["ExecStart"].replace("%i", "8000"))

    check_command(words)
    assert program.endswith("/bin/attakit")
    assert words[0] in COMMANDS
    assert float(service["TimeoutStopSec"]) > PATIENCE


def test_a_learner_that_gave_up_is_not_started_again():
    service = unit("attakit-learner.service")["Service"]

    assert service["RestartPreventExitStatus"] == str(GAVE_UP)


def test_the_dashboard_reads_from_the_data_source_that_is_provisioned():
    dashboard = json.loads((DEPLOY / "grafana" / "dashboards" / "attakit.json").read_text())
    provisioned = (DEPLOY / "grafana" / "provisioning" / "datasources.yml").read_text()
    (source,) = yaml.safe_load(provisioned)["datasources"]

    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {source["uid"]}
