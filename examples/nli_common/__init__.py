"""What the example scripts share: corpora, lexicon, training, reports. It knows no model."""
