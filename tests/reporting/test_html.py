"""The page: what it says, that everything is escaped, and that it needs nothing else."""

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from compgen import plotting
from compgen.reporting import pictures
from compgen.reporting.comparison import Comparison, Comparisons
from compgen.reporting.curves import Curve
from compgen.reporting.html import html, title
from compgen.reporting.report import Report, Row
from compgen.reporting.runs import Run, Score, ScoreName

BEST = ScoreName("exact_match", "best")
PNG = b"\x89PNG\r\n\x1a\n and so on"
EVIL = "<script>alert(1)</script>&\"'"


def run(label: str, seed: int, value: float, **about) -> Run:
    settings = {"model.attention": label, "data": "0a"}
    scores = {BEST: Score(value, "m")}
    return Run(Path(f"runs/{label}.{seed}"), label, seed, settings, 90, 6.0, scores, **about)


def report_of(*rows: list[Run]) -> Report:
    return Report(tuple(Row(runs[0].label, tuple(runs)) for runs in rows), ("model.attention",))


class Page(HTMLParser):
    """The tables of a page by their captions, and every address and script in it."""

    def __init__(self, text: str):
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.caption = ""
        self.scripts = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.addresses += [found[name] for name in ("src", "href") if name in found]
        self.scripts += tag == "script"
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "caption":
            self.caption = ""
        if tag == "tr":
            self.tables.setdefault(self.caption, []).append([])
        if tag in ("td", "th"):
            self.tables[self.caption][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "caption" in self.open:
            self.caption += text
        elif {"td", "th"} & set(self.open):
            self.tables[self.caption][-1][-1] += text


def test_the_tables_are_those_of_the_report():
    found = report_of([run("plain", 1, 50), run("plain", 2, 60)], [run("sal", 1, 90.25)])
    compared = Comparisons("plain", (Comparison("sal", BEST, 35.25, (30.0, 40.0), 0.01),))
    page = Page(html(found, compared, [], [], ["compgen-report", "a b"]))
    assert page.open == []
    assert page.tables["exact_match"] == [
        ["method", "checkpoint", "n", "mean ± std", "median", "best", "worst", "by seed"],
        ["plain", "chosen", "2", "55.00 ± 7.07", "55.00", "60.00", "50.00", "50.00, 60.00"],
        ["sal", "chosen", "1", "90.25 *", "90.25", "90.25", "90.25", "90.25"],
    ]
    assert page.tables["Each method minus plain"][1] == [
        *("exact_match", "chosen", "sal", "+35.25*", "[+30.00, +40.00]", "0.0100", "-")
    ]
    assert page.tables["Methods"][1] == ["plain", "1, 2", "90", "6.0", "-", "attention=plain"]
    assert page.tables["Runs"][3][-2:] == ["not recorded", "not recorded"]
    settings = page.tables[
        "Every setting that may change a score, the ones in which rows differ first"
    ]
    assert settings[1:] == [["model.attention", "plain", "sal"], ["data", "0a", "0a"]]


def test_numbers_are_sorted_as_numbers():
    text = html(report_of([run("a", 1, 9.5), run("a", 2, 100)]), Comparisons(""), [], [], ["x"])
    assert 'data-order="54.75"' in text and '<td class="number" data-order="90">90</td>' in text


def test_everything_is_escaped(tmp_path):
    picture = tmp_path / f"{EVIL.replace('/', '')}.png"
    picture.write_bytes(PNG)
    evil = run(
        EVIL, 1, 50, command=EVIL, machine=EVIL, prepared={"command": "x", "pairs": {EVIL: 1}}
    )
    curve = Curve(EVIL, EVIL, ((((1, 2.0), (2, 3.0)),),))
    clean = html(report_of([run("a", 1, 50)]), Comparisons(""), [], [], ["x"])
    compared = Comparisons(EVIL, (Comparison(EVIL, BEST, 1.0, untested=EVIL),))
    shown = [pictures.Figure(picture, EVIL)]
    text = html(report_of([evil]), compared, [curve], shown, [EVIL])
    page = Page(text)
    assert page.scripts == Page(clean).scripts == 1
    assert page.tables["Runs"][1] == [EVIL, "1", f"runs/{EVIL}.1", EVIL, EVIL]
    assert page.tables["Data"][1][1] == f"{EVIL} 1" and EVIL not in text


def test_the_page_needs_nothing_else(tmp_path):
    picture = tmp_path / "codes.png"
    picture.write_bytes(PNG)
    shown = [pictures.Figure(picture, "Codes")]
    text = html(report_of([run("a", 1, 50)]), Comparisons(""), [], shown, ["x"])
    addresses = Page(text).addresses
    inside = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert [one for one in addresses if not one.startswith("#")] == [inside]
    assert all(f'id="{one[1:]}"' in text for one in addresses if one.startswith("#"))
    assert "default-src 'none'" in text and not re.search(r"https?://|@import|url\(", text)
    assert '<meta name="viewport" content="width=device-width' in text


def test_a_stage_without_a_finite_value_has_no_heading():
    curve = Curve("valid", "loss", ((((1, float("nan")),),),))
    page = html(report_of([run("a", 1, 50)]), Comparisons(""), [curve], [], ["x"])
    assert "Validation on valid" not in page


@pytest.mark.parametrize(
    ("prepared", "data", "expected"),
    [
        ({"command": "prepare/scan.sh addjump DEST --augment 2"}, "a", "Results on scan addjump"),
        ({"command": "prepare/cogs.sh DEST"}, "a", "Results on cogs"),
        ({}, "data-bin/my-data", "Results on my-data"),
        ({}, "", "Results on unknown data"),
    ],
)
def test_the_title_names_the_data(prepared, data, expected):
    about = {"prepared": prepared, "data": Path(data)}
    assert title(report_of([run("a", 1, 50, **about)])) == expected


def test_figures_and_their_captions_are_found(tmp_path):
    for name in ("run.1/codes.png", "run.1/sub/states.png", "more/attention.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(PNG)
    drawing = plotting.new(1, 1)
    for place, words in (("run.1/codes", "Words per\ncode"), ("more/attention", "注意 è ≥ 1")):
        drawing.suptitle(words)
        plotting.save(drawing, (tmp_path / place).parent, Path(place).name)
    runs, more = [tmp_path / "run.1"], [tmp_path / "more", tmp_path / "run.1"]
    found = pictures.find(runs, more)
    assert [(f.path.relative_to(tmp_path).as_posix(), f.caption) for f in found] == [
        ("run.1/codes.png", "Words per code"),
        ("run.1/sub/states.png", ""),
        ("more/attention.png", "注意 è ≥ 1"),
    ]
    assert found[1].data_uri() == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
