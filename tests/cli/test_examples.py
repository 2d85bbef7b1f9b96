"""compgen-examples copies all folders or none; what it copies is tested on the wheel."""

from in_process import refusal

from compgen_cli import examples


def test_nothing_is_left_of_a_copy_that_fails(tmp_path, monkeypatch):
    (tmp_path / "clone" / "examples").mkdir(parents=True)
    monkeypatch.setattr(examples, "shipped", lambda: tmp_path / "clone")
    assert "clone/prepare: No such file" in refusal("compgen-examples", tmp_path / "mine")
    assert not any((tmp_path / "mine").iterdir())
