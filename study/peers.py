"""What public implementations reach on the same splits."""

PEERS = {
    ("snli10k", "hypothesis only"): "58.1 (logistic regression)",
    ("snli10k", "DA"): "67.0 ± 0.1 (3)",
    ("snli10k", "ESIM"): "65.8 ± 0.1 (2)",
    ("snli10k", "RE2, test"): "71.7 ± 0.6 (2)",
    ("sick", "hypothesis only"): "58.7 (logistic regression)",
    ("sick", "DA"): "74.0 ± 7.7 (5)",
    ("sick", "ESIM"): "79.4 (1)",
    ("sick", "RE2, test"): "81.3 ± 0.2 (2)",
    ("snli22k", "DA"): "72.8, hard 54.3 (1)",
    ("snli22k", "RE2, test"): "77.2 (1)",
    ("snli22k", "RE2, hard"): "59.3 (1)",
    ("mnli20k", "hypothesis only"): "49.4 (logistic regression)",
}
"""Test accuracies by bench and model, with the number of seeds: bastings/interpretable_predictions (DA), coetaur0/ESIM
and alibaba-edu/simple-effective-text-matching-pytorch (RE2), their code unchanged, on the same splits and vectors; and
a logistic regression on the hypothesis's words."""
