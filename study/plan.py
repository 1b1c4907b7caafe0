"""What is trained on what, how often, and by which protocol."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nli_common.tables import Row

PROTOCOL: Mapping[str, Any] = {
    "optimizer": "adam",
    "batch_size": 32,
    "epochs": 20,
    "patience": 4,
    "clip_norm": 5.0,
    "min_lr": 0.0,
    "normalized_decay": 0.0,
    "warmup_epochs": 0.0,
    "same_lengths": False,
    "l2": 0.0,
}
"""One for all models, that of the public implementations' figures: Adam, the best dev epoch is tested once."""
RATES = (2e-4, 5e-4, 1e-3)
DROPOUTS = (0.1, 0.3)
TUNING_BENCH, TUNING_EPOCHS, TUNING_DROPOUT = "snli10k", 10, 0.2
"""Each family's rate is chosen first, with this dropout, then its dropout: five short runs for everyone."""


@dataclass(frozen=True)
class Bench:
    """Pairs to train on, and the vectors of their words."""

    name: str
    train: str
    dev: str
    test: str
    vectors: str
    others: Mapping[str, str] = field(default_factory=dict)
    """More files that every run is tested on, by the names that the pages give them."""


TRANSFER = {
    "hard": "bench/snli_hard.tsv.gz",
    "Breaking NLI": "corpora/breaking_nli.tsv.gz",
    "revised premise": "corpora/cad_revised_premise_test.tsv.gz",
    "revised hypothesis": "corpora/cad_revised_hypothesis_test.tsv.gz",
    "MoNLI, positive": "corpora/monli_positive.tsv.gz",
    "MoNLI, negative": "corpora/monli_negative_test.tsv.gz",
    "FraCaS": "corpora/fracas.tsv.gz",
    "SICK": "bench/sick_test.tsv.gz",
}
WIDE, NARROW = "vectors_300d_11k_f16.npz", "glove100d_10k_f16.npz"


def _bench(name: str, vectors: str, **others: str) -> Bench:
    train, dev, test = (f"bench/{name}_{split}.tsv.gz" for split in ("train", "dev", "test"))
    return Bench(name, train, dev, test, vectors, others)


def _of_snli(name: str) -> Bench:
    return Bench(name, f"bench/{name}_train.tsv.gz", "bench/snli_dev.tsv.gz", "bench/snli_test.tsv.gz", WIDE, TRANSFER)


BENCHES = {
    bench.name: bench
    for bench in (
        _of_snli("snli22k"),
        _of_snli("snli58k"),
        _bench("snli10k", NARROW),
        _bench("sick", NARROW),
        _bench("mnli20k", WIDE),
    )
}


@dataclass(frozen=True)
class Variant:
    """A row of a page: a model, with what distinguishes it."""

    name: str
    family: str
    """The variant whose rate and dropout were tuned for it."""
    row: Row
    unit_vectors: bool = False
    """Give the vector of every word that has one the length 1."""


def _variant(name: str, family: str, script: str, model: str = "", **options: Any) -> Variant:
    return Variant(name, family, Row(name, options, script=script, model=model))


_DA, _GT, _CNN, _TR = "decomposable_attention", "gaussian_transformer", "gated_cnn", "lstm_attention"
_CAFE_150, _CNN_150 = "CAFE 150, whole", "GCNN 150, words"
_WORDS: dict[str, Any] = {"use_chars": False, "use_pos": False}
MODELS = (
    _variant("hypothesis only", "hypothesis only", "hypothesis_only"),
    _variant("DA", "DA", _DA),
    _variant("DA, intra-attention", "DA, intra-attention", _DA, intra_attention=True),
    _variant("attention", "attention", _TR, "AttentionModelConfig"),
    _variant("LSTM", "LSTM", _TR, "LSTMBaselineConfig"),
    _variant("hybrid", "hybrid", _TR, "HybridModelConfig"),
    _variant("ESIM", "ESIM", "esim"),
    _variant("Gaussian Transformer", "Gaussian Transformer", _GT),
    _variant("CAFE", "CAFE", "cafe"),
    _variant("stacked alignment", "stacked alignment", "stacked_alignment"),
    _variant("gated CNN", _CNN_150, _CNN),
    _variant("gated CNN, words alone", _CNN_150, _CNN, **_WORDS),
)
"""The main tables. The gated CNN is tuned at half its width."""


def _averaged(model: Variant) -> Variant:
    """The same model; what is chosen, kept and tested is an average of its weights."""
    name = f"{model.name}, averaged"
    return replace(model, name=name, row=replace(model.row, name=name, options={"ema_decay": 0.999}))


AVERAGED = tuple(_averaged(model) for model in MODELS if model.name in ("DA", "ESIM", "stacked alignment"))
"""What an average of the weights does for a small model, a large one of the papers, and the one of no paper."""


def _gt(name: str, **options: Any) -> Variant:
    return _variant(f"GT, {name}", "Gaussian Transformer", _GT, **options)


def _cnn(name: str, **options: Any) -> Variant:
    return _variant(f"GCNN 150, {name}", _CNN_150, _CNN, **({"hidden_size": 150} | _WORDS | options))


def _other_activation(name: str, convolution: str) -> Variant:
    return _variant(f"GCNN 150, {name}", _CNN_150, "study.gates", hidden_size=150, convolution=convolution, **_WORDS)


def _cafe(name: str, **options: Any) -> Variant:
    sizes = {"encoder_size": 150, "lstm_size": 150, "prediction_size": 200, "num_factors": 10, "append_intra": False}
    return _variant(f"CAFE 150, {name}", _CAFE_150, "cafe", **(sizes | options))


def _unit(name: str, **options: Any) -> Variant:
    """Inputs of another size ask for a rate of their own: each is its own family."""
    return replace(_variant(name, name, _TR, "AttentionModelConfig", **options), unit_vectors=True)


HALF_ABLATED = (
    _other_activation("output gate with ReLU", "gcnn"),
    _other_activation("no output gate, tanh", "no-output-gate"),
    _cnn("residual GLU", convolution="residual-glu"),
)
"""Two of the paper's ablations change two things each, the output gate's and the GLU's: one of them alone."""
ABLATIONS = (
    _gt("no prior", locality="none"),
    _gt("Zipf", locality="zipf"),
    _gt("linear", locality="linear"),
    _gt("trainable bias", locality="trainable"),
    _gt("Gaussian, Eq 3", locality="gaussian"),
    _gt("n-grams summed", ngrams="sum"),
    _gt("Glorot's start", start="glorot"),
    _unit("attention, unit vectors"),
    _unit("attention, unit vectors throughout", unit_unknown=True),
    _cnn("words"),
    _cnn("characters", use_chars=True),
    _cnn("characters and tags", use_chars=True, use_pos=True),
    _cnn("no forget gate", convolution="no-forget-gate"),
    _cnn("no output gate", convolution="no-output-gate"),
    _cnn("GLU", convolution="glu"),
    _cnn("no gates", convolution="cnn"),
    *HALF_ABLATED,
    _cafe("whole"),
    _cafe("FC for FM", factorize=False),
    _cafe("no subtraction", without="sub"),
    _cafe("no multiplication", without="mul"),
    _cafe("no concatenation", without="cat"),
    _cafe("FC for highway, encoder", encoder="fc"),
    _cafe("FC for highway, prediction", prediction="fc"),
    _cafe("no inter-attention", inter_attention=False),
    _cafe("no characters", char_filters=0),
    _cafe("no tags", tag_size=0),
)
"""What is left out, exchanged or added; CAFE and the gated CNN at half their width."""
ENCODED = (
    _variant("frozen encoder, pooled", "frozen encoder, pooled", "study.heads", "PooledHeadConfig"),
    _variant("frozen encoder, aligned", "frozen encoder, aligned", "study.heads", "AlignedHeadConfig"),
    _variant("GT on a frozen encoder", "GT on a frozen encoder", _GT),
)
"""On the features of a Hugging Face encoder that is not trained: ``--encoder FOLDER``."""
VARIANTS = {variant.name: variant for variant in (*MODELS, *AVERAGED, *ABLATIONS, *ENCODED)}
HALVED = (VARIANTS[_CNN_150], VARIANTS["GCNN 150, characters and tags"])
"""The gated CNN with half its features: a CPU takes it where its own width would take days."""
READERS = (*MODELS, *AVERAGED, *HALVED)
"""What the tables of whole models show, beside models on an encoder."""
WIDEST = tuple(variant.name for variant in MODELS if variant.family == _CNN_150)
"""At the width of its paper a CPU trains it once on each small bench, and nowhere else."""
SMALL = ("sick", "snli10k")
SLOW = ("CAFE", "stacked alignment", _CAFE_150, "LSTM", "hybrid", *(variant.name for variant in ENCODED))
"""The families that a CPU trains three times on the small benches, and not five times."""
QUICK = (
    "hypothesis only",
    "DA",
    "DA, intra-attention",
    "attention",
    "Gaussian Transformer",
    *(variant.name for variant in ENCODED[:2]),
)
"""The families whose epoch of snli22k takes a CPU under 90 seconds: there and on mnli20k it trains them three times,
not once."""


@dataclass(frozen=True)
class Job:
    """One run."""

    bench: str
    variant: str
    seed: int


def jobs(budget: str) -> Iterator[Job]:
    """Every run of a budget, the ones that say most first."""
    groups = MODELS, AVERAGED, HALVED, ABLATIONS, ENCODED
    models, averaged, halved, ablations, encoded = ([variant.name for variant in group] for group in groups)
    if budget == "gpu":
        for seed in range(5):
            for bench in ("snli22k", "snli58k", "mnli20k", "sick", "snli10k"):
                yield from (Job(bench, name, seed) for name in (*models, *averaged))
            for bench in ("snli22k", "sick"):
                yield from (Job(bench, name, seed) for name in (*ablations, *encoded))
        return
    plan = (
        (SMALL, (*models, *averaged, *encoded)),
        (("snli22k",), (*models, *averaged, *halved, *encoded, OWN_START.worse)),
        (("mnli20k",), (*models, *halved)),
        (SMALL, ablations),
    )
    for seed in range(5):
        for benches, names in plan:
            yield from (Job(bench, n, seed) for bench in benches for n in names if seed < seeds_on_cpu(bench, n))


def seeds_on_cpu(bench: str, variant: str) -> int:
    """How often a CPU trains a variant on a bench that it trains it on."""
    family = VARIANTS[variant].family
    if VARIANTS[variant] in AVERAGED:
        return 5 if family in QUICK else 3
    if variant in WIDEST:
        return 1 if bench in SMALL else 0
    if bench in SMALL:
        return 3 if family in SLOW or VARIANTS[variant] in HALF_ABLATED else 5
    return 3 if family in QUICK else 1


@dataclass(frozen=True)
class Claim:
    """What a paper says of two variants: that the first is better."""

    paper: str
    """Where, or that it is ours."""
    says: str
    better: str
    worse: str
    gains: tuple[float, ...] = ()
    """By how many points in the paper, on each corpus on which it has both."""
    paired: bool = False
    """Whether the runs of a seed take the same steps as long as both train, so that they are compared seed by seed."""


_FULL_GT = "Gaussian Transformer"
_GUO, _PARIKH, _CHEN, _CHEN_2, _TAY = (
    "Guo et al. 2019, Table 1",
    "Parikh et al. 2016, Table 1",
    "Chen et al. 2019, Tables 1 and 2",
    "Chen et al. 2019, Table 2",
    "Tay et al. 2018, Table 3",
)
NO_PAPER = "no paper"
OWN_START = Claim(NO_PAPER, "a start that aligns helps", _FULL_GT, "GT, Glorot's start")
CLAIMS = (
    Claim(_GUO, "a Gaussian prior helps", "GT, Gaussian, Eq 3", "GT, no prior", (0.9, 1.0)),
    Claim(_GUO, "its variant, Eq 4, helps", _FULL_GT, "GT, no prior", (1.0, 1.2)),
    Claim(_GUO, "Zipf's prior helps", "GT, Zipf", "GT, no prior", (0.4, 0.2)),
    Claim(_GUO, "a trainable bias helps", "GT, trainable bias", "GT, no prior", (0.2, 0.3)),
    Claim(_GUO, "a linear prior helps", "GT, linear", "GT, no prior", (0.6, 0.5)),
    Claim(_GUO, "Eq 4 helps more than Zipf's", _FULL_GT, "GT, Zipf", (0.6, 1.0)),
    Claim(_GUO, "more than a linear one", _FULL_GT, "GT, linear", (0.4, 0.7)),
    Claim(_GUO, "more than a trainable bias", _FULL_GT, "GT, trainable bias", (0.8, 0.9)),
    Claim(_GUO, "Eq 4 beats Eq 3", _FULL_GT, "GT, Gaussian, Eq 3", (0.1, 0.2)),
    Claim("Guo et al. 2019", "n-grams are pooled by their largest, not summed", _FULL_GT, "GT, n-grams summed"),
    Claim(_PARIKH, "intra-attention helps", "DA, intra-attention", "DA", (0.5,)),
    Claim(_CHEN, "characters help", "GCNN 150, characters", _CNN_150, (0.4, 0.2, 0.28)),
    Claim(_CHEN, "and tags, too", "GCNN 150, characters and tags", "GCNN 150, characters", (0.4, 0.4, 0.41)),
    Claim(_CHEN, "both help at the paper's width", "gated CNN", "gated CNN, words alone", (0.8, 0.6, 0.69)),
    Claim(_CHEN, "both gates beat a GLU", _CNN_150, "GCNN 150, GLU", (0.3, 0.6, 0.34)),
    Claim(_CHEN, "both gates beat a plain CNN", _CNN_150, "GCNN 150, no gates", (1.0, 1.3, 0.74)),
    Claim(_CHEN_2, "the forget gate helps", _CNN_150, "GCNN 150, no forget gate", (0.33,)),
    Claim(_CHEN_2, "the output gate helps", _CNN_150, "GCNN 150, no output gate", (0.31,)),
    Claim(_TAY, "FM beats FC", _CAFE_150, "CAFE 150, FC for FM", (1.3, 1.0)),
    Claim(_TAY, "subtraction helps", _CAFE_150, "CAFE 150, no subtraction", (1.1, 0.6)),
    Claim(_TAY, "multiplication helps", _CAFE_150, "CAFE 150, no multiplication", (0.3, 0.3)),
    Claim(_TAY, "concatenation helps", _CAFE_150, "CAFE 150, no concatenation", (1.1, 1.3)),
    Claim(_TAY, "a highway encoder helps", _CAFE_150, "CAFE 150, FC for highway, encoder", (0.3, 0.2)),
    Claim(_TAY, "a highway prediction helps", _CAFE_150, "CAFE 150, FC for highway, prediction", (1.3, 1.0)),
    Claim(
        "Tay et al. 2018, Tables 3 and 1",
        "inter-attention helps",
        _CAFE_150,
        "CAFE 150, no inter-attention",
        (3.8, 3.3, 2.6),
    ),
    Claim(_TAY, "characters help", _CAFE_150, "CAFE 150, no characters", (0.9, 0.6)),
    Claim(_TAY, "tags help", _CAFE_150, "CAFE 150, no tags", (0.7, 0.5)),
)
"""The papers' ablations."""
OWN_CLAIMS = (
    Claim(NO_PAPER, "unit length, a setting of the Trento report, helps", "attention, unit vectors", "attention"),
    Claim(NO_PAPER, "of unknown words' vectors, too", "attention, unit vectors throughout", "attention"),
    OWN_START,
    *(Claim(NO_PAPER, "an average of the weights helps", one.name, one.family, paired=True) for one in AVERAGED),
    Claim(
        NO_PAPER,
        "on frozen features, a head that aligns beats one that pools",
        "frozen encoder, aligned",
        "frozen encoder, pooled",
    ),
)
TAKEN_APART = (
    Claim(
        "Chen et al. 2019, Section 4",
        "without the output gate, ReLU is better than tanh",
        "GCNN 150, no output gate",
        "GCNN 150, no output gate, tanh",
    ),
    Claim(NO_PAPER, "with the gate, too", "GCNN 150, output gate with ReLU", _CNN_150),
    Claim(NO_PAPER, "with tanh, the output gate helps", _CNN_150, "GCNN 150, no output gate, tanh"),
    Claim(NO_PAPER, "with ReLU, too", "GCNN 150, output gate with ReLU", "GCNN 150, no output gate"),
    Claim(NO_PAPER, "both gates beat a GLU with shortcuts", _CNN_150, "GCNN 150, residual GLU"),
    Claim(NO_PAPER, "shortcuts help a GLU", "GCNN 150, residual GLU", "GCNN 150, GLU"),
)
"""What two of the paper's ablations of the gated CNN change, one thing at a time."""
ORDER = (
    Claim("Parikh et al. 2016, Table 1", "86.3 to 80.6", "DA", "LSTM"),
    Claim("Tay et al. 2018, Table 1", "88.5 to 88.0", "CAFE", "ESIM"),
    Claim("Tay et al. 2018, Table 1", "88.5 to 86.8", "CAFE", "DA, intra-attention"),
    Claim("Tay et al. 2018, Table 1", "88.5 to 86.3", "CAFE", "DA"),
    Claim("Guo et al. 2019, Table 2", "88.0 to 86.8", "ESIM", "DA, intra-attention"),
    Claim("Guo et al. 2019, Table 2", "89.2 to 86.8", _FULL_GT, "DA, intra-attention"),
    Claim("Guo et al. 2019, Table 2", "89.2 to 88.0", _FULL_GT, "ESIM"),
    Claim("Guo et al. 2019, Table 2", "89.2 to 88.5", _FULL_GT, "CAFE"),
    Claim("Chen et al. 2019, Table 1", "77.4 to 76.8", "gated CNN", "ESIM"),
    Claim("Chen et al. 2019, Table 1", "77.4 to 76.8", "GCNN 150, characters and tags", "ESIM"),
    Claim("Nguyen 2019, Table 3, 300-42B", "85.6 to 80.6", "attention", "LSTM"),
    Claim("Nguyen 2019, Table 3, 300-42B", "85.8 to 85.6", "hybrid", "attention"),
    Claim("Nguyen 2019, Table 3, 300-42B", "85.8 to 80.6", "hybrid", "LSTM"),
)
"""The models as the papers order them, with their test accuracies: of SNLI, Chen et al.'s of MultiNLI."""
NEARLY_EQUAL = Claim("Chen et al. 2019, Table 1", "76.8 to 76.6", "ESIM", "gated CNN, words alone")
"""What they call nearly equal."""
