"""Guo, Zhang, Liu 2019: tables 1 to 6 and figure 5."""

from itertools import product

from nli_common.tables import Row, Table

ENCODER = {"encoder": "encoder"}
_ENCODER_NOTE = "The rows with ELMo take any Hugging Face encoder instead, from the folder `encoder` that lies here."
_MULTINLI_DEV = ("MultiNLI dev, matched", "mismatched")
_HARD = ("Hard SNLI", "Hard MultiNLI, matched", "mismatched")

TABLES: dict[str, Table] = {
    "1": Table(
        title="Table 1: what draws self-attention to the words nearby",
        columns=_MULTINLI_DEV,
        rows=(
            Row("Vanilla Transformer (i)", {"locality": "none"}, (79.3, 79.3)),
            Row("+ Zipf prior (ii)", {"locality": "zipf"}, (79.7, 79.5)),
            Row("+ trainable distance bias (iii)", {"locality": "trainable"}, (79.5, 79.6)),
            Row("+ linear decay bias (iv)", {"locality": "linear"}, (79.9, 79.8)),
            Row("+ Conv. layers (v)", {"locality": "convolution"}, (80.1, 80.0)),
            Row("+ Gaussian prior (vi)", {"locality": "gaussian"}, (80.2, 80.3)),
            Row("+ Gaussian prior variant (vii)", {"locality": "gaussian-variant"}, (80.3, 80.5)),
        ),
        note="Of (v) the paper gives neither the number of layers nor their width: one, 7 words wide, is put before "
        "every self-attention. All but (v) have positional encodings and one prior for each self-attention.",
        figure="points",
    ),
    "2": Table(
        title="Table 2: SNLI, trained from scratch",
        columns=("SNLI test",),
        rows=(
            Row("200D DecAtt", {"intra_attention": True}, (86.8,), parameters="580k", script="decomposable_attention"),
            Row("600D ESIM", {}, (88.0,), parameters="4.3m", script="esim"),
            Row("600D ESIM, ensemble", {}, (88.6,), parameters="4.3m", script="esim", ensemble=True),
            Row("300D CAFE", {}, (88.5,), parameters="4.7m", script="cafe"),
            Row("300D CAFE, ensemble", {}, (89.3,), parameters="4.7m", script="cafe", ensemble=True),
            Row("120D Gaussian Transformer", {}, (89.2,), parameters="665k"),
            Row("120D Gaussian Transformer, ensemble", {}, (90.3,), parameters="665k", ensemble=True),
        ),
        note="DecAtt's figures are those of its intra-attention. The paper does not say how many models an ensemble "
        "has. BiMPM, DIIN, MwAN, SAN, DR-BiLSTM and DRCN are left out: no script here has them.",
    ),
    "3": Table(
        title="Table 3: MultiNLI, trained from scratch",
        columns=("MultiNLI test, matched", "mismatched"),
        rows=(
            Row("ESIM", {}, (76.8, 75.8), script="esim"),
            Row("CAFE", {}, (78.7, 77.9), script="cafe"),
            Row("CAFE, ensemble", {}, (80.2, 79.0), script="cafe", ensemble=True),
            Row("Gaussian Transformer", {}, (80.0, 79.4)),
            Row("Gaussian Transformer, ensemble", {}, (81.6, 80.7), ensemble=True),
        ),
        note="MwAN, DIIN, DRCN and SAN are left out: no script here has them.",
    ),
    "4": Table(
        title="Table 4: cost on SNLI",
        columns=("minutes to train an epoch", "seconds to predict the test set"),
        measures=("minutes/epoch", "seconds to test"),
        rows=(Row("ESIM", {}, (29, 31), script="esim"), Row("Gauss. Trans.", {}, (8, 4))),
        note="On a Titan Xp, 3.6 and 7.8 times as fast. Times are no accuracies: compare pairs per second "
        "(549,367 training pairs make 316 and 1,145 per second, 9,824 test pairs 317 and 2,456).",
    ),
    "5": Table(
        title="Table 5: with external resources",
        columns=("SNLI test", "MultiNLI test, matched", "mismatched"),
        rows=(
            Row("Gaussian Transformer(ELMo)", ENCODER, (89.4, 81.0, 80.6)),
            Row("Gaussian Transformer*", ENCODER, (90.5, 83.0, 82.5), ensemble=True),
        ),
        note=f"{_ENCODER_NOTE} The starred row is an ensemble, with ELMo as it seems. KIM, CoVe, ESIM(ELMo), DMAN and "
        "the OpenAI Transformer are left out: no script here has them.",
    ),
    "6": Table(
        title="Table 6: the hard sets",
        columns=_HARD,
        rows=(
            Row("DecAtt", {"intra_attention": True}, (69.4, 55.8, 56.2), script="decomposable_attention"),
            Row("ESIM", {}, (71.3, 59.3, 58.9), script="esim"),
            Row("Gaussian Transformer", {}, (78.1, 69.8, 68.5)),
            Row("Gaussian Transformer(ELMo)", ENCODER, (79.2, 70.7, 71.3)),
            Row("Gaussian Transformer*", ENCODER, (79.9, 73.0, 72.8), ensemble=True),
        ),
        note=f"Trained on the whole corpora, tested on the pairs of Gururangan et al. 2018. {_ENCODER_NOTE} The "
        "starred row is an ensemble, with ELMo as it seems. DecAtt is taken to have intra-attention, as in Table 2. "
        "DIIN is left out: no script here has it.",
    ),
    "figure-5": Table(
        title="Figure 5: encoding and interaction blocks",
        columns=_MULTINLI_DEV,
        rows=tuple(
            Row(f"M = {m}, N = {n}", {"num_encoding_blocks": m, "num_interaction_blocks": n})
            for n, m in product(range(1, 5), range(1, 6))
        ),
        note="The figures of the squares, and how far the axes go, are in the picture alone; the text says that "
        "M = 3, N = 2 is the best.",
        figure="grid",
        axes=("num_encoding_blocks", "num_interaction_blocks"),
    ),
}
