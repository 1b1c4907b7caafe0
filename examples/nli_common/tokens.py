"""Tokens and part-of-speech tags: from a parse, from a tagged or tokenised string, or from raw text."""

import re
import unicodedata

LONGEST_TOKEN = 1_000
"""Characters; words are compared and hashed as rows of one array, which is as wide as the longest of them."""
_LEAF = re.compile(r"\(([^ ()]+) ([^ ()]+)\)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_QUOTES = str.maketrans({"’": "'", "‘": "`", "“": "``", "”": "''"})
_OPENING = re.compile(r"(?:(?<=[\s(\[{<])|^)\"")
_TOKEN = re.compile(
    r"\bcan(?=not\b)|(?<=\bcan)not\b|\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b"  # contractions
    r"|\b[a-z]'(?!(?:s|re|ve|ll|d|m)\b)\w{2,}"  # o'clock, O'Brien
    r"|\d+(?:[.,:/]\d+)+|(?:[a-z]\.){2,}|\.{3}|-{2,}|``|''"  # 3,000.5, U.S., ...
    r"|\w+(?:-\w+)*|[^\w\s]",
    flags=re.IGNORECASE,
)


def parse_leaves(parse: str) -> tuple[list[str], list[str]]:
    """Tokens and tags of a Penn Treebank parse, as SNLI and MultiNLI distribute it; escaped characters are restored.

    >>> parse_leaves("(ROOT (NP (DT A) (NN dog) (-LRB- -LRB-)))")
    (['A', 'dog', '('], ['DT', 'NN', '-LRB-'])
    """
    leaves = _LEAF.findall(parse.replace("\\/", "/").replace("\\*", "*"))
    return [_BRACKETS.get(word, word) for _, word in leaves], [tag for tag, _ in leaves]


def split_text(text: str) -> list[str]:
    """Tokens of raw English text, its contractions and quotes those of the Penn Treebank, which the word vectors know.

    >>> split_text("She isn't John's well-known friend, is she?")
    ['She', 'is', "n't", 'John', "'s", 'well-known', 'friend', ',', 'is', 'she', '?']
    >>> split_text("I'll see O'Brien's at five o'clock")
    ['I', "'ll", 'see', "O'Brien", "'s", 'at', 'five', "o'clock"]
    >>> split_text('He "cannot" swim.')
    ['He', '``', 'can', 'not', "''", 'swim', '.']
    """
    text = unicodedata.normalize("NFC", text).translate(_QUOTES)
    return _TOKEN.findall(_OPENING.sub("`` ", text).replace('"', " '' "))
