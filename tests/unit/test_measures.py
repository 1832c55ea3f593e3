import math

import pandas as pd
import pytest

from analysis import messages
from analysis.channel import loss
from clients.payloads import Message
from clients.records import Records


def table(tmp_path, delays_ms, copies=None):
    """One pair whose message k is sent at k seconds and arrives after delays_ms[k]; None is lost."""
    lines = [
        "publisher,subscriber,topic,seq,size_bytes,scheduled_ns,sent_ns,received_ns,copies",
    ]
    for seq, delay in enumerate(delays_ms, start=1):
        sent = 1_700_000_000 * 10**9 + seq * 10**9
        received = "" if delay is None else sent + int(delay * 10**6)
        count = (copies or {}).get(seq, 0 if delay is None else 1)
        lines.append(f"p,s,t,{seq},150,{sent},{sent},{received},{count}")
    path = tmp_path / "messages.csv"
    path.write_text("\n".join(lines) + "\n")
    return messages.read(path)


def test_measures_of_known_delays(tmp_path):
    row = messages.measures(table(tmp_path, [100, 200, None, 400], copies={2: 3}))
    assert (row["sent"], row["delivered"], row["loss_pct"], row["duplicates"]) == (4, 3, 25.0, 2)
    assert row["delay_mean_ms"] == pytest.approx(700 / 3)
    assert (row["delay_median_ms"], row["delay_max_ms"]) == (200, 400)
    assert row["jitter_mean_ms"] == pytest.approx(150)  # |200-100| and |400-200|


def test_nothing_delivered_is_a_loss_of_100_per_cent_and_no_delay(tmp_path):
    row = messages.measures(table(tmp_path, [None, None]))
    assert row["loss_pct"] == 100
    assert math.isnan(row["delay_mean_ms"])


def test_a_message_overtaken_by_a_later_one_is_out_of_order(tmp_path):
    assert messages.out_of_order(table(tmp_path, [100, 2500, 100, 100])) == 1  # 2 arrives at 4.5 s, after 3 and 4
    assert messages.out_of_order(table(tmp_path, [100, 200, 300])) == 0


def test_nanoseconds_survive(tmp_path):
    frame = table(tmp_path, [0.000001])
    assert frame["delay_ms"][0] == pytest.approx(1e-6)


def test_records_keep_the_first_copy_and_count_the_rest(tmp_path):
    records = Records("0000cafe", 150)
    payload = Message("0000cafe", 1, 1, 5, 150, "gps").encode()
    records.note_sent(1, 1, 5)
    records.note_sent(1, 2, 6)
    records.note_received(1, payload)
    records.note_received(1, payload)
    records.note_received(2, payload)  # not this subscriber's publisher
    records.note_received(1, b"noise")
    records.write(tmp_path / "messages.csv")
    frame = pd.read_csv(tmp_path / "messages.csv")
    assert frame["copies"].tolist() == [2, 0]
    assert frame["received_ns"].isna().tolist() == [False, True]
    assert records.foreign == 2


def test_channel_loss_with_its_interval():
    measured = loss({"drops": 10, "packets": 90}, {"drops": 110, "packets": 990})
    assert (measured["packets"], measured["dropped"], measured["loss_pct"]) == (1000, 100, 10.0)
    low, high = measured["loss_99_pct"]
    assert low < 10 < high
    assert high - low == pytest.approx(5, abs=0.5)  # 2 * 2.576 * sqrt(0.1 * 0.9 / 1000), in per cent
    queued = loss({"drops": 10, "packets": 90, "qlen": 5}, {"drops": 110, "packets": 590, "qlen": 405})
    assert (queued["packets"], queued["dropped"]) == (1000, 100)
    assert loss({"drops": 1, "packets": 1}, {"drops": 1, "packets": 1})["loss_pct"] is None
