"""One run of the study: trained, tested everywhere, and kept as a small file."""

import base64
import contextlib
import dataclasses
import hashlib
import importlib
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator, PartialState
from torch import Tensor, nn

from nli_common.batches import PairDataset, evaluation_loader
from nli_common.data import Batch, Corpus, open_corpus
from nli_common.evaluating import evaluate_on
from nli_common.files import read_json
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.models import restore
from nli_common.runs import Run, write_json
from nli_common.script import Script
from nli_common.table_runs import Settings, settle
from nli_common.tables import Row
from nli_common.train_runs import train_run
from nlilayers import GaussianPrior
from study.alignments import same_words
from study.files import prepared
from study.plan import BENCHES, ENCODED, PROTOCOL, VARIANTS, Bench, Job, Variant

RESULTS = Path(__file__).parent / "results"


@dataclasses.dataclass(frozen=True)
class Places:
    """Where the data are, and where runs go."""

    data: Path
    runs: Path
    encoder: Path | None = None
    """Folder of the encoder that some variants stand on."""

    @property
    def cache(self) -> Path:
        """Indexed corpora, and files that were cut into tokens."""
        return self.runs / "cache"

    def pairs(self, name: str) -> Path:
        """A file of pairs, cut into tokens."""
        return prepared(self.data / name, self.cache / "cut")


def slug(name: str) -> str:
    """A name as part of a file's.

    >>> slug("GT, Gaussian, Eq 3")
    'gt-gaussian-eq-3'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def result_file(job: Job) -> Path:
    """What is kept of a run."""
    return RESULTS / job.bench / f"{slug(job.variant)}-seed{job.seed}.json"


def run_folder(job: Job, places: Places) -> Path:
    """Where a run and its weights are."""
    return places.runs / job.bench / f"{slug(job.variant)}-seed{job.seed}"


def options_of(job: Job, options: Mapping[str, Any]) -> dict[str, Any]:
    """How a run is trained: by the protocol, then the tuned options, then the variant's own."""
    return {**PROTOCOL, **options, **VARIANTS[job.variant].row.options}


def plan_of(job: Job, options: Mapping[str, Any]) -> dict[str, Any]:
    """All of the plan that decides a run's figures, its seed apart; the model with what its options leave as it is."""
    bench, variant = BENCHES[job.bench], VARIANTS[job.variant]
    taken = options_of(job, options)
    config = _settled(variant, taken, Data()).config
    files = {name: getattr(bench, name) for name in ("train", "dev", "test", "vectors")} | dict(bench.others)
    return {
        "options": taken,
        "model": dataclasses.asdict(config),
        "files": files,
        "unit_vectors": variant.unit_vectors,
    }


def settings_of(job: Job, places: Places, options: Mapping[str, Any]) -> Settings:
    """The model, recipe and files of a run."""
    bench, variant = BENCHES[job.bench], VARIANTS[job.variant]
    data = Data(
        train=places.pairs(bench.train),
        dev=places.pairs(bench.dev),
        test=places.pairs(bench.test),
        vectors=places.data / bench.vectors,
        unit_vectors=variant.unit_vectors,
        cache=places.cache,
    )
    # What is of this machine is no part of the plan.
    taken = {"encoder": str(places.encoder)} if variant in ENCODED else {"cuda_graphs": _on_a_gpu()}
    return _settled(variant, {**options_of(job, options), **taken}, data)


def _settled(variant: Variant, options: Mapping[str, Any], data: Data) -> Settings:
    script: Script = importlib.import_module(variant.row.script).SCRIPT
    return settle(script, Row(variant.name, options, model=variant.row.model), {}, data)


def train(settings: Settings, seed: int, folder: Path) -> tuple[Run, dict[str, Any]]:
    """Train in a folder, or go on there, with what is said in a log beside it; and the metrics."""
    run = Run(folder)
    with _said_to(folder.parent / f"{folder.name}.log"):
        train_run(settings.script, settings.config, settings.recipe, settings.data, seed, run)
    metrics = read_json(run.metrics)
    seconds = len(metrics["history"]) * metrics["training_pairs"] / metrics["pairs_per_second"]
    return run, metrics | {"seconds": seconds}


def run_job(job: Job, places: Places, options: Mapping[str, Any]) -> None:
    """Train a run, test it on every file of its bench, and keep the figures."""
    bench = BENCHES[job.bench]
    settings = settings_of(job, places, options)
    run, metrics = train(settings, job.seed, run_folder(job, places))
    accuracies, right = tested(settings, run, bench, places)
    model, pairs = reread(settings, run, bench, places)
    classes = [sum(row) for row in metrics["test"]["confusion"]]
    encoder = places.encoder if VARIANTS[job.variant] in ENCODED else None
    write_result(
        result_file(job),
        {
            "bench": job.bench,
            "variant": job.variant,
            "seed": job.seed,
            "script": settings.script.name,
            **plan_of(job, options),
            "encoder": encoder and fingerprint_of_weights(encoder),
            "parameters": metrics["parameters"],
            "pairs_per_second": metrics["pairs_per_second"],
            "seconds": metrics["seconds"],
            "best_epoch": metrics["best_epoch"],
            "dev": [epoch["dev"] for epoch in metrics["history"]],
            "accuracy": {"dev": metrics["dev"]["accuracy"], **accuracies},
            "pairs": len(right),
            "largest_class": max(classes) / len(right),
            "right": packed(right),
            "priors": priors(model),
            "same_words": same_words(model, pairs),
            "cuda_graphs": settings.recipe.cuda_graphs,
            **machine(),
        },
    )


def lies_in(run: Run, result: Mapping[str, Any] | None) -> bool:
    """Whether a folder has the model whose figures are kept, and not one of another machine, or of another plan."""
    if result is None or not run.restorable:
        return False
    kept: list[float] = result["dev"]
    return [epoch["dev"] for epoch in read_json(run.metrics)["history"]] == kept


def reread(settings: Settings, run: Run, bench: Bench, places: Places) -> tuple[nn.Module, Iterable[Batch]]:
    """The trained model, and its bench's test pairs, on the device that training takes."""
    lexicon = Lexicon.load(run.lexicon)
    corpus = opened(bench.test, places)
    dataset = PairDataset(corpus, lexicon, run.read_config()["labels"], corpus.phenomena)
    model, batches = Accelerator().prepare(restore(settings.script, run, lexicon), evaluation_loader(dataset))
    return model, batches


def tested(settings: Settings, run: Run, bench: Bench, places: Places) -> tuple[dict[str, float], Tensor]:
    """The accuracy on every file of a bench, and which pairs of its test file are right."""
    accuracies = {}
    test = opened(bench.test, places)
    right, metrics = evaluate_on(settings.script, [run], test, bench.test, places.data / bench.vectors)
    accuracies["test"] = metrics["accuracy"]
    for name, file in bench.others.items():
        _, metrics = evaluate_on(settings.script, [run], opened(file, places), file, places.data / bench.vectors)
        accuracies[name] = metrics["accuracy"]
    return accuracies, right


def priors(model: nn.Module) -> list[tuple[float, float]]:
    """W and b of each Gaussian prior, from the first block to the last."""
    return [(m.w.item(), m.b.item()) for m in model.modules() if isinstance(m, GaussianPrior)]


def packed(right: Tensor) -> str:
    """One bit for each pair, as text.

    >>> unpacked(packed(torch.tensor([True, False, True])), 3)
    tensor([ True, False,  True])
    """
    return base64.b64encode(np.packbits(right.numpy()).tobytes()).decode()


def unpacked(text: str, pairs: int) -> Tensor:
    """The pairs again."""
    return torch.from_numpy(np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8))[:pairs].astype(bool))


def _on_a_gpu() -> bool:
    return bool(PartialState().device.type == "cuda")


def machine() -> dict[str, Any]:
    """What it ran on."""
    name = (
        torch.cuda.get_device_name() if torch.cuda.is_available() else f"{platform.machine()}, {os.cpu_count()} cores"
    )
    return {"machine": name, "threads": torch.get_num_threads(), "torch": torch.__version__}


def fingerprint_of_weights(folder: Path) -> str:
    """Of the weights in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Keep it, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, dict(result))


def held_result(path: Path) -> dict[str, Any]:
    """What is kept in a file, or nothing."""
    return read_json(path) if path.exists() else {}


def opened(file: str, places: Places) -> Corpus:
    """The pairs of a file of the data folder."""
    return open_corpus(places.pairs(file), places.cache)


@contextlib.contextmanager
def _said_to(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        yield
