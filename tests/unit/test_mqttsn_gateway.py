"""The MQTT-SN gateway's configurations, and what is said when a gateway is missing."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.mqttsn_gateway import SERVERS
from broker.server import Context
from testbed import commands
from testbed.netns import SUBNET

SETTINGS = {
    "gateway": "bisquitt",
    "paho_gateway": "",
    "retry_interval": 10 * 10**9,
    "retries": 5,
    "broker_timeout": 30 * 10**9,
    "advertise": 900 * 10**9,
}
# Takes the Paho gateway's place: reads its configuration the way that one does, prints what it found and ends.
STAND_IN = f"""#!{sys.executable}
import sys
assert sys.argv[1] == "-f", sys.argv
values = dict(line.strip().split("=", 1) for line in open(sys.argv[2]) if "=" in line and not line.startswith("#"))
print(values["MaxNumberOfClients"], values["GatewayPortNo"], values["BrokerPortNo"], values["QoS-1"], values["KeepAlive"])
for key in ("PredefinedTopicList", "ClientsList"):
    print(*[line.strip() for line in open(values[key]) if not line.startswith("#")])
"""


def write(folder: Path, qos: int | None, **changes: Any) -> Context:
    context = Context(f"{SUBNET}.1", 2, folder, SETTINGS | changes, qos)
    for name, text in SERVERS["mqttsn-gateway"].files(context).items():
        (folder / name).write_text(text)
    return context


@pytest.mark.parametrize(("qos", "connectionless"), [(-1, "YES"), (0, "NO")])
def test_paho_gateway_is_given_clients_and_topics(tmp_path: Path, qos: int, connectionless: str) -> None:
    program = tmp_path / "MQTT-SNGateway"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    context = write(tmp_path, qos, gateway="paho", paho_gateway=str(program))
    assert commands.run(SERVERS["mqttsn-gateway"].command(context), cwd=tmp_path).splitlines() == [
        f"6 1883 1883 {connectionless} 900",
        "*,testbed/unit-01,1 *,testbed/unit-02,2",
        "connectionless-01,198.18.0.2:1883,QoS-1 connectionless-02,198.18.0.3:1883,QoS-1",
    ]
    assert str(program) in commands.run(SERVERS["mqttsn-gateway"].version(context.settings))
    assert SERVERS["mqttsn-gateway"].problem(context.settings) is None


def test_bisquitt_is_given_topics_and_retries(tmp_path: Path) -> None:
    context = write(tmp_path, 0)
    assert yaml.safe_load((tmp_path / "topics.yaml").read_text()) == {"*": {1: "testbed/unit-01", 2: "testbed/unit-02"}}
    words = SERVERS["mqttsn-gateway"].command(context)
    assert words[words.index("-retries") + 1] == "5"
    assert words[words.index("-retry-interval") + 1] == "10000000000ns"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--gateway", "paho"], "GATEWAY=paho also needs PAHO_GATEWAY="),
        (["--gateway", "paho", "--paho-gateway", "/no/such/file"], "PAHO_GATEWAY: '/no/such/file': no such file"),
        (["--gateway", "pahoo"], "'pahoo': allowed are bisquitt, paho"),
    ],
)
def test_a_missing_gateway_is_a_user_error(options: list[str], error: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "testbed.cli", "run", "--profile", "satcom", "--out", str(tmp_path), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert error in done.stderr
    assert not list(tmp_path.iterdir())
