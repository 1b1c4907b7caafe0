r"""CAFE: Tay, Tuan, Hui 2018, https://arxiv.org/abs/1801.00102v1.

Commands::

    python examples/cafe.py train                                       # the generated corpus
    python examples/cafe.py predict --run runs/cafe --premise "Bob is awake." --hypothesis "Bob is asleep."
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from nli_common.checks import require_at_least, require_choices, require_dropout
from nli_common.commands import main
from nli_common.data import Sentence
from nli_common.feedforward import feedforward
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.recurrent import SentenceLSTM
from nli_common.script import NumClasses, Script
from nli_common.words import SpelledWords
from nlilayers import AlignmentFactorization, DecomposableAlign, FactorizationMachine, Highway, IntraAlign
from nlilayers.masking import masked_max, masked_mean, masked_sum, zero_padding
from paper_tables.cafe import TABLES

Kind: TypeAlias = Literal["highway", "fc"]
POOLS = {"avgmax": (masked_max, masked_mean), "sum": (masked_sum,), "avg": (masked_mean,)}
NUM_TAGS = 50
"""Rows of the table of tags, more if the lexicon has more tags; row 0 is an unknown one's."""


@dataclass(frozen=True)
class CAFEConfig:
    """Table 1's best single model: 300D, AvgMax pooling, 300D highway prediction layers."""

    encoder_size: int = 300
    """Width of the highway encoder, and so of an encoded word (r)."""
    num_factors: int = 150
    """Factors of each factorization machine (k)."""
    lstm_size: int = 300
    """Width of the LSTM, in each direction."""
    prediction_size: int = 300
    """Width of the two prediction layers (h)."""
    pooling: Literal["avgmax", "sum", "avg"] = "avgmax"
    """How the LSTM's states are pooled into one vector."""
    append_intra: bool = True
    """Append the intra-aligned vector to each word (footnote 2); the 300D models' counts require it."""
    dropout: float = 0.2
    """Dropout after each layer of the encoder, F, G and the prediction, and after the LSTM (keep probability 0.8)."""
    char_size: int = 20
    """Width of a character's vector (the paper is silent on the sizes of characters and tags)."""
    char_filters: int = 100
    """Filters of each width, over 1, 3 and 5 characters; 0 reads none (ablation 2)."""
    tag_size: int = 20
    """Width of a part-of-speech tag's vector; 0 reads none (ablation 3)."""
    encoder: Kind = "highway"
    """Highway or rectified encoder layers (ablation 6)."""
    prediction: Kind = "highway"
    """Highway or rectified prediction layers (ablation 5, and the MLP of Table 1)."""
    rectified_projection: bool = False
    """Rectify what a highway layer between different widths carries on; the paper calls it nonlinear."""
    factorize: bool = True
    """Compare by factorization machines; without, by rectified units (ablation 1)."""
    linear_units: bool = False
    """Without factorize: do not rectify those units; the paper does not say whether its FC is rectified."""
    inter_attention: bool = True
    """Align the sentences with each other (ablation 4, and the first setting of Table 1)."""
    without: Literal["cat", "sub", "mul"] | None = None
    """Compare without concatenation, subtraction or multiplication (ablations 9, 7 and 8)."""
    bidirectional: bool = False
    """A BiLSTM instead of the LSTM (ablation 10)."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse what makes no model."""
        sizes = ("encoder_size", "num_factors", "lstm_size", "prediction_size", "char_size", "num_classes")
        require_at_least(1, self, *sizes)
        require_at_least(0, self, "char_filters", "tag_size")
        require_dropout(self)
        require_choices(self)

    @property
    def unread(self) -> dict[str, str]:
        """The options of what the model leaves out."""
        unread: dict[str, str] = {}
        if self.factorize:
            unread["linear_units"] = "without --no-factorize"
        else:
            unread["num_factors"] = "with --no-factorize"
        if not self.char_filters:
            unread["char_size"] = "with --char-filters 0"
        if "highway" not in (self.encoder, self.prediction):
            unread["rectified_projection"] = "without a highway layer"
        return unread

    @property
    def features(self) -> tuple[str, ...]:
        """The scalars that each word is given, in the order of Eq 15 and by the names of Figure 2."""
        attentions = ("intra", "inter") if self.inter_attention else ("intra",)
        return tuple(f"{a}_{c}" for a in attentions for c in ("cat", "sub", "mul") if c != self.without)


class PropagatedFeatures(NamedTuple):
    """Figure 2: what the scalars of each word are called, and the scalars, ``(b, n, len(names))``, 0 at padding."""

    names: tuple[str, ...]
    premise: Tensor
    hypothesis: Tensor


class CAFE(nn.Module):
    """Encode, align, factorize, propagate, predict: section 3, its words embedded by the lexicon's fixed vectors."""

    def __init__(self, config: CAFEConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.config = config
        r, h, n = config.encoder_size, config.lstm_size, config.prediction_size
        words = WordFeatures(config, lexicon)
        self.encode = nn.Sequential(words, *layers(config, config.encoder, words.size, r, r))
        self.intra_align = IntraAlign(layers(config, "fc", r, r))
        self.intra_compare = comparison(config)
        if config.inter_attention:
            self.inter_align = DecomposableAlign(layers(config, "fc", r, r))
            self.inter_compare = comparison(config)
            # Absent otherwise: a model without inter-attention is not `Aligns`, and has no alignment to draw.
            self.leading_tokens: tuple[str, ...] = ()
        augmented = r + len(config.features) + r * config.append_intra
        self.lstm = SentenceLSTM(augmented, h, bidirectional=config.bidirectional)
        self.dropout = nn.Dropout(config.dropout)
        pooled = h * (1 + config.bidirectional) * len(POOLS[config.pooling])
        self.predict = layers(config, config.prediction, 4 * pooled, n, n)
        self.predict.append(nn.Linear(n, config.num_classes))
        start_from_xavier(self)

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        u_p, u_h = self.augment(premise, hypothesis)
        x_p, x_h = self.summarise(u_p, premise.mask), self.summarise(u_h, hypothesis.mask)
        logits: Tensor = self.predict(torch.cat([x_p, x_h, x_p * x_h, x_p - x_h], dim=-1))  # Eqs 18, 19
        return logits

    def augment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """Both sentences' words, each with the scalars that compare it with what is aligned to it."""
        p, h = self.encode(premise), self.encode(hypothesis)  # Eq 1
        p_intra, h_intra = self.intra_align(p, premise.mask), self.intra_align(h, hypothesis.mask)  # Eq 5
        u_p, u_h = [p, self.intra_compare(p, p_intra)], [h, self.intra_compare(h, h_intra)]  # Eqs 12 to 14
        if self.config.inter_attention:
            p_inter, h_inter = self.inter_align(p, h, premise.mask, hypothesis.mask)  # Eqs 2, 4, 3
            u_p.append(self.inter_compare(p, p_inter))  # Eqs 9 to 11
            u_h.append(self.inter_compare(h, h_inter))
        if self.config.append_intra:
            u_p.append(p_intra)
            u_h.append(h_intra)
        return torch.cat(u_p, dim=-1), torch.cat(u_h, dim=-1)  # Eq 15

    def summarise(self, u: Tensor, mask: Tensor) -> Tensor:
        """One vector of the augmented words."""
        states = self.dropout(self.lstm(u, mask)[0])  # Eq 16
        return torch.cat([pool(states, mask) for pool in POOLS[self.config.pooling]], dim=-1)  # Eq 17

    def propagated_features(self, premise: Sentence, hypothesis: Sentence) -> PropagatedFeatures:
        """The scalars of each word, for a figure like the paper's second."""
        names, r = self.config.features, self.config.encoder_size
        p, h = (u[..., r : r + len(names)] for u in self.augment(premise, hypothesis))
        return PropagatedFeatures(names, zero_padding(p, premise.mask), zero_padding(h, hypothesis.mask))

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """How each sentence's words are weighted for those of the other (Eqs 4, 3), ``(b, n, m)`` and ``(b, m, n)``."""
        p, h = self.encode(premise), self.encode(hypothesis)
        return self.inter_align.alignment_weights(p, h, premise.mask, hypothesis.mask)


class WordFeatures(nn.Module):
    """A word's fixed vector, its characters and its part of speech, side by side: section 3.1."""

    def __init__(self, config: CAFEConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.words = SpelledWords(lexicon, config.char_size, config.char_filters)
        self.size = self.words.dim + config.tag_size
        self.reads_tags = config.tag_size > 0
        rows = max(NUM_TAGS, 1 + len(lexicon.tags))
        self.tags = nn.Embedding(rows, config.tag_size) if self.reads_tags else None

    def forward(self, sentence: Sentence) -> Tensor:
        """Words ``(b, n, size)``."""
        words: Tensor = self.words(sentence)
        if self.tags is None:
            return words
        pos = torch.zeros_like(sentence.tokens) if sentence.pos is None else sentence.pos
        return torch.cat([words, self.tags(pos)], dim=-1)


class AblatedComparison(nn.Module):
    """Some of the machines of an :class:`AlignmentFactorization`, or a unit, rectified or not, in place of each."""

    def __init__(self, config: CAFEConfig) -> None:
        super().__init__()
        self.units = nn.ModuleDict()
        for name, width in {"cat": 2, "sub": 1, "mul": 1}.items():
            if name != config.without:
                self.units[name] = unit(config, width * config.encoder_size)

    def forward(self, x: Tensor, aligned: Tensor) -> Tensor:
        """The scalars of each word."""
        pairs = {"cat": torch.cat([x, aligned], dim=-1), "sub": x - aligned, "mul": x * aligned}
        return torch.stack([each(pairs[name]).reshape(x.shape[:-1]) for name, each in self.units.items()], dim=-1)


def unit(config: CAFEConfig, in_features: int) -> nn.Module:
    """A factorization machine, or the "FC" of ablation 1 in its place, rectified unless it is to be linear."""
    if config.factorize:
        return FactorizationMachine(in_features, config.num_factors)
    dense = feedforward(in_features, 1)
    return dense[:1] if config.linear_units else dense


def comparison(config: CAFEConfig) -> nn.Module:
    """Section 3.4's layer, or what Table 3 puts in its place."""
    if config.factorize and config.without is None:
        return AlignmentFactorization(config.encoder_size, config.num_factors)
    return AblatedComparison(config)


def layers(config: CAFEConfig, kind: Kind, *sizes: int) -> nn.Sequential:
    """Layers of these sizes, the first of which is the input's, with dropout after each."""
    projected = torch.relu if config.rectified_projection else None
    make: Mapping[Kind, Callable[[int, int], nn.Module]] = {
        "highway": partial(Highway, projection_activation=projected),
        "fc": feedforward,
    }
    parts = ((make[kind](*ends), nn.Dropout(config.dropout)) for ends in pairwise(sizes))
    return nn.Sequential(*(part for pair in parts for part in pair))


def start_from_xavier(model: nn.Module) -> None:
    """Xavier's weights (section 4.2), biases of 0, or 1 at forget and -1 at highway gates; machines keep theirs."""
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.ndim > 1 and not isinstance(module, FactorizationMachine):
                nn.init.xavier_uniform_(parameter)
            elif name.startswith("bias"):
                nn.init.zeros_(parameter)
                if isinstance(module, nn.LSTM):
                    parameter.data.view(4, -1)[1] = 0.5  # of two biases that are added
    for module in model.modules():
        if isinstance(module, Highway):
            for gate in module.gates.children():
                nn.init.constant_(gate.get_parameter("bias"), -1.0)


SCRIPT = Script(
    name="cafe",
    models={CAFEConfig: CAFE},
    recipe=Recipe(optimizer="adam", lr=3e-4, l2=1e-6, batch_size=256, epochs=40),
    quick=Recipe(
        optimizer="adamwr", lr=1e-3, batch_size=64, epochs=4, restart_epochs=4, warmup_epochs=0.25, clip_norm=1.0
    ),
    tables=TABLES,
)

if __name__ == "__main__":
    main(SCRIPT)
