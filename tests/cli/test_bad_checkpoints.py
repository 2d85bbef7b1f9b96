"""A checkpoint that is none, or half of one, ends every command that reads it in one sentence."""

import pytest

COMMANDS = {
    "analyze": ["codes", "CHECKPOINT", "DATA", "--out", "OUT"],
    "codes": ["CHECKPOINT", "DATA"],
    "predict": ["CHECKPOINT", "DATA"],
    "prototypes": ["show", "CHECKPOINT", "DATA"],
    "sememes": ["CHECKPOINT", "DATA", "water"],
    "similarity": ["CHECKPOINT", "DATA"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_checkpoint_is_named(command, tiny_model, tiny_data, tmp_path, run):
    whole = (tiny_model / "checkpoint_last.pt").read_bytes()
    (tmp_path / "half.pt").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.pt").write_text("hello\n")
    for name, reason in (
        ("half.pt", "is no checkpoint of fairseq-train, or only a part of one"),
        ("text.pt", "is no checkpoint of fairseq-train, or only a part of one"),
        ("none.pt", "is no file: name a checkpoint of fairseq-train"),
    ):
        names = {"CHECKPOINT": tmp_path / name, "DATA": tiny_data, "OUT": tmp_path / "out"}
        words = [names.get(word, word) for word in COMMANDS[command]]
        said = run(f"compgen_cli.{command}", *words, status=1)
        assert said.splitlines()[-1].endswith(f": {tmp_path / name} {reason}")
        assert "Traceback" not in said and not (tmp_path / "out").exists()
