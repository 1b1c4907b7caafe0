"""Parikh et al. 2016, A Decomposable Attention Model for Natural Language Inference: the paper's tables of results."""

from nli_common.tables import Row, Table

INTRA = {"intra_attention": True}

TABLES = {
    "1": Table(
        title="Table 1: SNLI",
        columns=("train", "test"),
        measures=("train", "test"),
        rows=(
            Row("Our approach (vanilla)", paper=(89.5, 86.3), parameters="382K"),
            Row("Our approach with intra-sentence attention", INTRA, (90.5, 86.8), parameters="582K"),
        ),
        note="Other people's systems are left out: 78.2 to 86.3 on test.",
        figure="points",
        shown=1,
    ),
    "2": Table(
        title="Table 2: the classes of SNLI's dev set",
        columns=("dev neutral", "dev entailment", "dev contradiction"),
        measures=("dev neutral", "dev entailment", "dev contradiction"),
        rows=(
            Row("Our approach (vanilla)", paper=(83.6, 91.3, 85.8)),
            Row("Our approach w/ intra att.", INTRA, (83.7, 92.1, 86.7)),
        ),
        note="Accuracy over the pairs of each class. Other people's systems are left out.",
    ),
}
