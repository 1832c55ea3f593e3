from dataclasses import asdict

import pytest
import yaml

from clients import registry
from testbed import parameters, study, units


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.rate, "250kbit", 250_000),
        (units.rate, "9.6kbit", 9_600),
        (units.rate, "100mbit", 100_000_000),
        (units.rate, "1mibit", 8 * 2**17),
        (units.duration, "550ms", 550_000_000),
        (units.duration, "1.5us", 1_500),
        (units.duration, "0s", 0),
        (units.size, "50kB", 50_000),
        (units.size, "1KiB", 1024),
        (units.percent, "1%", 10**6),
        (units.percent, "0.000001%", 1),
        (units.percent, "100%", 10**8),
    ],
)
def test_a_value_keeps_its_exact_amount(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.rate, "250 kbits"),
        (units.rate, "250"),
        (units.rate, "250kb"),
        (units.rate, "9.601kbit"),
        (units.rate, "0kbit"),
        (units.rate, "-1kbit"),
        (units.rate, 250),
        (units.rate, None),
        (units.duration, "550"),
        (units.duration, "0.1ns"),
        (units.percent, "110%"),
        (units.percent, "1"),
        (units.percent, "0.0000001%"),
        (units.size, "1.5B"),
    ],
)
def test_what_cannot_be_kept_exactly_is_an_error_that_says_what_is_allowed(parse, text):
    with pytest.raises(ValueError, match="allowed is"):
        parse(text)


@pytest.mark.parametrize("bits", [8, 9_600, 16_000, 250_000, 2_000_000, 100_000_000, 1_234_568])
def test_a_rate_shown_reads_back_the_same(bits):
    assert units.rate(units.show_rate(bits)) == bits


@pytest.mark.parametrize("nanoseconds", [0, 1, 999, 1_500, 550_000_000, 10**9, 61 * 10**9])
def test_a_time_shown_reads_back_the_same(nanoseconds):
    assert units.duration(units.show_duration(nanoseconds)) == nanoseconds


@pytest.mark.parametrize("parts", [0, 1, 10**6, 1_500_000, 10**8])
def test_a_percentage_shown_reads_back_the_same(parts):
    assert units.percent(units.show_percent(parts)) == parts


@pytest.mark.parametrize("octets", [0, 1, 999, 1_000, 50_000, 1_000_001])
def test_a_size_shown_reads_back_the_same(octets):
    assert units.size(units.show_size(octets)) == octets


@pytest.mark.parametrize("name", registry.NAMES)
def test_parameters_shown_read_back_the_same(name):
    declared = registry.get(name).parameters
    _, file = study.load("ffi-2022")
    values = asdict(parameters.read("here", declared, file.protocols[name].parameters))
    known = {key: value for key, value in values.items() if value != parameters.AUTO}
    shown = {key: yaml.safe_load(word) for key, word in parameters.show(declared, known).items()}
    again = {**file.protocols[name].parameters, **shown}
    assert asdict(parameters.read("here", declared, again)) == values
