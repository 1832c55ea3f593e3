"""report.html: whole, self-contained, and fit for a screen of any width (in Chromium, where it is installed)."""

import html
import json
import re
import shutil
import subprocess

import pytest
from runs import run

from testbed.places import PROJECT

KINDS = ("delay", "loss", "ecdf", "box", "time", "wire")
CHROMIUM = shutil.which("chromium")
QUIET = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", *QUIET, "--disable-sync", "--enable-logging=stderr"]

# The report in a frame of the wanted width (a browser window has a least width that is wider than a phone).
FRAME = """<!doctype html><meta charset="utf-8">
<iframe style="width:{width}px;height:800px;border:0" srcdoc="{page}"></iframe><pre id="seen"></pre><script>
document.querySelector("iframe").addEventListener("load", event => {{
  const page = event.target.contentDocument, root = page.documentElement;
  const figures = [...page.querySelectorAll("figure svg")].map(svg => svg.getBoundingClientRect());
  document.querySelector("#seen").textContent = JSON.stringify({{
    width: root.clientWidth, content: root.scrollWidth,
    figures: figures.map(box => [box.left, box.right, box.height]),
    resources: event.target.contentWindow.performance.getEntriesByType("resource").map(one => one.name),
  }});
}});
</script>"""


@pytest.fixture(scope="module")
def tiny(out):
    return run(out, profile="satcom", protocol="mqtt", clients=2, messages=3, repeats=2, qos="0,2")


@pytest.fixture(scope="module")
def page(tiny):
    assert tiny.code == 0, tiny.output
    return (tiny.folder / "report.html").read_text()


def names():
    return [f"{kind}-{payload}" for kind in KINDS for payload in ("gps", "image")]


def test_a_run_draws_all_figures_and_puts_them_into_its_report(tiny, page):
    assert "report in " in tiny.output
    drawn = {path.name for path in (tiny.folder / "figures").iterdir()}
    assert drawn == {f"{name}.{ending}" for name in names() for ending in ("png", "svg")}
    for name in names():
        assert f'<figure id="figure-{name}">' in page
    assert page.count('<svg role="img" aria-label="') == len(names())


def test_the_report_refers_to_nothing_outside_itself(page):
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", page) + re.findall(r"url\(([^)]*)", page)
    assert [link for link in links if not link.startswith(("#", "data:"))] == []
    assert str(PROJECT) not in page
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_the_report_says_what_the_summary_says(tiny, page):
    assert "Beside the paper" in page
    assert "mqtt QoS 2 takes almost two seconds" in page
    assert "Not the published number of clients (mqtt 2 instead of 27)" in page
    mean = tiny.summary.query("payload == 'gps' and qos == 2").delay_mean_ms.mean()
    assert f"{mean:,.1f}" in page


def test_a_report_made_anew_is_the_same(tiny, page):
    figures = {path: path.read_bytes() for path in (tiny.folder / "figures").iterdir()}
    words = ["make", "report", f"RUN={tiny.folder}"]
    subprocess.run(words, cwd=PROJECT, check=True, capture_output=True, timeout=120)
    assert (tiny.folder / "report.html").read_text() == page
    assert {path: path.read_bytes() for path in figures} == figures


def test_a_failed_cell_is_in_the_report(out, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text((PROJECT / "studies/ffi-2022.yaml").read_text().replace("cubic", "nosuch"))
    failed = run(out, profile="satcom", study=mine, protocol="mqtt", payload="gps", clients=2, messages=2, qos=0)
    assert failed.code == 1
    text = (failed.folder / "report.html").read_text()
    assert "Cells that did not come to their end" in text
    assert "0 of 1 ok" in text


def test_a_folder_without_results_is_an_error_in_a_line(tmp_path):
    words = ["make", "report", f"RUN={tmp_path}"]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "RUN: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_the_whole_report(page, width, tmp_path):
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width, page=html.escape(page)))
    words = [
        CHROMIUM,
        *FLAGS,
        "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path}/profile",
        f"--window-size={width + 200},1000",
        "--dump-dom",
    ]
    done = subprocess.run([*words, frame.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    seen = json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', done.stdout).group(1)))
    assert seen["width"] >= width - 20  # a scroll bar
    assert seen["content"] <= seen["width"]
    assert [name for name in seen["resources"] if not name.startswith("data:")] == []
    assert len(seen["figures"]) == len(KINDS) * 2
    assert all(0 <= left < right <= seen["width"] and height > 60 for left, right, height in seen["figures"])
