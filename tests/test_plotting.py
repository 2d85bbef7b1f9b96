"""How pictures look and are written."""

import numpy as np
from matplotlib.image import imread

from compgen import plotting


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    points = np.random.default_rng(1).normal(size=(50, 2))
    files = []
    for name in ("a", "b"):
        picture = plotting.new()
        picture.add_subplot().scatter(*points.T, **plotting.style(1))
        files.append(plotting.save(picture, tmp_path / name, "points"))
    for first, second in zip(*files, strict=True):
        assert first.read_bytes() == second.read_bytes()
    png, pdf = files[0]
    assert png.stat().st_size < 200_000
    pixels = imread(png)
    assert pixels.shape[:2] == (720, 960) and pixels[..., :3].std() > 0.01
    assert pdf.read_bytes().startswith(b"%PDF") and b"CreationDate" not in pdf.read_bytes()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["points.pdf", "points.png"]


def test_dollars_are_no_formulas(tmp_path):
    picture = plotting.new()
    picture.suptitle("the words $ % US$")
    assert len(plotting.save(picture, tmp_path, "prices")) == 2


def test_96_groups_look_different_and_the_first_12_without_colours():
    looks = [plotting.style(i) for i in range(96)]
    assert len({tuple(look.values()) for look in looks}) == 96
    assert len({look["marker"] for look in looks[:12]}) == 12
    assert len({plotting.hatch(i)["hatch"] for i in range(8)}) == 8
    assert len({tuple(plotting.line(i).values()) for i in range(32)}) == 32
