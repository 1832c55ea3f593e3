"""Our pcapng files, read back by tshark and capinfos."""

import struct

import pytest

from testbed import commands
from testbed.pcapng import Interface, bring_together, read_pcap

FRAME = bytes.fromhex("0200c6120001 0200c6120000 0800") + bytes.fromhex(
    "4500001e000100004011 0000 c6120002 c6120001 1388 1388 000a 0000"
)
BEGIN = 1_700_000_000


def raw(path, stamps, data=FRAME):
    content = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    for stamp in stamps:
        content += struct.pack("=IIII", *divmod(stamp, 10**9), len(data), len(data)) + data
    path.write_bytes(content)
    return path


def fields(path, *names):
    words = ["tshark", "-r", str(path), "-T", "fields", *(word for name in names for word in ("-e", name))]
    return [tuple(line.split("\t")) for line in commands.run(words).splitlines()]


def test_two_taps_become_one_file_in_the_order_of_their_stamps(tmp_path):
    first = raw(tmp_path / "a", [BEGIN * 10**9 + 1, BEGIN * 10**9 + 300])
    second = raw(tmp_path / "b", [BEGIN * 10**9 + 20])
    sources = [(Interface("ifb-up", "uplink"), first), (Interface("mirror", "downlink"), second)]
    totals = bring_together(sources, tmp_path / "out.pcap", "cell x, seed 7")
    seen = ((1, "server ifb-up: uplink"), (20, "server mirror: downlink"), (300, "server ifb-up: uplink"))
    expected = [(f"{BEGIN}.{ns:09d}", name) for ns, name in seen]
    assert fields(tmp_path / "out.pcap", "frame.time_epoch", "frame.interface_name") == expected
    assert (totals.packets, totals.bytes) == (3, 3 * len(FRAME))
    assert "cell x, seed 7" in commands.run(["capinfos", "-k", str(tmp_path / "out.pcap")])


def test_arp_is_kept_but_not_counted_as_traffic(tmp_path):
    arp = FRAME[:12] + b"\x08\x06" + bytes(28)
    totals = bring_together([(Interface("eth0", ""), raw(tmp_path / "a", [10], arp))], tmp_path / "out.pcap", "")
    assert totals.packets == 0
    assert len(fields(tmp_path / "out.pcap", "frame.number")) == 1


def test_a_record_cut_short_by_a_crash_is_left_out(tmp_path):
    path = raw(tmp_path / "a", [10, 20])
    path.write_bytes(path.read_bytes()[:-3])
    assert len(list(read_pcap(path, 0))) == 1


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(bytes(100))
    with pytest.raises(ValueError, match="not a PCAP"):
        list(read_pcap(tmp_path / "a", 0))
