"""An option named in plain words: "So D.", "not B but C", "A or C, but most likely C", "Es la C".

Only asked where an output marks no answer. Every option letter that stands alone
is a mention; a mention is rejected ("not B", "A and B are wrong"), chosen ("so D",
"most likely C", "C fits best") or bare. One chosen option is the answer; else the
only one that is not rejected, when its surroundings show that it is an option at
all ("vitamin C" is none).
"""

# ruff: noqa: E501 - the tables and patterns read better in one line
from __future__ import annotations

import re

#: A text longer than this is searched in its last sentences only.
SHORT = 300
_MENTION = re.compile(
    r"(?<![\w'’$\\+=^°-])(?<!\bN/)(?P<open>[(\[（【「\"“'*_`]{0,4})(?P<letter>[A-Z])(?P<close>[)\]）】」\"”'*_`.:]{0,4})(?![\w'’+=^-])"
    r"|(?<=[\u3040-\u30ff\u4e00-\u9fff（])(?P<cjk>[A-Z])(?![A-Za-z])"
    r"|(?<![\w])(?P<glued>[A-Z])(?=[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])"
)
_REJECTED_BEFORE = re.compile(
    r"(?:\bnot|n't|n’t|\bneither|\bnor|\beliminate[sd]?|\brul(?:e[sd]?|ing) out|\bexclude[sd]?|\breject(?:ed)?|"
    r"\bdiscard(?:ed)?|\binstead of|\brather than|\bunlike|\bnever|\bno|\bpas|\bnicht|\bsondern nicht|\bnão|\bнет|"
    r"\bне|不是|不选|ではなく)\s(?:the |option |choice |answer |la |el )?(?:(?:[(*]{0,2}[A-Z][)*]{0,2}(?:, |,? and | or |/| nor )){0,9})"
    r"[(*\"“]{0,3}$",
    re.IGNORECASE,
)
_REJECTED_AFTER = re.compile(
    r"(?:(?:, |,? and | or |/)[(*]{0,2}[A-Z][)*]{0,2}){0,9},?\s(?:is|are|was|were|can be|looks?|seems?|would be)"
    r"\s(?:all |both |also |clearly |tempting,? but |therefore |thus ){0,3}"
    r"(?:wrong|incorrect|false|not\b|out\b|eliminated|ruled out|excluded|impossible|unlikely|irrelevant)"
    r"|\s(?:is|are) tempting|\s(?:can|could) be (?:ruled|eliminated|excluded)|\s(?:isn't|isn’t|aren't|does not|doesn't|cannot|can't|can’t)\b|\?\s(?:no|nope|wrong)\b",
    re.IGNORECASE,
)
_CHOSEN_BEFORE = re.compile(
    r"(?:\b(?:so|thus|therefore|hence|but|be|is|it's|it’s|choose|pick|select|go(?:ing)? with|definitely|certainly|clearly|"
    r"likely|probably|rather|choice|(?:mentioned|stated|described|listed|given) (?:in|by)|leaves?|leaving|closest to|no(?=,)|say|vote for|guess|conclude|"
    r"es|ist|est|é|è|elijo|escolho|scelgo|choisis|wähle|sondern|sino|mais|mas|ma|это|выбираю|пожалуй|а|но)\b|[:：]|"
    r"选|是|應該|应该|는|은|は|が)"
    r"[\s,:：]{0,3}(?:it (?:must be|is) |the answer |option |choice |answer |letter |"
    r"la |el |a |die |der |l'|the |opción |opcion |opção |option |opzione |letra |lettera |lettre |réponse |respuesta |resposta |risposta |antwort |alternativa |вариант |буква |选项){0,2}$",
    re.IGNORECASE,
)
_CHOSEN_AFTER = re.compile(
    r"\s(?:is|would be|must be|seems|appears|looks)\s(?:therefore |thus |clearly |most |likely |the |definitely |indeed |my ){0,4}"
    r"(?:correct|right|true|best|answer|only|most|one|choice|pick)\b"
    r"|\s(?:fits|matches|works|makes (?:the )?(?:most )?sense)\b|\s(?:es|ist|est|é|è)\s(?:la |die |le |a |o |il )?(?:opción |bonne |opção )?"
    r"(?:correct|richtig|juste|bonne|certa|corrett|giust)|を選|が正解|이 정답|가 정답|를 선택|을 선택|是正确",
    re.IGNORECASE,
)
_EITHER = re.compile(
    r"[(*]{0,2}([A-Z])[)*]{0,2}\s(?:or|oder|ou|o|или|或|または)\s(?:perhaps |maybe )?[(*]{0,2}([A-Z])\b[)*]{0,2}"
)
_FORMULA = re.compile(r"\s?(?:[=<>≤≥+^→∧∨⊃⇒]|means\b)")
# "(A), (B), and (C)": one of several, and none of them chosen.
_LISTED = re.compile(r",\s(?:and\s|or\s)?[(*]{1,2}[A-Z][)*]")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n|(?<=[。！？])")


def plainly(text: str, start: int, end: int, allowed: str) -> tuple[str, int, int] | None:
    """(letters, start, end) of the option a short text or its last sentences name; None for none.

    Two letters mean that the text leaves two options open.
    """
    body = text[start:end].rstrip()
    if len(body) > SHORT:
        cut = max(
            (m.end() for m in _SENTENCE.finditer(body, len(body) - SHORT, len(body) - 1)),
            default=-1,
        )
        last = None if cut < 0 else _named(body[cut:], start + cut, allowed, chosen_only=True)
        return last or _only_one(body, start, allowed)
    return _named(body, start, allowed, chosen_only=False)


# "The statement that tells against it is (G). The presence of …"
_IS_ONE = re.compile(r"\b(?:is|be)\s\*{0,2}\((?P<letter>[A-Z])\)\*{0,2}[.,;]?(?=\s|$)")
_IN_BRACKETS = re.compile(r"\(([A-Z])\)")


def _only_one(body: str, offset: int, allowed: str) -> tuple[str, int, int] | None:
    """The one option in brackets that a long text names, where it says that something is it."""
    named = set(_IN_BRACKETS.findall(body))
    one = _IS_ONE.search(body)
    if len(named) != 1 or one is None or one["letter"] not in allowed:
        return None
    return one["letter"], offset + one.start("letter"), offset + one.end("letter")


def _mentions(
    body: str, allowed: str, *, chosen_only: bool
) -> tuple[list[re.Match[str]], list[re.Match[str]], set[str]]:
    """Mentions of options that are chosen, those that are bare, and the rejected letters."""
    chosen: list[re.Match[str]] = []
    bare: list[re.Match[str]] = []
    rejected: set[str] = set()
    for one in _MENTION.finditer(body):
        letter, at = _letter(one), one.start()
        if letter not in allowed or _is_word(one, body) or _FORMULA.match(body, one.end()):
            continue
        before, after = body[max(0, at - 60) : at], body[one.end() : one.end() + 90]
        sentence = _SENTENCE.split(before)[-1]
        if _REJECTED_BEFORE.search(sentence) or _REJECTED_AFTER.match(after):
            rejected.add(letter)
        elif _LISTED.match(after):
            bare.append(one)
        elif (
            _CHOSEN_BEFORE.search(sentence)
            or _CHOSEN_AFTER.match(after)
            # alone in its sentence; a long text lists its options that way
            or (not chosen_only and not sentence.strip() and not after.strip())
        ):
            chosen.append(one)
        else:
            bare.append(one)
    return [one for one in chosen if _letter(one) not in rejected], bare, rejected


def _named(
    body: str, offset: int, allowed: str, *, chosen_only: bool
) -> tuple[str, int, int] | None:
    chosen, bare, rejected = _mentions(body, allowed, chosen_only=chosen_only)
    either = _EITHER.search(body)
    if chosen and either and either[1] != either[2] and {either[1], either[2]} <= set(allowed):
        # "A or C" leaves both open unless a choice follows.
        later = [one for one in chosen if one.start() >= either.end()]
        if not later:
            return either[1] + either[2], offset + either.start(1), offset + either.end(2)
        chosen = later
    if chosen:
        last = chosen[-1]
        return _letter(last), offset + last.start(), offset + last.end()
    if chosen_only:
        return None
    left = {_letter(one) for one in bare} - rejected
    marked = [
        one
        for one in bare
        if one["letter"] and (one["open"] or one["close"][:1] in (")", "]", "*"))
    ]
    if len(left) == 1 and marked:
        return left.pop(), offset + marked[-1].start(), offset + marked[-1].end()
    remaining = set(allowed) - rejected
    if len(remaining) == 1 and len(rejected) > 1:
        return remaining.pop(), offset, offset + len(body)
    return None


def _letter(one: re.Match[str]) -> str:
    return one["letter"] or one["cjk"] or one["glued"]


def _is_word(one: re.Match[str], body: str) -> bool:
    """Whether "A" is an article or "I" a pronoun."""
    if one["letter"] not in ("A", "I", "O", "E", "Y") or one["open"] or one["close"]:
        return False
    after = body[one.end() : one.end() + 3]
    if one["letter"] in ("A", "I"):
        follows = re.match(
            r"\s?(?:,|;|and\b|n?or\b|is\b|are\b|$|/|-)", body[one.end() : one.end() + 6]
        )
        return follows is None
    return bool(re.match(r"\s[a-zà-ÿ]", after)) and one.start() > 0
