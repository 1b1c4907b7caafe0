"""Hostile files: a reader gives a right result or one line that names the file, in bounded memory, without pickle."""

import gzip
import importlib
import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reliability import bombs, hostile, hostile_commands, intrusions
from reliability.fuzzing import Reader, Tally
from reliability.hostile_readers import MEASURED, METRICS, OPTIMIZERS, load_state, make_run, readers
from torch import Tensor, nn

import runs
from decomposable_attention import SCRIPT
from gaussian_transformer import GaussianTransformerConfig
from nli_common import models
from nli_common.averaging import WeightAverage
from nli_common.checkpoints import load_checkpoint, save_checkpoint, save_weights
from nli_common.corpora import read_pairs
from nli_common.data import Corpus, open_corpus
from nli_common.errors import LONGEST, InputError
from nli_common.figures import plot_alignment
from nli_common.files import read_json
from nli_common.lexicon import Lexicon
from nli_common.models import build, require_restorable, restore
from nli_common.runs import Run, held_metrics, read_metrics
from nli_common.tensors import load_tensors, save_tensors
from nli_common.training import TrainingState
from nli_common.vectors import read_vectors

HEADER = "gold_label\tsentence1\tsentence2\n"
SCRIPTS = [path.stem for path in (runs.ROOT / "examples" / "paper_tables").glob("[!_]*.py")]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Reader]]:
    folder = tmp_path_factory.mktemp("hostile")
    return folder, readers(folder)


@pytest.mark.parametrize("place", range(18))
def test_a_mutated_file_is_read_or_refused_in_one_line(place: int, attacked: tuple[Path, dict[str, Reader]]) -> None:
    folder, found = attacked
    assert len(found) == 18
    reader, others = list(found.values())[place], [content for other in found.values() for content in other.valid]
    tally = Tally()
    for content in reader.valid:
        tally.give(reader, content, folder)
    assert tally.read == len(reader.valid) and not tally.failures
    for seed in range(60):
        tally.attack(reader, random.Random(seed), folder, others)
    assert not tally.failures and tally.read + tally.refused == tally.inputs


def test_what_is_no_clear_error_is_counted(tmp_path: Path) -> None:
    def fails(path: Path) -> object:
        raise KeyError("x")

    def speaks(path: Path) -> object:
        raise InputError("somewhere, something is wrong")

    for read in (fails, speaks):
        tally = Tally()
        tally.give(Reader(read, "a.tsv", [b""], lambda rng, content: content), b"", tmp_path)
        assert len(tally.failures) == 1 and tally.refused == 0


def test_bombs_are_refused_within_the_bound_of_memory() -> None:
    names = (".npz that declares 10 GB", "line without end, /dev/zero as .tsv", "hash of /dev/zero as vectors")
    held = bombs.explode_apart(*names)
    assert [row["outcome"] for row in held] == ["refused", "refused", "read"], held
    assert sum(row["grown"] for row in held) < bombs.MEMORY_BOUND, held


@pytest.mark.parametrize(
    "bomb",
    [
        *("line of 1 GiB, sparse .jsonl", "line of 1 GiB, sparse vectors", "line of 1 GiB, .tsv.gz"),
        *("zip bomb of 1 KB, one line", ".npz of one word of 2 GB", ".npz that declares 10 EB"),
        *(".npz with 256 MiB of zeros in 256 KB", ".npz header nested without end", "word of 1 MB among 10,000"),
        *("safetensors of a huge shape", "safetensors with a header of 2^63 bytes", "safetensors with a nested header"),
        *("nested .jsonl", "nested metrics.json", "config.json of 1 GiB, sparse"),
        *("config.json of a model of 4 TB", "config.json of 10^18 features", "config.json with a size as text"),
        "config.json of a bias for 10^9 distances",
    ],
)
def test_files_that_declare_or_hold_too_much_are_refused(bomb: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        bombs.bombs(tmp_path)[bomb]()
    assert str(error.value).isprintable() and len(str(error.value)) <= LONGEST


def test_an_archive_that_expands_without_end_is_refused(tmp_path: Path) -> None:
    """No line is too long: only their number tells."""
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((b" " * 10_000 + b"\n") * 20) * 100)
    with pytest.raises(InputError, match=r"a.jsonl.gz:\d+: the compressed data expands to more than 16,777,216 bytes"):
        list(read_pairs(tmp_path / "a.jsonl.gz"))


def test_arrays_that_expand_without_end_only_together_are_refused(tmp_path: Path) -> None:
    words, vectors = np.full(30_000, "a", dtype="<U80"), np.zeros((30_000, 80), dtype=np.float32)
    np.savez_compressed(tmp_path / "v.npz", words=words, vectors=vectors)
    assert words.nbytes == vectors.nbytes < 2**24 < words.nbytes + vectors.nbytes
    with pytest.raises(InputError, match=r"v.npz: the compressed data expands to more than 16,777,216 bytes"):
        read_vectors(tmp_path / "v.npz", {"a"})


@pytest.mark.parametrize("rows", [5, 7, 10**10])
def test_an_array_of_other_rows_than_it_declares_is_refused(rows: int, tmp_path: Path) -> None:
    words = io.BytesIO()
    np.lib.format.write_array_header_1_0(words, {"descr": "<U1", "fortran_order": False, "shape": (rows,)})
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as archive:
        archive.writestr("words.npy", words.getvalue() + "abcdef".encode("utf-32-le"))
    with pytest.raises(InputError, match=r"v.npz: not an .npz file .*words declares <U1 .* not what its 24 bytes hold"):
        read_vectors(tmp_path / "v.npz", {"a"})


def test_json_is_neither_deep_nor_large(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a":' * 50 + "1" + "}" * 50)
    assert read_json(path).keys() == {"a"}
    path.write_text('{"a":' * 51 + "1" + "}" * 51)
    with pytest.raises(InputError, match=r"x.json: not JSON \(nested deeper than 50 levels\)"):
        read_json(path)
    os.truncate(path, 1 << 30)
    with pytest.raises(InputError, match=r"x.json: not JSON \(larger than 67,108,864 bytes\)"):
        read_json(path)


def test_no_pickle_is_loaded(tmp_path: Path) -> None:
    for found in intrusions.pickles(tmp_path):
        assert found["outcome"] == "refused" and not found["loaded"], found


def test_nothing_is_written_outside_the_folder(tmp_path: Path) -> None:
    for found in intrusions.escapes(tmp_path):
        assert found["kept"] and found["outcome"] in ("done", "refused"), found


def test_the_command_line_ends_with_a_result_or_one_line() -> None:
    found = hostile_commands.command_lines(16)
    assert not found["failures"] and set(found["codes"]) == {"0", "2"}


@pytest.mark.parametrize("text", ["a\nb", "a\r\n\tb", "\x1b[2J", "x" * 10_000, "\u2028", "\ud800", "\x00" * 5000])
def test_an_error_is_one_printable_line_whatever_it_quotes(text: str) -> None:
    message = str(InputError(f"a.tsv:1: {text}"))
    assert message.isprintable() and message.startswith("a.tsv:1: ") and len(message) <= LONGEST


@pytest.mark.parametrize("line", ["dog    ", "dog 1 2   ", "dog 1  3"])
def test_spaces_at_the_end_are_no_numbers(line: str, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(f"the 1 2 3\na 1 2 3\n{line}\n")
    with pytest.raises(InputError, match=r"v.txt:3: (expected a word and 3 numbers|'dog' is followed by something)"):
        read_vectors(tmp_path / "v.txt", {"dog"})


def test_words_that_are_no_characters_are_refused(tmp_path: Path) -> None:
    words = np.array([0x7FFFFFFF], dtype=np.uint32).view("<U1")
    np.savez(tmp_path / "v.npz", words=words, vectors=np.ones((1, 3)))
    with pytest.raises(InputError, match=r"v.npz: words holds something that is not a character"):
        read_vectors(tmp_path / "v.npz", {"a"})


def test_a_genre_that_is_no_text_is_refused_and_half_a_character_is_replaced(tmp_path: Path) -> None:
    row = {"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row | {"genre": ["x"]}))
    with pytest.raises(InputError, match=r"a.jsonl:1: genre should be a string, got list"):
        list(read_pairs(tmp_path / "a.jsonl"))
    (tmp_path / "a.jsonl").write_text(json.dumps(row | {"genre": "x\ud800", "pairID": 7}))
    (pair,) = read_pairs(tmp_path / "a.jsonl")
    assert (pair.phenomenon, pair.pair_id) == ("x?", "7")


def test_a_phenomenon_is_printed_as_it_is_written(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    hostile_commands.evaluate_named(tmp_path, "[/b]")
    written = json.loads((tmp_path / "run" / "evaluation-..x.json").read_text())
    assert written["test"]["per_phenomenon"].keys() == {"[/b]"}


def test_a_token_has_an_end(tmp_path: Path) -> None:
    """Words are hashed as rows of one array, which is as wide as the longest of them."""
    (tmp_path / "a.tsv").write_text(HEADER + f"neutral\t{'x' * 1000}\tb\n")
    corpus = Corpus.from_pairs(read_pairs(tmp_path / "a.tsv"), "a")
    assert len(Lexicon.random(["a"], 3).extended(corpus.words)) == 3
    (tmp_path / "a.tsv").write_text(HEADER + f"neutral\t{'x' * 1001}\tb\n")
    with pytest.raises(InputError, match=r"a.tsv:2: the premise has a token of more than 1,000 characters"):
        list(read_pairs(tmp_path / "a.tsv"))


def test_a_long_sentence_makes_no_large_figure(tmp_path: Path) -> None:
    words = ["word" * 100] * 1000
    plot_alignment(torch.rand(1000, 1000), words, words, "", tmp_path / "a.png")
    header = (tmp_path / "a.png").read_bytes()[16:24]
    assert all(0 < int.from_bytes(side, "big") < 4000 for side in (header[:4], header[4:]))  # pixels


def test_a_cache_of_another_content_is_not_read(tmp_path: Path) -> None:
    for name, label in (("a", "neutral"), ("b", "entailment")):
        (tmp_path / f"{name}.tsv").write_text(HEADER + f"{label}\ta b\tc\n")
    fresh = open_corpus(tmp_path / "a.tsv", tmp_path / "cache")
    (cached,) = (tmp_path / "cache").iterdir()
    content = cached.read_bytes()
    for place in range(len(content) - 60, len(content), 7):
        cached.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        again = open_corpus(tmp_path / "a.tsv", tmp_path / "cache")
        assert (again.digest, again.words, again.labels) == (fresh.digest, ["a", "b", "c"], ("neutral",))
    open_corpus(tmp_path / "b.tsv", tmp_path / "other")
    cached.write_bytes(next((tmp_path / "other").iterdir()).read_bytes())
    assert open_corpus(tmp_path / "a.tsv", tmp_path / "cache").labels == ("neutral",)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("premise.tokens", lambda x: x + 9),
        ("premise.tokens", lambda x: x - 9),
        ("premise.tokens", lambda x: x[:-1]),
        ("hypothesis.offsets", lambda x: x[:-1]),
        ("hypothesis.offsets", lambda x: x.flip(0)),
        ("hypothesis.offsets", lambda x: x.double()),
        ("label", lambda x: x + 1),
        ("phenomenon", lambda x: x.repeat(2)),
    ],
)
def test_a_forged_cache_is_made_again(name: str, change: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(HEADER + "neutral\ta b\tc d e\nneutral\tb\tb a\n")
    fresh = open_corpus(tmp_path / "a.tsv", tmp_path / "cache")
    (cached,) = (tmp_path / "cache").iterdir()
    tensors, note = load_tensors(cached)
    save_tensors(cached, tensors | {name: change(tensors[name])}, note)
    again = open_corpus(tmp_path / "a.tsv", tmp_path / "cache")
    for side in ("premise", "hypothesis"):
        assert getattr(again, side).tokens.tolist() == getattr(fresh, side).tokens.tolist()
        assert getattr(again, side).offsets.tolist() == getattr(fresh, side).offsets.tolist()
    assert (again.label.tolist(), again.phenomenon.tolist()) == (fresh.label.tolist(), fresh.phenomenon.tolist())


@pytest.mark.parametrize(
    "changes",
    [
        *({"epoch": -1}, {"epoch": "1"}, {"epoch": True}, {"epoch": 10**12}, {"step": 1.5}, {"loss": float("nan")}),
        *({"loss": 10**400}, {"seconds": 0.0}, {"best_epoch": 1}, {"history": []}, {"history": [{"epoch": 1}]}),
        *({"history": [[1, 2, 3]]}, {"more": 1}),
    ],
)
def test_a_progress_that_no_training_makes_is_refused(changes: dict[str, object]) -> None:
    progress = {"epoch": 1, "seconds": 1.0, "best_epoch": 0, "history": [{"epoch": 1, "loss": 0.5, "dev": 0.5}]}
    assert TrainingState.read(progress, Path("c")).epoch == 1
    assert TrainingState.read(asdict(TrainingState()), Path("c")) == TrainingState()
    with pytest.raises(InputError, match="c: not a checkpoint of this run"):
        TrainingState.read(progress | changes, Path("c"))


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_checkpoint_that_makes_no_step_is_refused(kind: str, tmp_path: Path) -> None:
    """The checksum fits: what is wrong is a shape, a name, a parameter."""
    layer = nn.Linear(3, 5)
    optimizer = OPTIMIZERS[kind](layer)
    layer(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    save_checkpoint(tmp_path / "c", layer, optimizer, asdict(TrainingState()))
    load_state(OPTIMIZERS[kind])(tmp_path / "c")
    tensors, note = load_tensors(tmp_path / "c")
    part = "sum" if kind == "adagrad" else "exp_avg"
    name = f"optimizer.0.{part}"
    for change in (
        {name: torch.zeros(3)},
        {name: torch.zeros(5, 3, dtype=torch.int32)},
        {"optimizer.0.step": torch.ones(2)},
        {f"optimizer.7.{part}": torch.zeros(5, 3)},
        {"optimizer.0.momentum": torch.zeros(5, 3)},
        {"model.weight": torch.zeros(5, 3, dtype=torch.complex64)},
        {name: torch.zeros(5, 3).to(torch.float8_e4m3fn)},
    ):
        save_tensors(tmp_path / "c", tensors | change, note)
        with pytest.raises(InputError, match="c: not a checkpoint of this run"):
            load_checkpoint(tmp_path / "c", layer, OPTIMIZERS[kind](layer))


def test_a_checkpoint_whose_average_is_not_one_of_these_weights_is_refused(tmp_path: Path) -> None:
    layer = nn.Linear(3, 5)
    optimizer, average = OPTIMIZERS["adam"](layer), WeightAverage(layer, 0.9)
    average.update()
    save_checkpoint(tmp_path / "c", layer, optimizer, {}, average=average)
    load_checkpoint(tmp_path / "c", layer, optimizer, average)
    tensors, note = load_tensors(tmp_path / "c")
    for change in (
        {"average.module.0": torch.zeros(3)},
        {"average.module.0": torch.full((5, 3), torch.nan)},
        {"average.module.7": torch.zeros(5, 3)},
        {"average.n_averaged": torch.tensor(-10)},
        {"average.n_averaged": torch.tensor([1, 2])},
        {"average.n_averaged": torch.tensor(1.0)},
    ):
        save_tensors(tmp_path / "c", tensors | change, note)
        with pytest.raises(InputError, match="c: not a checkpoint of this run"):
            load_checkpoint(tmp_path / "c", layer, optimizer, average)
    save_checkpoint(tmp_path / "c", layer, optimizer, {})
    with pytest.raises(InputError, match="c: not a checkpoint of this run"):
        load_checkpoint(tmp_path / "c", layer, optimizer, average)


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    lexicon = make_run(tmp_path / "run")
    run = Run(tmp_path / "run")
    tensors, _ = load_tensors(run.weights)
    name = "projection.weight"
    for wrong, problem in (
        (torch.full_like(tensors[name], torch.nan), "has a number that is not finite"),
        (tensors[name].double() + 1e300, "has a number that is not finite"),
        (tensors[name].to(torch.complex64), "is torch.complex64, expected floating point"),
        (tensors[name].to(torch.float8_e4m3fn), "is torch.float8_e4m3fn, expected floating point"),
    ):
        save_tensors(run.weights, tensors | {name: wrong})
        with pytest.raises(InputError, match=rf"model.safetensors: not the weights .*projection.weight {problem}"):
            restore(SCRIPT, run, lexicon)


@pytest.mark.parametrize(
    "change",
    [
        *({"labels": ["neutral"]}, {"labels": [1, 2]}, {"labels": ["entailment", "neutral"]}, {"script": 1}),
        *({"model": []}, {"config": []}),
        *({"model": {name: value}} for name, value in (("hidden_size", 10**30), ("hidden_size", 10**400))),
        *({"model": {name: value}} for name, value in (("depth", 1), ("glorot", "no"), ("hidden_size", None))),
    ],
)
def test_configurations_of_no_run_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    lexicon = make_run(tmp_path / "run")
    run = Run(tmp_path / "run")
    restore(SCRIPT, run, lexicon)
    config = json.loads(run.config.read_text())
    if change.get("model"):
        change = {"model": config["model"] | change["model"]}
    run.config.write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=r"config\.json"):
        restore(SCRIPT, run, lexicon)


def restored(script: Any, config: Any, run: Run, lexicon: Lexicon) -> nn.Module:
    described = {"script": script.name, "config": type(config).__name__, "model": asdict(config)}
    run.config.write_text(json.dumps(described | {"labels": ["entailment", "neutral", "contradiction"]}))
    return restore(script, run, lexicon)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_model_comes_back_the_same_and_is_no_larger_than_its_weights(name: str, tmp_path: Path) -> None:
    script, lexicon = importlib.import_module(name).SCRIPT, Lexicon(["a", "dog"], torch.randn(2, 6), tags=["NN"])
    run = Run(tmp_path)
    for kind in script.models:
        model = build(script, kind(), lexicon)
        save_weights(run.weights, model)
        again = restored(script, kind(), run, lexicon).state_dict()
        assert again.keys() == model.state_dict().keys()
        assert all(torch.equal(again[key], tensor) for key, tensor in model.state_dict().items())
        save_weights(run.weights, nn.Linear(3, 5))
        with pytest.raises(InputError, match=r"config.json: the model cannot be built: it is larger than"):
            restore(script, run, lexicon)


@pytest.mark.parametrize("layers", [10**9, 10**30])
def test_a_model_of_layers_without_end_is_refused(layers: int, tmp_path: Path) -> None:
    script, lexicon = importlib.import_module("lstm_attention").SCRIPT, Lexicon(["a"], torch.randn(1, 6))
    kind = script.config_named("LSTMBaselineConfig")
    save_weights(Run(tmp_path).weights, build(script, kind(), lexicon))
    with pytest.raises(InputError, match=r"config.json: the model cannot be built: it is larger than"):
        restored(script, kind(num_layers=layers), Run(tmp_path), lexicon)


def test_a_table_that_a_model_computes_has_a_bound_too(tmp_path: Path) -> None:
    """Of character n-grams: 65,536 vectors, which are not among the weights."""
    script, lexicon = importlib.import_module("gaussian_transformer").SCRIPT, Lexicon(["a"], torch.randn(1, 6))
    small = GaussianTransformerConfig()
    save_weights(Run(tmp_path).weights, build(script, small, lexicon))
    large, told = replace(small, char_size=10_000), "the model cannot be built: it would compute tables of more than"
    with pytest.raises(InputError, match=f"config.json: {told}"):
        restored(script, large, Run(tmp_path), lexicon)
    with pytest.raises(InputError, match=f"^{told}"):
        require_restorable(script, large, lexicon)  # nor is it trained


def test_word_vectors_are_no_tables_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many words the corpora have."""
    monkeypatch.setattr(models, "_TABLES", 1_000)
    lexicon = Lexicon([str(k) for k in range(100)], torch.zeros(100, 20))
    require_restorable(SCRIPT, next(iter(SCRIPT.models))(), lexicon)
    assert lexicon.vectors.numel() > models._TABLES


def test_metrics_of_other_types_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(METRICS))
    assert read_metrics(path)["parameters"] == 7 and held_metrics(path)[0] == "test"
    wrong = ({"accuracy": "x"}, {"per_class": []}, {"pairs": None}, {"confusion": 1}, {"accuracy": float("nan")})
    for change in (*wrong, {"pairs": 10**400}):
        path.write_text(json.dumps(METRICS | dict.fromkeys(("test", "dev"), MEASURED | change)))
        for read in (read_metrics, held_metrics):
            with pytest.raises(InputError, match=r"metrics.json: holds no metrics of a run"):
                read(path)
    for figure in ("parameters", "pairs_per_second"):
        path.write_text(json.dumps(METRICS | {figure: 0}))
        with pytest.raises(InputError, match=r"metrics.json: holds no metrics of a run"):
            read_metrics(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("alphabet", ["ab"]),
            ("alphabet", ["b", "a"]),
            ("unit", 1),
            ("words", ["a", 1]),
            ("words", ["a", "b" * 1001]),
        ),
        *(("tags", [None]), ("vectors", torch.full((2, 3), torch.inf)), ("hashed", torch.full((100, 3), torch.nan))),
        *(("vectors", torch.ones(2, 3).to(torch.float8_e5m2)), ("hashed", torch.ones(100, 3, dtype=torch.complex64))),
    ],
)
def test_a_lexicon_of_other_values_is_refused(name: str, value: object, tmp_path: Path) -> None:
    lexicon = Lexicon(["a", "b"], torch.ones(2, 3))
    setattr(lexicon, name, value)
    lexicon.save(tmp_path / "l")
    with pytest.raises(InputError, match=r"l: not a lexicon"):
        Lexicon.load(tmp_path / "l")


def test_the_full_attack_found_nothing() -> None:
    held = json.loads(hostile.RESULT.read_text())
    assert sum(tally["inputs"] for tally in held["readers"].values()) >= 100_000
    assert not [failure for tally in held["readers"].values() for failure in tally["failures"]]
    assert not held["command_lines"]["failures"]
    assert all(bomb["grown"] < held["memory_bound"] and bomb["outcome"] != "failed" for bomb in held["bombs"])
    assert all(row["kept"] for row in held["escapes"]) and not any(row["loaded"] for row in held["pickles"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--only", "none"], "argument --only: invalid choice: 'none'"),
        (["--only", "weights", "--inputs", "70"], "the others were attacked with inputs 120000, here it is 70"),
    ],
)
def test_one_reader_is_attacked_again_as_all_were(
    options: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    held = json.loads(hostile.RESULT.read_text())
    kept = tmp_path / "hostile.json"
    kept.write_text(json.dumps(held | hostile.conditions(hostile.FULL_SIZE)))
    before = kept.read_text()
    monkeypatch.setattr(hostile, "RESULT", kept)
    monkeypatch.setattr("sys.argv", ["hostile", *options])
    with pytest.raises(SystemExit):
        hostile.main()
    assert told in capsys.readouterr().err and kept.read_text() == before


def test_the_page_shows_what_was_found() -> None:
    held = json.loads(hostile.RESULT.read_text())
    held["readers"]["weights"] |= {"refused": 0, "failures": {"KeyError: 'x'": 3}}
    text = hostile.page(held)
    assert "- weights: KeyError: 'x'" in text and f"| {held['readers']['weights']['inputs']:,} |" in text
