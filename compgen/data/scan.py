"""SCAN: its grammar, its meaning, its splits and their primitive augmentation.

SCAN (Lake & Baroni, 2018, "Generalization without systematicity") pairs every command of a small
finite grammar with the actions it asks for::

    C -> S and S | S after S | S
    S -> V twice | V thrice | V
    V -> U | U X | U opposite X | U around X | turn X | turn opposite X | turn around X
    U -> walk | look | run | jump          X -> left | right

The grammar alone reproduces every split that is defined by a rule; ``simple`` (a random split) and
the few-shot ``jump_numN`` splits are read from the publisher's files. Generated pairs come in
grammar order, pairs from files in the order of the files.

This module needs the standard library only; ``prepare_scan`` is the command.
"""

import hashlib
import itertools
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from compgen.data.checksums import check_file
from compgen.data.publisher import own_copy
from compgen.text import read_lines

VERBS = ("walk", "look", "run", "jump")
TURNS = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
TIMES = {"twice": 2, "thrice": 3}
GRAMMAR_WORDS = {"turn", "opposite", "around", "and", "after", *TURNS, *TIMES}


class Pair(NamedTuple):
    """A command and its actions, both as words separated by one space."""

    command: str
    actions: str


class Split(NamedTuple):
    """The training and the test pairs of one split."""

    train: list[Pair]
    test: list[Pair]


@cache
def _interpret_clause(clause: str) -> tuple[str, ...]:
    """The actions of a command without ``and`` and ``after`` (S in the grammar)."""
    words = clause.split(" ")
    times = TIMES[words.pop()] if words[-1] in TIMES else 1
    match words:
        case ["turn", _, *_]:
            verb: tuple[str, ...] = ()
        case [name, *_] if name.isalnum() and name not in GRAMMAR_WORDS:
            verb = (f"I_{name.upper()}",)
        case _:
            raise ValueError(f"Not a SCAN command: {clause!r}.")
    match words[1:]:
        case []:
            actions = verb
        case [side] if side in TURNS:
            actions = (TURNS[side], *verb)
        case ["opposite", side] if side in TURNS:
            actions = (TURNS[side], TURNS[side], *verb)
        case ["around", side] if side in TURNS:
            actions = (TURNS[side], *verb) * 4
        case _:
            raise ValueError(f"Not a SCAN command: {clause!r}.")
    return actions * times


def interpret(command: str) -> str:
    """The actions of ``command`` (Lake & Baroni, 2018, supplement).

    Any word that the grammar does not use itself is taken for a verb: ``walk1`` means ``I_WALK1``.

    Raises:
        ValueError: the grammar does not derive ``command``.
    """
    first, after, second = command.partition(" after ")
    if after:
        return " ".join(_interpret_clause(second) + _interpret_clause(first))
    first, both, second = command.partition(" and ")
    if both:
        return " ".join(_interpret_clause(first) + _interpret_clause(second))
    return " ".join(_interpret_clause(command))


def generate(verbs: Sequence[str] = VERBS) -> list[Pair]:
    """Every command of the grammar over ``verbs``, in grammar order (20,910 for SCAN's own)."""
    sides = [f"{manner}{side}" for manner in ("", "opposite ", "around ") for side in TURNS]
    phrases = [*verbs, *(f"{head} {side}" for head in (*verbs, "turn") for side in sides)]
    clauses = [f"{phrase}{times}" for phrase in phrases for times in ("", " twice", " thrice")]
    joined = (
        f"{first} {word} {second}"
        for word in ("and", "after")
        for first, second in itertools.product(clauses, repeat=2)
    )
    return [Pair(command, interpret(command)) for command in itertools.chain(clauses, joined)]


def _contains(command: str, phrase: str) -> bool:
    return f" {phrase} " in f" {command} "


def _divide(pairs: Sequence[Pair], held_out: Callable[[Pair], bool]) -> Split:
    return Split([p for p in pairs if not held_out(p)], [p for p in pairs if held_out(p)])


def _add_primitive(primitive: str, copies: int) -> Split:
    """Test: ``primitive`` in use. Train: the rest, and ``primitive`` itself ``copies`` times."""
    atom = Pair(primitive, interpret(primitive))
    pairs = [pair for pair in generate() if pair != atom]
    train, test = _divide(pairs, lambda pair: _contains(pair.command, primitive))
    return Split([*train, *[atom] * copies], test)


def _template(template: str, verbs: Sequence[str] = VERBS) -> Split:
    """Test: a verb of ``verbs`` with ``template``; ``turn`` with it is in neither part."""
    pairs = [pair for pair in generate() if not _contains(pair.command, f"turn {template}")]
    phrases = [f"{verb} {template}" for verb in verbs]
    return _divide(pairs, lambda pair: any(_contains(pair.command, p) for p in phrases))


# Lake & Baroni (2018): addjump, addturnleft, length. Loula et al. (2018): the templates.
RULES: dict[str, Callable[[], Split]] = {
    "addjump": partial(_add_primitive, "jump", copies=1467),
    "addturnleft": partial(_add_primitive, "turn left", copies=2189),
    "right": partial(_template, "right"),
    "opposite_right": partial(_template, "opposite right"),
    "around_right": partial(_template, "around right"),
    "jump_around_right": partial(_template, "around right", verbs=("jump",)),
    "length": lambda: _divide(generate(), lambda pair: len(pair.actions.split(" ")) > 22),
}


# SHA-256 of the publisher's training file followed by the test file.
OFFICIAL = {
    "addjump": "4626e080afee58549078c86c0c07938bf8af14fff020cac084d393de4017bc16",
    "addturnleft": "8ed52ae53de77f7aecc574ede810277eeed84a59b90bba5800efd28a6bb298a9",
    "right": "ca45e115f9c61d90185d8eb9ec7ca7a30e79d87fc9effbb84f9d51acfef7dff0",
    "opposite_right": "b770a48e6208961818d8ab22983da76c675364f02ff549c8f4febd479a6ea24a",
    "around_right": "d91264d10fdb285c22d6a8dae55dbf0a8e25571ad9b07425676ccc7504b60a8e",
    "jump_around_right": "99ba5e0f3ab132f1b6175905b491b6e41d6224077b7ee33e689c2f62d004820a",
    "length": "fa83455d78819721080b547f4dc5dc5f0b2142b52f2e8434e623110944d42f3a",
    "simple": "94781726d0f378911230b9c6702711318e919ea237c4311550f9e0a3841fd479",
    "jump_num1": "bce026eefc6dfc5776e300b5f9bc9f034570b877aec323c536cf91b81a27a2da",
    "jump_num2": "499654e8d53cce2d1c2fb03b8ab53c4d92aa54c14c9da4d96fdfa22ed471f8d9",
    "jump_num4": "34ad99314ce4011c4925b73e1bccb7beddc6281e0bc1f7ba35e45abba057998c",
    "jump_num8": "49b35662cc918cf6c4e4fabaaff383963ff4eecdecc67d024e078e0b6cf4a285",
    "jump_num16": "0139edac441618e697d37197d19677a61a0da018f174e88c53113864611de290",
    "jump_num32": "0616bd7a5228f466f175a442921e4f11f6600f2569dae3c6721dad6fd894a432",
}
SPLITS = tuple(OFFICIAL)
PRIMITIVES = {"addjump": "jump", "addturnleft": "turn_left"}


def _official_path(name: str, part: str) -> str:
    if name in ("simple", "length"):
        return f"{name}_split/tasks_{part}_{name}.txt"
    if name in PRIMITIVES:
        return f"add_prim_split/tasks_{part}_addprim_{PRIMITIVES[name]}.txt"
    if name in RULES:
        return f"template_split/tasks_{part}_template_{name}.txt"
    folder = "add_prim_split/with_additional_examples"
    return f"{folder}/tasks_{part}_addprim_complex_{name}_rep1.txt"


def read_official(path: Path | str) -> list[Pair]:
    """The pairs of one of the publisher's files, whose lines read ``IN: command OUT: actions``.

    Raises:
        ValueError: a line that is not of that form.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        command, out, actions = line.removeprefix("IN: ").partition(" OUT: ")
        if not (line.startswith("IN: ") and out):
            raise ValueError(f"{path}, line {number} is not of the form 'IN: ... OUT: ...'.")
        pairs.append(Pair(command.strip(), actions.strip()))
    return pairs


def split(name: str, data: Path | None = None, published: bool = False) -> Split:
    """The training and test pairs of the split ``name`` (one of ``SPLITS``).

    Args:
        name: a split of ``RULES``, which is generated, or another one, which is read.
        published: read a split of ``RULES``, too, for the order of the publisher's files.
        data: the folder of the publisher's files, a clone of github.com/brendenlake/SCAN; by
            default ``$COMPGEN_DATA/scan``.

    Raises:
        ValueError: a file is missing or not the publisher's.
    """
    if name in RULES and not published:
        return RULES[name]()
    root = own_copy("scan", data)
    if root is None:
        raise ValueError(
            f"The SCAN split {name} is read from the official files: name their folder with --from,"
            " or set COMPGEN_DATA to the one that holds it as scan/."
        )
    paths = [root / _official_path(name, part) for part in ("train", "test")]
    for path in paths:
        check_file(path, None)
    if hashlib.sha256(b"".join(p.read_bytes() for p in paths)).hexdigest() != OFFICIAL[name]:
        raise ValueError(f"The files of {name} in {root} are not the official ones (checksum).")
    return Split(read_official(paths[0]), read_official(paths[1]))


def augment(n: int, atomic_copies: int = 1000) -> list[Pair]:
    """The add-jump training set with ``n``-fold primitive augmentation (Jiang et al., 2022).

    Each primitive x gets ``n`` mutated copies x1, x2, ... The set holds the whole grammar over
    walk, look, run and their copies, ``jump`` once, and the bare command of each of the
    4 (n + 1) primitives ``atomic_copies`` times more: n = 2 gives 85,905 + 1 + 12,000 pairs.
    """
    family = {verb: [verb, *(f"{verb}{i}" for i in range(1, n + 1))] for verb in VERBS}
    known = [verb for source in VERBS if source != "jump" for verb in family[source]]
    primitives = [Pair(verb, interpret(verb)) for verb in itertools.chain(*family.values())]
    atoms = [pair for pair in primitives for _ in range(atomic_copies)]
    return [*generate(known), Pair("jump", interpret("jump")), *atoms]
