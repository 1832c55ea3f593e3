"""The MQTT-SN clients on our loop against a gateway that is a scripted socket on loopback, expecting exact bytes."""

import socket
import time
from collections.abc import Iterator

import pytest
from mqttsn_stage import ACCEPT, CONNECT_PUBLISHER, MS, REGISTER, RETRY, Stage, loopback, message, publish

from clients.mqttsn.codec import Publish
from clients.mqttsn.fields import Flags
from clients.mqttsn.session import PORT
from clients.protocol import PUBLISHER


@pytest.fixture
def stage() -> Iterator[Stage]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gateway:
        gateway.bind((loopback(1), PORT))
        gateway.setblocking(False)
        it = Stage(gateway)
        yield it
        for client in it.clients:
            client.close()
        it.loop.close()


def test_qos_0_publishes_without_waiting(stage: Stage) -> None:
    client = stage.registered(0)
    for seq in (1, 2):
        client.publish(message(seq))
    for seq in (1, 2):
        stage.expect(publish(0x00, 0, message(seq).encode()))


def test_qos_minus_1_publishes_without_a_connection(stage: Stage) -> None:
    client = stage.start(PUBLISHER, -1)
    assert client.ready
    client.publish(message())
    stage.expect(publish(0x61, 0, message().encode(), topic_id=3))
    stage.silence()


def test_qos_1_has_one_message_under_way(stage: Stage) -> None:
    client = stage.registered(1)
    for seq in (1, 2):
        client.publish(message(seq))
    stage.expect(publish(0x20, 2, message(1).encode()))
    stage.silence()
    stage.send("07 0d 0201 0002 00")
    stage.expect(publish(0x20, 3, message(2).encode()))
    assert client.counters()["queue_max"] == 1


def test_retransmission_has_dup_and_comes_after_the_interval(stage: Stage) -> None:
    client = stage.registered(1)
    begin = time.time_ns()
    client.publish(message())
    stage.expect(publish(0x20, 2, message().encode()))
    stage.expect(publish(0xA0, 2, message().encode()), within=2 * RETRY)
    assert time.time_ns() - begin >= RETRY
    stage.send("07 0d 0201 0002 00")
    stage.silence(2 * RETRY)
    assert client.counters()["retransmissions"] == 1


def test_give_up_drops_the_message_and_connects_anew(stage: Stage) -> None:
    client = stage.registered(1)
    client.publish(message(1))
    client.publish(message(2))
    stage.expect(publish(0x20, 2, message(1).encode()))
    for _ in range(2):
        stage.expect(publish(0xA0, 2, message(1).encode()), within=2 * RETRY)
    stage.expect(CONNECT_PUBLISHER, within=3 * RETRY)
    assert (client.counters()["give_ups"], client.counters()["retransmissions"]) == (1, 2)
    stage.send(ACCEPT)
    stage.expect(REGISTER.replace(b"\0\x01testbed", b"\0\x03testbed"))
    stage.send("07 0b 0202 0003 00")
    stage.expect(publish(0x20, 4, message(2).encode(), topic_id=0x0202))


def test_qos_2_handshake_of_a_publisher(stage: Stage) -> None:
    client = stage.registered(2)
    client.publish(message(1))
    client.publish(message(2))
    stage.expect(publish(0x40, 2, message(1).encode()))
    stage.send("04 0f 0002")
    stage.expect("04 10 0002")
    stage.expect("04 10 0002", within=2 * RETRY)
    stage.send("04 0f 0002")  # late and double: no new PUBREL
    stage.send("04 0e 0002")
    stage.expect(publish(0x40, 3, message(2).encode()))
    assert client.counters()["unexpected"] == 1


def test_disconnect_by_the_gateway_repeats_what_was_under_way(stage: Stage) -> None:
    client = stage.registered(1)
    client.publish(message())
    stage.expect(publish(0x20, 2, message().encode()))
    stage.send("02 18")
    stage.expect(CONNECT_PUBLISHER)
    stage.send(ACCEPT)
    stage.receive()
    stage.send("07 0b 0202 0003 00")
    stage.expect(publish(0x20, 4, message().encode(), topic_id=0x0202))
    assert client.counters()["disconnects"] == 1


def test_invalid_topic_id_registers_again(stage: Stage) -> None:
    client = stage.registered(1)
    client.publish(message())
    stage.expect(publish(0x20, 2, message().encode()))
    stage.send("07 0d 0201 0002 02")
    stage.expect(REGISTER.replace(b"\0\x01testbed", b"\0\x03testbed"))
    stage.send("07 0b 0203 0003 00")
    stage.expect(publish(0x20, 4, message().encode(), topic_id=0x0203))


def test_congestion_waits(stage: Stage) -> None:
    client = stage.start(PUBLISHER, 0)
    stage.expect(CONNECT_PUBLISHER)
    stage.send("03 05 01")
    stage.silence(150 * MS)
    stage.expect(CONNECT_PUBLISHER, within=450 * MS)
    assert client.counters()["rejected"] == 1


def test_keepalive_pings_and_a_lost_gateway_is_noticed(stage: Stage) -> None:
    client = stage.registered(0, keepalive=40 * MS)
    stage.expect("02 16", within=2 * RETRY)
    stage.send("02 17")
    for _ in range(3):
        stage.expect("02 16", within=2 * RETRY)
    assert stage.receive(3 * RETRY).endswith(b"publisher-03")
    assert (client.counters()["pings"], client.counters()["give_ups"]) == (2, 1)


def test_disconnect_when_closed(stage: Stage) -> None:
    client = stage.registered(0)
    stage.clients.remove(client)
    client.close()
    stage.expect("02 18")


def test_qos_1_subscriber_acknowledges_and_delivers_duplicates(stage: Stage) -> None:
    client = stage.subscribed(1)
    stage.send(publish(0x20, 9, b"once"))
    stage.expect("07 0d 0201 0009 00")
    stage.send(publish(0xA0, 9, b"once"))
    stage.expect("07 0d 0201 0009 00")
    assert stage.delivered == [b"once", b"once"]
    assert client.counters()["duplicates"] == 1


def test_qos_2_subscriber_delivers_once(stage: Stage) -> None:
    client = stage.subscribed(2)
    stage.send(publish(0x40, 9, b"once"))
    stage.expect("04 0f 0009")
    stage.send(publish(0xC0, 9, b"once"))
    stage.expect("04 0f 0009")
    for _ in range(2):
        stage.send("04 10 0009")
        stage.expect("04 0e 0009")
    assert stage.delivered == [b"once"]
    assert client.counters()["duplicates"] == 1
    stage.send(publish(0x40, 9, b"the id is free again"))
    stage.expect("04 0f 0009")
    assert stage.delivered[1:] == [b"the id is free again"]


def test_register_from_the_gateway(stage: Stage) -> None:
    client = stage.subscribed(1)
    stage.send(publish(0x20, 8, b"unknown", topic_id=0x0300))
    stage.expect("07 0d 0300 0008 02")
    stage.send(bytes.fromhex("09 0a 0300 0009 612f62"))
    stage.expect("07 0b 0300 0009 00")
    stage.send(publish(0x20, 8, b"known", topic_id=0x0300))
    stage.expect("07 0d 0300 0008 00")
    assert stage.delivered == [b"known"]
    assert client.counters()["unknown_topics"] == 1


def test_predefined_and_short_topics_are_taken(stage: Stage) -> None:
    stage.subscribed(0)
    stage.send(publish(0x01, 0, b"predefined", topic_id=3), publish(0x02, 0, b"short", topic_id=0x6162))
    assert stage.delivered == [b"predefined", b"short"]


def test_second_answer_to_a_repeated_subscribe_counts(stage: Stage) -> None:
    stage.subscribed(0)
    stage.send("08 13 00 0202 0001 00")
    stage.send(publish(0x00, 0, b"on the second id", topic_id=0x0202))
    assert stage.delivered == [b"on the second id"]


def test_malformed_datagrams_are_counted_and_ignored(stage: Stage) -> None:
    client = stage.subscribed(0)
    stage.send(b"", b"\x02", b"\x07\x0c\x00", b"\xff" * 300)
    stage.send(publish(0x00, 0, b"still here"))
    assert stage.delivered == [b"still here"]
    assert client.counters()["malformed"] == 4


def test_chunks_are_put_together(stage: Stage) -> None:
    client = stage.registered(0)
    client.publish(message(size=50_000))
    datagrams = [stage.receive() for _ in range(51)]
    stage.silence()
    assert {len(datagram) for datagram in datagrams[:-1]} == {9 + 1000}
    chunks = [datagram[9:] for datagram in datagrams]
    stage.clients.remove(client)
    client.close()
    stage.receive()
    stage.subscribed(1)
    for chunk in (chunks[-1], *reversed(chunks)):
        assert not stage.delivered
        stage.send(Publish(Flags(qos=1), 0x0201, 9, chunk).encode())
        stage.receive()
    assert stage.delivered == [message(size=50_000).encode()]
