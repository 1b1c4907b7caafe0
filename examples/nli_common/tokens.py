"""Tokens and part-of-speech tags: from a parse, from a tagged or tokenised string, or from raw text."""

import re

_LEAF = re.compile(r"\(([^\s()]+) ([^\s()]+)\)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_TOKEN = re.compile(
    r"\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\d+(?:[.,:]\d+)*|\w+(?:-\w+)*|[^\w\s]", flags=re.IGNORECASE
)


def parse_leaves(parse: str) -> tuple[list[str], list[str]]:
    """Tokens and tags of a Penn Treebank parse, as SNLI and MultiNLI distribute it; escaped brackets are restored.

    >>> parse_leaves("(ROOT (NP (DT A) (NN dog) (-LRB- -LRB-)))")
    (['A', 'dog', '('], ['DT', 'NN', '-LRB-'])
    """
    leaves = _LEAF.findall(parse)
    return [_BRACKETS.get(word, word) for _, word in leaves], [tag for tag, _ in leaves]


def split_text(text: str) -> list[str]:
    """Tokens of raw text, with contractions cut as in the Penn Treebank, whose tokens the word vectors know.

    >>> split_text("She isn't John's well-known friend, is she?")
    ['She', 'is', "n't", 'John', "'s", 'well-known', 'friend', ',', 'is', 'she', '?']
    """
    return _TOKEN.findall(text)
