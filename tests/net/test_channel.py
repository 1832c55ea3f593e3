"""The channel against physics: delay = configured delay + 8·bytes/rate, in namespaces with real netem."""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from analysis.channel import loss
from testbed import commands, profile
from testbed.cell import Channel
from testbed.channel import medium
from testbed.errors import SetupError
from testbed.netem import Netem
from testbed.netns import fabric, set_offloads

HEADERS = 42  # Ethernet 14, IPv4 20, UDP 8 bytes
TOLERANCE = 50_000  # ns
TCP = {"net.ipv4.tcp_congestion_control": "cubic"}


@contextmanager
def pair(netem, direction="uplink", duplex="full", seed=7, clients=1, cut=False):
    """A server and clients with one channel between them: (server, client, …), medium."""
    names = [f"client-{number}" for number in range(clients)]
    with (
        fabric(names, TCP) as net,
        medium(net.server, Channel("shared", direction, duplex, netem), seed, cut) as link,
    ):
        yield (net.server, *net.clients.values()), link


class Wire:
    """UDP sockets on two hosts, to time datagrams between them."""

    def __init__(self, *hosts):
        self.sockets, self.hosts = {}, hosts
        for host in hosts:
            with host.entered():
                self.sockets[host.name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self.sockets[host.name].bind((host.address, 5000))
                self.sockets[host.name].settimeout(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.sockets.values():
            each.close()

    def send(self, sender, receiver, size):
        self.sockets[sender.name].sendto(bytes(size), (receiver.address, 5000))
        return time.time_ns()

    def receive(self, receiver):
        self.sockets[receiver.name].recv(65536)
        return time.time_ns()

    def delay(self, sender, receiver, size):
        sent = self.send(sender, receiver, size)
        return self.receive(receiver) - sent


def expected(netem, size):
    return netem.delay + (size + HEADERS) * 8 * 10**9 // netem.rate


@pytest.mark.parametrize("name", ["5g", "satcom", "nbwf"])
@pytest.mark.parametrize("size", [1, 150, 700, 1472])
def test_one_way_delay_is_the_configured_delay_plus_serialisation(name, size):
    netem = profile.load(name).netem
    with pair(netem) as ((server, client), _), Wire(server, client) as wire:
        assert abs(wire.delay(client, server, size) - expected(netem, size)) < TOLERANCE


SATCOM = profile.load("satcom").netem


@pytest.mark.parametrize(("direction", "up", "down"), [("uplink", 1, 0), ("downlink", 0, 1), ("both", 1, 1)])
@pytest.mark.parametrize("duplex", ["full", "half"])
def test_only_the_chosen_directions_are_shaped(direction, duplex, up, down):
    with pair(SATCOM, direction, duplex) as ((server, client), _), Wire(server, client) as wire:
        assert abs(wire.delay(client, server, 100) - up * expected(SATCOM, 100)) < TOLERANCE
        assert abs(wire.delay(server, client, 100) - down * expected(SATCOM, 100)) < TOLERANCE


@pytest.mark.parametrize(("duplex", "waits"), [("full", 0), ("half", 1)])
def test_in_half_duplex_both_directions_share_the_rate(duplex, waits):
    serialisation = (1000 + HEADERS) * 8 * 10**9 // SATCOM.rate
    with pair(SATCOM, "both", duplex) as ((server, client), _), Wire(server, client) as wire:
        wire.send(client, server, 1000)
        sent = wire.send(server, client, 1000)
        delay = wire.receive(client) - sent
        assert abs(delay - expected(SATCOM, 1000) - waits * serialisation) < TOLERANCE


def test_all_clients_share_one_link():
    with pair(SATCOM, clients=3) as ((server, *clients), _), Wire(server, *clients) as wire:
        begin = [wire.send(client, server, 1000) for client in clients]
        arrivals = [wire.receive(server) - begin[0] for _ in clients]
    serialisation = (1000 + HEADERS) * 8 * 10**9 // SATCOM.rate
    for position, arrival in enumerate(arrivals):
        assert abs(arrival - SATCOM.delay - (position + 1) * serialisation) < TOLERANCE


def test_arp_stays_off_the_channel():
    """The very first datagram, for which the client must first ask who has the address, takes no longer."""
    with pair(SATCOM, "both") as ((server, client), link), Wire(server, client) as wire:
        assert wire.delay(client, server, 10) - expected(SATCOM, 10) < TOLERANCE
        assert link.readback()["ifb-up"]["packets"] == 1


def losses(seed, count=2000):
    netem = Netem(limit=10**5, delay=10**8, loss=10 * 10**6)
    with pair(netem, seed=seed) as ((server, client), link), Wire(server, client) as wire:
        before = link.readback()["ifb-up"]
        wire.sockets["server"].setsockopt(
            socket.SOL_SOCKET, 33, 2**26
        )  # 33: SO_RCVBUFFORCE, so that none is dropped here
        wire.sockets["server"].settimeout(1)
        for number in range(count):
            wire.send(client, server, 1 + number % 1000)
        sizes = []
        with suppress(TimeoutError):
            while True:
                sizes.append(len(wire.sockets["server"].recv(65536)))
        return sizes, loss(before, link.readback()["ifb-up"])


def test_loss_is_the_profiles_within_its_binomial_interval_and_repeats_with_the_seed():
    sizes, measured = losses(seed=7, count=2000)
    low, high = measured["loss_99_pct"]
    assert measured["packets"] == 2000
    assert measured["dropped"] == 2000 - len(sizes)
    assert low < 10 < high
    assert losses(seed=7, count=2000)[0] == sizes
    assert losses(seed=8, count=2000)[0] != sizes


def largest_packet(server, client, device="ifb-up"):
    """Send 200 kB over TCP through the uplink, or the downlink; bytes of the largest packet that left the channel there.

    Seen by a packet socket: netem's own count takes a 64 kB piece for as many packets as it will be cut to.
    """
    with server.entered():
        listener = socket.create_server((server.address, 5001))
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # 3: ETH_P_ALL
        sniffer.bind((device, 0))
        sniffer.setsockopt(socket.SOL_SOCKET, 33, 2**24)
        sniffer.setblocking(False)
    with client.entered():
        near = socket.create_connection((server.address, 5001))
    with listener, sniffer, near, listener.accept()[0] as far:
        sender, receiver = (near, far) if device == "ifb-up" else (far, near)
        sending = threading.Thread(target=sender.sendall, args=(bytes(200_000),))
        sending.start()
        got = 0
        while got < 200_000:
            got += len(receiver.recv(65536))
        sending.join()
        sizes = []
        with suppress(BlockingIOError):
            while True:
                sizes.append(len(sniffer.recv(2**17)))
    assert sum(sizes) >= 200_000
    return max(sizes)


FAST = Netem(limit=10**5, rate=10_000_000)


def test_packets_leave_cut_to_the_mtu_so_that_none_is_lost_or_delayed_as_a_64_kb_piece():
    with pair(FAST, "both") as ((server, client), _):
        assert largest_packet(server, client) == 1514
        assert largest_packet(server, client, "ifb-down") == 1514


@pytest.mark.parametrize("cut", [True, False])
def test_the_channel_cuts_what_comes_from_clients_with_segmentation_offload(cut):
    with pair(FAST, cut=cut) as ((server, client), _):
        with client.entered():
            set_offloads("eth0", on=True)
            commands.run(["ip", "link", "set", "dev", "eth0", "gso_max_segs", "64"])
        assert (largest_packet(server, client) == 1514) == cut


@pytest.mark.parametrize("size", [1, 1472])
def test_cutting_takes_no_time(size):
    with pair(SATCOM, "both", cut=True) as ((server, client), _), Wire(server, client) as wire:
        assert abs(wire.delay(client, server, size) - expected(SATCOM, size)) < TOLERANCE
        assert abs(wire.delay(server, client, size) - expected(SATCOM, size)) < TOLERANCE


EVERY_WORD = {
    "jitter": Netem(limit=100, delay=10**8, jitter=10**7, delay_correlation=25 * 10**6, distribution="normal"),
    "loss random": Netem(limit=100, loss=10**6, loss_correlation=25 * 10**6),
    "loss state": Netem(
        limit=100, loss_state={"p13": 10**6, "p31": 9 * 10**7, "p32": 10**6, "p23": 9 * 10**7, "p14": 10**6}
    ),
    "loss gemodel": Netem(limit=100, loss_gemodel={"p": 10**6, "r": 10**7, "1-h": 10**8, "1-k": 10**5}),
    "reorder": Netem(limit=100, delay=10**7, reorder=25 * 10**6, reorder_correlation=50 * 10**6, gap=5),
    "duplicate": Netem(limit=100, duplicate=10**6, duplicate_correlation=10**7),
    "corrupt": Netem(limit=100, corrupt=10**5, corrupt_correlation=3 * 10**6),
    "rate": Netem(limit=100, rate=9_600),
    "all": Netem(limit=100, delay=1, loss=1000, duplicate=10**6, corrupt=10**6, rate=8),
}


@pytest.mark.parametrize("netem", EVERY_WORD.values(), ids=EVERY_WORD.keys())
def test_the_kernel_takes_every_word_of_netem_as_it_was_meant(netem):
    with pair(netem, "both") as (_, link):
        assert set(link.readback()) == {"ifb-up", "ifb-down"}


def test_a_changed_or_vanished_impairment_is_found():
    with pair(SATCOM) as ((server, _), link):
        with server.entered():
            commands.run(["tc", "qdisc", "change", "dev", "ifb-up", "root", "netem", "delay", "551ms"])
        with pytest.raises(SetupError, match="not what was set"):
            link.readback()
        with server.entered():
            commands.run(["tc", "qdisc", "del", "dev", "ifb-up", "root"])
        with pytest.raises(SetupError, match="no netem"):
            link.readback()


def test_nothing_is_left_behind():
    def everything():
        return sorted(path.name for path in Path("/sys/class/net").iterdir())

    before = everything(), len(list(Path("/proc/self/fd").iterdir()))
    with pair(SATCOM, "both", clients=5):
        pass
    with pytest.raises(ZeroDivisionError), pair(SATCOM):
        _ = 1 / 0
    assert (everything(), len(list(Path("/proc/self/fd").iterdir()))) == before
