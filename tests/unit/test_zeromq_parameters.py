"""ZeroMQ's parameters, endpoints and frames, without a network."""

import dataclasses

import pytest
import zmq

from clients import zeromq
from clients.zeromq_transport import DOWNLINK, NORM, PGM, TCP, UPLINK, Seat, Tcp, require
from testbed import parameters
from testbed.errors import SetupError, UserError
from testbed.parameters import Circumstances, Leg, derive

SECOND = 10**9
UNSHAPED = Leg(0, 0)
SATCOM, CNR = Leg(250_000, 550 * 10**6), Leg(9_600, 100 * 10**6)
WRITTEN = {
    "sndhwm": 0,
    "rcvhwm": 0,
    "linger": "0s",
    "uplink_rate": "auto",
    "downlink_rate": "auto",
    "recovery_ivl": "auto",
    "multicast_hops": 1,
    "multicast_maxtpdu": "auto",
    "hellos": "auto",
    "hello_interval": "auto",
}


def derived(uplink, downlink=UNSHAPED, clients=27, size=150, **changes):
    kind = zeromq.PgmParameters
    read = dataclasses.asdict(parameters.read("study", kind, WRITTEN | changes))
    return kind(**derive(kind, read, Circumstances(uplink, downlink, clients, size)))


def test_a_sender_may_use_the_whole_rate_of_its_leg_in_whole_kilobits():
    assert derived(SATCOM).uplink_rate == 250_000
    assert derived(CNR).uplink_rate == 9_000
    assert derived(SATCOM).downlink_rate == 100_000_000
    assert derived(SATCOM, CNR).downlink_rate == 9_000


def test_a_packet_is_never_larger_than_what_the_rate_limiter_lets_through_in_a_second():
    assert derived(SATCOM).multicast_maxtpdu == 1500
    assert derived(CNR).multicast_maxtpdu == 1125
    assert derived(UNSHAPED, CNR).multicast_maxtpdu == 1125


def test_a_very_slow_link_still_gets_a_window():
    slow = derived(Leg(1_200, 0))
    assert (slow.uplink_rate, slow.multicast_maxtpdu) == (8_000, 1000)


def test_the_recovery_interval_covers_ten_lost_repairs_and_the_queue_of_all_clients():
    queue = 27 * 150 * 8 / 250_000
    assert derived(SATCOM).recovery_ivl == pytest.approx((10 * (0.55 + 0.25) + queue) * SECOND, abs=10**6)
    assert derived(SATCOM, SATCOM).recovery_ivl == pytest.approx((10 * (1.1 + 0.25) + queue) * SECOND, abs=10**6)
    assert derived(CNR, size=50_000).recovery_ivl > 27 * 50_000 * 8 / 9_600 * SECOND


def test_the_hellos_of_all_clients_fill_a_quarter_of_the_channel():
    interval = derived(CNR).hello_interval / SECOND
    assert 27 * 600 * 8 / 9_600 / interval == pytest.approx(0.25, rel=0.01)
    assert derived(SATCOM).hello_interval > 2 * SATCOM.delay


def test_more_hellos_where_they_may_be_lost():
    assert derived(SATCOM).hellos == 2
    assert derived(dataclasses.replace(CNR, loses=True)).hellos == 5
    assert derived(SATCOM, dataclasses.replace(CNR, loses=True)).hellos == 5
    assert derived(SATCOM, hellos=7).hellos == 7


def test_what_the_study_states_is_not_derived():
    assert derived(SATCOM, uplink_rate="64kbit", recovery_ivl="10s").uplink_rate == 64_000
    assert derived(SATCOM, recovery_ivl="10s").recovery_ivl == 10 * SECOND
    assert derived(SATCOM, multicast_maxtpdu="900B").multicast_maxtpdu == 900


@pytest.mark.parametrize("change", [{"uplink_rate": "fast"}, {"recovery_ivl": 10}, {"multicast_maxtpdu": "Auto"}])
def test_a_wrong_value_names_the_key_and_says_that_auto_is_allowed(change):
    (key,) = change
    with pytest.raises(UserError, match=rf"^study\.{key}: .*allowed is .*or auto$"):
        derived(SATCOM, **change)


def test_auto_is_no_value_for_a_parameter_that_nothing_derives():
    with pytest.raises(UserError, match=r"study\.linger: 'auto'"):
        derived(SATCOM, linger="auto")


def test_socket_options_are_in_libzmqs_units():
    up, down = (derived(SATCOM).options(leg) for leg in (UPLINK, DOWNLINK))
    assert (up[zmq.SocketOption.RATE], down[zmq.SocketOption.RATE]) == (250, 100_000)
    assert up[zmq.SocketOption.RECOVERY_IVL] == 8130
    tcp = Tcp(
        0, 0, linger=SECOND, reconnect_ivl=2 * SECOND, reconnect_ivl_max=0, connect_timeout=0, handshake_ivl=SECOND
    )
    options = tcp.options(UPLINK)
    assert options[zmq.SocketOption.LINGER] == 1000
    assert options[zmq.SocketOption.RECONNECT_IVL] == 2000


@pytest.mark.parametrize("transport", [TCP, PGM, NORM])
@pytest.mark.parametrize("leg", [UPLINK, DOWNLINK])
def test_both_ends_of_a_leg_meet_and_the_legs_are_apart(transport, leg):
    server, clients = "198.18.0.1", {1: "198.18.0.2", 2: "198.18.0.3"}

    def meeting(leg, sends, address, numbers):
        endpoints = transport.endpoints(Seat(leg, sends, address, server, numbers))
        return {endpoint.split("://")[1].split(";")[-1] for endpoint in endpoints}

    forwarder = meeting(leg, leg == DOWNLINK, server, range(1, 3))
    for number, address in clients.items():
        assert meeting(leg, leg == UPLINK, address, [number]) <= forwarder
    other = DOWNLINK if leg == UPLINK else UPLINK
    assert not forwarder & meeting(other, other == DOWNLINK, server, range(1, 3))


@pytest.mark.parametrize("size", [1, 100, 1380, 1381, 50_000])
def test_norm_frames_hold_the_message_and_fit_libzmqs_buffer(size):
    norm = zeromq.NormParameters(hellos=1, hello_interval=0, sndhwm=0, rcvhwm=0, linger=0, frame_bytes=1380)
    data = bytes(byte % 251 for byte in range(size))
    frames = norm.frames(data)
    assert b"".join(frames) == data
    assert max(map(len, frames)) <= 1380


@pytest.mark.parametrize("library", ["pgm", "norm"])
def test_a_libzmq_without_the_library_is_an_error_that_says_how_to_get_it(monkeypatch, library):
    monkeypatch.setattr(zmq, "has", lambda _: False)
    with pytest.raises(SetupError, match=f"without {library.upper()}.*libzmq3-dev.*--no-binary pyzmq"):
        require(library)
    require("")
