"""The page of ``compgen-report --html`` in Chromium, where it and playwright are installed."""

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compgen.reporting.comparison import compare
from compgen.reporting.curves import curves
from compgen.reporting.html import html
from compgen.reporting.pictures import Figure
from compgen.reporting.report import Report, Row
from compgen.reporting.runs import Run, Score, ScoreName

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

PHONE, DESKTOP = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
BEST = ScoreName("exact_match", "best")
SCORES = {"plain": (20.0, 22.0), "a-method-with-a-rather-long-name": (100.0,), "srl": (9.5,)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        pytest.skip("there is no chromium on PATH")
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=program, args=["--no-sandbox"])


@pytest.fixture
def tab(browser) -> Iterator[Any]:
    """An empty tab; ``said`` is what it complains of, ``asked`` the addresses it asks for."""
    page = browser.new_page(viewport=DESKTOP)
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(error.message))
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    page.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory, tiny_model) -> Path:
    """A page of three rows, with the learning curves of a real training and a figure."""
    folder = tmp_path_factory.mktemp("page")

    def made(label: str, seed: int, value: float) -> Run:
        path = folder / f"{label}.{seed}"
        path.mkdir()
        shutil.copy(tiny_model / "train.log", path)
        settings = {"model.attention": label, **{f"model.option_{i}": "value" for i in range(40)}}
        scores = {BEST: Score(value, "metric:exact_match|case:mixed|n:37|version:0.1.0")}
        command = "fairseq-train data-bin/scan --user-dir compgen_fairseq " + 20 * "--some-flag 1 "
        return Run(path, label, seed, settings, 90, 6.0, scores, command)

    rows = [
        Row(label, tuple(made(label, seed, value) for seed, value in enumerate(values, start=1)))
        for label, values in SCORES.items()
    ]
    report = Report(tuple(rows), ("model.attention",))
    picture = folder / "codes.png"
    picture.write_bytes(base64.b64decode(PIXEL))
    path = folder / "report.html"
    shown = [Figure(picture, "The words of each code")]
    path.write_text(html(report, compare(report), curves(report), shown, ["compgen-report"]))
    return path


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_it_is_shown_without_a_complaint_or_a_request(size, scheme, tab, report):
    tab.set_viewport_size(size)
    tab.emulate_media(color_scheme=scheme)
    tab.goto(report.as_uri())
    assert [url for url in tab.asked if not url.startswith("data:")] == [report.as_uri()]
    assert tab.said == []
    charts = tab.locator(".chart img")
    wide = charts.evaluate_all("all => all.map(one => one.naturalWidth && one.width)")
    assert len(wide) > 3 and min(wide) > 200
    assert tab.locator(".figures img").evaluate("one => one.naturalWidth") == 1
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_nothing_is_wider_than_a_phone(tab, report):
    tab.set_viewport_size(PHONE)
    tab.goto(report.as_uri())
    tab.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert tab.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [360, 360]
    overflows = tab.locator(".scroll").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth)"
        ".map(one => getComputedStyle(one).overflowX)"
    )
    assert len(overflows) > 1 and set(overflows) == {"auto"}  # wide tables scroll by themselves


def rows(tab) -> list[str]:
    """The methods of the table of scores, from above."""
    return tab.locator("table.scores tbody th").all_text_contents()


def sorted_by(tab) -> dict[str, str]:
    """The direction of each column of the table of scores that is sorted by."""
    return tab.locator("table.scores thead th:not([aria-sort=none])").evaluate_all(
        "all => Object.fromEntries(all.map(one => [one.textContent, one.ariaSort]))"
    )


def test_a_click_sorts_a_table_by_its_numbers(tab, report):
    tab.goto(report.as_uri())
    plain, long, srl = SCORES
    assert rows(tab) == [plain, long, srl] and sorted_by(tab) == {}
    tab.click("table.scores thead th:nth-child(4) button")
    assert rows(tab) == [srl, plain, long]  # 9.5 < 21 < 100
    assert sorted_by(tab) == {"mean ± std": "ascending"}
    tab.click("table.scores thead th:nth-child(4) button")
    assert rows(tab) == [long, plain, srl]
    assert sorted_by(tab) == {"mean ± std": "descending"}
    tab.click("table.scores thead th:nth-child(1) button")
    assert rows(tab) == [long, plain, srl]  # by the alphabet
    assert sorted_by(tab) == {"method": "ascending"}


def test_the_keyboard_sorts_as_well(tab, report):
    tab.goto(report.as_uri())
    focused = "table.scores th button:focus"
    for _ in range(40):
        tab.keyboard.press("Tab")
        if tab.locator(focused).count():
            break
    assert tab.locator(focused).text_content() == "method"
    outline = tab.locator(focused).evaluate("one => getComputedStyle(one).outlineStyle")
    assert outline == "solid"  # one sees where one is
    tab.keyboard.press("Enter")
    plain, long, srl = SCORES
    assert rows(tab) == [long, plain, srl]
    tab.keyboard.press("Space")
    assert rows(tab) == [srl, plain, long]


def test_it_is_printed_whole(tab, report):
    tab.emulate_media(color_scheme="dark")
    tab.goto(report.as_uri())
    assert tab.locator("details:not([open])").count() == 2
    printed = tab.pdf()
    assert printed.startswith(b"%PDF-") and len(printed) > 20_000
    assert tab.locator("details:not([open])").count() == 0
    tab.emulate_media(media="print")
    assert not tab.locator("nav").is_visible()
