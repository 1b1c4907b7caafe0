"""The study: its plan can be trained, its statistics are right, and its pages are those of its results."""

import dataclasses
import gzip
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from reliability.cases import MODELS
from scipy.stats import norm, spearmanr, ttest_ind, ttest_rel
from study import __main__ as study_main
from study import report, tuning
from study.alignments import same_words, score_spread
from study.classes import classes, held_classes
from study.compare import FEWEST_SEEDS, Difference, difference, verdicts
from study.ensembles import ensembles, held_ensemble
from study.files import LABELS, prepared
from study.markdown import NO_BREAK
from study.pages import alignments, claims, models, priors, transfer
from study.pages import tuning as tuning_page
from study.pairs import counts, held_of, pairs
from study.plan import (
    BENCHES,
    CLAIMS,
    ENCODED,
    ORDER,
    OWN_CLAIMS,
    PROTOCOL,
    SMALL,
    TAKEN_APART,
    VARIANTS,
    WIDEST,
    Claim,
    Job,
    jobs,
)
from study.queue import Queue, work
from study.results import encoders, held_results, kept
from study.spreads import SEEDS, held_spreads, spreads
from study.starts import held_starts, start, starts, untrained
from study.training import (
    RESULTS,
    Places,
    fingerprint_of_weights,
    plan_of,
    result_file,
    run_folder,
    run_job,
    settings_of,
    slug,
    train,
    unpacked,
)
from study.tuning import plan, protocol
from study.windows import TEXTS, WORDS, compared, long_texts

from nli_common.batches import PairDataset, evaluation_loader
from nli_common.data import Batch, Sentence, open_corpus
from nli_common.denormals import are_flushed
from nli_common.evaluating import evaluate_on
from nli_common.files import write_atomically
from nli_common.generated import generated_pairs
from nli_common.lexicon import Lexicon
from nli_common.models import build
from nli_common.runs import Run
from nlilayers import GaussianPrior, GaussianSelfAttention
from study_files import hold, hold_tuning, write_pairs

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
    assert settings.data.unit_vectors == VARIANTS[variant].unit_vectors
    for option, value in VARIANTS[variant].row.options.items():
        assert (vars(settings.data) | vars(settings.recipe) | vars(settings.config))[option] == value


def test_claims_are_about_what_is_trained() -> None:
    for budget in ("cpu", "gpu"):
        trained = {(job.bench, job.variant) for job in jobs(budget)}
        assert all(
            ("sick", name) in trained
            for claim in (*CLAIMS, *TAKEN_APART, *OWN_CLAIMS, *ORDER)
            for name in (claim.better, claim.worse)
        )
    assert {job.variant for job in jobs("cpu")} <= VARIANTS.keys()
    assert {job.bench for job in jobs("cpu")} <= BENCHES.keys()


def test_a_cpu_trains_enough_to_decide_the_claims() -> None:
    seeds = Counter((job.bench, job.variant) for job in jobs("cpu"))
    assert WIDEST == ("gated CNN", "gated CNN, words alone")
    sides = {name for claim in (*CLAIMS, *TAKEN_APART, *OWN_CLAIMS, *ORDER) for name in (claim.better, claim.worse)}
    assert all(seeds[bench, name] >= FEWEST_SEEDS for bench in SMALL for name in sides.difference(WIDEST))
    assert [seeds[bench, "gated CNN"] for bench in ("sick", "snli22k", "mnli20k")] == [1, 0, 0]
    assert [seeds["snli22k", name] for name in ("DA", "ESIM", "GCNN 150, words", "GT, Zipf")] == [3, 1, 1, 0]
    assert [seeds[bench, "ESIM, averaged"] for bench in ("sick", "snli10k", "snli22k", "mnli20k")] == [3, 3, 3, 0]
    assert [seeds[bench, "DA, averaged"] for bench in ("sick", "snli10k", "snli22k", "mnli20k")] == [5, 5, 5, 0]
    assert [seeds["sick", name] for name in ("DA", "GCNN 150, GLU", "CAFE 150, whole")] == [5, 5, 3]
    assert [seeds["mnli20k", name] for name in ("DA", "ESIM", "GCNN 150, words", "GT, Zipf")] == [3, 1, 1, 0]
    assert claims.decidable(CLAIMS, []) == 54, (
        "26 claims on two benches, one on snli22k and mnli20k, too; not the widest"
    )
    assert claims.decidable(OWN_CLAIMS, []) == 17, "7 claims on two benches, three of them on snli22k, too"
    assert claims.decidable(TAKEN_APART, []) == 12
    assert claims.decidable(ORDER, []) == 26, (
        "twelve on two benches, one of them on snli22k and mnli20k, too; not the widest"
    )


def test_a_row_counts_once_whether_it_is_measured_planned_or_both() -> None:
    """As Holm's procedure has it, which the page promises."""
    planned = claims.decidable(CLAIMS, [])
    claim = next(claim for claim in CLAIMS if claim.better == "GCNN 150, words")
    sure, few = Difference(1.0, FEWEST_SEEDS, 0.0, 4.0, 0.1), Difference(1.0, FEWEST_SEEDS - 1, 0.0, 4.0, 0.1)
    assert claims.decidable(CLAIMS, [(claim, "sick", sure)]) == planned
    assert claims.decidable(CLAIMS, [(claim, "snli22k", sure)]) == planned + 1
    assert claims.decidable(CLAIMS, [(claim, "snli22k", few)]) == planned


def test_runs_of_a_pair_take_the_same_steps_where_they_were_trained_alike() -> None:
    def run(seed: int, machine: str = "two cores", **also: Any) -> dict[str, Any]:
        return {"seed": seed, "machine": machine, "torch": "2.13", "threads": 1, **also}

    averaged = [run(0), run(1, cuda_graphs=False), run(2), run(3, cuda_graphs=True), run(4)]
    plain = [run(0), run(1), run(2, "a GPU"), run(3)]
    results = {("sick", "ESIM, averaged"): averaged, ("sick", "ESIM"): plain}
    assert claims.same_steps(results) == "2 of 4"


PRINTED: dict[str, tuple[tuple[float, ...], dict[str, tuple[float | None, ...]]]] = {
    "Gaussian Transformer": (
        (80.3, 80.5),
        {
            "GT, no prior": (79.3, 79.3),
            "GT, Zipf": (79.7, 79.5),
            "GT, trainable bias": (79.5, 79.6),
            "GT, linear": (79.9, 79.8),
            "GT, Gaussian, Eq 3": (80.2, 80.3),
        },
    ),
    "GT, Gaussian, Eq 3": ((80.2, 80.3), {"GT, no prior": (79.3, 79.3)}),
    "GT, Zipf": ((79.7, 79.5), {"GT, no prior": (79.3, 79.3)}),
    "GT, trainable bias": ((79.5, 79.6), {"GT, no prior": (79.3, 79.3)}),
    "GT, linear": ((79.9, 79.8), {"GT, no prior": (79.3, 79.3)}),
    "DA, intra-attention": ((86.8,), {"DA": (86.3,)}),
    "GCNN 150, characters": ((77.0, 76.0, 88.94), {"GCNN 150, words": (76.6, 75.8, 88.66)}),
    "GCNN 150, characters and tags": ((77.4, 76.4, 89.35), {"GCNN 150, characters": (77.0, 76.0, 88.94)}),
    "gated CNN": ((77.4, 76.4, 89.35), {"gated CNN, words alone": (76.6, 75.8, 88.66)}),
    "GCNN 150, words": (
        (76.6, 75.8, 88.66),
        {
            "GCNN 150, no forget gate": (None, None, 88.33),
            "GCNN 150, no output gate": (None, None, 88.35),
            "GCNN 150, GLU": (76.3, 75.2, 88.32),
            "GCNN 150, no gates": (75.6, 74.5, 87.92),
        },
    ),
    "CAFE 150, whole": (
        (79.0, 78.9, 88.5),
        {
            "CAFE 150, FC for FM": (77.7, 77.9),
            "CAFE 150, no characters": (78.1, 78.3),
            "CAFE 150, no tags": (78.3, 78.4),
            "CAFE 150, no inter-attention": (75.2, 75.6, 85.9),
            "CAFE 150, FC for highway, prediction": (77.7, 77.9),
            "CAFE 150, FC for highway, encoder": (78.7, 78.7),
            "CAFE 150, no subtraction": (77.9, 78.3),
            "CAFE 150, no multiplication": (78.7, 78.6),
            "CAFE 150, no concatenation": (77.9, 77.6),
        },
    ),
}
"""The accuracies of the papers' tables, on each of their test sets, as far as they have them."""


def test_gains_are_those_of_the_papers_tables() -> None:
    gains = {(claim.better, claim.worse): claim.gains for claim in CLAIMS if claim.gains}
    assert gains == {
        (better, worse): pytest.approx(
            tuple(a - b for a, b in zip(whole, part, strict=False) if b is not None), abs=1e-9
        )
        for better, (whole, parts) in PRINTED.items()
        for worse, part in parts.items()
    }


@pytest.mark.parametrize("budget", ["cpu", "gpu"])
def test_no_run_is_planned_twice(budget: str) -> None:
    planned = list(jobs(budget))
    assert len(planned) == len(set(planned))


def coins(rng: np.random.Generator, share: float, seeds: int, pairs: int = 5_000) -> list[np.ndarray]:
    return [rng.random(pairs) < share for _ in range(seeds)]


def test_a_difference_is_that_of_the_means_and_its_interval_has_it() -> None:
    rng = np.random.default_rng(1)
    better, worse = coins(rng, 0.70, 5), coins(rng, 0.65, 5)
    found = difference(better, worse)
    assert found.points == pytest.approx(100 * (np.mean(better) - np.mean(worse)))
    assert found.low < found.points < found.high
    assert verdicts([found, difference(worse, better)], 2) == ["holds", "reversed"]
    assert verdicts([difference(better, worse[:2])], 1) == ["too few seeds"]
    unequal = difference(better, worse[:3])
    assert unequal.points == pytest.approx(100 * (np.mean(better) - np.mean(worse[:3]))) and unequal.seeds == 3


def test_seeds_come_in_no_order() -> None:
    rng = np.random.default_rng(3)
    better, worse = coins(rng, 0.70, 4), coins(rng, 0.68, 5)
    assert dataclasses.astuple(difference(better, worse[::-1])) == pytest.approx(
        dataclasses.astuple(difference(better, worse)), rel=1e-6
    )


def test_the_interval_is_as_wide_as_theory_says() -> None:
    rng = np.random.default_rng(2)
    pairs = 4_000
    found = difference(coins(rng, 0.5, 20, pairs), coins(rng, 0.5, 20, pairs))
    # Independent coins: 20 seeds of 4,000 pairs, each gap of variance 1/2, which is in the term of the seeds and in
    # that of the pairs: about twice the variance where no seed and no pair is better than another.
    theory = 100 * 2 * 1.96 * (2 * 0.5 / (20 * pairs)) ** 0.5
    assert found.high - found.low == pytest.approx(theory, rel=0.25)
    assert verdicts([found], 1) == ["undecided"]


def test_pairs_of_seeds_are_tested_by_their_gaps() -> None:
    """All pairs alike, and seeds that differ more than the two variants do: what is left is Student's paired test."""
    count = 1_000_000
    levels = ([0.60, 0.71, 0.83], [0.58, 0.69, 0.80])
    sides = [[np.arange(count) < level * count for level in side] for side in levels]
    least = 1.96 * 100 * (np.mean(sides[0], axis=0) - np.mean(sides[1], axis=0)).std() / count**0.5
    found = difference(*sides, paired=True)
    student = ttest_rel(*levels)
    low, high = student.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((100 * low, 100 * high), abs=least)
    assert found.p == pytest.approx(student.pvalue, rel=0.05) and found.freedom == pytest.approx(2)
    assert found.points == difference(*sides).points and found.p < difference(*sides).p / 10
    with pytest.raises(ValueError, match="worse: expected as many seeds as the other side has, 3, got 2"):
        difference(sides[0], sides[1][:2], paired=True)


def test_runs_are_paired_where_the_claim_says_so() -> None:
    found = {("sick", "a"): runs(0.7, seed=1) + runs(0.8, seed=4), ("sick", "b"): runs(0.1) + runs(0.6, seed=4)}
    claim = Claim("a paper", "says", "a", "b", paired=True)
    sides = claims.compared_runs(claim, "sick", found)
    assert [[(r["seed"], r["accuracy"]["test"]) for r in side] for side in sides] == [[(4, 0.8)], [(4, 0.6)]]
    assert claims.compared_runs(dataclasses.replace(claim, paired=False), "sick", found) == list(found.values())
    assert claims.compared_runs(claim, "mnli20k", found) == [[], []]


def test_seeds_that_agree_by_chance_are_three_all_the_same() -> None:
    """All pairs alike, three seeds of each: what is left is Welch's test of the seeds' accuracies."""
    count = 1_000_000
    levels = ([0.70, 0.71, 0.73], [0.66, 0.69, 0.68])
    sides = [[np.arange(count) < level * count for level in side] for side in levels]
    pairs = np.mean(sides[0], axis=0) - np.mean(sides[1], axis=0)
    found = difference(*sides)
    welch = ttest_ind(*levels, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    least = 1.96 * 100 * pairs.std() / count**0.5
    assert (found.low, found.high) == pytest.approx((100 * low, 100 * high), abs=least)
    assert found.p == pytest.approx(welch.pvalue, rel=0.05)


@pytest.mark.parametrize("spreads", [(0.0, 0.0), (1.0, 1.0), (8.0, 8.0), (0.5, 4.0)])
@pytest.mark.parametrize("seeds", [(3, 3), (5, 5), (3, 5)])
def test_two_variants_that_are_alike_are_seldom_told_apart(
    seeds: tuple[int, int], spreads: tuple[float, float]
) -> None:
    """Seeds differ by so many points; some pairs are hard for one variant whatever its seed."""
    rng = np.random.default_rng(sum(seeds))
    draws, pairs, chances = 500, 500, []
    for _ in range(draws):
        shared = 0.03 * rng.standard_normal(pairs)
        sides = []
        for sign, count, spread in zip((1, -1), seeds, spreads, strict=True):
            levels = 0.6 + spread / 100 * rng.standard_normal(count)
            sides.append([rng.random(pairs) < level + sign * shared for level in levels])
        found = difference(*sides)
        assert (found.p < 0.05) == (not found.low <= 0 <= found.high)
        chances.append(found.p)
    for level in (0.05, 0.005):
        assert np.mean(np.array(chances) < level) < level + 3 * (level / draws) ** 0.5


def test_the_more_is_compared_the_more_it_takes_to_hold() -> None:
    one, sure = (
        Difference(points, 5, 0.0, 4.0, (points / norm.isf(p / 2)) ** 2) for points, p in ((1, 0.04), (2, 1e-4))
    )
    assert (one.p, sure.p) == pytest.approx((0.04, 1e-4))
    assert verdicts([one], 1) == ["holds"]
    assert verdicts([one, one], 2) == ["undecided", "undecided"]
    assert verdicts([one, sure], 2) == ["holds", "holds"]
    assert verdicts([one, sure], 3) == ["undecided", "holds"]


def test_raw_sentences_are_cut_as_the_benches_are(tmp_path: Path) -> None:
    source = tmp_path / "raw.tsv.gz"
    rows = "gold_label\tsentence1\tsentence2\tid\nneutral\tIt&apos;s one.\tTwo!\t1\nundef\ta\t\t2\n"
    source.write_bytes(gzip.compress(rows.encode()))
    cut = gzip.decompress(prepared(source, tmp_path / "cut").read_bytes()).decode()
    assert cut == "gold_label\tsentence1\tsentence2\nneutral\tit ' s one .\ttwo !\n"


def test_quotes_are_marks_and_no_end_of_a_column(tmp_path: Path) -> None:
    source = tmp_path / "raw.tsv.gz"
    rows = 'gold_label\tsentence1_tok\tsentence2_tok\nneutral\t"It is one.\tTwo\nneutral\tThree"\tFour\n'
    source.write_bytes(gzip.compress(rows.encode()))
    cut = gzip.decompress(prepared(source, tmp_path / "cut").read_bytes()).decode()
    assert cut.splitlines()[1:] == ['neutral\t" it is one .\ttwo', 'neutral\tthree "\tfour']


def test_a_file_that_has_changed_is_cut_again_and_one_that_has_not_is_left(tmp_path: Path) -> None:
    source, folder = tmp_path / "raw.tsv.gz", tmp_path / "cut"

    def cut_of(source: Path, hypothesis: str, written: int) -> str:
        rows = f"gold_label\tsentence1\tsentence2\tid\nneutral\tOne.\t{hypothesis}\t1\n"
        source.write_bytes(gzip.compress(rows.encode()))
        os.utime(source, (written, written))
        cut = prepared(source, folder)
        os.utime(cut, (2_000, 2_000))
        assert prepared(source, folder) == cut and cut.stat().st_mtime == 2_000
        return gzip.decompress(cut.read_bytes()).decode().splitlines()[1]

    assert cut_of(source, "Two", 1_000) == "neutral\tone .\ttwo"
    assert cut_of(source, "Six", 1_500) == "neutral\tone .\tsix"
    assert cut_of(source, "Three", 900) == "neutral\tone .\tthree", "older than the copy of what was there"
    (tmp_path / "other").mkdir()
    assert cut_of(tmp_path / "other" / source.name, "Eight", 900) == "neutral\tone .\teight"


def test_the_pages_are_those_of_the_results(tmp_path: Path) -> None:
    report.write(tmp_path)
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    held = {name: (ROOT / "docs" / "study" / name).read_text(encoding="utf-8") for name in written}
    assert written == held and len(written) > 3


def test_a_prior_without_b_has_not_moved_it() -> None:
    """Eq 3 has no b; a page that took its 0 for one would have it move by 0.1, the furthest of all."""
    run: dict[str, Any] = {"seconds": 10.0, "pairs_per_second": 100.0, "dev": [0.5], "best_epoch": 1}
    run["options"] = {"batch_size": 32, "lr": 1e-3}
    found = {
        ("sick", "GT, Gaussian, Eq 3"): [run | {"priors": [[0.104, 0.0], [0.1, 0.0]]}],
        ("sick", "Gaussian Transformer"): [run | {"priors": [[0.1, -0.1], [0.1, -0.102]]}],
    }
    page = priors.page(found)
    assert "none has moved by more than 0.004" in page
    assert "| sick | GT, Gaussian, Eq 3 | 1 | 0.104 | – |" in page
    assert "| sick | Gaussian Transformer | 2 | 0.100 | -0.102 |" in page


def test_every_figure_that_is_kept_is_of_the_plan() -> None:
    """A model that got an option has other figures, or its kept ones say what the option was when they were made."""
    planned = {result_file(job): job for budget in ("cpu", "gpu") for job in jobs(budget)}
    found = [path for path in RESULTS.glob("*/*-seed*.json") if path.parent.name in BENCHES]
    assert found and not [path for path in found if path not in planned or kept(planned[path]) is None]


@pytest.mark.parametrize("bench", BENCHES)
def test_every_run_is_counted_class_by_class(bench: str) -> None:
    counted = held_classes(bench)
    found = {variant: runs for (name, variant), runs in held_results().items() if name == bench}
    assert {variant: set(right) for variant, right in counted["right"].items()} == {
        variant: {str(run["seed"]) for run in runs} for variant, runs in found.items()
    }
    for variant, runs in found.items():
        for run in runs:
            right = counted["right"][variant][str(run["seed"])]
            assert sum(right.values()) == int(unpacked(run["right"], run["pairs"]).sum())
            assert sum(counted["test"].values()) == run["pairs"]


def test_runs_wait_until_their_family_is_tuned(kept_in: Path) -> None:
    da, intra = (Job("sick", name, 0) for name in ("DA", "DA, intra-attention"))
    queue = Queue([da, Job("snli10k", "DA", 0), intra])
    assert [queue.take() for _ in range(3)] == ["DA", "DA, intra-attention", None]
    hold_tuning(kept_in, "DA, intra-attention")
    assert [queue.take(), queue.take()] == [intra, None]
    hold_tuning(kept_in, "DA")
    assert [queue.take() for _ in range(3)] == [da, Job("snli10k", "DA", 0), None]


def test_what_fails_is_said_and_counted_and_the_others_are_trained(
    kept_in: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [Job("sick", "DA", seed) for seed in range(4)]
    hold_tuning(kept_in, "DA")
    trained: list[Job] = []

    def run(job: Job, places: Places, options: dict[str, Any]) -> None:
        if job.seed in (1, 2):
            raise OSError(f"no space for seed {job.seed}")
        trained.append(job)

    monkeypatch.setattr("study.queue.run_job", run)
    monkeypatch.setattr("study.queue.ProcessPoolExecutor", lambda workers, *_: ThreadPoolExecutor(workers))
    assert work(Queue(wanted), Places(kept_in, kept_in), 2) == 2
    assert sorted(job.seed for job in trained) == [0, 3]
    said = capsys.readouterr().out
    assert said.count(": done") == 2 and "failed: no space for seed 1" in said and "failed: no space for seed 2" in said


def test_runs_whose_family_could_not_be_tuned_are_counted_as_failed(
    kept_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.queue.tune", lambda family, places: None)
    monkeypatch.setattr("study.queue.ProcessPoolExecutor", lambda workers, *_: ThreadPoolExecutor(workers))
    assert work(Queue([Job("sick", "DA", seed) for seed in range(3)]), Places(kept_in, kept_in), 2) == 3


def _spoils_its_process(job: Job, places: Places, options: dict[str, Any]) -> None:
    """As a run on a GPU may: what comes next in its process fails, too; and some processes are killed."""
    (places.runs / str(job.seed)).write_text(str(os.getpid()))
    if os.environ.get("SPOILT"):
        raise RuntimeError("this process is spoilt")
    if job.seed == 1:
        os.environ["SPOILT"] = "yes"
        raise OSError("no space")
    if job.seed == 3:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_that_fails_takes_its_process_with_it_and_nothing_else(
    kept_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hold_tuning(kept_in, "DA")
    monkeypatch.setattr("study.queue.run_job", _spoils_its_process)
    wanted = [Job("sick", "DA", seed) for seed in range(6)]
    assert work(Queue(wanted), Places(tmp_path, tmp_path), 1) == 2
    said = capsys.readouterr().out
    assert said.count(": done") == 4 and said.count("failed: no space") == 1 and "spoilt" not in said
    first, second, third, fourth, *later = ((tmp_path / str(seed)).read_text() for seed in range(6))
    assert first == second != third == fourth not in later and second not in later and len(set(later)) == 1


def _takes_long(job: Job, places: Places, options: dict[str, Any]) -> None:
    write_atomically(places.runs / "flushed", lambda path: path.write_text(str(are_flushed())))
    write_atomically(places.runs / "pid", lambda path: path.write_text(str(os.getpid())))
    time.sleep(60)


STUDY_OF_ONE_RUN = """
import sys
from pathlib import Path

import study.queue
from study.plan import Job
from study.training import Places

import test_study

if __name__ == "__main__":
    study.queue.run_job, study.queue.tuned = test_study._takes_long, lambda family: {}
    queue = study.queue.Queue([])
    queue.left = [Job("sick", "DA", 0)]
    study.queue.work(queue, Places(Path(sys.argv[1]), Path(sys.argv[1])), 1)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_study(number: signal.Signals, tmp_path: Path) -> None:
    """However it ends: the same command, repeated, must not find a run that is still being trained."""
    program = tmp_path / "program.py"
    program.write_text(STUDY_OF_ONE_RUN)
    paths = os.pathsep.join(str(ROOT / name) for name in (".", "src", "examples", "tests"))
    with subprocess.Popen([sys.executable, program, tmp_path], env=os.environ | {"PYTHONPATH": paths}) as process:
        wait_until(lambda: (tmp_path / "pid").exists() or process.poll() is not None, 120)
        worker = psutil.Process(int((tmp_path / "pid").read_text()))
        assert (tmp_path / "flushed").read_text() == str(torch.set_flush_denormal(False)), "what it can, it does"
        process.send_signal(number)
        process.wait(30)
    assert not psutil.wait_procs([worker], timeout=10)[1]


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)


def test_a_worker_that_dies_while_it_waits_is_replaced(kept_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold_tuning(kept_in, "DA")
    pools: list[ThreadPoolExecutor] = []
    trained: list[int] = []

    class Dead(ThreadPoolExecutor):
        """A pool whose process has died."""

        def submit(self, *_: Any) -> "Future[None]":
            raise BrokenProcessPool

    def pool(*_: Any) -> ThreadPoolExecutor:
        pools.append(ThreadPoolExecutor(1) if pools else Dead(1))
        return pools[-1]

    monkeypatch.setattr("study.queue.ProcessPoolExecutor", pool)
    monkeypatch.setattr("study.queue.run_job", lambda job, *_: trained.append(job.seed))
    assert work(Queue([Job("sick", "DA", seed) for seed in range(2)]), Places(kept_in, kept_in), 1) == 0
    assert trained == [0, 1] and len(pools) == 2


def test_a_failed_tuning_is_no_run(kept_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tune(family: str, places: Places) -> None:
        raise OSError("no space")

    monkeypatch.setattr("study.queue.tune", tune)
    monkeypatch.setattr("study.queue.ProcessPoolExecutor", lambda workers, *_: ThreadPoolExecutor(workers))
    assert work(Queue([Job("sick", "DA", seed) for seed in range(3)]), Places(kept_in, kept_in), 2) == 3


def test_runs_on_another_encoder_are_not_mixed_with_the_kept_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (held,) = encoders()
    (tmp_path / "bench").mkdir()
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr("sys.argv", ["study", "--data", str(tmp_path), "--encoder", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        study_main.main()
    said = f"--encoder: kept runs are of weights {held}, those in {tmp_path} are {fingerprint_of_weights(tmp_path)}"
    assert said in " ".join(capsys.readouterr().err.split())
    trained: list[Path | None] = []
    monkeypatch.setattr("study.__main__.encoders", lambda: {fingerprint_of_weights(tmp_path)})
    monkeypatch.setattr("study.__main__.work", lambda queue, places, workers: trained.append(places.encoder))
    for name in ("ensembles", "windows", "starts", "spreads", "pairs", "report.write"):
        monkeypatch.setattr(f"study.__main__.{name}", lambda *_: None)
    study_main.main()
    assert trained == [tmp_path]


def test_an_ensemble_is_of_all_five_seeds(kept_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[Path], str]] = []

    def evaluated(script: Any, runs: list[Any], corpus: str, name: str, vectors: Path) -> tuple[None, dict[str, float]]:
        asked.append(([run.folder for run in runs], corpus))
        return None, {"accuracy": 0.7}

    monkeypatch.setattr("study.ensembles.RESULTS", kept_in)
    monkeypatch.setattr("study.ensembles.evaluate_on", evaluated)
    monkeypatch.setattr("study.ensembles.opened", lambda file, places: Path(file).name)
    monkeypatch.setattr(Places, "pairs", lambda self, name: self.data / name)
    places, runs = Places(tmp_path / "data", tmp_path / "runs"), [Job("sick", "DA", seed) for seed in range(5)]
    options = hold_tuning(kept_in, "DA")
    for job in runs:
        ensembles(places)
        assert held_ensemble("sick", VARIANTS["DA"]) is None, "one is missing"
        hold(kept_in, f"sick/da-seed{job.seed}", **plan_of(job, options), dev=[0.25, 0.5])
        run = Run(run_folder(job, places))
        run.folder.mkdir(parents=True)
        for file in (run.config, run.lexicon, run.weights, run.metrics):
            ensembles(places)
            assert held_ensemble("sick", VARIANTS["DA"]) is None, f"{file.name} is missing"
            file.write_text('{"history": [{"dev": 0.25}, {"dev": 0.75}]}')
    ensembles(places)
    assert held_ensemble("sick", VARIANTS["DA"]) is None, "the folders have other runs than those that are kept"
    for job in runs:
        Run(run_folder(job, places)).metrics.write_text('{"history": [{"dev": 0.25}, {"dev": 0.5}]}')
    ensembles(places)
    assert held_ensemble("sick", VARIANTS["DA"]) == 0.7
    assert asked == [([run_folder(job, places) for job in runs], "sick_test.tsv.gz")]
    ensembles(places)
    assert len(asked) == 1, "it is kept"


def test_figures_of_another_plan_are_not_taken(kept_in: Path) -> None:
    da = Job("sick", "DA", 0)
    options = hold_tuning(kept_in, "DA")
    facts = plan_of(da, options)
    hold(kept_in, "sick/da-seed0", **facts)
    assert kept(da) == facts and Queue([da]).left == []
    others = (
        {"options": {**facts["options"], "epochs": 30}},
        {"model": {**facts["model"], "glorot": False}},
        {"files": {**facts["files"], "vectors": "others.npz"}},
        {"files": {**facts["files"], "hard": "bench/hard.tsv.gz"}},
        {"unit_vectors": True},
    )
    for changed in others:
        hold(kept_in, "sick/da-seed0", **(facts | changed))
        assert kept(da) is None and Queue([da]).left == [da]
    hold(kept_in, "sick/da-seed0", **facts)
    model = plan("DA")["model"]
    for other in ({"protocol": {**protocol(), "batch_size": 64}}, {"model": {**model, "glorot": False}}):
        hold_tuning(kept_in, "DA", **other)
        assert kept(da) is None and Queue([da]).take() == "DA"


def test_a_job_is_trained_with_its_seed_and_tuned_without_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Any, ...]] = []
    metrics = {"history": [], "training_pairs": 1, "pairs_per_second": 1, "best_epoch": 1, "dev": {"accuracy": 0.5}}
    monkeypatch.setattr("study.training.train_run", lambda *words: given.append(words))
    monkeypatch.setattr("study.training.read_json", lambda path: metrics)
    places = Places(tmp_path, tmp_path)
    monkeypatch.setattr(Places, "pairs", lambda self, name: self.data / name)
    train(settings_of(Job("sick", "DA", 3), places, {"lr": 0.1, "dropout": 0.2}), 3, tmp_path / "run")
    assert given[0][4] == 3 and given[0][3].test is not None
    tuning._try("DA", places, {"lr": 0.1, "dropout": 0.2})
    assert given[1][3].test is None


def test_figures_come_in_the_order_of_the_plan(kept_in: Path) -> None:
    names = ["hypothesis only", "DA", "attention", "LSTM", "hybrid", "ESIM"]
    planned = [job for job in jobs("cpu") if job.seed == 0 and job.bench == "sick" and job.variant in names]
    for job in reversed(planned):
        options = hold_tuning(kept_in, job.variant)
        hold(kept_in, f"sick/{slug(job.variant)}-seed0", **plan_of(job, options))
    assert list(held_results()) == [("sick", job.variant) for job in planned] and len(planned) == len(names)


def test_a_run_is_trained_tested_everywhere_and_kept(tmp_path: Path, kept_in: Path) -> None:
    places, bench = Places(tmp_path / "data", tmp_path / "runs"), BENCHES["snli22k"]
    for name, count, split in ((bench.train, 60, "train"), (bench.dev, 30, "dev"), (bench.test, 40, "test")):
        write_pairs(places.data / name, count, split, cut=True)
    sizes = {name: 20 + k for k, name in enumerate(bench.others.values())}
    for name, count in sizes.items():
        write_pairs(places.data / name, count, "test", cut=name.startswith("bench"))
    vectors = np.random.default_rng(0).standard_normal((2, 8))
    np.savez(places.data / bench.vectors, words=np.array(["a", "the"]), vectors=vectors)
    options, job = hold_tuning(kept_in, "DA"), Job("snli22k", "DA", 0)
    run_job(job, places, options)
    result = kept(job)
    assert result is not None and result["accuracy"].keys() == {"dev", "test", *bench.others}
    script, run = settings_of(job, places, options).script, Run(run_folder(job, places))
    for name, file in {"test": bench.test, "dev": bench.dev, **bench.others}.items():
        alone = evaluate_on(script, [run], open_corpus(places.pairs(file), places.cache), file, None)[1]["accuracy"]
        assert result["accuracy"][name] == alone, name
    assert len(set(result["accuracy"].values())) > 3
    right = unpacked(result["right"], result["pairs"])
    assert len(right) == 40 and float(right.double().mean()) == result["accuracy"]["test"]
    assert Queue([job]).left == []
    before = run_folder(job, places).stat().st_mtime_ns
    run_job(job, places, options)
    assert kept(job) == result and run_folder(job, places).stat().st_mtime_ns == before
    pairs(places)
    counted = {name: sum(held_of(bench, name)["classes"].values()) for name in (bench.test, *bench.others.values())}
    assert counted == {bench.test: 40, **sizes}, "pairs without an answer left out"
    classes(places)
    labels = {split: [pair.label for pair in generated_pairs(n, split)] for split, n in (("train", 60), ("test", 40))}
    of_class = Counter(label for label, hit in zip(labels["test"], right.tolist(), strict=True) if hit)
    assert held_classes("snli22k") == {
        **{split: Counter(of_split) for split, of_split in labels.items()},
        "right": {"DA": {"0": {label: of_class[label] for label in set(labels["test"])}}},
    }
    shared = [(word, pair.premise) for pair in generated_pairs(40, "test") for word in pair.hypothesis]
    even = [premise.count(word) / len(premise) for word, premise in shared if word in premise]
    assert result["same_words"]["even"] == pytest.approx(np.mean(even)), "of the test pairs"
    starts(places)
    held = held_starts("snli22k")
    settings, lexicon = settings_of(job, places, options), Lexicon.load(run.lexicon)
    torch.manual_seed(0)
    model, test = build(script, settings.config, lexicon), open_corpus(places.pairs(bench.test), places.cache)
    batches = evaluation_loader(PairDataset(test, lexicon, run.read_config()["labels"], test.phenomena))
    by_hand = same_words(model, batches)
    assert by_hand is not None and held["DA"]["found"] == start(job, places) == by_hand["found"] != by_hand["even"]
    assert held["DA"]["found"] != result["same_words"]["found"], "training changes it"
    for changed in ({"model": {**held["DA"]["model"], "glorot": False}}, {"unit_vectors": True}, {"files": {}}):
        hold(kept_in, "snli22k/starts", DA=held["DA"] | changed)
        assert held_starts("snli22k") == {}
    starts(places)
    assert held_starts("snli22k") == held
    report.write(tmp_path / "pages")
    pages = {
        name: (tmp_path / "pages" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("models", "classes", "transfer", "alignments")
    }
    shares = {label: 100 * of_class[label] / labels["test"].count(label) for label in LABELS}
    assert f"| DA | {' | '.join(f'{share:.1f}{NO_BREAK}(1)' for share in shares.values())} |" in pages["classes"]
    shares = {label: 100 * labels["train"].count(label) / 60 for label in LABELS}
    assert f"| training pairs | {' | '.join(f'{share:.1f}' for share in shares.values())} |" in pages["classes"]
    assert f"| DA | {result['parameters']:,} | " in pages["models"]
    left = next(line for line in pages["models"].splitlines() if line.startswith("- `snli22k`: ")).split("; ")
    assert "DA (1, 2)" in left and "DA, intra-attention (0, 1, 2)" in left and "CAFE (0)" in left
    assert "| pairs | 40 | 20 | 21 |" in pages["transfer"]
    known = [held_of(bench, name)["known_premises"] for name in (bench.test, *bench.others.values())]
    assert f"| with a premise of a training pair | {' | '.join(map(str, known))} |" in pages["transfer"]
    held = held_of(bench, bench.test)
    share = 100 * sum(held["commonest"].values()) / held["shared_words"]
    words = " ".join(f"`{word}`" for word in held["commonest"])
    assert f"| snli22k | {held['shared_words']} | {words} | {share:.1f} % |" in pages["alignments"]
    hold(kept_in, "snli22k/da-seed1", **(result | {"seed": 1, "pairs": 39}))
    classes(places)
    assert held_classes("snli22k")["right"]["DA"].keys() == {"0"}, "the other was tested on other pairs"


def test_shared_words_and_known_premises_are_counted_as_by_hand(tmp_path: Path) -> None:
    rows = [
        ("entailment", "the dog and the cat", "the the dog"),
        ("neutral", "a dog", "the dog a"),
        ("neutral", "a dog", "no"),
        ("contradiction", "a dog and", "a and dog a"),
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text("gold_label\tsentence1\tsentence2\n" + "".join("\t".join(row) + "\n" for row in rows))
    found = counts(open_corpus(path, tmp_path), {"a dog", "the dog", "no"})
    assert found["classes"] == {"entailment": 1, "neutral": 2, "contradiction": 1}
    assert found["known_premises"] == 2, "each time that it stands there, and not what it is a part of"
    assert found["shared_words"] == 9
    assert found["commonest"] == {"the": 2, "dog": 3, "a": 3, "and": 1}
    assert counts(open_corpus(path, tmp_path), set())["known_premises"] == 0


def test_what_was_counted_elsewhere_is_kept(kept_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files that are not in this data folder."""
    monkeypatch.setattr("study.pairs.RESULTS", kept_in)
    places, bench = Places(tmp_path, tmp_path / "runs"), BENCHES["snli22k"]
    kept_in.mkdir(exist_ok=True)
    (kept_in / "pairs.json").write_text(json.dumps({bench.name: {bench.others["FraCaS"]: {"shared_words": 7}}}))
    for name in (bench.train, bench.test):
        write_pairs(tmp_path / name, 3, "test", cut=True)
    pairs(places)
    assert held_of(bench, bench.others["FraCaS"]) == {"shared_words": 7}
    assert sum(held_of(bench, bench.test)["classes"].values()) == 3


def test_ten_words_are_the_commonest(tmp_path: Path) -> None:
    path, word = tmp_path / "pairs.tsv", [chr(ord("a") + k) for k in range(12)]
    sentence = " ".join(word[k] for k in range(12) for _ in range(k + 1))
    path.write_text(f"gold_label\tsentence1\tsentence2\nneutral\t{sentence}\t{sentence}\n")
    found = counts(open_corpus(path, tmp_path), set())
    assert found["shared_words"] == 78 and found["commonest"] == {word[k]: k + 1 for k in range(11, 1, -1)}
    assert list(found["commonest"]) == word[:1:-1]


def test_a_premise_is_known_from_the_training_pairs(tmp_path: Path, kept_in: Path) -> None:
    bench, header = BENCHES["sick"], "gold_label\tsentence1\tsentence2\tsentence1_raw\n"
    premises = {bench.train: ["a", "a b"], bench.dev: ["b", "c"], bench.test: ["a", "a b", "a", "b", "c d"]}
    (tmp_path / "bench").mkdir()
    for name, rows in premises.items():
        table = header + "".join(f"neutral\t{premise}\tno\t\n" for premise in rows)
        (tmp_path / name).write_bytes(gzip.compress(table.encode()))
    pairs(Places(tmp_path, tmp_path / "runs"))
    assert held_of(bench, bench.test)["known_premises"] == 3


def test_a_difference_as_large_as_an_interval_reaches_is_decided_at_its_level() -> None:
    rng = np.random.default_rng(4)
    found = difference(coins(rng, 0.70, 4), coins(rng, 0.68, 5))
    for level in (0.05, 0.05 / 55):
        assert dataclasses.replace(found, points=-found.reach(level)).p == pytest.approx(level)
    assert found.reach(0.05) < found.reach(0.05 / 55)


def row(p: float, seeds: int = 5) -> claims.Row:
    return Claim("a paper", "says", "a", "b"), "sick", Difference(1.0, seeds, 0.0, 4.0, norm.isf(p / 2) ** -2.0)


def test_verdicts_are_counted_and_how_far_a_difference_must_reach_is_told_by_seeds() -> None:
    assert claims.counted(["holds", "undecided", "undecided"]) == "Of 3 rows: undecided 2, holds 1."
    # At 0.05 / 4 the normal distribution's quantile is 2.498, and p says how many standard deviations 1 point is.
    told = claims.least([row(0.5), row(0.05), row(0.001), row(0.05, seeds=3)], 4)
    assert told.endswith("with 5 seeds a side 0.8 to 3.7 (median 1.3); with 3 seeds a side 1.3 to 1.3 (median 1.3).")
    assert claims.least([row(0.5, seeds=2)], 4) == ""


def test_what_the_papers_print_is_held_against_the_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = {(1.0, 2.0): 0.0, (1.0, 0.5): 0.0, (-2.0, -1.0): 0.0, (0.1, 3.0): 0.0, (): 9.0}
    rows = [Claim("a paper", "says", "a", f"b{k}", gains) for k, gains in enumerate(gaps)]
    found = [(claim, "sick", Difference(gap, 5, 0.0, 4.0, 0.1)) for claim, gap in zip(rows, gaps.values(), strict=True)]
    monkeypatch.setattr(claims, "judged", lambda *_: (found, []))
    head, lines = claims.beside_the_papers(rows, {})
    assert head.startswith("Of 4 intervals beside gains that a paper prints, 2 leave all of them out")
    assert lines == "- less than the paper's: a – b0 on sick\n- more than the paper's: a – b2 on sick"
    found[:] = found[3:]
    assert list(claims.beside_the_papers(rows, {})) == []


def runs(*shares: float, found: float | None = None, **facts: Any) -> list[dict[str, Any]]:
    same = None if found is None else {"found": found, "even": 0.1}
    return [{"accuracy": {"test": test, "hard": test - 0.2}, "same_words": same, "seed": 0, **facts} for test in shares]


def test_the_best_two_on_dev_pairs_stand_beside_re2_test_set_by_test_set() -> None:
    results = {
        ("snli22k", "DA"): runs(0.7, 0.8),
        ("snli22k", "ESIM"): runs(0.76),
        ("snli22k", "CAFE"): runs(0.79),
        ("snli22k", "frozen encoder, aligned"): runs(0.9),
        ("mnli20k", "ESIM"): runs(0.6),
    }
    for (_, name), found in results.items():
        for k, run in enumerate(found):
            run["accuracy"]["dev"] = {"CAFE": 0.7, "DA": (0.5, 0.97)[k], "ESIM": 0.75}.get(name, 0.9)
    *_, told = models.beside_re2(results)
    assert [line.replace(NO_BREAK, " ") for line in told.splitlines()[2:]] == [
        "| snli22k, test | ESIM 76.0 (1); DA 75.0 ± 7.1 (2) | 77.2 (1) |",
        "| snli22k, hard | ESIM 56.0 (1); DA 55.0 ± 7.1 (2) | 59.3 (1) |",
    ]
    assert list(models.beside_re2({})) == []


def test_where_the_largest_class_is_as_good_as_every_model_is_said() -> None:
    trained = {"a": runs(0.5, 0.7), "b": runs(0.58)}
    lost = transfer.below(trained, {"test": [60, 40], "hard": [30, 70]})
    assert lost == " No model beats the largest class on: test; hard."
    assert transfer.below(trained, {"test": [41, 59], "hard": [60, 50, 50], "none": []}) == ""
    assert transfer.below({}, {"test": [1]}) == ""


def test_models_are_ranked_by_what_their_attention_finds() -> None:
    names = ["DA", "attention", "ESIM", "CAFE", "GCNN 150, words"]
    pairs = [(0.1, 0.7), (0.3, 0.6), (0.2, 0.8), (0.9, 0.9), (0.8, 0.85)]
    results = {("sick", name): runs(test, found=found) for name, (found, test) in zip(names, pairs, strict=True)}
    results |= {("sick", "LSTM"): runs(0.1), ("sick", "GT, Zipf"): runs(0.1, found=0.99)}
    found, tested = zip(*pairs, strict=True)
    rank = spearmanr(found, tested).statistic
    others = [abs(spearmanr(found, order).statistic) for order in itertools.permutations(tested)]
    p = np.mean([other > rank - 1e-9 for other in others])
    assert f" is {rank:.2f} on sick (p = {p:.2g}, 5 models)." in alignments.ranks(["sick", "mnli20k"], results)
    assert alignments.ranks(["mnli20k"], results) == ""


def test_choices_at_the_edge_of_what_was_tried_are_counted_and_tried_again() -> None:
    chosen = [(1e-3, 0.1), (1e-3, 0.2), (2e-4, 0.1), (5e-4, 0.3)]
    found = [{"family": "DA", "chosen": {"lr": lr, "dropout": dropout}} for lr, dropout in chosen]
    assert "of 4 families, 2 chose the highest rate, 1 the lowest, and 2 the lowest dropout" in tuning_page.edges(found)
    first = {**found[0], "tried": [{"options": {}, "dev": 0.9}, {"options": found[0]["chosen"], "dev": 0.7}]}
    results = {("snli10k", "DA"): runs(0.1, dev=[0.5, 0.71, 0.6, *7 * [0.5], 0.95]) + runs(0.1, dev=[0.9], seed=1)}
    assert tuning_page.again([first], results).endswith("differed from the one here by +1.0 to +1.0 points.")
    assert tuning_page.again([first], {}) == ""


def test_how_far_a_prior_could_have_moved_is_told_by_its_steps() -> None:
    start, end = priors.priors_of(GaussianPrior())[0], (0.1, -0.104)
    facts = {"seconds": 1.0, "pairs_per_second": 6_400, "dev": [0.4, 0.6], "best_epoch": 1, "bench": "sick"}
    run = {**facts, "options": {"batch_size": 32, "lr": 1e-3}, "priors": [start, end]}
    page = priors.page({("sick", "Gaussian Transformer"): [run]})
    assert "none has moved by more than 0.004." in page and "took 100 to 100. No run" in page
    assert "by more than 40 per cent of" in page


def test_steps_are_counted_to_the_best_epoch() -> None:
    run = {"seconds": 50.0, "pairs_per_second": 200.0, "dev": [0.4, 0.6, 0.5, 0.5], "best_epoch": 2}
    assert priors.steps_of({**run, "options": {"batch_size": 32}}) == 2 * 79


class Known(torch.nn.Module):
    """A model whose attention is given, batch by batch."""

    leading_tokens = ("NULL",)

    def __init__(self, *alphas: torch.Tensor) -> None:
        super().__init__()
        self.alphas = iter(alphas)

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[torch.Tensor, torch.Tensor]:
        alpha = next(self.alphas)
        return alpha.mT, alpha


class Unled(Known):
    leading_tokens = ()


def test_what_attention_finds_is_its_weight_on_the_same_word() -> None:
    generator = torch.Generator().manual_seed(0)
    real = [torch.arange(7) < torch.randint(1, 7, (12, 1), generator=generator) for _ in range(2)]
    premise, hypothesis = (Sentence(torch.randint(1, 6, (12, 7), generator=generator), m) for m in real)
    alpha = torch.rand(12, 8, 8, generator=generator)
    found, even = [], []
    for row in range(12):
        words = premise.tokens[row][premise.mask[row]].tolist()
        for j, word in enumerate(hypothesis.tokens[row][hypothesis.mask[row]].tolist()):
            if word in words:
                places = [i for i, other in enumerate(words) if other == word]
                found.append(sum(float(alpha[row, 1 + j, 1 + i]) for i in places))
                even.append(len(places) / len(words))
    batches = []
    for rows in (slice(3), slice(3, 12)):
        sides = (Sentence(side.tokens[rows], side.mask[rows]) for side in (premise, hypothesis))
        batches.append(Batch(*sides, alpha[rows, 0, 0], alpha[rows, 0, 0]))
    measured = same_words(Known(alpha[:3], alpha[3:]), batches)
    assert measured == pytest.approx({"found": np.mean(found), "even": np.mean(even)}), "every word counts alike"
    assert same_words(torch.nn.Linear(1, 1), batches) is None


def test_the_spread_of_scores_is_their_standard_deviation_over_the_premise() -> None:
    generator = torch.Generator().manual_seed(0)
    real = [torch.arange(7) < torch.randint(1, 8, (12, 1), generator=generator) for _ in range(2)]
    premise, hypothesis = (Sentence(torch.ones(12, 7, dtype=torch.int64), m) for m in real)
    scores = 3 * torch.randn(12, 8, 8, generator=generator, dtype=torch.float64)
    scores[..., 1:] = scores[..., 1:].masked_fill(~premise.mask[:, None], -torch.inf)
    by_hand = [
        np.std([float(scores[row, 1 + j, 1 + i]) for i in range(7) if premise.mask[row, i]])
        for row in range(12)
        for j in range(7)
        if hypothesis.mask[row, j]
    ]
    batches = []
    for rows in (slice(3), slice(3, 12)):
        sides = (Sentence(side.tokens[rows], side.mask[rows]) for side in (premise, hypothesis))
        batches.append(Batch(*sides, premise.tokens[rows, 0], premise.tokens[rows, 0]))
    alpha = scores.softmax(-1)
    assert score_spread(Known(alpha[:3], alpha[3:]), batches) == pytest.approx(np.mean(by_hand))
    assert score_spread(torch.nn.Linear(1, 1), batches) is None
    one_sided = torch.tensor([1.0, 0.0]).expand(1, 1, 2)
    pair = Batch(
        *(Sentence(torch.ones(1, n, dtype=torch.int64), torch.ones(1, n, dtype=torch.bool)) for n in (2, 1)), *alpha[:2]
    )
    assert score_spread(Unled(one_sided), [pair]) == pytest.approx(-math.log(torch.finfo(torch.float32).tiny) / 2)


def test_the_spread_of_scores_is_kept_for_every_model_before_it_is_trained(
    tmp_path: Path, kept_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, bench = Places(tmp_path / "data", tmp_path / "runs"), BENCHES["snli10k"]
    for name, count, split in ((bench.train, 60, "train"), (bench.dev, 30, "dev"), (bench.test, 40, "test")):
        write_pairs(places.data / name, count, split, cut=True)
    vectors = np.random.default_rng(0).standard_normal((2, 8))
    np.savez(places.data / bench.vectors, words=np.array(["a", "the"]), vectors=vectors)
    hold_tuning(kept_in, "DA"), hold_tuning(kept_in, "LSTM")
    monkeypatch.setattr("study.spreads.MEASURED", [VARIANTS[name] for name in ("LSTM", "DA", "attention")])
    assert alignments.before_training() == ""
    spreads(places)
    held = held_spreads()
    assert held.keys() == {"LSTM", "DA"}, "the third is not tuned yet"
    assert held["LSTM"]["spreads"] == [None] * SEEDS and len(set(held["DA"]["spreads"])) == SEEDS
    for seed, spread in enumerate(held["DA"]["spreads"]):
        assert spread == score_spread(*untrained(Job("snli10k", "DA", seed), places, "dev"))
    head, _, lines = alignments.before_training().strip().split("\n\n")
    least, most = min(held["DA"]["spreads"]), max(held["DA"]["spreads"])
    assert head == "## Before training" and lines.splitlines()[2:] == [
        f"| DA | {np.mean(held['DA']['spreads']):.3f} ±{NO_BREAK}{np.std(held['DA']['spreads'], ddof=1):.3f} "
        f"| {least:.3f} | {most:.3f} |"
    ]
    hold(kept_in, "snli10k/spreads", **held | {"DA": held["DA"] | {"unit_vectors": True}})
    assert held_spreads().keys() == {"LSTM"}
    spreads(places)
    assert held_spreads() == held


def test_long_texts_are_read_in_windows_and_short_ones_are_not() -> None:
    torch.manual_seed(0)
    case = MODELS["GaussianTransformer"]
    model = case.build().get_submodule("model")
    p, p_mask, _, h, h_mask, _ = case.inputs(8, 6)
    assert compared(model, [(Sentence(p, p_mask), Sentence(h, h_mask))])["windows"] == 0
    words = Sentence(torch.randint(1, 5, (16, 400)), torch.arange(400) < 400 - torch.arange(16)[:, None])
    texts = list(long_texts([(words, Sentence(h, h_mask))]))
    assert [side.tokens.shape[1] for side in texts[1]] == [WORDS, int(h_mask[1].sum())]
    joined = torch.cat([premise.tokens[0] for premise, _ in texts])
    assert torch.equal(joined, words.tokens[words.mask][: 6 * WORDS]), "without padding"
    found = compared(model, texts)
    assert (found["pairs"], found["other_predictions"]) == (6, 0) and found["windows"] > 0
    assert found["largest_difference"] < 1e-5 * found["largest_logit"]


def test_no_more_long_texts_are_read_than_it_takes() -> None:
    words = torch.ones(TEXTS + 1, WORDS, dtype=torch.long)
    pairs = [(Sentence(words, words.bool()), Sentence(words[:, :2], words[:, :2].bool()))]
    assert len(list(long_texts(pairs))) == TEXTS


class Look(torch.nn.Module):
    """The words' views of a text, of which a window with this tolerance leaves much out."""

    def __init__(self) -> None:
        super().__init__()
        prior = GaussianPrior(0.02, None)
        self.attention = GaussianSelfAttention(2, 1, prior=prior, tolerance=0.3, scale=1.0)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, premise: Sentence, hypothesis: Sentence) -> torch.Tensor:
        seen = self.attention(torch.nn.functional.one_hot(premise.tokens % 2, 2).float())
        return self.dropout(seen).sum(1)


def test_what_a_window_leaves_out_is_measured() -> None:
    torch.manual_seed(0)
    model, words = Look(), torch.randint(0, 9, (3, 700))
    texts = [(Sentence(row[None], torch.ones(1, 700, dtype=torch.bool)),) * 2 for row in words]
    measured = compared(model, texts)
    model.eval()
    results = []
    for window in (None, "auto"):
        model.attention.window = window
        results.append(torch.cat([model(*text) for text in texts]).detach())
    whole, found = results
    difference = (whole - found).abs().max().item()
    assert measured == {
        "pairs": 3,
        "windows": 3,
        "other_predictions": int((whole.argmax(-1) != found.argmax(-1)).sum()),
        "largest_difference": pytest.approx(difference),
        "largest_logit": pytest.approx(whole.abs().max().item()),
    }
    assert difference > 1e-3


def test_predictions_are_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        None: torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, -3.0], [1.0, 2.0]]),
        "auto": torch.tensor([[1.0, 0.5], [1.0, 0.0], [1.0, 2.0], [0.0, -1.0], [2.0, 1.0]]),
    }
    monkeypatch.setattr("study.windows.logits", lambda model, pairs, window: (said[window], 7))
    assert compared(torch.nn.Identity(), []) == {
        "pairs": 5,
        "windows": 7,
        "other_predictions": 3,
        "largest_difference": 2.0,
        "largest_logit": 3.0,
    }


def test_a_run_says_all_it_was_trained_with(places: Places) -> None:
    job = Job("snli22k", "attention, unit vectors throughout", 0)
    settings = settings_of(job, places, {"lr": 7e-4, "dropout": 0.15})
    parts = (settings.recipe, settings.config, settings.data)
    taken = {name: value for part in parts for name, value in dataclasses.asdict(part).items()}
    expected = {**PROTOCOL, "lr": 7e-4, "dropout": 0.15, "unit_unknown": True, "unit_vectors": True}
    assert {name: taken[name] for name in expected} == expected
