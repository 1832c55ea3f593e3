"""The MQTT-SN gateway in front of the MQTT broker: Bisquitt, or the Paho gateway that a user brings."""

import ipaddress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from broker import bisquitt, mosquitto
from broker.server import Context, Image, Server, render
from clients.mqttsn.session import PORT
from clients.protocol import topic
from testbed.parameters import choice, duration, number

_BROKER = f"127.0.0.1:{mosquitto.PORT}"


@dataclass(frozen=True)
class Settings:
    """Which gateway, and what of it changes a measurement. Times in ns."""

    paho_gateway: str  # the program's path; empty with bisquitt
    gateway: str = choice("bisquitt", "paho")
    retry_interval: int = duration()  # bisquitt: Tretry towards clients
    retries: int = number(0, 100)  # bisquitt: Nretry towards clients
    broker_timeout: int = duration()  # bisquitt: of a connection to the broker
    advertise: int = duration()  # paho: between two ADVERTISE messages


def _files(context: Context) -> dict[str, str]:
    if context.settings["gateway"] == "bisquitt":
        return {"topics.yaml": render("bisquitt-topics.yaml.j2", context, topic=topic)}
    names = ("gateway.conf", "predefinedTopic.conf", "clients.conf")
    more = {"topic": topic, "port": PORT, "broker_port": mosquitto.PORT, "publisher_addresses": _publishers(context)}
    return {name: render(f"paho-{name}.j2", context, **more) for name in names}


def _publishers(context: Context) -> list[str]:
    """Clients' addresses follow the server's, publishers first (testbed.netns.fabric)."""
    first = ipaddress.IPv4Address(context.address) + 1
    return [str(first + number) for number in range(context.clients)]


def _bisquitt(program: str, context: Context) -> list[str]:
    settings = context.settings
    return [
        *(program, "-listen", f"{context.address}:{PORT}", "-broker", _BROKER),
        *("-topics", str(context.folder / "topics.yaml"), "-retries", str(settings["retries"])),
        *("-retry-interval", f"{settings['retry_interval']}ns", "-broker-timeout", f"{settings['broker_timeout']}ns"),
    ]


def _paho(program: str, _context: Context) -> list[str]:
    return [program, "-f", "./gateway.conf"]


def _command(context: Context) -> list[str]:
    if context.settings["gateway"] == "bisquitt":
        return _bisquitt(str(bisquitt.program()), context)
    return _paho(context.settings["paho_gateway"], context)


def _image(settings: dict[str, Any]) -> Image:
    """An image has the program in its PATH; bisquitt is the one that broker/bisquitt builds, with its options."""
    if settings["gateway"] == "bisquitt":
        return Image("GATEWAY_IMAGE", "", partial(_bisquitt, "bisquitt"))
    return Image("PAHO_GATEWAY_IMAGE", None, partial(_paho, "MQTT-SNGateway"))


def _problem(settings: dict[str, Any]) -> str | None:
    if settings["gateway"] == "bisquitt":
        return None
    path = settings["paho_gateway"]
    if not path:
        return "GATEWAY=paho also needs PAHO_GATEWAY=/path/to/MQTT-SNGateway: it is in no package registry"
    if not Path(path).is_absolute() or not Path(path).is_file():
        return f"PAHO_GATEWAY: {path!r}: no such file; allowed is the absolute path of the program MQTT-SNGateway"
    return None


def _version(settings: dict[str, Any]) -> list[str]:
    if settings["gateway"] == "bisquitt":
        return [str(bisquitt.program()), "-version"]
    return ["sha256sum", settings["paho_gateway"]]  # it cannot tell its version


SERVERS = {
    "mqttsn-gateway": Server(
        name="mqttsn-gateway",
        settings=Settings,
        files=_files,
        command=_command,
        tcp_port=None,
        udp_port=PORT,
        version=_version,
        image=_image,
        problem=_problem,
        variables={"GATEWAY": "gateway", "PAHO_GATEWAY": "paho_gateway"},
    )
}
