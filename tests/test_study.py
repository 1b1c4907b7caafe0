"""The study: its plan can be trained, its statistics are right, and its pages are those of its results."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from reliability.cases import MODELS
from study import report
from study.compare import difference
from study.files import prepared
from study.plan import BENCHES, CLAIMS, ENCODED, VARIANTS, Job, jobs
from study.queue import Queue
from study.training import Places, settings_of
from study.windows import WORDS, compared, long_texts

from nli_common.data import Sentence

ROOT = Path(__file__).parent.parent


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setattr(Places, "pairs", lambda self, name: self.data / name)
    return Places(tmp_path / "data", tmp_path / "runs", Path("encoder"))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_a_model_of_its_script(variant: str, places: Places) -> None:
    job = next(job for job in jobs("gpu") if job.variant == variant)
    settings = settings_of(job, places, {"lr": 1e-3, "dropout": 0.3})
    assert VARIANTS[variant] not in ENCODED or settings.config.encoder == "encoder"
    assert (settings.recipe.lr, settings.config.dropout, settings.recipe.optimizer) == (1e-3, 0.3, "adam")
    for option, value in VARIANTS[variant].row.options.items():
        assert getattr(settings.config, option) == value


def test_claims_are_about_what_is_trained() -> None:
    for budget in ("cpu", "gpu"):
        trained = {(job.bench, job.variant) for job in jobs(budget)}
        assert all(("sick", name) in trained for claim in CLAIMS for name in (claim.better, claim.worse))
    assert {job.variant for job in jobs("cpu")} <= VARIANTS.keys()
    assert {job.bench for job in jobs("cpu")} <= BENCHES.keys()


@pytest.mark.parametrize("budget", ["cpu", "gpu"])
def test_no_run_is_planned_twice(budget: str) -> None:
    planned = list(jobs(budget))
    assert len(planned) == len(set(planned))


def test_a_difference_is_that_of_the_means_and_its_interval_has_it() -> None:
    rng = np.random.default_rng(1)
    better, worse = ([rng.random(5_000) < share for _ in range(5)] for share in (0.70, 0.65))
    found = difference(better, worse)
    assert found.points == pytest.approx(100 * (np.mean(better) - np.mean(worse)))
    assert found.low < found.points < found.high
    assert found.verdict == "holds"
    assert difference(worse, better).verdict == "reversed"
    assert difference(better[:1], worse[:1]).verdict == "one seed: undecided"


def test_the_interval_is_as_wide_as_theory_says() -> None:
    rng = np.random.default_rng(2)
    pairs = 4_000
    better, worse = ([rng.random(pairs) < 0.5 for _ in range(20)] for _ in range(2))
    found = difference(better, worse)
    # Independent coins: 20 seeds of 4,000 pairs, each gap of variance 1/2; the bootstrap draws both, which about
    # doubles the variance where no seed and no pair is better than another.
    theory = 100 * 2 * 1.96 * (2 * 0.5 / (20 * pairs)) ** 0.5
    assert found.high - found.low == pytest.approx(theory, rel=0.25)
    assert found.verdict == "undecided"


def test_raw_sentences_are_cut_as_the_benches_are(tmp_path: Path) -> None:
    import gzip

    source = tmp_path / "raw.tsv.gz"
    rows = "gold_label\tsentence1\tsentence2\tid\nneutral\tIt&apos;s one.\tTwo!\t1\nundef\ta\tb\t2\n"
    source.write_bytes(gzip.compress(rows.encode()))
    cut = gzip.decompress(prepared(source, tmp_path / "cut").read_bytes()).decode()
    assert cut == "gold_label\tsentence1\tsentence2\nneutral\tit ' s one .\ttwo !\n"


def test_the_pages_are_those_of_the_results(tmp_path: Path) -> None:
    report.write(tmp_path)
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    held = {name: (ROOT / "docs" / "study" / name).read_text(encoding="utf-8") for name in written}
    assert written == held and len(written) > 3


def test_runs_wait_until_their_family_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.training.RESULTS", tmp_path)
    monkeypatch.setattr("study.tuning.RESULTS", tmp_path)
    da, intra = (Job("sick", name, 0) for name in ("DA", "DA, intra-attention"))
    queue = Queue([da, Job("snli10k", "DA", 0), intra])
    assert [queue.take() for _ in range(3)] == ["DA", "DA, intra-attention", None]
    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning" / "da-intra-attention.json").touch()
    assert [queue.take(), queue.take()] == [intra, None]
    (tmp_path / "tuning" / "da.json").touch()
    assert [queue.take() for _ in range(3)] == [da, Job("snli10k", "DA", 0), None]
    (tmp_path / "sick").mkdir()
    (tmp_path / "sick" / "da-seed0.json").touch()
    assert Queue([da, intra]).take() == intra


def test_long_texts_are_read_in_windows_and_short_ones_are_not() -> None:
    torch.manual_seed(0)
    case = MODELS["GaussianTransformer"]
    model = case.build().get_submodule("model")
    p, p_mask, _, h, h_mask, _ = case.inputs(8, 6)
    assert compared(model, [(Sentence(p, p_mask), Sentence(h, h_mask))])["windows"] == 0
    words = Sentence(torch.randint(1, 5, (16, 400)), torch.ones(16, 400, dtype=torch.bool))
    texts = list(long_texts([(words, Sentence(h, h_mask))]))
    assert [side.tokens.shape[1] for side in texts[1]] == [WORDS, int(h_mask[1].sum())]
    assert torch.equal(torch.cat([premise.tokens[0] for premise, _ in texts]), words.tokens.flatten()[: 6 * WORDS])
    found = compared(model, texts)
    assert (found["pairs"], found["other_predictions"]) == (6, 0) and found["windows"] > 0
    assert found["largest_difference"] < 1e-5 * found["largest_logit"]


def test_a_run_says_all_it_was_trained_with(places: Places) -> None:
    job = next(jobs("cpu"))
    settings = settings_of(job, places, {"lr": 1e-3, "dropout": 0.3})
    assert dataclasses.asdict(settings.recipe)["clip_norm"] == 5.0
