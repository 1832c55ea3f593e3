import pytest

from testbed import profile
from testbed.errors import UserError

TABLE_1 = {  # Andersen & Johnsen 2022: bit/s, ms, per cent
    "5g": (100_000_000, 20, 0),
    "tactical-broadband": (2_000_000, 100, 1),
    "satcom": (250_000, 550, 0),
    "nbwf": (16_000, 500, 0),
    "cnr-1": (9_600, 100, 1),
    "cnr-10": (9_600, 100, 10),
}


@pytest.mark.parametrize("name", TABLE_1)
def test_profiles_have_the_figures_of_table_1_and_cite_it(name):
    found = profile.load(name)
    assert (found.netem.rate, found.netem.delay // 10**6, found.netem.loss // 10**6) == TABLE_1[name]
    assert "NIKT 2022, table 1" in found.source


def test_lan_shapes_nothing():
    assert not profile.load("lan").netem.shapes


def test_all_profiles_are_listed_from_fast_to_slow():
    assert [each.name for each in profile.load_all()][:2] == ["lan", "5g"]
    assert len(profile.load_all()) == 7


def write(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text("description: d\nsource: s\nlimit: 1000\n" + text)
    return str(path)


def test_all_of_netems_words_can_be_said(tmp_path):
    text = """
delay: 100ms
jitter: 10ms
delay_correlation: 25%
distribution: normal
loss: {gemodel: {p: 1%, r: 20%, 1-h: 90%, 1-k: 0.1%}}
reorder: {probability: 25%, correlation: 50%, gap: 5}
duplicate: 1%
corrupt: {probability: 0.1%, correlation: 3%}
rate: 64kbit
"""
    netem = profile.load(write(tmp_path, text)).netem
    assert netem.loss_gemodel == {"p": 10**6, "r": 20 * 10**6, "1-h": 90 * 10**6, "1-k": 10**5}
    assert (netem.jitter, netem.distribution, netem.gap, netem.duplicate) == (10**7, "normal", 5, 10**6)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("RATE: 250kbit", "RATE", "250kbit"),
        ("rate: 250 kbits", "rate", "250 kbits"),
        ("loss: 110%", "loss", "110%"),
        ("delay: 550", "delay", "550"),
        ("loss: {random: 1%, gemodel: {p: 1%, r: 1%}}", "loss", "exactly one of"),
        ("loss: {correlation: 1%}", "loss", "exactly one of"),
        ("jitter: 1ms\ndistribution: gauss", "distribution", "gauss"),
        ("distribution: normal", "distribution", "jitter"),
        ("reorder: 25%", "reorder", "delay"),
        ("limit: 0", "limit", "0"),
    ],
)
def test_a_wrong_value_is_one_line_with_file_key_value_and_what_is_allowed(tmp_path, text, key, value):
    path = write(tmp_path, text)
    with pytest.raises(UserError) as error:
        profile.load(path)
    line = str(error.value)
    assert "\n" not in line
    assert line.startswith(f"{path}: ")
    assert key in line
    assert value in line


def test_a_missing_key_is_named(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("description: d\nsource: s\n")
    with pytest.raises(UserError, match=r"mine\.yaml: limit: "):
        profile.load(str(path))


def test_an_unknown_profile_is_answered_with_the_known_ones():
    with pytest.raises(UserError, match=r"PROFILE: 'satcon'.*allowed are .*satcom"):
        profile.load("satcon")


@pytest.mark.parametrize("content", ["", "- 1", "a: [", "just text"])
def test_a_file_that_is_no_mapping_is_a_clear_error(tmp_path, content):
    path = tmp_path / "x.yaml"
    path.write_text(content)
    with pytest.raises(UserError, match=r"x\.yaml"):
        profile.load(str(path))
