"""Labels beside points, none over another."""

import numpy as np
from matplotlib.text import Text

from compgen import plotting
from compgen_fairseq.analysis.labels import place_labels, plane


def scatter(points):
    axes = plane(plotting.new())
    axes.scatter(*points.T)
    return axes


def boxes(axes):
    axes.figure.draw_without_rendering()
    renderer = axes.figure.canvas.get_renderer()
    return [Text.get_window_extent(label, renderer) for label in axes.texts]  # without lines


def test_no_two_labels_overlap_and_what_has_no_place_is_left_out():
    points = np.random.default_rng(1).normal(size=(120, 2)) ** 3
    labels = [f"label{i}" for i in range(120)]
    axes = scatter(points)
    place_labels(axes, points, labels)
    placed = [text.get_text() for text in axes.texts]
    assert 0 < 120 - len(placed) < 100
    assert placed[:3] == labels[:3]  # the first find a place
    frame, drawn = axes.get_window_extent(), boxes(axes)
    shrunk = [box.padded(-1) for box in drawn]  # letters are set on whole pixels
    for i, box in enumerate(shrunk):
        assert frame.containsx(box.x0) and frame.containsx(box.x1)
        assert frame.containsy(box.y0) and frame.containsy(box.y1)
        assert not any(box.overlaps(other) for other in shrunk[:i])


def test_a_label_stands_beside_its_point():
    points = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    axes = scatter(points)
    place_labels(axes, points, ["a", "b"])
    assert len(axes.texts) == 2
    for point, box, text in zip(points, boxes(axes), axes.texts, strict=False):
        x, y = axes.transData.transform(point)
        middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        assert 0 < np.hypot(middle[0] - x, middle[1] - y) < 30
        assert text.arrow_patch is None
