"""report.html and compare.html: whole, self-contained, and fit for a screen of any width (in Chromium)."""

import html
import json
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from runs import run

from testbed.places import PROJECT

KINDS = ("delay", "loss", "ecdf", "box", "time", "wire", "pairs")
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
    paper: getComputedStyle(page.body).backgroundColor.match(/\\d+/g).map(Number),
    named: [...page.querySelectorAll("figure svg")].every(svg => svg.getAttribute("aria-label").length > 40),
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


@pytest.fixture(scope="module")
def compared(tiny, out):
    """The folder of the tiny run beside itself."""
    words = [sys.executable, "-m", "testbed.cli", "compare", "--out", str(out), tiny.folder.name, str(tiny.folder)]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (folder,) = out.glob("compare-*")
    assert f"side by side in {folder}/compare.html" in done.stdout
    return folder


def test_runs_side_by_side_are_a_table_and_a_page(tiny, compared):
    table = pd.read_csv(compared / "compare.csv")
    assert len(table) == 2 * len(tiny.summary) / 2  # two runs, two repeats in each row
    assert set(table.query("run == '2 satcom'").difference_delay_ms) == {0}
    assert "The runs were told the same." in (compared / "compare.html").read_text()


@pytest.mark.parametrize("words", [["satcom", "no/run"], ["satcom"]])
def test_what_cannot_be_compared_is_a_user_error(tiny, out, words):
    words = [sys.executable, "-m", "testbed.cli", "compare", "--out", str(out), *words]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("RUNS: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: make test installs it")
@pytest.mark.parametrize(
    ("which", "width", "dark"), [("report", 390, True), ("report", 1280, False), ("compare", 390, False)]
)
def test_a_browser_shows_the_whole_page(page, compared, which, width, dark, tmp_path):
    text = page if which == "report" else (compared / "compare.html").read_text()
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width, page=html.escape(text)))
    words = [
        CHROMIUM,
        *FLAGS,
        "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path}/profile",
        f"--window-size={width + 200},1000",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--dump-dom",
    ]
    done = subprocess.run([*words, frame.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    seen = json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', done.stdout).group(1)))
    assert seen["width"] >= width - 20  # a scroll bar
    assert seen["content"] <= seen["width"]
    assert [name for name in seen["resources"] if not name.startswith("data:")] == []
    assert len(seen["figures"]) == text.count("<figure ")
    assert all(0 <= left < right <= seen["width"] and height > 60 for left, right, height in seen["figures"])
    assert (sum(seen["paper"]) < 3 * 64) == dark
    assert seen["named"]
