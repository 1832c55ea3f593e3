"""The long run of netem's models, held against draws made the way sch_netem.c makes them."""

import numpy as np
import pytest

from analysis import netem_model
from analysis.certificate import share_interval
from testbed.netem import Netem

PERCENT = 10**6


def drawn_correlated(p, c, count, random):
    """get_crandom() of net/sched/sch_netem.c."""
    last, hits = random.random(), np.empty(count)
    for number, value in enumerate(random.random(count)):
        last = value * (1 - c) + last * c
        hits[number] = last <= p
    return hits


def drawn_gilbert(p, r, bad, good, count, random):
    state, hits = 0, np.empty(count)
    for number in range(count):
        hits[number] = random.random() < (bad if state else good)
        if random.random() < (r if state else p):
            state = 1 - state
    return hits


@pytest.mark.parametrize(
    ("netem", "draw"),
    [
        (
            Netem(limit=1, loss=20 * PERCENT, loss_correlation=25 * PERCENT),
            lambda random: drawn_correlated(0.2, 0.25, 100_000, random),
        ),
        (
            Netem(limit=1, loss_gemodel={"p": 2 * PERCENT, "r": 20 * PERCENT, "1-h": 90 * PERCENT, "1-k": PERCENT}),
            lambda random: drawn_gilbert(0.02, 0.2, 0.9, 0.01, 100_000, random),
        ),
    ],
    ids=["correlated", "gemodel"],
)
def test_share_and_variance_are_those_of_the_drawn_numbers(netem, draw):
    share, hits = netem_model.loss(netem), draw(np.random.default_rng(1))
    assert hits.mean() == pytest.approx(share.mean, rel=0.06)
    batches = hits.reshape(-1, 1000).mean(axis=1)
    inflation = batches.var() / (share.mean * (1 - share.mean) / 1000)
    assert inflation == pytest.approx(share.inflation, rel=0.5)


def test_independent_losses_are_what_was_asked_for():
    assert netem_model.loss(Netem(limit=1, loss=PERCENT)) == netem_model.Share(0.01)
    assert netem_model.loss(Netem(limit=1)) == netem_model.NONE


def test_a_simple_gilbert_model_has_a_known_share():
    model = netem_model.loss(
        Netem(limit=1, loss_gemodel={"p": PERCENT, "r": 9 * PERCENT, "1-h": 100 * PERCENT, "1-k": 0})
    )
    assert model.mean == pytest.approx(0.1)
    assert model.inflation == pytest.approx((1 + 0.9) / (1 - 0.9))  # (1 + λ)/(1 - λ), λ = 1 - p - r


def test_the_four_state_model_without_bursts_loses_one_in_a_few():
    state = {"p13": 0, "p31": 100 * PERCENT, "p32": 0, "p23": 100 * PERCENT, "p14": 10 * PERCENT}
    assert netem_model.loss(Netem(limit=1, loss_state=state)).mean == pytest.approx(0.1 / 1.1)


def test_with_a_gap_only_every_nth_packet_can_be_reordered():
    netem = Netem(limit=1, delay=1, reorder=50 * PERCENT, gap=5)
    assert netem_model.reorder(netem).mean == pytest.approx(1 / (4 + 2))


def test_delays_come_of_tcs_own_tables():
    normal = netem_model.delays(Netem(limit=1, delay=10**8, jitter=10**7, distribution="normal"))
    assert normal.mean() == pytest.approx(10**8, rel=1e-3)
    assert normal.std() == pytest.approx(10**7, rel=1e-2)
    uniform = netem_model.delays(Netem(limit=1, delay=10**8, jitter=10**7))
    assert (uniform.min(), uniform.max()) == (9 * 10**7, 11 * 10**7)


def test_the_interval_is_clopper_and_pearsons_and_widens_with_dependence():
    assert share_interval(0, 100, 1, 0.99) == (0.0, pytest.approx(1 - 0.005 ** (1 / 100)))
    low, high = share_interval(10, 100, 1, 0.99)
    wide_low, wide_high = share_interval(10, 100, 4, 0.99)
    assert wide_low < low < 0.1 < high < wide_high
