"""Nguyen 2019, Self-Attention Model for Natural Language Inference: the report's tables of results."""

from nli_common.tables import Row, Table

LSTM, ATTENTION, HYBRID = "LSTMBaselineConfig", "AttentionModelConfig", "HybridModelConfig"


def _methods(vectors: str, lstm: float, attention: float, hybrid: float) -> Table:
    """A column of Table 3: it is a table here, since each has word vectors of its own."""
    return Table(
        title=f"Table 3: the methods with the word vectors {vectors}",
        columns=("test",),
        rows=(
            Row("Baseline (LSTM)", paper=(lstm,), model=LSTM),
            Row("Attention", paper=(attention,), model=ATTENTION),
            Row("Attention+LSTM (our)", paper=(hybrid,), model=HYBRID),
        ),
        note=f"The vectors come with --vectors: {_FILES[vectors]}.",
        figure="points",
    )


_FILES = {
    "50-6B": "the 50 dimensions of glove.6B.zip",
    "300-6B": "the 300 dimensions of glove.6B.zip",
    "300-42B": "glove.42B.300d.zip",
}

TABLES = {
    "3-50-6b": _methods("50-6B", 77.49, 84.59, 84.90),
    "3-300-6b": _methods("300-6B", 80.11, 85.37, 85.46),
    "3-300-42b": _methods("300-42B", 80.56, 85.59, 85.75),
    "4": Table(
        title="Table 4: the size of the hidden layers",
        columns=("test", "train"),
        measures=("test", "train"),
        rows=(
            Row("LSTM, 50 units", {"hidden_size": 50}, (78.20, 80.70), model=LSTM),
            Row("LSTM, 100 units", {"hidden_size": 100}, (84.14, 87.90), model=LSTM),
            Row("LSTM, 300 units", {"hidden_size": 300}, (83.99, 92.13), model=LSTM),
            Row("Attention, 50 units", {"hidden_size": 50}, (79.66, 78.98), model=ATTENTION),
            Row("Attention, 100 units", {"hidden_size": 100}, (84.14, 84.90), model=ATTENTION),
            Row("Attention, 300 units", {"hidden_size": 300}, (85.06, 86.90), model=ATTENTION),
        ),
        note=(
            "The width of every hidden layer, perceptrons and linear function included. The report does not say which "
            "word vectors these rows have, and leaves the 200 units of Table 3 out. The test figure of LSTM-100 is "
            "that of Attention-100. Those of LSTM-100 and LSTM-300 are above the 80.56 of Table 3: the two tables "
            "cannot be of one setting, and the report does not say how they differ."
        ),
        figure="sweep",
        axes=("hidden_size",),
    ),
    "tags": Table(
        title="Section 4: one-hot part-of-speech tags beside the word vectors",
        columns=("test",),
        rows=(
            Row("Baseline (LSTM), tags", {"num_tags": 46}, (None,), model=LSTM),
            Row("Attention, tags", {"num_tags": 46}, (None,), model=ATTENTION),
            Row("Attention+LSTM, tags", {"num_tags": 46}, (None,), model=HYBRID),
        ),
        note='No figures: "roughly not change" against Table 3. Needs pairs with tags, as in SNLI\'s .jsonl.',
    ),
}
"""Figure 3 is the confusion matrix that every run draws."""
