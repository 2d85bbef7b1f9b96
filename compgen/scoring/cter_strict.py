"""Stricter CTER verdicts: the compound's translation must be one Chinese phrase.

The published rules (see :mod:`compgen.scoring.cter`) look for each atom anywhere in the
sentence, so an atom that the context supplies counts, which no reader would accept: 大 of 大家 for
*large*, 后 of 然后 for *behind*, a verb or a determiner of another clause.  Here

- one noun decides: determiner, adjective and modifier must stand before it in its clause, as
  Chinese puts all of them, with nothing between but each other and words that belong to any noun
  phrase (的, numerals, classifiers: ``PHRASE_WORDS``).  A verb phrase may have its verb there: its
  determiner and modifier can be anywhere before the noun;
- *he liked* must stand before the noun in verb phrases too; *at the store* and *on the floor* are
  free there, where they can also say where it happened;
- the adverbs 又, 再 and 还 can be *another* of a verb's object only; else 又一 or 还有 is needed;
- a postposition (里, 附近, 后) must follow the noun, every other preposition come before the
  phrase or a part of it, within a few characters;
- a verb must be in the noun's clause, and *liked* needs another 喜欢 than that of *he liked*;
- if the source mentions the noun outside the compound as well, one noun cannot serve both;
- a translation inside another word (狗 of 热狗, 别 of 特别) does not count;
- some everyday translations that the lexicon lacks count (``SYNONYMS``), and ``liked`` has no
  empty alternative; the entries ``/`` still have nothing that could be tested.

docs/notes/cter.md has an example of each, and how far the verdicts agree with people's.
"""

import re
from collections.abc import Iterable

from compgen.scoring.cter import Lexicon, Line, Rules, words

Span = tuple[int, int]  # start and end in the text

CLAUSE_END = re.compile(r"[，。！？；：,.!?;:“”\"]")  # noqa: RUF001
# In characters: how far before the phrase a preposition may be, and how far behind the noun each
# postposition.  的 is *from* in 医生的信, a letter from the doctor.
BEFORE_PHRASE = 5
POSTPOSITIONS = {"的": 0} | dict.fromkeys(
    "里 中 内 附近 旁 四周 周围 前 之前 后 后面 背后 身后 下 下面 底下 一样 寄来 送来".split(), 3
)
VERB_ADVERBS = frozenset("又再还")
# What can stand in any noun phrase: particles, numerals, demonstratives, adverbs of degree,
# classifiers, and 大 of 大楼.
PHRASE_WORDS = re.compile(
    "非常|十分|[的地之着一两二三几每这那某些很最更太大人"
    "个只把辆座栋幢架颗顶位名张块条间家台所棵片匹头件份粒部本种套群层处班次双对批排堆袋包盒]"
)
SYNONYMS = {
    "another": "又一 再一 还有 又有",
    "around": "遍",
    "from": "自 离 被 死于 的 寄来 送来",
    "inside": "内",
    "near": "旁",
    "toward": "对 往",
    "towards": "对 往",
    "without": "无",
    "caught": "捉",
    "liked": "喜爱",
    "met": "碰到 碰见 结识",
    "woke": "醒",
    "dirty": "肮脏 脏兮兮",
    "empty": "空荡荡 空旷 空空 空着 空虚",
    "large": "大型 巨大 大号 大个子",
    "lazy": "懒惰 懒散 懒洋洋",
    "quiet": "安静 宁静 寂静",
    "red": "红色 红衣 红种",
    "silly": "蠢 傻乎乎",
    "small": "小型 小号 小个子",
    "smart": "智能",
    "special": "特别 特殊 特制 独特",
    "car": "汽车",
    "girl": "姑娘",
    "waiter": "服务生",
    "mod0": "他非常喜欢的 他很喜欢的 他最喜欢的 他所喜欢的 他喜欢过的",
    "mod1": "商店里 商店内 店内 店里面 该店",
    "mod2": "地面上 地板上面",
}
# What a translation is not, by the translation: words in which it means something else.
OTHER_WORDS = {
    "狗": "热狗",
    "车": "自行车 火车 摩托车 手推车 停车",
    "孩": "女孩",
    "楼": "楼梯",
    "椅": "轮椅",
    "花生": "花生酱",
    "农场": "农场主",
    "大": "大学 大家 大人 大约 长大 伟大",
    "小": "小时 小学 小心 小丑",
    "空": "天空 空中 空气 空调",
    "静": "冷静 镇静 平静",
    "假": "度假 放假 暑假 寒假 假期",
    "每": "每个人都 每人都 每天 每周 每月 每年 每次 每晚",
    "别": "特别 别人 别墅",
    "再": "再也 再见 不再",
    "还": "还是",
    "问": "问题",
    "要": "需要 想要 重要 主要 只要",
    "去": "失去 过去 去年 去世",
    "看": "看起来 好看 难看",
    "听": "打听 听从",
    "花": "花园 花生 爆米花",
    "开": "开始 开心",
    "落": "角落",
    "叫": "名叫 尖叫 叫醒",
    "在": "现在 正在",
    "来": "起来 下来 出来 回来 后来 过来 从来 原来 本来",
    "从": "从来 从未 从没 从不",
}


class StrictRules(Rules):
    """The strict rules, on CoGnition's compounds."""

    name = "strict"

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        self.translations = {  # with the synonyms, without empty alternatives
            atom: (*filter(None, listed), *SYNONYMS.get(atom, "").split()) if listed else ()
            for atom, listed in lexicon.items()
        }
        self._words = {
            atom: (frozenset(own), _pattern(own)) for atom, own in self.translations.items()
        }

    def judge(self, line: Line) -> tuple[str, ...]:
        """What is wrong with a line; nothing if it is right.

        Returns:
            ``atom:TYPE:ATOM`` for each atom that is nowhere in the hypothesis, else
            ``order:TYPE-N`` for each that is in no place where it could go with the noun.
        """
        text = line.text
        tested = [kind for kind, atom in line.atoms.items() if self.translations[atom]]
        nouns = [
            (clause, noun)
            for clause in CLAUSE_END.split(text)
            for noun in (self._places(line, "N", clause) if "N" in tested else ())
        ]
        misplaced = [self._misplaced(line, tested, clause, noun) for clause, noun in nouns]
        again = words(line.source).count(line.atoms.get("N", "")) > 1  # the context needs one, too
        shared = len(nouns) == 1 and again
        missing = tuple(
            f"atom:{kind}:{line.atoms[kind]}"
            for kind in tested
            if (kind == "N" and shared) or not self._places(line, kind, text)
        )
        return missing or tuple(f"order:{kind}-N" for kind in min(misplaced, key=len, default=[]))

    def _places(self, line: Line, kind: str, text: str) -> list[Span]:
        """Where an atom's translations are that can be the compound's."""
        atom = line.atoms[kind]
        own, pattern = self._words[atom]
        places = [match.span() for match in pattern.finditer(text) if match[0] in own]
        if kind == "DET" and line.type != "VP":
            return [s for s in places if text[slice(*s)] not in VERB_ADVERBS]
        if atom == "liked" and line.atoms.get("MOD") == "mod0":
            modifiers = self._places(line, "MOD", text)
            return [s for s in places if not any(m[0] <= s[0] < m[1] for m in modifiers)]
        return places

    def _misplaced(self, line: Line, tested: list[str], clause: str, noun: Span) -> list[str]:
        """The types that do not go with a noun at this place of its clause."""
        places = {kind: self._places(line, kind, clause) for kind in tested if kind != "N"}
        before = [
            (spans[-1], kind)
            for kind in ("DET", "ADJ", "MOD")
            if (spans := [s for s in places.get(kind, ()) if s[1] <= noun[0]])
        ]
        placed, starts, joined = {"N"}, [noun[0]], True
        for span, kind in sorted(before, reverse=True):
            joined = joined and not PHRASE_WORDS.sub("", clause[span[1] : starts[-1]])
            if joined or (line.type == "VP" and kind != "ADJ"):
                placed.add(kind)
                starts.append(span[0])
        for start, end in places.get("P", ()):
            gap = POSTPOSITIONS.get(clause[start:end])
            if gap is not None:
                near = 0 <= start - noun[1] <= gap
            else:
                near = any(0 <= first - end <= BEFORE_PHRASE for first in starts)
            if near:
                placed.add("P")
        if places.get("V"):
            placed.add("V")
        free = line.type == "VP" and line.atoms.get("MOD") in ("mod1", "mod2")
        if free and self._places(line, "MOD", line.text):  # in any clause
            placed.add("MOD")
        return [kind for kind in tested if kind not in placed]


def _pattern(translations: Iterable[str]) -> re.Pattern[str]:
    """Finds the longest of some words, or of those that contain them, at each place."""
    words = {word for own in translations for word in (own, *OTHER_WORDS.get(own, "").split())}
    return re.compile("|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word)))))
