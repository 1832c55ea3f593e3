import dataclasses
import json

import pytest

from testbed import profile, study
from testbed.cell import cell_from_json
from testbed.errors import UserError
from testbed.plan import Choice, resolve


def plan(**choice):
    name, file = study.load("ffi-2022")
    return resolve(name, file, "studies/ffi-2022.yaml", profile.load("satcom"), Choice(**choice))


def test_the_default_study_has_the_papers_clients_and_qos_levels():
    cells = plan(protocol="mqtt").cells
    assert {(cell.qos, cell.payload) for cell in cells} == {(q, p) for q in (0, 1, 2) for p in ("gps", "image")}
    assert {cell.clients for cell in cells} == {27}
    assert {cell.channel.label for cell in cells} == {"shared/uplink/full"}


def test_a_choice_goes_over_the_study():
    chosen = plan(protocol="mqtt", qos="2", payload="gps", clients=3, messages=4, interval="1s", drain="0s", repeats=2)
    assert [cell.repeat for cell in chosen.cells] == [1, 2]
    cell = chosen.cells[0]
    assert (cell.qos, cell.clients, cell.messages, cell.interval, cell.drain) == (2, 3, 4, 10**9, 0)


def test_channel_words():
    channel = plan(channel="shared/both/half").cells[0].channel
    assert (channel.direction, channel.duplex) == ("both", "half")


def test_a_cells_seed_depends_on_the_run_and_the_cell_but_not_on_its_neighbours():
    alone = plan(protocol="mqtt", qos="1", payload="gps", seed=7).cells[0]
    among = {cell.id: cell for cell in plan(seed=7).cells}[alone.id]
    assert alone == among
    assert plan(protocol="mqtt", qos="1", payload="gps", seed=8).cells[0].seed != alone.seed
    assert len({cell.seed for cell in plan(repeats=3).cells}) == len(plan(repeats=3).cells)


def test_a_cell_survives_json():
    cell = plan(capture="publisher-01").cells[0]
    assert cell_from_json(json.loads(json.dumps(dataclasses.asdict(cell)))) == cell


@pytest.mark.parametrize(
    ("choice", "variable"),
    [
        ({"qos": "3"}, "QOS"),
        ({"protocol": "mqqt"}, "PROTOCOL"),
        ({"payload": "video"}, "PAYLOAD"),
        ({"clients": 0}, "CLIENTS"),
        ({"clients": 121}, "CLIENTS"),
        ({"messages": 0}, "MESSAGES"),
        ({"interval": "0s"}, "INTERVAL"),
        ({"interval": "10"}, "INTERVAL"),
        ({"drain": "long"}, "DRAIN"),
        ({"repeats": 0}, "REPEATS"),
        ({"channel": "sideways"}, "CHANNEL"),
        ({"capture": "publisher-28"}, "CAPTURE"),
    ],
)
def test_a_wrong_choice_is_one_line_that_names_it_and_what_is_allowed(choice, variable):
    with pytest.raises(UserError) as error:
        plan(**choice)
    line = str(error.value)
    assert line.startswith(f"{variable}: {next(iter(choice.values()))!r}")
    assert "allowed" in line
    assert "\n" not in line


def study_file(tmp_path, change):
    text = (study.FOLDER / "ffi-2022.yaml").read_text()
    assert change[0] in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(*change, 1))
    name, file = study.load(str(path))
    return resolve(name, file, str(path), profile.load("satcom"), Choice())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("keepalive: 600s", "keepalive: 600"), "keepalive"),
        (("keepalive: 600s", "keepalife: 600s"), "keepalife"),
        (("    qos: [0, 1, 2]", "    qos: [0, 1, 5]"), "qos"),
        (("max_queued_messages: 0", "max_queued_messages: -1"), "max_queued_messages"),
        (("max_queued_messages: 0", "max_queued_messages: many"), "max_queued_messages"),
        (("  mqtt:\n", "  mqqt:\n"), "mqqt"),
        (("size: 50kB", "size: 5kB"), "image"),
        (("size: 150B", "size: 15B"), "gps"),
        (("direction: uplink", "direction: up"), "direction"),
        (("clients: 27", "clients: 27.5"), "clients"),
    ],
)
def test_a_wrong_value_in_a_study_is_one_line_that_names_it(tmp_path, change, words):
    with pytest.raises(UserError) as error:
        study_file(tmp_path, change)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
