import pytest

from testbed.netem import Netem, arguments, describe, differences

SATCOM = Netem(limit=1000, delay=550_000_000, rate=250_000)
# What `tc -j qdisc show` of iproute2 6.15 prints for it.
SATCOM_SEEN = {
    "limit": 1000,
    "delay": {"delay": 0.55, "jitter": 0, "correlation": 0},
    "rate": {"rate": 31250, "packetoverhead": 0, "cellsize": 0, "celloverhead": 0},
    "seed": 77,
    "ecn": False,
    "gap": 0,
}


def test_words_for_tc():
    netem = Netem(limit=9, delay=10**8, jitter=10**7, delay_correlation=25 * 10**6, loss=10**7, rate=9600)
    expected = "netem limit 9 delay 100000000ns 10000000ns 25% loss random 10% rate 9600bit seed 5"
    assert " ".join(arguments(netem, 5)) == expected


def test_words_for_the_loss_models():
    state = dict.fromkeys(("p13", "p31", "p32", "p23", "p14"), 10**6)
    gemodel = {"p": 10**6, "r": 2 * 10**6, "1-h": 3 * 10**6, "1-k": 0}
    assert arguments(Netem(limit=1, loss_state=state), None)[3:] == ["loss", "state", *["1%"] * 5]
    assert arguments(Netem(limit=1, loss_gemodel=gemodel), None)[3:] == ["loss", "gemodel", "1%", "2%", "3%", "0%"]


def test_the_kernels_own_words_for_the_same_netem_differ_nowhere():
    assert differences(SATCOM, 77, SATCOM_SEEN) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("limit", 999),
        ("delay", {"delay": 0.5501, "jitter": 0, "correlation": 0}),
        ("delay", {"delay": 0.55, "jitter": 0.001, "correlation": 0}),
        ("rate", {"rate": 31251}),
        ("seed", 78),
        ("loss-random", {"loss": 0.01, "correlation": 0}),
        ("corrupt", {"corrupt": 0.01, "correlation": 0}),
    ],
)
def test_any_difference_is_found(key, value):
    assert len(differences(SATCOM, 77, SATCOM_SEEN | {key: value})) == 1


def test_a_vanished_option_is_found():
    without = {key: value for key, value in SATCOM_SEEN.items() if key != "rate"}
    assert differences(SATCOM, 77, without)


def test_description_for_people():
    assert describe(SATCOM) == "delay 550ms rate 250kbit"
    assert describe(Netem(limit=1)) == "unshaped"
