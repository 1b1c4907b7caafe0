"""A generated corpus: pairs whose label follows from how they were built, each tagged with its phenomenon.

The hypothesis is drawn first, then the label, and only then a premise that makes the label true. So a hypothesis
says nothing of its label, by construction; and each noun-verb combination of the hypotheses belongs to one split, so
that test pairs are unseen combinations of known words. It is a diagnostic of what a model can see, no stand-in for
SNLI: a model without word order must stay at chance on role reversal.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Literal, NamedTuple

from nli_common.corpora import Pair
from nli_common.data import Corpus

Split = Literal["train", "dev", "test"]
LABELS = ("entailment", "neutral", "contradiction")

KINDS = {
    "animal": "dog cat horse fox rabbit bear goat monkey",
    "musician": "drummer pianist singer violinist guitarist cellist flutist harpist",
    "athlete": "boxer swimmer runner skater golfer cyclist wrestler surfer",
    "craftsman": "baker butcher carpenter plumber potter tailor welder mason",
    "official": "mayor judge senator minister governor clerk sheriff ambassador",
}
SYNONYMS = (
    "sprinting racing",
    "resting relaxing",
    "speaking talking",
    "jumping leaping",
    "shouting yelling",
    "laughing chuckling",
    "crying weeping",
    "eating dining",
    "walking strolling",
    "working laboring",
    "sleeping napping",
    "hiding lurking",
)
ANTONYMS = ("big small", "old young", "happy sad", "clean dirty", "wet dry", "rich poor", "quiet loud", "thin fat")
COLOURS = ["red", "green", "blue", "yellow", "black", "white", "brown", "grey"]
PLACES = ["park", "street", "kitchen", "garden", "station", "market", "forest", "office"]
OPPOSITES = (
    "chasing fleeing",
    "following leading",
    "pushing pulling",
    "helping hindering",
    "praising scolding",
    "greeting ignoring",
)
COMPARISONS = ["taller", "older", "faster", "stronger", "heavier"]
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

HYPERNYM = {noun: kind for kind, nouns in KINDS.items() for noun in nouns.split()}
NOUNS = list(HYPERNYM)
VERBS = [verb for pair in SYNONYMS for verb in pair.split()]
SIZES = [size for pair in ANTONYMS for size in pair.split()]
ACTIONS = [action for pair in OPPOSITES for action in pair.split()]
NOUN_NUMBER = {noun: i for i, noun in enumerate((*NOUNS, *KINDS))}
VERB_NUMBER = {verb: i for i, verb in enumerate((*VERBS, *ACTIONS, *COMPARISONS))}
SYNONYM = {a: b for pair in SYNONYMS for a, b in (pair.split(), pair.split()[::-1])}
ANTONYM = {a: b for pair in (*ANTONYMS, *OPPOSITES) for a, b in (pair.split(), pair.split()[::-1])}
PLURAL = {noun: f"{noun}s" for noun in (*NOUNS, *KINDS)} | {"fox": "foxes", "craftsman": "craftsmen"}

TAGS = (
    dict.fromkeys((*NOUNS, *KINDS, *PLACES), "NN")
    | dict.fromkeys(PLURAL.values(), "NNS")
    | dict.fromkeys((*VERBS, *ACTIONS), "VBG")
    | dict.fromkeys((*SIZES, *COLOURS), "JJ")
    | dict.fromkeys(COMPARISONS, "JJR")
    | dict.fromkeys((*NUMBERS, "zero"), "CD")
    | dict.fromkeys(["the", "all", "every", "most", "some", "several", "no", "few"], "DT")
    | {"is": "VBZ", "are": "VBP", "not": "RB", "in": "IN", "than": "IN", "at": "IN", "least": "JJS", "exactly": "RB"}
    | {"and": "CC", "or": "CC", "neither": "CC", "nor": "CC", "but": "CC"}
)


class Scene(NamedTuple):
    """Somebody doing something; an empty string is a detail left out."""

    noun: str
    verb: str
    size: str = ""
    colour: str = ""
    place: str = ""

    def text(self, *, negated: bool = False) -> str:
        """The scene as a sentence; the spaces of absent details are left to the tokeniser."""
        where = f"in the {self.place}" if self.place else ""
        return f"the {self.size} {self.colour} {self.noun} is {'not' if negated else ''} {self.verb} {where}"


class Drawn(NamedTuple):
    """A pair before it is cut into tokens."""

    phenomenon: str
    premise: str
    hypothesis: str


def generated_pairs(count: int, split: Split, seed: int = 0) -> Iterator[Pair]:
    """``count`` pairs of a split; the same seed gives the same pairs.

    Raises:
        ValueError: if ``count`` is negative.
    """
    if count < 0:
        raise ValueError(f"count must be at least 0, got {count}")
    random = Random(f"{seed} {split}")
    families = (_described, _described, _described, _negated, _quantified, _counted, _acting, _comparing, _joined)
    for _ in range(count):
        family, label = random.choice(families), random.choice(LABELS)
        pair = family(random, split, label)
        premise, hypothesis = pair.premise.split(), pair.hypothesis.split()
        pos1, pos2 = ([TAGS[word] for word in tokens] for tokens in (premise, hypothesis))
        yield Pair(premise, hypothesis, label, pos1, pos2, pair.phenomenon)


def generated_corpus(count: int, split: Split, seed: int = 0) -> Corpus:
    """The same pairs, indexed."""
    return Corpus.from_pairs(generated_pairs(count, split, seed), f"generated {split} corpus")


def _split_of(noun: str, verb: str) -> Split:
    """Of every ten nouns that a verb goes with, one is for dev, one for test and eight are for training."""
    place = (NOUN_NUMBER[noun] + VERB_NUMBER[verb]) % 10
    return "dev" if place == 0 else "test" if place == 1 else "train"


def _combination(random: Random, split: Split, nouns: list[str], verbs: list[str]) -> tuple[str, str]:
    while True:
        noun, verb = random.choice(nouns), random.choice(verbs)
        if _split_of(noun, verb) == split:
            return noun, verb


def _other(random: Random, choices: list[str], *taken: str) -> str:
    return random.choice([choice for choice in choices if choice not in taken])


def _siblings(noun: str) -> list[str]:
    return list(KINDS) if noun in KINDS else KINDS[HYPERNYM[noun]].split()


def _scene(random: Random, split: Split) -> Scene:
    """A noun (every other time the name of its kind) and a verb, with one or two of three details."""
    noun, verb = _combination(random, split, random.choice([NOUNS, list(KINDS)]), VERBS)
    kept = random.sample(("size", "colour", "place"), random.choice([1, 2]))
    return _with_details(random, Scene(noun, verb), kept)


def _with_details(random: Random, scene: Scene, names: list[str]) -> Scene:
    drawn = {"size": random.choice(SIZES), "colour": random.choice(COLOURS), "place": random.choice(PLACES)}
    return scene._replace(**{name: drawn[name] for name in names})


def _described(random: Random, split: Split, label: str) -> Drawn:
    """Lexical relations and modifiers: "the big dog is resting in the park"."""
    scene = _scene(random, split)
    absent = [name for name in ("size", "colour", "place") if not getattr(scene, name)]
    present = [name for name in ("size", "colour", "place") if getattr(scene, name)]
    changes: dict[str, Callable[[], Scene]]
    if label == "entailment":
        changes = {
            "synonym": lambda: scene._replace(verb=SYNONYM[scene.verb]),
            "modifier dropped": lambda: _with_details(random, scene, [random.choice(absent)]),
        }
        if scene.noun in KINDS:
            changes["hypernym"] = lambda: scene._replace(noun=random.choice(KINDS[scene.noun].split()))
    elif label == "neutral":
        changes = {
            "modifier added": lambda: scene._replace(**{random.choice(present): ""}),
            "unrelated": lambda: _unrelated(random, scene),
        }
        if scene.noun in HYPERNYM:
            changes["hypernym"] = lambda: scene._replace(noun=HYPERNYM[scene.noun])
    else:
        changes = {"co-hyponym": lambda: scene._replace(noun=_other(random, _siblings(scene.noun), scene.noun))}
        if scene.size:
            changes["antonym"] = lambda: scene._replace(size=ANTONYM[scene.size])
    phenomenon = random.choice(list(changes))
    return Drawn(phenomenon, changes[phenomenon]().text(), scene.text())


def _unrelated(random: Random, scene: Scene) -> Scene:
    """Another kind of person or animal that does something else somewhere else."""
    kind = scene.noun if scene.noun in KINDS else HYPERNYM[scene.noun]
    noun = random.choice(KINDS[_other(random, list(KINDS), kind)].split())
    verb = _other(random, VERBS, scene.verb, SYNONYM[scene.verb])
    details = random.sample(("size", "colour", "place"), random.choice([1, 2]))
    return _with_details(random, Scene(noun, verb), details)


def _negated(random: Random, split: Split, label: str) -> Drawn:
    """What is not so: the hypothesis denies, or the premise alone does."""
    scene = Scene(*_combination(random, split, NOUNS, VERBS))
    here, elsewhere = (scene._replace(place=place) for place in random.sample(PLACES, 2))
    if random.random() < 0.5:
        return Drawn("negation", *_denied(random, label, scene, here, elsewhere))
    premise = {
        "entailment": f"{scene.text()} but not in the {here.place}",
        "neutral": here.text(negated=True),
        "contradiction": scene.text(negated=True),
    }
    return Drawn("negation", premise[label], scene.text())


def _denied(random: Random, label: str, scene: Scene, here: Scene, elsewhere: Scene) -> tuple[str, str]:
    """Negation turns inclusion round: "not resting" entails "not resting in the park"."""
    if random.random() < 0.5:
        hypothesis, premise = here, {"entailment": scene, "neutral": elsewhere}
    else:
        hypothesis, premise = scene, {"entailment": scene._replace(verb=SYNONYM[scene.verb]), "neutral": here}
    negated = hypothesis.text(negated=True)
    return (hypothesis.text() if label == "contradiction" else premise[label].text(negated=True)), negated


def _quantified(random: Random, split: Split, label: str) -> Drawn:
    """All, most, some, few, no; "every" and "several", "zero" stand beside them."""
    noun, verb = _combination(random, split, NOUNS, VERBS)
    premises = {
        "all": {
            "entailment": ["every"],
            "neutral": ["most", "some", "several"],
            "contradiction": ["no", "few", "zero"],
        },
        "most": {
            "entailment": ["all", "every"],
            "neutral": ["some", "several"],
            "contradiction": ["no", "few", "zero"],
        },
        "no": {
            "entailment": ["zero"],
            "neutral": ["few"],
            "contradiction": ["all", "most", "some", "several", "every"],
        },
    }
    hypothesis = random.choice(list(premises))
    premise = random.choice(premises[hypothesis][label])
    return Drawn("quantifier", _plural(premise, noun, verb), _plural(hypothesis, noun, verb))


def _plural(quantifier: str, noun: str, verb: str) -> str:
    return f"every {noun} is {verb}" if quantifier == "every" else f"{quantifier} {PLURAL[noun]} are {verb}"


def _counted(random: Random, split: Split, label: str) -> Drawn:
    """At least k: entailed by exactly j or at least j with j >= k, excluded by exactly j with j < k."""
    noun, verb = _combination(random, split, NOUNS, VERBS)
    k = random.randrange(3, 8)
    j = random.randrange(k, 10) if label == "entailment" else random.randrange(1, k)
    bound = {"entailment": random.choice(["exactly", "at least"]), "neutral": "at least", "contradiction": "exactly"}
    return Drawn("number", _count(bound[label], j, noun, verb), _count("at least", k, noun, verb))


def _count(bound: str, number: int, noun: str, verb: str) -> str:
    return (
        f"{bound} {NUMBERS[number - 1]} {noun if number == 1 else PLURAL[noun]} {'is' if number == 1 else 'are'} {verb}"
    )


def _acting(random: Random, split: Split, label: str) -> Drawn:
    """Who does what to whom: turned round, it may or may not be true; of an opposite action, it is false."""
    noun, verb = _combination(random, split, NOUNS, ACTIONS)
    other, place = _other(random, NOUNS, noun), random.choice(["", f"in the {random.choice(PLACES)}"])
    hypothesis = f"the {noun} is {verb} the {other} {place}"
    if label == "entailment":
        return Drawn("role reversal", hypothesis, hypothesis)
    if label == "neutral":
        return Drawn("role reversal", f"the {other} is {verb} the {noun} {place}", hypothesis)
    return Drawn("antonym", f"the {noun} is {ANTONYM[verb]} the {other} {place}", hypothesis)


def _comparing(random: Random, split: Split, label: str) -> Drawn:
    """Who is taller than whom: turned round, it is false; about another quality, it says nothing."""
    noun, quality = _combination(random, split, NOUNS, COMPARISONS)
    other = _other(random, NOUNS, noun)
    hypothesis = f"the {noun} is {quality} than the {other}"
    if label == "entailment":
        return Drawn("role reversal", hypothesis, hypothesis)
    if label == "contradiction":
        return Drawn("role reversal", f"the {other} is {quality} than the {noun}", hypothesis)
    quality = _other(random, COMPARISONS, quality)
    return Drawn("unrelated", f"the {noun} is {quality} than the {other}", hypothesis)


def _joined(random: Random, split: Split, label: str) -> Drawn:
    """And, or, neither: two people, of whom the hypothesis names one or both."""
    noun, verb = _combination(random, split, NOUNS, VERBS)
    other = _other(random, [other for other in NOUNS if _split_of(other, verb) == split], noun)
    a, b = random.sample((f"the {noun}", f"the {other}"), 2)
    if random.random() < 0.5:
        premise = {
            "entailment": f"{a} and {b} are {verb}",
            "neutral": f"{a} or {b} is {verb}",
            "contradiction": f"neither {a} nor {b} is {verb}",
        }
        return Drawn("conjunction", premise[label], f"the {noun} is {verb}")
    premise = {
        "entailment": f"{b} and {a} are {verb}",
        "neutral": f"{a} is {verb}",
        "contradiction": f"{a} is {verb} but {b} is not",
    }
    return Drawn("conjunction", premise[label], f"{a} and {b} are {verb}")
