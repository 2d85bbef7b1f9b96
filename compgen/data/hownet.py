"""Readers of HowNet: which sememes annotate the words of English.

HowNet describes each sense of a word by sememes, its minimal units of meaning (Qi et al., 2019,
"OpenHowNet: An Open Sememe-based Lexical Knowledge Base"). Two layouts are read:

- the files of github.com/thunlp/CL-SP: ``hownet.txt`` (Chinese word, tab, sememes with spaces
  between), ``en2zh_dict.txt`` (English expression, tab, Chinese translations with ``/`` between)
  and ``sememe_1400_EnZh.txt`` (the sememes, ``English|Chinese``). An English word has the sememes
  of all its translations.
- the senses of the OpenHowNet package as JSON: a list of objects with the sense's English word,
  ``en_word``, and its definition, ``Def``, in which each sememe stands as ``English|Chinese``.
  Where the package is installed, this writes them::

      senses = OpenHowNet.HowNetDict().get_all_senses()
      json.dump([{"en_word": s.en_word, "Def": s.Def} for s in senses], open("senses.json", "w"))
"""

import re
from collections.abc import Iterable
from pathlib import Path

from compgen.data.sememes import Annotations
from compgen.text import read_fields, read_json, read_lines

HOWNET, TRANSLATIONS, NAMES = "hownet.txt", "en2zh_dict.txt", "sememe_1400_EnZh.txt"

# in a definition a sememe begins after { or " and ends before }, : or "
SEMEME = re.compile(r'[{"]([^{}:"|]+\|[^{}:"|]+)(?=[}:"])')


def read_translated(folder: Path) -> Annotations:
    """The annotations in the three files of ``folder``.

    Raises:
        ValueError: a file is missing, or a line of it has not its form.
    """
    names = {}
    for number, line in enumerate(read_lines(folder / NAMES), start=1):
        english, _, chinese = line.partition("|")
        if not english or not chinese:
            raise ValueError(f"{folder / NAMES}, line {number} is not of the form 'NAME|名'.")
        names[chinese] = line
    chinese_words = {}
    for number, (word, sememes) in enumerate(read_fields(folder / HOWNET, 2), start=1):
        for sememe in sememes.split():
            if sememe not in names:
                raise ValueError(
                    f"{folder / HOWNET}, line {number}: the sememe {sememe} is not in {NAMES}."
                )
        chinese_words[word] = [names[sememe] for sememe in sememes.split()]
    return _annotations(
        (
            (english, sememe)
            for english, translations in read_fields(folder / TRANSLATIONS, 2)
            for translation in translations.split("/")
            for sememe in chinese_words.get(translation, ())
        ),
        names.values(),
    )


def read_senses(path: Path) -> Annotations:
    """The annotations in OpenHowNet's senses as JSON.

    Raises:
        ValueError: the file is missing or has another layout.
    """
    senses = read_json(path)
    try:
        found = [
            (sense["en_word"].strip(), name.replace(" ", "_"))
            for sense in senses
            for name in SEMEME.findall(sense["Def"].partition("RMK=")[0])
        ]
    except (LookupError, TypeError, AttributeError):
        found = []
    if not found:
        raise ValueError(
            f"{path} is not a list of OpenHowNet's senses (objects with 'en_word' and 'Def')."
        )
    return _annotations(found, (name for _, name in found))


def _annotations(found: Iterable[tuple[str, str]], names: Iterable[str]) -> Annotations:
    """From pairs of an English expression and a sememe; only single words are kept."""
    ordered = sorted(set(names))
    place = {name: index for index, name in enumerate(ordered)}
    words: dict[str, set[int]] = {}
    for expression, name in found:
        if expression and not any(character.isspace() for character in expression):
            words.setdefault(expression.lower(), set()).add(place[name])
    return Annotations(ordered, {word: tuple(sorted(words[word])) for word in sorted(words)})
