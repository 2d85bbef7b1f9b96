"""The page of ``compgen-report --html`` in a real browser: Chromium, where it is installed."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
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

PHONE, DESKTOP = (360, 740), (1280, 900)
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
BEST = ScoreName("exact_match", "best", False)
SCORES = {"plain": (20.0, 22.0), "a-method-with-a-rather-long-name": (100.0,), "srl": (9.5,)}
PROBLEMS = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}


class Browser:
    """One tab of a headless Chromium, driven by the DevTools protocol through two pipes.

    Args:
        program: the path of Chromium.
        profile: an empty folder for its profile.
    """

    def __init__(self, program: str, profile: Path):
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()

        def connect() -> None:  # in the new process: Chromium reads from 3 and writes to 4
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (orders, answers)]
            for end, number in zip(ends, (3, 4), strict=True):
                os.dup2(end, number)

        self._process = subprocess.Popen(
            [
                *(program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox"),
                *("--disable-gpu", "--no-first-run", f"--user-data-dir={profile}", "about:blank"),
            ],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(orders)
        os.close(answers)
        self._buffer, self._count, self._session = b"", 0, None
        self.events: list[dict] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict:
        """Give an order and wait for its answer."""
        self._count += 1
        order = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            order["sessionId"] = self._session
        os.write(self._orders, json.dumps(order).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> dict:
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 16)
            assert part, "Chromium ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, page: Path, size: tuple[int, int], scheme: str = "light") -> None:
        """Show a page and wait until it is there."""
        self.events.clear()
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.send("Emulation.setDeviceMetricsOverride", **metrics, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive()

    def value(self, script: str) -> Any:
        """What an expression of JavaScript is in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key and let it go."""
        of_key = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **of_key)
        self.send("Input.dispatchKeyEvent", type="keyUp", **of_key)

    def click(self, selector: str) -> None:
        """Press and release the mouse's button on the middle of an element."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{element}.scrollIntoView({{block: 'center'}})")
        box = self.value(f"JSON.stringify({element}.getBoundingClientRect())")
        place = json.loads(box)
        middle = {
            "x": place["x"] + place["width"] / 2,
            "y": place["y"] + place["height"] / 2,
        }
        for kind in ("mousePressed", "mouseReleased"):
            mouse = {"type": kind, "button": "left", "clickCount": 1, **middle}
            self.send("Input.dispatchMouseEvent", **mouse)

    def screenshot(self, path: Path) -> None:
        """Write the whole page as a PNG file."""
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.send("Page.printToPDF")["data"])

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._orders)
        os.close(self._answers)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        pytest.skip("there is no chromium on PATH")
    started = Browser(program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory, tiny_model) -> Path:
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


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_shown_without_a_complaint_or_a_request(size, scheme, browser, page):
    browser.open(page, size, scheme)
    requests = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in requests if not url.startswith("data:")] == [page.resolve().as_uri()]
    assert [event for event in browser.events if event["method"] in PROBLEMS] == []
    wide = "[...document.querySelectorAll('.chart img')].map((e) => e.naturalWidth && e.width)"
    assert len(browser.value(wide)) > 3 and min(browser.value(wide)) > 200
    assert browser.value("document.querySelector('.figures img').naturalWidth") == 1
    paper = browser.value("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_complaint_and_a_request_would_be_seen(browser, page, tmp_path):
    broken = tmp_path / "broken.html"
    more = "<script>console.error(1); missing()</script><img src='https://example.org/a.png'>"
    broken.write_text(page.read_text().replace("</main>", f"</main>{more}"))
    browser.open(broken, DESKTOP)
    found = {event["method"] for event in browser.events}
    assert {"Runtime.consoleAPICalled", "Runtime.exceptionThrown"} <= found
    complaints = [
        e["params"]["entry"]["text"]
        for e in browser.events
        if e["method"] in PROBLEMS & {"Log.entryAdded"}
    ]
    assert any("Content Security Policy" in text for text in complaints)  # the image is refused


def test_nothing_is_wider_than_a_phone(browser, page):
    browser.open(page, PHONE)
    browser.value("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert (
        browser.value("innerWidth") == browser.value("document.documentElement.scrollWidth") == 360
    )
    wide = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth)"
    assert browser.value(f"{wide}.length") > 1  # wide tables scroll by themselves
    assert browser.value(f"{wide}.every((e) => getComputedStyle(e).overflowX === 'auto')")


COLUMN = "[...document.querySelectorAll('table.scores tbody th')].map((e) => e.textContent)"


def sorted_by(browser: Browser) -> dict[str, str]:
    """The direction of each column of the table of scores that is sorted by."""
    return browser.value(
        "Object.fromEntries([...document.querySelectorAll('table.scores thead th')]"
        ".map((e) => [e.textContent, e.getAttribute('aria-sort')])"
        ".filter(([, direction]) => direction !== 'none'))"
    )


def test_a_click_sorts_a_table_by_its_numbers(browser, page):
    browser.open(page, DESKTOP)
    plain, long, srl = SCORES
    assert browser.value(COLUMN) == [plain, long, srl] and sorted_by(browser) == {}
    mean = "table.scores thead th:nth-child(4) button"
    browser.click(mean)
    assert browser.value(COLUMN) == [srl, plain, long]  # 9.5 < 21 < 100
    assert sorted_by(browser) == {"mean ± std": "ascending"}
    browser.click(mean)
    assert browser.value(COLUMN) == [long, plain, srl]
    assert sorted_by(browser) == {"mean ± std": "descending"}
    browser.click("table.scores thead th:nth-child(1) button")
    assert browser.value(COLUMN) == [long, plain, srl]  # by the alphabet
    assert sorted_by(browser) == {"method": "ascending"}


def test_the_keyboard_sorts_as_well(browser, page):
    browser.open(page, DESKTOP)
    for _ in range(40):
        browser.press("Tab", 9)
        if browser.value("document.activeElement.closest('table.scores') !== null"):
            break
    assert browser.value("document.activeElement.textContent") == "method"
    outline = browser.value("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"  # one sees where one is
    browser.press("Enter", 13, "\r")
    plain, long, srl = SCORES
    assert browser.value(COLUMN) == [long, plain, srl]
    browser.press(" ", 32, " ")
    assert browser.value(COLUMN) == [srl, plain, long]


def test_it_is_printed_whole(browser, page):
    browser.open(page, DESKTOP, "dark")
    folded = "document.querySelectorAll('details:not([open])').length"
    assert browser.value(folded) == 2
    printed = browser.pdf()
    assert printed.startswith(b"%PDF-") and len(printed) > 20_000
    assert browser.value(folded) == 0
    browser.send("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
