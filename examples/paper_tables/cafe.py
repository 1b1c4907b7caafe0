"""Tay, Tuan, Hui 2018, https://arxiv.org/abs/1801.00102v1: tables 1 to 4."""

from collections.abc import Mapping
from typing import Any

from nli_common.tables import Row, Table

_SUM_600: Mapping[str, Any] = {"pooling": "sum", "prediction": "fc", "prediction_size": 600}


def _small(size: int, prediction_size: int) -> Mapping[str, Any]:
    """A model of the lower part of table 1, with sizes that come near its count."""
    return {
        "encoder_size": size,
        "lstm_size": size,
        "prediction_size": prediction_size,
        "num_factors": 10,
        "append_intra": False,
        "pooling": "sum",
        "prediction": "fc",
    }


SNLI = Table(
    title="Table 1: SNLI",
    columns=("train", "test"),
    measures=("train", "test"),
    figure="points",
    shown=1,
    rows=(
        Row("300D CAFE (w/o inter-attention)", {"inter_attention": False}, (87.3, 85.9), "3.7M"),
        Row("200D DecompAtt", {}, (89.5, 86.3), "380K", script="decomposable_attention"),
        Row(
            "200D DecompAtt + intra-att",
            {"intra_attention": True},
            (90.5, 86.8),
            "580K",
            script="decomposable_attention",
        ),
        Row("600D ESIM", {}, (92.6, 88.0), "4.3M", script="esim"),
        Row("150D CAFE (Sum+2x200D MLP)", _small(150, 200), (88.2, 87.7), "750K"),
        Row("200D CAFE (Sum+2x400D MLP)", _small(200, 400), (89.4, 88.1), "1.4M"),
        Row("300D CAFE (Sum+2x600D MLP)", _SUM_600, (89.2, 88.3), "3.5M"),
        Row("300D CAFE (AvgMax+300D HN)", {}, (89.8, 88.5), "4.7M"),
        Row("300D CAFE (ensemble)", _SUM_600, (92.5, 89.3), "17.5M", ensemble=True),
    ),
    note=(
        "The paper gives neither the factors of each size nor the widths of characters and tags: the rows take some "
        "that come near its counts (150 factors and the appended intra-aligned vector at 300D, 10 factors "
        "without it below). Its highway layers of 300 are as wide as the model here, which the counts of the smaller "
        "models require. No reading of the model without inter-attention stands out; this one, which "
        "changes nothing else, has 4.46M. With --seeds 5 the ensemble is of five 3.5M models, the only ones of which "
        "five make 17.5M; its accuracy on training pairs is not measured. Left out are the rows of systems that have "
        "no script here."
    ),
)

MULTINLI = Table(
    title="Table 2: MultiNLI",
    columns=("matched", "mismatched"),
    rows=(
        Row("ESIM (Williams et al. 2017)", {}, (72.4, 72.1), script="esim"),
        Row("ESIM (Weissenborn 2017)", {}, (76.3, 75.8), script="esim"),
        Row("CAFE", {}, (78.7, 77.9)),
        Row("CAFE ensemble", _SUM_600, (80.2, 79.0), ensemble=True),
    ),
    note=(
        "The matched pairs are --test, the mismatched ones --also. MultiNLI's test labels are not public: without "
        "them its development sets, which table 3 is of, stand in. Two papers' figures for the same ESIM are given. "
        "The paper does not say of which models its ensemble is: of the 3.5M ones of its ensemble on SNLI, here. "
        "Left out are the rows of systems that have no script here."
    ),
)

SCITAIL = Table(
    title="Table 2: SciTail",
    columns=("test",),
    rows=(
        Row("ESIM", {}, (70.6,), script="esim"),
        Row("DecompAtt", {}, (72.3,), script="decomposable_attention"),
        Row("CAFE", {}, (83.3,)),
    ),
    note=(
        "The figures of the other systems are those of Khot et al. 2018; left out are those that have no script here. "
        "Which DecompAtt it is, the paper does not say: the vanilla one, here, which comes first in its Table 1. "
        "SciTail's .tsv has no part-of-speech tags: give a file with pos1 and pos2 for them."
    ),
)

ABLATIONS = Table(
    title="Table 3: ablations, MultiNLI dev",
    columns=("matched", "mismatched"),
    measures=("dev", "also 1"),
    figure="points",
    rows=(
        Row("Original model", {}, (79.0, 78.9)),
        Row("(1) Replace FM with FC", {"factorize": False}, (77.7, 77.9)),
        Row("(2) Remove char embed", {"char_filters": 0}, (78.1, 78.3)),
        Row("(3) Remove syn embed", {"tag_size": 0}, (78.3, 78.4)),
        Row("(4) Remove inter att", {"inter_attention": False}, (75.2, 75.6)),
        Row("(5) Replace highway pred. with FC", {"prediction": "fc"}, (77.7, 77.9)),
        Row("(6) Remove highway enc. with FC", {"encoder": "fc"}, (78.7, 78.7)),
        Row("(7) Remove sub feat", {"without": "sub"}, (77.9, 78.3)),
        Row("(8) Remove mul feat", {"without": "mul"}, (78.7, 78.6)),
        Row("(9) Remove concat feat", {"without": "cat"}, (77.9, 77.6)),
        Row("(10) Replace LSTM with BiLSTM", {"bidirectional": True}, (78.3, 78.4)),
    ),
    note=(
        "The matched pairs are --dev, the mismatched ones --also. FC is a rectified layer of the same sizes: one unit "
        "for each machine in (1), two layers in (5) and (6). Features are removed from both attentions in (7) to (9). "
        "The BiLSTM has as many units in each direction as the LSTM."
    ),
)

_CATEGORIES: Mapping[str, tuple[int, int, int, int]] = {
    "Conditional": (100, 70, 60, 85),
    "Word overlap": (50, 82, 62, 87),
    "Negation": (76, 76, 71, 80),
    "Antonym": (67, 82, 58, 80),
    "Long sentence": (75, 79, 69, 77),
    "Tense difference": (73, 82, 79, 89),
    "Active/passive": (88, 100, 91, 90),
    "Paraphrase": (89, 88, 84, 95),
    "Quantity/time": (33, 53, 54, 62),
    "Coreference": (83, 80, 75, 83),
    "Quantifier": (69, 75, 72, 80),
    "Modal": (78, 81, 76, 81),
    "Belief": (65, 77, 67, 83),
}
"""ESIM and CAFE on the matched pairs, then on the mismatched ones."""

LINGUISTIC = Table(
    title="Table 4: linguistic categories of MultiNLI",
    columns=tuple(f"{category}, {side}" for category in _CATEGORIES for side in ("matched", "mismatched")),
    measures=tuple(f"also {k} #{category.lower()}" for category in _CATEGORIES for k in (1, 2)),
    rows=(
        Row("ESIM", {}, tuple(f for m, _, mm, _ in _CATEGORIES.values() for f in (m, mm)), script="esim"),
        Row("CAFE", {}, tuple(f for _, m, _, mm in _CATEGORIES.values() for f in (m, mm))),
    ),
    note=(
        "The matched and the mismatched development pairs are --also, their annotations --categories. Some categories "
        "have very few pairs."
    ),
)

TABLES: dict[str, Table] = {
    "snli": SNLI,
    "multinli": MULTINLI,
    "scitail": SCITAIL,
    "ablations": ABLATIONS,
    "linguistic": LINGUISTIC,
}
