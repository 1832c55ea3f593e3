"""Guest kernels in the cache: found by version and by what they were built with."""

import pytest

from guest import kernel


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel, "CACHE", tmp_path)
    return tmp_path


def put(cache, version, configs):
    (cache / f"kernel-{version}-{kernel._recipe(configs)}").mkdir()


def test_a_kernel_is_not_taken_for_one_with_other_options(cache):
    put(cache, "7.3.4", kernel.PLAIN)
    assert kernel.cached().version == "7.3.4"
    assert kernel.cached(kernel.WITH_DOCKER) is None


def test_of_several_the_newest_is_taken(cache):
    for version in ("7.3.4", "7.10.1", "6.12.9"):
        put(cache, version, kernel.PLAIN)
    assert kernel.cached().version == "7.10.1"


def test_a_changed_option_makes_another_kernel(cache, tmp_path):
    fragment = tmp_path / "more.config"
    fragment.write_text("CONFIG_BRIDGE=y\n")
    put(cache, "7.3.4", (*kernel.PLAIN, fragment))
    assert kernel.cached((*kernel.PLAIN, fragment)) is not None
    fragment.write_text("CONFIG_BRIDGE=y\nCONFIG_BLOCK=y\n")
    assert kernel.cached((*kernel.PLAIN, fragment)) is None
