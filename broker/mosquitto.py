"""The MQTT broker, eclipse-mosquitto."""

from dataclasses import dataclass

from broker.server import Context, Image, Server, render
from testbed.parameters import number

PORT = 1883


@dataclass(frozen=True)
class Settings:
    """mosquitto.conf(5), what of it changes a measurement; 0 means no limit."""

    set_tcp_nodelay: bool
    max_inflight_messages: int = number(0, 65535)
    max_queued_messages: int = number(0)
    max_queued_bytes: int = number(0)


def _files(context: Context) -> dict[str, str]:
    return {"mosquitto.conf": render("mosquitto.conf.j2", context)}


def _command(context: Context) -> list[str]:
    return ["mosquitto", "-c", str(context.folder / "mosquitto.conf")]


SERVERS = {
    "mosquitto": Server(
        name="mosquitto",
        settings=Settings,
        files=_files,
        command=_command,
        tcp_port=PORT,
        version=lambda _: ["dpkg-query", "-W", "-f", "${Version}", "mosquitto"],
        image=lambda _: Image("BROKER_IMAGE", "eclipse-mosquitto:2.0.22", _command),
    )
}
