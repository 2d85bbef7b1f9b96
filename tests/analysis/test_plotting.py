"""How pictures look and are written."""

import sys

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from compgen_fairseq.analysis import plotting


def scatter(points):
    picture = plotting.new()
    axes = plotting.plane(picture)
    axes.scatter(*points.T, **plotting.style(1))
    return picture, axes


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    points = np.random.default_rng(1).normal(size=(50, 2))
    files = []
    for name in ("a", "b"):
        picture, axes = scatter(points)
        plotting.place_labels(axes, points, [f"word {i}" for i in range(9)])
        files.append(plotting.save(picture, tmp_path / name, "points"))
    for first, second in zip(*files, strict=True):
        assert first.read_bytes() == second.read_bytes()
    png, pdf = files[0]
    assert png.stat().st_size < 200_000
    pixels = imread(png)
    assert pixels.shape[:2] == (720, 960) and pixels[..., :3].std() > 0.01
    assert pdf.read_bytes().startswith(b"%PDF") and b"CreationDate" not in pdf.read_bytes()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["points.pdf", "points.png"]


def test_96_groups_look_different_and_the_first_12_without_colours():
    looks = [plotting.style(i) for i in range(96)]
    assert len({tuple(look.values()) for look in looks}) == 96
    assert len({look["marker"] for look in looks[:12]}) == 12
    assert len({plotting.hatch(i)["hatch"] for i in range(8)}) == 8


def boxes(axes):
    axes.figure.draw_without_rendering()
    renderer = axes.figure.canvas.get_renderer()
    return [Text.get_window_extent(label, renderer) for label in axes.texts]  # without lines


def test_no_two_labels_overlap_and_what_has_no_place_is_left_out():
    points = np.random.default_rng(1).normal(size=(120, 2)) ** 3
    labels = [f"label{i}" for i in range(120)]
    _, axes = scatter(points)
    left_out = plotting.place_labels(axes, points, labels)
    placed = [text.get_text() for text in axes.texts]
    assert 0 < left_out == 120 - len(placed) < 100
    assert placed[:3] == labels[:3]  # the first find a place
    frame, drawn = axes.get_window_extent(), boxes(axes)
    shrunk = [box.padded(-1) for box in drawn]  # letters are set on whole pixels
    for i, box in enumerate(shrunk):
        assert frame.containsx(box.x0) and frame.containsx(box.x1)
        assert frame.containsy(box.y0) and frame.containsy(box.y1)
        assert not any(box.overlaps(other) for other in shrunk[:i])


def test_a_label_stands_beside_its_point():
    points = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    _, axes = scatter(points)
    assert plotting.place_labels(axes, points, ["a", "b"]) == 0
    for point, box, text in zip(points, boxes(axes), axes.texts, strict=False):
        x, y = axes.transData.transform(point)
        middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        assert 0 < np.hypot(middle[0] - x, middle[1] - y) < 30
        assert text.arrow_patch is None


def test_without_matplotlib_one_sentence_says_how_to_get_it(monkeypatch):
    plotting._matplotlib.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r'pip install "compgen-fairseq\[analysis\]"'):
        plotting.new()
