import pytest

from compose import images
from testbed import profile, study
from testbed.plan import Choice, resolve


def cells(protocol, **variables):
    name, file = study.load("ffi-2022")
    return resolve(name, file, name, profile.load("lan"), Choice(protocol=protocol, servers=variables)).cells


@pytest.mark.parametrize(
    ("protocol", "variables", "given"),
    [
        ("mqtt", {}, {}),
        ("mqtt", {}, {"BROKER_IMAGE": "a:1"}),
        ("mqttsn,zmq-tcp", {}, {"GATEWAY_IMAGE": "a:1", "BROKER_IMAGE": "b:1"}),
        ("mqttsn-hybrid", {"GATEWAY": "paho"}, {"PAHO_GATEWAY_IMAGE": "a:1"}),
    ],
)
def test_an_image_can_be_named_for_each_server_of_the_run(protocol, variables, given):
    assert images.problem(cells(protocol, **variables), given) is None


@pytest.mark.parametrize(
    ("protocol", "variables", "given", "words"),
    [
        ("mqtt", {}, {"BROKER_IMAGE": ""}, "BROKER_IMAGE: '': allowed is the name of an image"),
        ("mqtt", {}, {"GATEWAY_IMAGE": "a:1"}, "GATEWAY_IMAGE: 'a:1': none of the chosen protocols has this server"),
        ("zmq-tcp", {}, {"BROKER_IMAGE": "a:1"}, "they run in the testbed's own image"),
        ("mqttsn", {}, {"PAHO_GATEWAY_IMAGE": "a:1"}, "allowed with them is BROKER_IMAGE, GATEWAY_IMAGE"),
        ("mqttsn", {"GATEWAY": "paho"}, {}, "PAHO_GATEWAY_IMAGE: missing"),
    ],
)
def test_an_image_for_nothing_or_none_for_a_server_is_an_error(protocol, variables, given, words):
    assert words in (images.problem(cells(protocol, **variables), given) or "")
