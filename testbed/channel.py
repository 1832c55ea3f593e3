"""The emulated medium: netem on IFB devices in the server's namespace, where all clients' packets pass.

Ingress (uplink) and egress (downlink) of the server's interface are redirected to IFBs; IP alone, so ARP stays off the
channel. The same commands serve every fabric. Where the taps lie:

    uplink    client ──► eth0 [tap: client side] ──► IFB: netem ──► [tap: server side] ──► server
    downlink  server ──► mirror [tap: server side] ──► IFB: netem ──► eth0 [tap: client side] ──► client

Clients that cannot switch segmentation offload off (containers: it takes NET_ADMIN) send pieces of up to 64 kB, each of
which netem would take for one packet. Then `cut` has them cut to the MTU where they come in: for netem by a tbf above it,
which cuts what is larger than its burst (tbf_segment() in Linux's net/sched/sch_tbf.c), and for the tap by a mirror without
offloads:

    uplink    client ──► eth0 ──► mirror-up [tap: client side] ──► IFB: tbf, netem ──► [tap: server side] ──► server
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from testbed import commands, netem
from testbed.cell import DIRECTIONS, Channel, derive_seed
from testbed.errors import SetupError
from testbed.netns import Host, set_offloads
from testbed.watch import Watch, watched

INTERFACE = "eth0"
MIRROR, MIRROR_UP = "mirror", "mirror-up"
_IFBS = {"uplink": "ifb-up", "downlink": "ifb-down"}
_HALF = "ifb-air"
_CUT = "1:"
_TBF = ["tbf", "rate", "100gbit", "burst", "1600", "limit", "1gb"]
"""A tbf that cuts and does no more: a packet of an Ethernet (1514 bytes) fits its burst, and takes 0.1 µs at its rate."""


@dataclass(frozen=True)
class Tap:
    """Where to listen for one side of the channel: interface, BPF filter, and what it shows."""

    interface: str
    bpf: str
    shows: str


@dataclass
class Medium:
    """A channel that is up: its commands, what the kernel made of them, and its taps."""

    server: Host
    channel: Channel
    seeds: dict[str, int | None]
    taps: dict[str, list[Tap]]
    commands: list[str] = field(default_factory=list)
    watch: Watch | None = None

    def check(self) -> None:
        """Raises SetupError if the channel was changed since it was set up; costs next to nothing."""
        if self.watch:
            self.watch.check()

    def taps_of(self, name: str, address: str) -> list[Tap]:
        """Where to listen, at the server, for what one client sends and receives: beyond the channel's client side."""
        return [
            Tap(
                tap.interface,
                f"({tap.bpf}) and host {address}" if tap.bpf else f"host {address}",
                f"{name}: {tap.shows}",
            )
            for tap in self.taps["client-side"]
        ]

    def readback(self) -> dict[str, Any]:
        """`tc -s qdisc` of each IFB: netem's options and counters. Raises SetupError if one is not what was set."""
        seen = {}
        for ifb, seed in self.seeds.items():
            with self.server.entered():
                qdiscs = json.loads(commands.run(["tc", "-j", "-s", "qdisc", "show", "dev", ifb]))
            found = next((qdisc for qdisc in qdiscs if qdisc["kind"] == "netem"), None)
            if found is None:
                raise SetupError(f"{ifb}: the kernel shows no netem, though it was set")
            wrong = netem.differences(self.channel.netem, seed, found["options"])
            if wrong:
                raise SetupError(f"{ifb}: netem is not what was set: {'; '.join(wrong)}")
            seen[ifb] = found
        self.check()
        return seen


def ifb_of(channel: Channel, direction: str) -> str | None:
    """The IFB that carries a direction; None where it is not shaped."""
    if not channel.netem.shapes or direction not in DIRECTIONS[channel.direction]:
        return None
    return _HALF if channel.duplex == "half" else _IFBS[direction]


def _taps(channel: Channel, server: str, cut: bool) -> dict[str, list[Tap]]:
    if not channel.netem.shapes:
        return {"client-side": [Tap(INTERFACE, "", "both directions, unshaped")]}
    if cut:
        client_side = [Tap(MIRROR_UP, "", "uplink before the channel")]
        client_side.append(Tap(INTERFACE, f"arp or src host {server}", "downlink after the channel"))
    else:
        client_side = [Tap(INTERFACE, "", "uplink before the channel, downlink after it")]
    server_side = []
    uplink = ifb_of(channel, "uplink")
    if uplink:
        server_side.append(Tap(uplink, f"not src host {server}", "uplink after the channel"))
        server_side.append(Tap(MIRROR, "", "downlink before the channel"))
    else:
        server_side.append(Tap(MIRROR, "", "uplink, unshaped, and downlink before the channel"))
    return {"client-side": client_side, "server-side": server_side}


def _redirect(channel: Channel, direction: str, cut: bool) -> list[str]:
    hook = "ingress" if direction == "uplink" else "egress"
    ifb = ifb_of(channel, direction)
    actions = []
    if direction == "uplink" and cut:
        actions += ["action", "mirred", "egress", "mirror", "dev", MIRROR_UP]
    if direction == "downlink" or not ifb:
        actions += ["action", "mirred", "egress", "mirror", "dev", MIRROR]
    if ifb:
        actions += ["action", "mirred", "egress", "redirect", "dev", ifb]
    return ["tc", "filter", "add", "dev", INTERFACE, hook, "protocol", "ip", "matchall", *actions]


def _qdiscs(ifb: str, netem_words: list[str], cut: bool) -> list[list[str]]:
    add = ["tc", "qdisc", "add", "dev", ifb]
    if not cut:
        return [[*add, "root", *netem_words]]
    return [[*add, "root", "handle", _CUT, *_TBF], [*add, "parent", f"{_CUT}1", *netem_words]]


def _mirrors(cut: bool) -> list[str]:
    return [MIRROR, MIRROR_UP] if cut else [MIRROR]


def _plan_commands(channel: Channel, seeds: dict[str, int | None], cut: bool) -> list[list[list[str]]]:
    """Batches of commands, in the order in which they can be given."""
    links = [["ip", "link", "add", mirror, "type", "dummy"] for mirror in _mirrors(cut)]
    links += [["ip", "link", "add", ifb, "type", "ifb"] for ifb in seeds]
    ups = [["ip", "link", "set", device, "up"] for device in (*_mirrors(cut), *seeds)]
    rules = [words for ifb, seed in seeds.items() for words in _qdiscs(ifb, netem.arguments(channel.netem, seed), cut)]
    rules += [["tc", "qdisc", "add", "dev", INTERFACE, "clsact"]]
    rules += [_redirect(channel, direction, cut) for direction in ("uplink", "downlink")]
    return [links, ups, rules]


def _batch(batch: list[list[str]]) -> None:
    """Give commands of one program to one process of it: in the guest, starting a process is what costs."""
    lines = "".join(" ".join(words[1:]) + "\n" for words in batch)
    commands.run([batch[0][0], "-batch", "-"], stdin=lines)


def _undo(server: Host, devices: list[str]) -> None:
    with server.entered():
        commands.run(["tc", "qdisc", "del", "dev", INTERFACE, "clsact"])
        for device in devices:
            commands.run(["ip", "link", "del", device])


def tc_takes_seed() -> bool:
    """Whether this `tc` knows netem's `seed` (iproute2 6.6 and newer)."""
    words = commands.run(["tc", "-V"]).split("iproute2-")[-1].split(",")[0].split(".")
    return (int(words[0]), int(words[1])) >= (6, 6)


@contextmanager
def medium(server: Host, channel: Channel, seed: int, cut: bool = False) -> Iterator[Medium]:
    """Put the channel on the server's path and check what the kernel made of it; taken off after the `with`.

    netem's seed is derived from `seed` for each IFB, so that losses repeat. `cut`: the clients have segmentation offload.
    """
    shaped = dict.fromkeys(filter(None, (ifb_of(channel, direction) for direction in ("uplink", "downlink"))))
    with_seed = bool(shaped) and tc_takes_seed()
    seeds = {ifb: derive_seed(seed, "netem", ifb) if with_seed else None for ifb in shaped}
    up = Medium(server, channel, seeds, _taps(channel, server.address, cut))
    with ExitStack() as stack:
        if shaped:
            plan, devices = _plan_commands(channel, seeds, cut), [*seeds, *_mirrors(cut)]
            with server.entered():
                _batch(plan[0])
                stack.callback(_undo, server, devices)
                for device in devices if cut else ():
                    set_offloads(device, on=False)
                for batch in plan[1:]:
                    _batch(batch)
                up.watch = stack.enter_context(watched([INTERFACE, *seeds]))
            up.commands += [" ".join(words) for batch in plan for words in batch]
            up.readback()
        yield up
