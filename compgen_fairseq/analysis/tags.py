"""Parts of speech of words: from a file, or those of SCAN's grammar."""

from collections.abc import Sequence

from compgen.data.scan import TIMES, TURNS
from compgen.text import read_lines

SCAN = {
    "turn": "turn",
    **dict.fromkeys(TURNS, "direction"),
    **dict.fromkeys(("opposite", "around"), "manner"),
    **dict.fromkeys(TIMES, "times"),
    **dict.fromkeys(("and", "after"), "conjunction"),
    **dict.fromkeys(TURNS.values(), "turn"),
}


def scan_tags(words: Sequence[str]) -> dict[str, str]:
    """The categories of SCAN's grammar (Lake and Baroni, 2018), of commands and of actions.

    As in the grammar's reading, every word that it does not use itself is a verb: ``walk1`` too.

    Raises:
        ValueError: if these are not the words of SCAN.
    """
    if not {"walk", "I_WALK"} & set(words):
        raise ValueError("--tags scan is for SCAN, which this dictionary is not of")
    return {word: SCAN.get(word, "action" if word.startswith("I_") else "verb") for word in words}


def read_tags(path: str) -> dict[str, str]:
    """The tags of words from a file with lines of ``word TAB tag``.

    Raises:
        ValueError: if a line is not of that form, or a word has two tags.
    """
    tags: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        word, tab, tag = line.partition("\t")
        if not (word and tab and tag.strip()):
            raise ValueError(f"{path}, line {number} is not of the form 'word TAB tag'")
        if tags.setdefault(word, tag.strip()) != tag.strip():
            raise ValueError(f"{path}, line {number}: {word!r} has another tag above")
    return tags
