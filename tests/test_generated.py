"""The generated corpus: labels that follow, no shortcut through the hypothesis, unseen combinations of known words."""

import itertools
from collections import Counter

import pytest
import torch
from torch import nn

from nli_common.corpora import Pair
from nli_common.generated import (
    ACTIONS,
    ANTONYM,
    HYPERNYM,
    LABELS,
    NOUN_NUMBER,
    NUMBERS,
    PLACES,
    SYNONYM,
    VERB_NUMBER,
    _split_of,
    generated_corpus,
    generated_pairs,
)
from nli_common.inputs import Data

PHENOMENA = {
    "synonym", "hypernym", "co-hyponym", "antonym", "modifier added", "modifier dropped", "negation", "quantifier",
    "number", "role reversal", "conjunction", "unrelated",
}  # fmt: skip


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return list(generated_pairs(20_000, "train"))


def test_every_phenomenon_and_label_has_its_share(pairs: list[Pair]) -> None:
    phenomena, labels = Counter(pair.phenomenon for pair in pairs), Counter(pair.label for pair in pairs)
    assert set(phenomena) == PHENOMENA
    assert all(count > 0.02 * len(pairs) for count in phenomena.values())
    assert all(abs(labels[label] / len(pairs) - 1 / 3) < 0.02 for label in LABELS)


BALANCED = dict.fromkeys(("quantifier", "number", "negation", "conjunction"), LABELS)
BALANCED["hypernym"] = ("entailment", "neutral")


@pytest.mark.parametrize("phenomenon", BALANCED)
def test_labels_are_balanced_where_logic_permits(pairs: list[Pair], phenomenon: str) -> None:
    labels = Counter(pair.label for pair in pairs if pair.phenomenon == phenomenon)
    assert set(labels) == set(BALANCED[phenomenon])
    assert all(abs(count / labels.total() - 1 / len(labels)) < 0.05 for count in labels.values())


def test_negated_hypotheses_have_the_labels_of_affirmed_ones(pairs: list[Pair]) -> None:
    """So neither "not" nor its absence in a hypothesis says what its label is."""
    for negated in (False, True):
        labels = Counter(
            pair.label for pair in pairs if pair.phenomenon == "negation" and ("not" in pair.hypothesis) == negated
        )
        assert all(abs(labels[label] / labels.total() - 1 / 3) < 0.05 for label in LABELS)


def test_half_of_the_role_pairs_are_reversed(pairs: list[Pair]) -> None:
    labels = Counter(pair.label for pair in pairs if pair.phenomenon == "role reversal")
    assert abs(labels["entailment"] / labels.total() - 0.5) < 0.05
    assert labels["neutral"] > 0 and labels["contradiction"] > 0


def test_role_reversal_differs_in_order_alone(pairs: list[Pair]) -> None:
    for pair in pairs:
        if pair.phenomenon == "role reversal":
            assert Counter(pair.premise) == Counter(pair.hypothesis)
            nouns = [[w for w in side if w in HYPERNYM] for side in (pair.premise, pair.hypothesis)]
            assert (nouns[0] == nouns[1]) == (pair.label == "entailment")


def test_lexical_labels_follow_from_the_words(pairs: list[Pair]) -> None:
    for pair in pairs:
        gone, new = (list((Counter(a) - Counter(b)).elements()) for a, b in (
            (pair.premise, pair.hypothesis), (pair.hypothesis, pair.premise)))  # fmt: skip
        if pair.phenomenon == "synonym":
            assert pair.label == "entailment" and [SYNONYM[word] for word in gone] == new
        elif pair.phenomenon == "antonym":
            assert pair.label == "contradiction" and [ANTONYM[word] for word in gone] == new
        elif pair.phenomenon == "hypernym":
            up = HYPERNYM.get(gone[0]) == new[0]
            assert pair.label == ("entailment" if up else "neutral") and (up or HYPERNYM[new[0]] == gone[0])
        elif pair.phenomenon == "co-hyponym":
            assert pair.label == "contradiction" and HYPERNYM.get(gone[0]) == HYPERNYM.get(new[0])
        elif pair.phenomenon == "modifier dropped":
            assert pair.label == "entailment" and gone and not new
        elif pair.phenomenon == "modifier added":
            assert pair.label == "neutral" and new and not gone


def test_tags_stand_beside_their_words(pairs: list[Pair]) -> None:
    for pair in pairs[:2000]:
        assert pair.premise_pos is not None and len(pair.premise_pos) == len(pair.premise)
        assert pair.hypothesis_pos is not None and len(pair.hypothesis_pos) == len(pair.hypothesis)
    tags: dict[str, set[str]] = {}
    for pair in pairs:
        for word, tag in zip(pair.hypothesis, pair.hypothesis_pos or (), strict=True):
            tags.setdefault(word, set()).add(tag)
    assert tags["dog"] == {"NN"} and tags["dogs"] == {"NNS"} and all(len(kinds) == 1 for kinds in tags.values())


def test_the_same_seed_gives_the_same_pairs_and_another_one_does_not() -> None:
    assert list(generated_pairs(200, "dev", 3)) == list(generated_pairs(200, "dev", 3))
    assert list(generated_pairs(200, "dev", 3)) != list(generated_pairs(200, "dev", 4))
    with pytest.raises(ValueError, match="count must be at least 0, got -1"):
        list(generated_pairs(-1, "dev"))


def test_test_hypotheses_are_unseen_combinations_of_known_words(pairs: list[Pair]) -> None:
    test = list(generated_pairs(4_000, "test"))
    seen = {" ".join(pair.hypothesis) for pair in pairs}
    assert not any(" ".join(pair.hypothesis) in seen for pair in test)
    known = {word for pair in pairs for word in (*pair.premise, *pair.hypothesis)}
    assert {word for pair in test for word in (*pair.premise, *pair.hypothesis)} <= known


def features(pairs: list[Pair], index: dict[str, int]) -> torch.Tensor:
    """Which words, word pairs and word triples the hypothesis has."""
    table = torch.zeros(len(pairs), len(index))
    for row, pair in enumerate(pairs):
        for gram in grams(pair):
            if gram in index:
                table[row, index[gram]] = 1
    return table


def grams(pair: Pair) -> set[str]:
    words = pair.hypothesis
    return {" ".join(words[i : i + k]) for k in (1, 2, 3) for i in range(len(words) - k + 1)}


def test_a_hypothesis_only_classifier_stays_at_chance(pairs: list[Pair]) -> None:
    """Logistic regression over the hypothesis's 1- to 3-grams, trained to convergence."""
    train, test = pairs[:8000], list(generated_pairs(6_000, "test"))
    counts = Counter(gram for pair in train for gram in grams(pair))
    index = {gram: i for i, (gram, count) in enumerate(counts.items()) if count >= 5}
    index = {gram: i for i, gram in enumerate(index)}
    x, y = features(train, index), torch.tensor([LABELS.index(pair.label) for pair in train])
    classifier = nn.Linear(len(index), 3)
    optimizer = torch.optim.LBFGS(classifier.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(classifier(x), y) + 1e-3 * classifier.weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    predicted = classifier(features(test, index)).argmax(1)
    accuracy = (predicted == torch.tensor([LABELS.index(pair.label) for pair in test])).double().mean().item()
    assert abs(accuracy - 1 / 3) < 0.05


def test_the_indexed_corpus_holds_the_same_pairs() -> None:
    corpus = generated_corpus(50, "dev", seed=3)
    for i, pair in enumerate(generated_pairs(50, "dev", seed=3)):
        assert corpus.tokens(corpus.premise, i) == pair.premise
        assert corpus.tokens(corpus.hypothesis, i) == pair.hypothesis
        assert corpus.labels[corpus.label[i]] == pair.label
        assert corpus.phenomena[corpus.phenomenon[i]] == pair.phenomenon


def test_counts_follow_from_their_numbers(pairs: list[Pair]) -> None:
    """At least j is at least k from k on, and may be below it; exactly j is one or the other."""
    for pair in (pair for pair in pairs if pair.phenomenon == "number"):
        j, k = (1 + NUMBERS.index(next(word for word in side if word in NUMBERS)) for side in pair[:2])
        below = "contradiction" if pair.premise[0] == "exactly" else "neutral"
        assert pair.label == ("entailment" if j >= k else below) and pair.hypothesis[:2] == ["at", "least"]


SHARES = {
    "all": {10}, "every": {10}, "most": {6, 7, 8, 9, 10}, "some": set(range(1, 11)), "several": set(range(2, 11)),
    "few": {0, 1, 2, 3}, "no": {0}, "zero": {0},
}  # fmt: skip


def test_quantifiers_follow_from_how_many_of_ten_they_allow(pairs: list[Pair]) -> None:
    """Entailed is what holds of every number that the premise allows, contradicted what holds of none."""
    for pair in (pair for pair in pairs if pair.phenomenon == "quantifier"):
        premise, hypothesis = SHARES[pair.premise[0]], SHARES[pair.hypothesis[0]]
        both = premise & hypothesis
        assert pair.label == ("entailment" if premise <= hypothesis else "neutral" if both else "contradiction")


def test_conjunctions_follow_from_their_words(pairs: list[Pair]) -> None:
    for pair in (pair for pair in pairs if pair.phenomenon == "conjunction"):
        if {"neither", "but"} & set(pair.premise):
            assert pair.label == "contradiction"
        else:
            assert pair.label == ("entailment" if "and" in pair.premise else "neutral")


def test_a_place_denied_leaves_the_others_open(pairs: list[Pair]) -> None:
    """Read as where it may happen: somewhere for certain, perhaps nowhere, nowhere at all."""
    for pair in (pair for pair in pairs if pair.phenomenon == "negation" and "not" not in pair.hypothesis):
        assert len(pair.hypothesis) == 4 and pair.hypothesis[2] == "is"
        affirmed, _, denied = " ".join(pair.premise).partition(" but not ")
        if denied:
            somewhere, nowhere = affirmed.split() == pair.hypothesis, False
            assert denied.split()[:-1] == ["in", "the"] and denied.split()[-1] in PLACES
        else:
            bare = [word for word in pair.premise if word != "not"]
            assert bare[:4] == pair.hypothesis and pair.premise[3] == "not"
            somewhere, nowhere = False, bare == pair.hypothesis
        assert pair.label == ("entailment" if somewhere else "contradiction" if nowhere else "neutral")


def test_negation_turns_inclusion_round(pairs: list[Pair]) -> None:
    """Not doing it is not doing it anywhere; not doing it here says nothing of elsewhere."""
    for pair in (pair for pair in pairs if pair.phenomenon == "negation" and "not" in pair.hypothesis):
        bare = [[word for word in side if word != "not"] for side in pair[:2]]
        if "not" not in pair.premise:
            assert pair.label == "contradiction" and bare[0] == bare[1]
            continue
        places = ["in" in side for side in bare]
        if places == [False, False]:
            assert pair.label == "entailment" and [SYNONYM.get(w, w) for w in bare[0]] != bare[0]
        else:
            assert pair.label == ("entailment" if places == [False, True] else "neutral")


def test_actions_have_opposites_and_keep_their_roles(pairs: list[Pair]) -> None:
    """Who pushes does not pull: the one word differs, the two nouns stay where they were."""
    acting = [pair for pair in pairs if pair.phenomenon == "antonym" and set(pair.hypothesis) & set(ACTIONS)]
    assert len(acting) > 0.02 * len(pairs) and len(ACTIONS) == len(set(ACTIONS))
    for pair in acting:
        changed = [(a, b) for a, b in zip(pair.premise, pair.hypothesis, strict=True) if a != b]
        assert changed == [(ANTONYM[verb], verb) for verb in pair.hypothesis if verb in ACTIONS]


def test_each_split_has_its_share_of_pairs_and_of_combinations() -> None:
    corpora = Data(pairs=800).corpora()
    assert {name: len(corpus) for name, corpus in corpora.items()} == {"train": 800, "dev": 100, "test": 200}
    splits = Counter(_split_of(noun, verb) for noun in NOUN_NUMBER for verb in VERB_NUMBER)
    shares = {name: count / splits.total() for name, count in splits.items()}
    assert shares == pytest.approx({"train": 0.8, "dev": 0.1, "test": 0.1}, abs=0.005)


def test_the_splits_are_their_own() -> None:
    corpora = Data(pairs=200).corpora()
    hypotheses = {
        name: {tuple(corpus.tokens(corpus.hypothesis, i)) for i in range(len(corpus))}
        for name, corpus in corpora.items()
    }
    assert not any(a & b for a, b in itertools.combinations(hypotheses.values(), 2)) and len(hypotheses) == 3
