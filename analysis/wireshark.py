"""A Wireshark profile for a run's captures, and the command that opens one with it.

The profile lies in a configuration folder of the run, results/<run>/wireshark; the user's own is neither read nor changed.
Decode-as rules, columns, colours and buttons come from what the protocols declare (clients/view). Formats: those of the
files that Wireshark 4.0 writes (wireshark(1), FILES).
"""

import re
import shutil
from pathlib import Path

from clients import registry
from clients.packets import Kind
from clients.protocol import Protocol
from clients.view import View
from testbed.errors import SetupError, UserError
from testbed.places import PROJECT

PROFILE = "pubsub-testbed"
_SCRIPTS = sorted((PROJECT / "analysis").glob("*.lua"))
"""Dissectors of our own, for a Wireshark that lacks them."""
_TCP_RETRANSMISSION = "tcp.analysis.retransmission"
_BACKGROUNDS = {
    Kind.RETRANSMISSION: "#f7c9a8",
    Kind.REPAIR: "#f7c9a8",
    Kind.REPAIR_REQUEST: "#f6e3a1",
    Kind.DATA: "#cfe5f5",
    Kind.ACKNOWLEDGEMENT: "#d5efe3",
    Kind.HANDSHAKE: "#eeeeee",
}
"""Pale forms of the figures' colours, which the colour-blind can tell apart; black text is readable on all of them."""


def _filters(views: list[View]) -> dict[Kind, str]:
    """A display filter for each kind of packet, whatever the protocol; kinds that no protocol has are left out."""
    found: dict[Kind, list[str]] = {Kind.RETRANSMISSION: [_TCP_RETRANSMISSION]}
    for view in views:
        for kind, words in view.filters.items():
            found.setdefault(kind, []).append(words)
    return {kind: " || ".join(found[kind]) for kind in Kind if kind in found}


def _column(views: list[View], name: str) -> str:
    return " || ".join(dict.fromkeys(field for view in views for field in getattr(view, name)))


def _preferences(views: list[View]) -> str:
    """Columns, and host names from the profile's own file alone: no name server is ever asked."""
    columns = {"No.": "%m", "Time": "%Rt", "Source": "%s", "Destination": "%d", "Protocol": "%p", "Length": "%L"}
    for title, name in (("Topic", "topic"), ("QoS", "qos"), ("Message id", "message_id")):
        fields = _column(views, name)
        if fields:
            columns[title] = f"%Cus:{fields}:0:U"  # first occurrence, as a number rather than a name
    columns["Info"] = "%i"
    listed = ",\n\t".join(f'"{title}", "{form}"' for title, form in columns.items())
    names = "nameres.network_name: TRUE\nnameres.use_external_name_resolver: FALSE\nnameres.hosts_file_handling: TRUE\n"
    return f"gui.column.format:\n\t{listed}\n{names}nameres.dns_pkt_addr_resolution: FALSE\n"


def _decode_as(protocols: list[Protocol]) -> str:
    """A line for each port: Wireshark's file knows no ranges."""
    lines: dict[str, None] = {}
    for protocol in protocols:
        titles = {view.dissector: view.title for view in protocol.views}
        for rule in protocol.decode_as:
            table, ports, dissector = re.split("==|,", rule)
            low, _, high = ports.partition("-")
            for port in range(int(low), int(high or low) + 1):
                lines[f"decode_as_entry: {table},{port},(none),{titles[dissector]}\n"] = None
    return "".join(lines)


def _colours(filters: dict[Kind, str]) -> str:
    """The first rule that holds gives the colour; channels have 16 bits."""

    def channels(colour: str) -> str:
        return ",".join(str(int(colour[start : start + 2], 16) * 257) for start in (1, 3, 5))

    return "".join(f"@{kind}@{words}@[{channels(_BACKGROUNDS[kind])}][0,0,0]\n" for kind, words in filters.items())


def _buttons(filters: dict[Kind, str]) -> str:
    return "".join(f'"TRUE","{kind}","{words}",""\n' for kind, words in filters.items())


def write(folder: Path, protocol_names: list[str], hosts: dict[str, str]) -> None:
    """Write the configuration folder below a run's `folder`; `hosts` maps names to addresses."""
    protocols = [registry.get(name) for name in dict.fromkeys(protocol_names)]
    views = list({view.dissector: view for protocol in protocols for view in protocol.views}.values())
    filters = _filters(views)
    profile = folder / "wireshark" / "profiles" / PROFILE
    profile.mkdir(parents=True, exist_ok=True)
    files = {
        "preferences": _preferences(views),
        "decode_as_entries": _decode_as(protocols),
        "colorfilters": _colours(filters),
        "dfilter_buttons": _buttons(filters),
        "hosts": "".join(f"{address}\t{name}\n" for name, address in hosts.items()),
    }
    for name, text in files.items():
        (profile / name).write_text(text)
    plugins = folder / "wireshark" / "plugins"
    plugins.mkdir(exist_ok=True)
    for script in _SCRIPTS:
        shutil.copy(script, plugins)


def command(cell: Path, side: str = "client-side") -> tuple[list[str], dict[str, str]]:
    """The command that opens a cell's capture in Wireshark with its run's profile, and what to add to the environment.

    Raises UserError if the cell has no capture of that side, SetupError if Wireshark is not installed.
    """
    capture = cell / f"{side}.pcap"
    if not capture.exists():
        allowed = ", ".join(sorted(path.stem for path in cell.glob("*.pcap"))) or "none: it has no capture"
        raise UserError(f"SIDE: {side!r}: allowed for {cell.name} are {allowed}")
    if not shutil.which("wireshark"):
        raise SetupError("Wireshark is not installed: apt-get install wireshark")
    configuration = cell.parent.parent / "wireshark"
    if not configuration.is_dir():
        raise UserError(f"CELL: {str(cell)!r}: its run has no Wireshark profile")
    return ["wireshark", "-C", PROFILE, "-r", str(capture)], {"WIRESHARK_CONFIG_DIR": str(configuration)}
