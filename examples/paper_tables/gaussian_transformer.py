"""Guo, Zhang, Liu 2019: tables 1 to 6 and figure 5."""

from itertools import product

from nli_common.tables import Row, Table

ENCODER = {"encoder": "encoder"}
_SUM_600 = {"pooling": "sum", "prediction": "fc", "prediction_size": 600}
_ENCODER_NOTE = (
    "The rows with ELMo take any Hugging Face encoder instead, from a folder `encoder` in the working directory."
)
_MULTINLI_DEV = ("MultiNLI dev, matched", "mismatched")
_DEV_NOTE = "The matched pairs are --dev, the mismatched ones --also."
_TEST_NOTE = "MultiNLI's test labels are not public: its development sets stand in, as --test and --also."

_STARRED = (
    f"{_ENCODER_NOTE} The starred row is an ensemble, with ELMo as it seems. KIM, CoVe, ESIM(ELMo), DMAN and the "
    "OpenAI Transformer are left out: no script here has them."
)
_HARD_NOTE = (
    "Trained on the whole corpus, tested on the pairs of Gururangan et al. 2018 with --also. The starred row is an "
    f"ensemble, with ELMo as it seems. {_ENCODER_NOTE} The paper does not say which DecAtt it "
    "is: the one with intra-attention, here, which its Table 2 has. DIIN is left out: no script here has it."
)


def _hard(*figures: tuple[float, ...]) -> tuple[Row, ...]:
    decatt, esim, ours, with_elmo, ensemble = figures
    return (
        Row("DecAtt", {"intra_attention": True}, decatt, script="decomposable_attention"),
        Row("ESIM", {}, esim, script="esim"),
        Row("Gaussian Transformer", {}, ours),
        Row("Gaussian Transformer(ELMo)", ENCODER, with_elmo),
        Row("Gaussian Transformer*", ENCODER, ensemble, ensemble=True),
    )


TABLES: dict[str, Table] = {
    "1": Table(
        title="Table 1: what draws self-attention to the words nearby",
        columns=_MULTINLI_DEV,
        measures=("dev", "also 1"),
        rows=(
            Row("Vanilla Transformer (i)", {"locality": "none"}, (79.3, 79.3)),
            Row("+ Zipf prior (ii)", {"locality": "zipf"}, (79.7, 79.5)),
            Row("+ trainable distance bias (iii)", {"locality": "trainable"}, (79.5, 79.6)),
            Row("+ linear decay bias (iv)", {"locality": "linear"}, (79.9, 79.8)),
            Row("+ Conv. layers (v)", {"locality": "convolution"}, (80.1, 80.0)),
            Row("+ Gaussian prior (vi)", {"locality": "gaussian"}, (80.2, 80.3)),
            Row("+ Gaussian prior variant (vii)", {"locality": "gaussian-variant"}, (80.3, 80.5)),
        ),
        note=f"{_DEV_NOTE} Of (v) the paper gives neither the number of layers nor their width: one, 7 words wide, is "
        "put before every self-attention. All rows have positional encodings; each self-attention has a prior of its "
        "own.",
        figure="points",
    ),
    "2": Table(
        title="Table 2: SNLI, trained from scratch",
        columns=("SNLI test",),
        rows=(
            Row("200D DecAtt", {"intra_attention": True}, (86.8,), parameters="580k", script="decomposable_attention"),
            Row("600D ESIM", {}, (88.0,), parameters="4.3m", script="esim"),
            Row("300D CAFE", {}, (88.5,), parameters="4.7m", script="cafe"),
            Row("300D CAFE, ensemble", _SUM_600, (89.3,), script="cafe", ensemble=True),
            Row("120D Gaussian Transformer", {}, (89.2,), parameters="665k"),
            Row("120D Gaussian Transformer, ensemble", {}, (90.3,), ensemble=True),
        ),
        note="DecAtt's figures are those of its intra-attention. An ensemble's parameters are those of all its models, "
        "where the paper prints one model's for both rows. It does not say how many models an ensemble has; CAFE's of "
        "five has 17.5M parameters by its own paper, which are those of five of its 3.5M models. ESIM's ensemble "
        "(88.6) has a tree-LSTM, which no script here has. BiMPM, DIIN, MwAN, SAN, DR-BiLSTM and DRCN are left out: "
        "no script here has them.",
    ),
    "3": Table(
        title="Table 3: MultiNLI, trained from scratch",
        columns=("MultiNLI test, matched", "mismatched"),
        rows=(
            Row("ESIM", {}, (76.8, 75.8), script="esim"),
            Row("CAFE", {}, (78.7, 77.9), script="cafe"),
            Row("CAFE, ensemble", _SUM_600, (80.2, 79.0), script="cafe", ensemble=True),
            Row("Gaussian Transformer", {}, (80.0, 79.4)),
            Row("Gaussian Transformer, ensemble", {}, (81.6, 80.7), ensemble=True),
        ),
        note=f"{_TEST_NOTE} CAFE's ensemble is taken to be of its 3.5M models, as for SNLI. MwAN, "
        "DIIN, DRCN and SAN are left out: no script here has them.",
    ),
    "4": Table(
        title="Table 4: cost on SNLI",
        columns=("minutes to train an epoch", "seconds to predict the test set"),
        measures=("minutes/epoch", "seconds to test"),
        rows=(Row("ESIM", {}, (29, 31), script="esim"), Row("Gauss. Trans.", {}, (8, 4))),
        note="On a Titan Xp, 3.6 and 7.8 times as fast. Of SNLI's 549,367 training and 9,824 test pairs these "
        "are 316 and 1,145 pairs per second in training, 317 and 2,456 in prediction. The paper does not give ESIM's "
        "batch size: 32 pairs, where the Gaussian Transformer has 64.",
    ),
    "5-snli": Table(
        title="Table 5: SNLI with external resources",
        columns=("SNLI test",),
        rows=(
            Row("Gaussian Transformer(ELMo)", ENCODER, (89.4,)),
            Row("Gaussian Transformer*", ENCODER, (90.5,), ensemble=True),
        ),
        note=_STARRED,
    ),
    "5-multinli": Table(
        title="Table 5: MultiNLI with external resources",
        columns=("MultiNLI test, matched", "mismatched"),
        rows=(
            Row("Gaussian Transformer(ELMo)", ENCODER, (81.0, 80.6)),
            Row("Gaussian Transformer*", ENCODER, (83.0, 82.5), ensemble=True),
        ),
        note=f"{_STARRED} {_TEST_NOTE}",
    ),
    "6-snli": Table(
        title="Table 6: the hard pairs of SNLI",
        columns=("Hard SNLI",),
        measures=("also 1",),
        rows=_hard((69.4,), (71.3,), (78.1,), (79.2,), (79.9,)),
        note=_HARD_NOTE,
    ),
    "6-multinli": Table(
        title="Table 6: the hard pairs of MultiNLI",
        columns=("Hard MultiNLI, matched", "mismatched"),
        measures=("also 1", "also 2"),
        rows=_hard((55.8, 56.2), (59.3, 58.9), (69.8, 68.5), (70.7, 71.3), (73.0, 72.8)),
        note=_HARD_NOTE,
    ),
    "figure-5": Table(
        title="Figure 5: encoding and interaction blocks",
        columns=_MULTINLI_DEV,
        measures=("dev", "also 1"),
        rows=tuple(
            Row(f"M = {m}, N = {n}", {"num_encoding_blocks": m, "num_interaction_blocks": n})
            for n, m in product(range(1, 5), range(1, 6))
        ),
        note=f"{_DEV_NOTE} The figures of the squares, and how far the axes go, are in the picture alone; the text "
        "says that M = 3, N = 2 is the best.",
        figure="grid",
        axes=("num_encoding_blocks", "num_interaction_blocks"),
    ),
}
