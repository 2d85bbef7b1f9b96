"""COGS: its files, its vocabulary; its cases are in tests/scoring/test_cogs.py."""

from collections.abc import Callable
from pathlib import Path

import pytest

from compgen.data import cogs
from compgen.data.preparation import hold_out

LINE = "Zoe thought .\tthink . agent ( x _ 1 , Zoe )\tprim_to_subj_proper\n"


@pytest.mark.parametrize("line", ["", "a\tb", "a\tb\tc\td"])
def test_read_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "gen.tsv"
    path.write_text(LINE + line + "\n")
    with pytest.raises(ValueError, match=r"gen\.tsv, line 2 does not have 3 fields"):
        cogs.read(path)


def test_sizes_and_types(public: Callable[[str], Path]) -> None:
    folder = public("cogs/data")
    parts = {name: cogs.read(folder / f"{name}.tsv") for name in ("train", "dev", "test", "gen")}
    sizes = {"train": 24155, "dev": 3000, "test": 3000, "gen": 21000}
    assert {name: len(examples) for name, examples in parts.items()} == sizes
    assert len(hold_out(parts["gen"])[0]) == 4200
    # Jiang, Zhou & Bansal (2024), appendix B.2: 747 and 687 with four special tokens
    for side, types in {"sentence": 743, "logical_form": 683}.items():
        assert len({w for e in parts["train"] for w in getattr(e, side).split(" ")}) == types
