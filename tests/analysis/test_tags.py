"""Parts of speech."""

import pytest

from compgen.data.scan import augment, generate
from compgen_fairseq.analysis.tags import read_tags, scan_tags


def test_every_word_of_scan_has_its_category():
    commands, actions = zip(*generate(), strict=True)
    words = {word for command in commands for word in command.split()}
    tags = scan_tags(sorted(words))
    assert tags == {
        **dict.fromkeys(("walk", "look", "run", "jump"), "verb"),
        **dict.fromkeys(("left", "right"), "direction"),
        **dict.fromkeys(("opposite", "around"), "manner"),
        **dict.fromkeys(("twice", "thrice"), "times"),
        **dict.fromkeys(("and", "after"), "conjunction"),
        "turn": "turn",
    }
    words = {word for line in actions for word in line.split()}
    assert scan_tags(sorted(words)) == {
        **{f"I_{verb}": "action" for verb in ("WALK", "LOOK", "RUN", "JUMP")},
        **{f"I_TURN_{side}": "turn" for side in ("LEFT", "RIGHT")},
    }


def test_augmented_verbs_are_verbs():
    words = {word for pair in augment(1, 1) for word in pair.command.split()}
    assert scan_tags(sorted(words))["walk1"] == "verb"


def test_a_file_of_tags(tmp_path):
    path = tmp_path / "tags"
    path.write_text("dog\tNOUN\nlike\tVERB\ndog\tNOUN\n", encoding="utf-8")
    assert read_tags(str(path)) == {"dog": "NOUN", "like": "VERB"}
    for text, reason in (
        ("dog NOUN\n", "line 1 is not of the form 'word TAB tag'"),
        ("dog\tNOUN\n\n", "line 2 is not of the form"),
        ("like\tVERB\nlike\tADP\n", "line 2: 'like' has another tag above"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=reason):
            read_tags(str(path))
