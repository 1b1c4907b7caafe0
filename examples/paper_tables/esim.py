"""ESIM as the papers that compare themselves with it report it (Guo et al. 2019, Table 2; Chen et al. 2019)."""

from nli_common.tables import Row, Table

TABLES: dict[str, Table] = {
    "snli": Table(
        title="ESIM on SNLI, as Guo et al. 2019 report it",
        columns=("test",),
        rows=(Row("600D ESIM", {}, (88.0,), "4.3m"),),
        note=(
            "Their Table 2. Its ensemble (88.6) has a tree-LSTM, which no script here has. ESIM's paper trains the "
            "word vectors; here they are fixed."
        ),
    ),
    "quora": Table(
        title="ESIM on Quora question pairs, as Chen et al. 2019 report it",
        columns=("test", "seconds/epoch"),
        measures=("test", "seconds/epoch"),
        rows=(Row("ESIM", {}, (87.65, 4038)),),
        note=(
            "Their Table 2, on a GeForce GTX 1080 with 64 pairs a batch; here they are 32, as in ESIM's paper. That "
            "trains the word vectors; here they are fixed."
        ),
    ),
}
