import pandas as pd
import yaml

from testbed import fit, study


def trace(rows):
    columns = ["direction", "payload", "interval", "drain", "series", "published", "ours"]
    return pd.DataFrame(rows, columns=columns)


ROWS = [
    ("uplink", "gps", "5s", "10s", "mqtt/0", 8.0, 10.0),
    ("uplink", "gps", "5s", "10s", "mqtt/1", 20.0, 23.0),
    ("uplink", "gps", "5s", "60s", "mqtt/0", 8.0, 8.0),
    ("uplink", "gps", "5s", "60s", "mqtt/1", 20.0, 15.0),
    ("uplink", "gps", "1s", "60s", "mqtt/0", 8.0, 8.0),  # its other cell did not come to its end
    ("uplink", "image", "60s", "10s", "mqtt/0", 90.0, 99.0),
    ("uplink", "image", "60s", "10s", "mqtt/1", 90.0, 99.0),
    ("both", "gps", "5s", "10s", "mqtt/0", 8.0, 8.0),
    ("both", "gps", "5s", "10s", "mqtt/1", 20.0, 20.0),
    ("both", "image", "60s", "10s", "mqtt/0", 90.0, 80.0),
    ("both", "image", "60s", "10s", "mqtt/1", 90.0, 80.0),
]


def test_the_distance_is_the_sum_of_squared_differences_of_places_with_all_cells():
    sums = fit.distances(trace(ROWS))
    found = {(row.direction, row.payload, row.interval, row.drain): row.distance for row in sums.itertuples()}
    assert found[("uplink", "gps", "5s", "10s")] == 4 + 9
    assert found[("uplink", "gps", "5s", "60s")] == 25
    assert ("uplink", "gps", "1s", "60s") not in found
    assert sums.distance.is_monotonic_increasing


def test_the_best_direction_is_that_of_the_least_sum_over_its_payloads():
    chosen = fit.best(fit.distances(trace(ROWS)))  # uplink 13 + 162, both 0 + 200
    assert [(row.direction, row.payload, row.drain) for row in chosen.itertuples()] == [
        ("uplink", "gps", "10s"),
        ("uplink", "image", "10s"),
    ]


def test_a_longer_drain_is_cut(tmp_path):
    (tmp_path / "messages.csv").write_text(
        "publisher,seq,scheduled_ns,received_ns\n1,1,1000000000,2000000000\n1,2,2000000000,9000000000\n2,1,2000000000,\n"
    )
    assert fit.losses(tmp_path, ("0s", "5s", "7s")) == {"0s": 200 / 3, "5s": 200 / 3, "7s": 100 / 3}


def test_what_was_found_is_a_study_that_extends_the_first(tmp_path):
    name, base = study.load("ffi-2022")
    sums = fit.distances(trace(ROWS))
    (tmp_path / "fitted.yaml").write_text(fit.as_study(name, base, fit.best(sums), sums, 2))
    (tmp_path / "ffi-2022.yaml").write_text((study.FOLDER / "ffi-2022.yaml").read_text())
    _, found = study.load(str(tmp_path / "fitted.yaml"))
    assert found.payloads["gps"].interval == 5 * 10**9
    assert found.payloads["image"].drain == 10 * 10**9
    assert found.payloads["gps"].size == base.payloads["gps"].size
    assert found.protocols == base.protocols
    assert found.channel.duplex == base.channel.duplex
    assert yaml.safe_load((tmp_path / "fitted.yaml").read_text())["extends"] == "ffi-2022"
