"""No paper's table: every model beside the one that never sees the premise."""

from nli_common.tables import Row, Table

TABLES: dict[str, Table] = {
    "models": Table(
        title="Every model, and what the hypothesis tells alone",
        columns=(),
        measures=("test", "train"),
        rows=(
            Row("hypothesis only"),
            Row("Decomposable Attention", script="decomposable_attention"),
            Row("with intra-attention", {"intra_attention": True}, script="decomposable_attention"),
            Row("LSTM baseline", model="LSTMBaselineConfig", script="lstm_attention"),
            Row("attention", model="AttentionModelConfig", script="lstm_attention"),
            Row("hybrid", model="HybridModelConfig", script="lstm_attention"),
            Row("ESIM", script="esim"),
            Row("CAFE", script="cafe"),
            Row("gated CNN", script="gated_cnn"),
            Row("Gaussian Transformer", script="gaussian_transformer"),
            Row("stacked alignment", script="stacked_alignment"),
        ),
        note="Each with its paper's sizes and its own recipe, but for options that are named above.",
        figure="points",
    )
}
