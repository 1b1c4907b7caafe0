"""The command line as a user meets it: evaluate and predict from the folder alone, one clear line for bad input."""

import ast
import csv
import gzip
import inspect
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

import decomposable_attention
from decomposable_attention import DecomposableAttention, DecomposableAttentionConfig
from nli_common import lexicon
from nli_common.commands import _table_command, _train_command, main
from nli_common.corpora import read_pairs
from nli_common.denormals import are_flushed
from nli_common.errors import InputError
from nli_common.evaluating import evaluate_runs
from nli_common.explaining import explain_pair
from nli_common.inputs import Data, default_cache, fingerprint
from nli_common.lexicon import Lexicon
from nli_common.predicting import predict_file, predict_pair, predict_texts, prepare_pair
from nli_common.recipe import Recipe
from nli_common.runs import Run
from nli_common.vectors import read_vectors
from runs import ROOT, SCRIPT, environment, run_script, write_corpora

FAST = ["--epochs", "1", "--hidden-size", "8", "--optimizer", "adam", "--lr", "0.05", "--batch-size", "32"]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_corpora(tmp_path_factory.mktemp("corpora"))


@pytest.fixture(scope="module")
def run(corpora: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    np.savez(folder / "v.npz", words=np.array(["dog", "cat", "zebra"]), vectors=np.eye(3, 20, dtype=np.float16))
    output = folder / "run"
    done = run_script("train", *corpora, *FAST, "--vectors", folder / "v.npz", "--output", output)
    assert done.returncode == 0, done.stderr
    return output


def test_predict_needs_the_folder_alone_and_knows_new_words(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("config.json", "lexicon.safetensors", "model.safetensors"):
        (moved / name).write_bytes((run / name).read_bytes())
    figure = tmp_path / "alignment.png"
    premise, hypothesis = "A flabbergasting quokka isn't juggling!", "Nobody yodels in Zürich."
    options = ("--premise", premise, "--hypothesis", hypothesis, "--figure", figure)
    done = run_script("predict", "--run", moved, *options)
    assert (done.returncode, done.stderr) == (0, "")
    shares = dict(line.split() for line in done.stdout.splitlines())
    assert set(shares) == {"entailment", "neutral", "contradiction"}
    assert sum(map(float, shares.values())) == pytest.approx(1, abs=1e-3)
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert run_script("predict", "--run", moved, *options).stdout == done.stdout


def test_trained_vectors_are_part_of_a_run_and_new_words_have_those_of_the_lexicon(
    corpora: list[str], tmp_path: Path
) -> None:
    esim, folder = SCRIPT.with_name("esim.py"), tmp_path / "run"
    options = ["--hidden-size", "4", "--epochs", "1", "--batch-size", "16", "--train-vectors", "--output", folder]
    done = run_script("train", *options, *corpora, script=esim)
    assert done.returncode == 0, done.stderr
    vectors = load_file(folder / "model.safetensors")["words.vectors"]
    lexicon = Lexicon.load(folder / "lexicon.safetensors")
    assert vectors.shape == lexicon.vectors.shape and (vectors - lexicon.vectors).abs().max() > 1e-4
    test = corpora[corpora.index("--test") + 1]
    done = run_script("evaluate", "--run", folder, "--test", test, "--cache", corpora[1], script=esim)
    assert done.returncode == 0, done.stderr
    again, metrics = (
        json.loads((folder / name).read_text())["test"] for name in ("evaluation-test.json", "metrics.json")
    )
    assert again == metrics
    done = run_script("predict", "--run", folder, "--premise", "a zyx dog", "--hypothesis", "a qqq", script=esim)
    assert done.returncode == 0 and "entailment" in done.stdout, done.stderr


def test_predict_names_the_classes_as_evaluate_does(run: Path, corpora: list[str], tmp_path: Path) -> None:
    pair = ("--premise", "the dog is not sleeping", "--hypothesis", "the dog is sleeping")
    shown = [line.split()[0] for line in run_script("predict", "--run", run, *pair).stdout.splitlines()]
    for label in shown:
        (tmp_path / "one.tsv").write_text(f"gold_label\tsentence1\tsentence2\n{label}\t{pair[1]}\t{pair[3]}\n")
        told = ("--test", tmp_path / "one.tsv", "--cache", corpora[1], "--output", tmp_path / label)
        assert run_script("evaluate", "--run", run, *told).returncode == 0
        right = json.loads((tmp_path / label).read_text())["test"]["accuracy"]
        assert right == (label == shown[0]), "the most probable stands first"


def predicted(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_a_tab_in_a_field_does_not_shift_the_columns(run: Path, tmp_path: Path) -> None:
    pairs, output = tmp_path / "pairs.jsonl", tmp_path / "out.tsv"
    pairs.write_text(json.dumps({"sentence1": "a", "sentence2": "b", "pairID": "p\t1\n2"}))
    predict_file(decomposable_attention.SCRIPT, Run(run), pairs, None, output)
    (row,) = predicted(output)
    assert (row["pairID"], row["sentence1"], row["sentence2"]) == ("p 1 2", "a", "b")


def test_predict_takes_a_file_of_pairs_with_and_without_labels(run: Path, tmp_path: Path) -> None:
    sentences = [("the dog " * (n % 7) + 'is a "zebra"', "a quokka " * (1 + n % 5) + "runs") for n in range(300)]
    labels = ["-", "neutral", "entailment"]
    rows = [f"{labels[n % 3]}\t{premise}\t{hypothesis}\tp{n}" for n, (premise, hypothesis) in enumerate(sentences)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["gold_label\tsentence1\tsentence2\tpairID", *rows]) + "\n")
    output = tmp_path / "out" / "predictions.tsv"
    options = ("--run", run, "--pairs", tmp_path / "pairs.tsv", "--output", output)
    done = run_script("predict", *options)
    assert done.returncode == 0, done.stderr
    table = predicted(output)
    classes = ["entailment", "neutral", "contradiction"]
    assert [row["pairID"] for row in table] == [f"p{n}" for n in range(300)]
    assert [(row["sentence1"], row["sentence2"]) for row in table] == [(a.strip(), b.strip()) for a, b in sentences]
    again = [(" ".join(pair.premise), " ".join(pair.hypothesis)) for pair in read_pairs(output)]
    assert again == [(a.strip(), b.strip()) for a, b in sentences], "the scripts read what they write"
    assert [row["gold_label"] for row in table] == [labels[n % 3] for n in range(300)]
    for row in table:
        shares = {name: float(row[name]) for name in classes}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5) and row["prediction"] == max(shares, key=shares.get)
    right = sum(row["prediction"] == row["gold_label"] for row in table)
    assert done.stdout == f"300 pairs; {right} of 200 labelled ones are right: {output}\n"
    alone = run_script(
        "predict", "--run", run, "--premise", "the dog the dog is a zebra", "--hypothesis", "a quokka runs"
    )
    (tmp_path / "pairs.tsv").write_text(
        "gold_label\tsentence1\tsentence2\n-\tthe dog the dog is a zebra\ta quokka runs\n"
    )
    done = run_script("predict", *options, "--vectors", run.parent / "v.npz")
    assert done.stdout == f"1 pair: {output}\n", "no label, nothing right"
    done = run_script("predict", *options)
    shares = {name: f"{float(predicted(output)[0][name]):.4f}" for name in classes}
    assert dict(line.split() for line in alone.stdout.splitlines()) == shares


def test_texts_are_predicted_in_their_order_as_each_is_alone(run: Path) -> None:
    script = decomposable_attention.SCRIPT
    texts = [("A dog isn't sleeping here.", "zebras"), ("a", "b"), ("zebras graze", "a dog"), ("a dog", "a dog a dog")]
    labels, shares = predict_texts(script, Run(run), texts)
    for (premise, hypothesis), row in zip(texts, shares, strict=True):
        pair = prepare_pair(script, Run(run), premise, hypothesis)
        with torch.inference_mode():
            assert_close(row, pair.model(pair.premise, pair.hypothesis).softmax(-1)[0])
        assert labels == pair.labels
    for pairs, told in (
        ([], "the pairs: expected pairs, found none"),
        ([("a", "b"), ("a", " ")], "the hypothesis of pair 2: expected a sentence, got no word in ' '"),
    ):
        with pytest.raises(InputError, match=told):
            predict_texts(script, Run(run), pairs)


def test_one_pair_that_does_not_fit_is_told_in_one_line(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def wants_it_all(*sentences: object) -> None:
        torch.empty(1 << 60)

    monkeypatch.setattr(DecomposableAttention, "forward", wants_it_all)
    for command, place in ((predict_pair, None), (explain_pair, tmp_path / "page.html")):
        with pytest.raises(InputError, match="out of memory: a pair, the longest sentences of 2 and 1 words; "):
            command(decomposable_attention.SCRIPT, Run(run), "a dog", "a", place)
        with pytest.raises(InputError, match="--hypothesis: has a token of more than 1,000 characters"):
            command(decomposable_attention.SCRIPT, Run(run), "a dog", 1001 * "a", place)


def test_trained_vectors_are_no_corpus_of_ones_own() -> None:
    """The paper's recipe goes with ``--train``, not with every option that begins so."""
    script = SCRIPT.with_name("esim.py")
    helps = [run_script("train", *words, "--help", script=script).stdout for words in ((), ("--train-vectors",))]
    own = run_script("train", "--train", "x.tsv", "--help", script=script).stdout

    def epochs(text: str) -> str:
        return next(line for line in text.splitlines() if "--epochs" in line)

    assert epochs(helps[0]) == epochs(helps[1]) != epochs(own)


def test_vectors_are_read_once_for_all_runs(
    run: Path, corpora: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    vectors = run.parent / "v.npz"

    def counted(path: Path, words: Collection[str]) -> Mapping[str, Any]:
        read.append(path)
        return read_vectors(path, words)

    monkeypatch.setattr(lexicon, "read_vectors", counted)
    (tmp_path / "x.tsv").write_text("gold_label\tsentence1\tsentence2\nneutral\ta zebra\ta quokka\n")
    runs = [Run(run), *(Run(shutil.copytree(run, tmp_path / name)) for name in ("second", "third"))]
    test, output = tmp_path / "x.tsv", tmp_path / "e.json"
    evaluate_runs(decomposable_attention.SCRIPT, runs, test, vectors, None, tmp_path, output)
    assert read == [vectors] and json.loads((tmp_path / "e.json").read_text())["test"]["pairs"] == 1


def test_a_page_goes_to_a_folder_whose_name_is_no_text(run: Path, tmp_path: Path) -> None:
    output = tmp_path / os.fsdecode(b"caf\xe9.html")
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8:strict"}
    command = ["explain", "--run", run, "--premise", "a dog", "--hypothesis", "a cat", "--output", output]
    done = subprocess.run(
        [sys.executable, SCRIPT, *command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.endswith("caf\\udce9.html\n"), done.stderr


def test_a_user_without_a_home_has_a_cache_among_the_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache() == Path.home() / ".cache" / "nlilayers"
    monkeypatch.setattr(Path, "home", nowhere)
    assert default_cache() == Path(tempfile.gettempdir()) / "nlilayers"
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    assert default_cache() == Path("elsewhere") / "nlilayers"


def test_predict_refuses_what_is_neither_a_pair_nor_a_file(run: Path, tmp_path: Path) -> None:
    pairs, output = tmp_path / "pairs.tsv", tmp_path / "out.tsv"
    pairs.write_text("gold_label\tsentence1\tsentence2\n-\ta\tb\n-\ta\t \n")
    one, many = ("--premise", "a", "--hypothesis", "b"), ("--pairs", pairs, "--output", output)
    for options in ((), one[:2], many[2:], (*one, *many), (*many, "--figure", tmp_path / "f.png")):
        said = one_line(run_script("predict", "--run", run, *options))
        assert "expected either --premise and --hypothesis" in said and "or --pairs, with --output" in said
    refused = one_line(run_script("predict", "--run", run, *many)).strip()
    assert refused == f"error: {pairs}:3: the hypothesis is empty, expected at least one token"
    refused = one_line(run_script("predict", "--run", run, "--pairs", pairs, "--output", pairs))
    assert "expected a file other than that of --pairs" in refused and pairs.read_text().endswith("\t \n")
    options = ("--run", run, "--pairs", pairs, "--vectors", output, "--output", output)
    assert "expected a file other than that of --vectors" in one_line(run_script("predict", *options))
    for path, what in ((tmp_path, "a folder"), (Path("-"), "a dash")):
        said = one_line(run_script("predict", "--run", run, "--pairs", pairs, "--output", path))
        assert said == f"error: --output {path}: expected the name of a file, got {what}\n"
    pairs.write_text("gold_label\tsentence1\tsentence2\nduplicate\ta\tb\n")
    said = one_line(run_script("predict", "--run", run, *many))
    assert "has the label 'duplicate', the model's are entailment" in said
    pairs.write_text("gold_label\tsentence1\tsentence2\n")
    assert "expected pairs, found none" in one_line(run_script("predict", "--run", run, *many))
    assert not output.exists()


def test_any_word_is_a_sentence(run: Path) -> None:
    done = run_script("predict", "--run", run, "--premise", "None", "--hypothesis", "None")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3


def test_predict_and_explain_replace_nothing_but_what_they_write(run: Path, tmp_path: Path) -> None:
    pairs, script = tmp_path / "pairs.tsv", decomposable_attention.SCRIPT
    pairs.write_text("sentence1\tsentence2\na dog\ta cat\n")

    def predict(path: Path) -> None:
        predict_file(script, Run(run), pairs, None, path)

    def explain(path: Path) -> None:
        explain_pair(script, Run(run), "a dog", "a cat", path)

    for command, name in (
        (predict, "out.tsv"),
        (predict, "out.tsv.gz"),
        (predict, "out.jsonl"),
        (predict, "out.jsonl.gz"),
        (explain, "out.html"),
    ):
        output = tmp_path / name
        for held in (b"gold_label\tsentence1\tsentence2\nneutral\ta\tb\n", b'{"pairID": "1"}\n', b"", b"\xff"):
            output.write_bytes(held)
            with pytest.raises(InputError, match=r"holds something other than what (predict|explain) writes"):
                command(output)
            assert output.read_bytes() == held
        output.unlink()
        for _ in range(2):
            command(output)
        assert output.stat().st_size > 50


OWN = ("config.json", "lexicon.safetensors", "model.safetensors", "metrics.json", "confusion.png", ".lock")


@pytest.mark.parametrize("name", OWN)
def test_what_training_wrote_is_never_replaced(name: str, run: Path, tmp_path: Path) -> None:
    held = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    place, link, pairs = run / name, tmp_path / "link", tmp_path / "pairs.tsv"
    other = shutil.copytree(run, tmp_path / "another run")
    link.symlink_to(place)
    pairs.write_text("gold_label\tsentence1\tsentence2\nneutral\ta\tb\n")
    commands = (
        lambda path: predict_pair(decomposable_attention.SCRIPT, Run(run), "a", "b", path),
        lambda path: predict_file(decomposable_attention.SCRIPT, Run(run), pairs, None, path),
        lambda path: explain_pair(decomposable_attention.SCRIPT, Run(run), "a", "b", path),
        lambda path: evaluate_runs(
            decomposable_attention.SCRIPT, [Run(run)], pairs, None, None, tmp_path / "cache", path
        ),
    )
    for command in commands:
        for path in (place, link, run / ".." / run.name / name, other / name):
            with pytest.raises(InputError, match="expected a file other than a run's own, which it would replace"):
                command(path)
    for folder in (run, other):
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == held


def test_evaluate_replaces_nothing_but_figures(run: Path, tmp_path: Path) -> None:
    test, output = tmp_path / "test.tsv", tmp_path / "output"
    test.write_text("gold_label\tsentence1\tsentence2\nneutral\ta\tb\n")
    given = (decomposable_attention.SCRIPT, [Run(run)], test, None, None, tmp_path / "cache", output)
    for text in ("notes of mine", "[1]", '{"mine": 1}', (run / "metrics.json").read_text()):
        output.write_text(text)
        with pytest.raises(InputError, match="output: holds something other than what evaluate writes"):
            evaluate_runs(*given)
        assert output.read_text() == text
    output.unlink()
    for _ in range(2):
        evaluate_runs(*given)
        assert json.loads(output.read_text())["test"]["pairs"] == 1


def test_evaluate_replaces_no_file_that_it_reads(run: Path, tmp_path: Path) -> None:
    test, categories = tmp_path / "test.tsv", tmp_path / "categories.txt"
    for path in (test, categories):
        path.write_text("gold_label\tsentence1\tsentence2\tpairID\nneutral\ta\tb\t1\n")
    vectors = run.parent / "v.npz"
    given = ("--test", test, "--vectors", vectors, "--categories", categories, "--cache", tmp_path / "cache")
    for name, path in (("test", test), ("vectors", vectors), ("categories", categories)):
        held = path.read_bytes()
        said = one_line(run_script("evaluate", "--run", run, *given, "--output", path))
        assert f"--output {path}: expected a file other than that of --{name}, which it would replace" in said
        assert path.read_bytes() == held


def test_a_name_says_how_predictions_and_figures_are_written(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, script = tmp_path / "pairs.tsv", decomposable_attention.SCRIPT
    pairs.write_text('gold_label\tsentence1\tsentence2\tpairID\nneutral\ta\tb\t7\n-\tc\t"d"\t\u00e9\n')
    for name in ("out.tsv", "out.tsv.gz", "out.jsonl", "out.jsonl.gz"):
        predict_file(script, Run(run), pairs, None, tmp_path / name)
    for name in ("out.tsv", "out.jsonl"):
        assert gzip.decompress((tmp_path / f"{name}.gz").read_bytes()) == (tmp_path / name).read_bytes()
    objects = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    for told, row in zip(objects, predicted(tmp_path / "out.tsv"), strict=True):
        assert {key: f"{x:.6f}" if isinstance(x, float) else x for key, x in told.items()} == row
    assert list(read_pairs(tmp_path / "out.jsonl")) == list(read_pairs(pairs)), "the scripts read what they write"
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml"), ("PNG", b"\x89PNG")):
        predict_pair(script, Run(run), "a", "b", tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").read_bytes().startswith(start)
    capsys.readouterr()
    with pytest.raises(InputError, match=r"figure.xyz: expected a name that ends in .png, .pdf, .svg"):
        predict_pair(script, Run(run), "a", "b", tmp_path / "figure.xyz")
    for name in ("out.csv", "out.json"):
        with pytest.raises(
            InputError, match=rf"--output .*{name}: expected a name in .tsv or .jsonl, got one in .(csv|json)"
        ):
            predict_file(script, Run(run), pairs, None, tmp_path / name)
    assert capsys.readouterr().out == "", "nothing is predicted first"


def test_evaluate_repeats_the_test_figures_and_takes_other_files(run: Path, corpora: list[str], tmp_path: Path) -> None:
    cache, test = corpora[1], corpora[-1]
    done = run_script("evaluate", "--run", run, "--test", test, "--cache", cache)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((run / "metrics.json").read_text())["test"]
    again = json.loads((run / "evaluation-test.json").read_text())["test"]
    assert again == metrics
    told = json.loads((run / "evaluation-test.json").read_text())
    assert told["finished"] and told["vectors"] is None and told["weights"] == [fingerprint(Run(run).weights)]
    other = tmp_path / "other.tsv"
    other.write_text("gold_label\tsentence1\tsentence2\nneutral\ta zebra Zebra\ta quokka SLEEPING\n-\ta\tb\n")
    done = run_script("evaluate", "--run", run, "--test", other, "--cache", cache, "--vectors", run.parent / "v.npz")
    assert done.returncode == 0 and "3 of 5 words are new and hashed; 1 pair without a label dropped" in done.stdout
    told = json.loads((run / "evaluation-other.json").read_text())
    assert told["vectors"] == fingerprint(run.parent / "v.npz")


def test_figures_in_a_file_have_their_whole_names(run: Path, corpora: list[str], tmp_path: Path) -> None:
    names = [f"{'monotone:' * 12}{end}" for end in ("up", "down")]
    test = tmp_path / "monotone.tsv"
    rows = "".join(f"neutral\ta\tb\t{name}\n" for name in names)
    test.write_text(f"gold_label\tsentence1\tsentence2\tphenomenon\n{rows}")
    done = run_script("evaluate", "--run", run, "--test", test, "--cache", corpora[1])
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[-3:-1]] == names
    assert lines[-1] == f"written to {run / 'evaluation-monotone.json'}"


def test_predictions_without_a_file_are_printed(run: Path, tmp_path: Path) -> None:
    pairs, output = tmp_path / "pairs.tsv", tmp_path / "out.tsv"
    pairs.write_text("gold_label\tsentence1\tsentence2\nneutral\tun caf\u00e9\ta b\n-\ta\tb\n", encoding="utf-8")
    told = run_script("predict", "--run", run, "--pairs", pairs, "--output", output)
    printed = run_script("predict", "--run", run, "--pairs", pairs)
    assert printed.returncode == 0 and printed.stdout == output.read_text(encoding="utf-8")
    assert told.stdout.endswith(f"labelled ones are right: {output}\n")
    assert printed.stderr.splitlines()[-1] == "note: " + told.stdout.rpartition(":")[0]


def test_vectors_that_the_run_does_not_know_are_refused_or_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, missing, other = tmp_path / "a.tsv", tmp_path / "no.npz", tmp_path / "other.npz"
    pairs.write_text("gold_label\tsentence1\tsentence2\nneutral\ta dog\ta cat\n")
    np.savez(other, words=np.array(["quokka"]), vectors=np.ones((1, 20), dtype=np.float32))
    script, cache, output = decomposable_attention.SCRIPT, tmp_path / "cache", tmp_path / "e.json"
    random = Run(shutil.copytree(run, tmp_path / "random"))
    config = json.loads(random.config.read_text())
    random.config.write_text(json.dumps(config | {"data": config["data"] | {"vectors": {"random": 20}}}))
    commands = (
        lambda of, vectors: predict_file(script, of, pairs, vectors, None),
        lambda of, vectors: evaluate_runs(script, [of], pairs, vectors, None, cache, output),
    )
    told = "note: {} is not the file of vectors that training had"
    for command in commands:
        with pytest.raises(InputError, match=r"no.npz: no such file"):
            command(Run(run), missing)
        with pytest.raises(InputError, match=r"--vectors .*v.npz: the run's own are random, and no file's fit them"):
            command(random, run.parent / "v.npz")
        assert not capsys.readouterr().out, "nothing is computed before"
        command(Run(run), run.parent / "v.npz")
        assert "not the file" not in "".join(capsys.readouterr())
        command(Run(run), other)
        assert told.format(other) in "".join(capsys.readouterr()).replace("\n", " ")


def test_labels_that_are_not_the_models_are_told_with_the_way_on(run: Path, tmp_path: Path) -> None:
    jsonl = tmp_path / "a.jsonl"
    pair = {"sentence1": "a dog", "sentence2": "a cat"}
    for label, message in (
        ("undef", r"a.jsonl:1: unknown label 'undef', .*; without its labels the file can be predicted"),
        ("0", r"a.jsonl:1: unknown label '0', .*; without its labels the file can be predicted"),
        ("", r"a.jsonl:1: unknown label '', .*; without its labels the file can be predicted"),
        (0, r"a.jsonl:1: gold_label should be a string, got 0"),
        ("duplicate", r"a.jsonl: has the label 'duplicate', .*; without its labels the file can be predicted"),
    ):
        jsonl.write_text(json.dumps(pair | {"gold_label": label}))
        with pytest.raises(InputError, match=message):
            predict_file(decomposable_attention.SCRIPT, Run(run), jsonl, None, tmp_path / "out.tsv")
    jsonl.write_text(json.dumps(pair | {"gold_label": None}))
    predict_file(decomposable_attention.SCRIPT, Run(run), jsonl, None, tmp_path / "out.tsv")
    jsonl.write_text('{"premise": "a dog", "hypothesis": "a cat"}')
    with pytest.raises(InputError, match=r"a.jsonl:1: no column sentence1; there are premise, hypothesis"):
        predict_file(decomposable_attention.SCRIPT, Run(run), jsonl, None, tmp_path / "out.tsv")


def test_predict_takes_pairs_without_a_column_of_labels(run: Path, tmp_path: Path) -> None:
    tsv, jsonl, output = tmp_path / "a.tsv", tmp_path / "a.jsonl", tmp_path / "out.tsv"
    tsv.write_text("sentence1\tsentence2\na dog\ta cat\n")
    jsonl.write_text('{"sentence1": "a dog", "sentence2": "a cat"}\n')
    for pairs in (tsv, jsonl):
        predict_file(decomposable_attention.SCRIPT, Run(run), pairs, None, output)
        [row] = predicted(output)
        assert (row["gold_label"], row["sentence1"], row["sentence2"]) == ("-", "a dog", "a cat")
        with pytest.raises(InputError, match="no column gold_label"):
            list(read_pairs(pairs))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", "200"], "--pairs 200: changes nothing with --train"),
        (["--vector-size", "7"], "--vector-size 7: changes nothing with --vectors"),
        (["--min-lr", "0.1"], "--min-lr 0.1: changes nothing with --optimizer adam"),
        (["--max-distance", "3"], "--max-distance 3: changes nothing without --intra-attention"),
    ],
)
def test_options_that_would_change_nothing_are_refused(
    options: list[str], message: str, run: Path, corpora: list[str], tmp_path: Path
) -> None:
    given = ("train", *corpora, *FAST, "--vectors", run.parent / "v.npz", "--output", tmp_path / "run")
    assert one_line(run_script(*given, *options)).strip() == f"error: {message}"
    assert not (tmp_path / "run").exists()


def test_a_run_with_or_without_a_test_file_is_told_apart_by_it(run: Path, corpora: list[str], tmp_path: Path) -> None:
    given = ("train", *FAST, "--vectors", run.parent / "v.npz", "--output")
    assert corpora[-2] == "--test"
    untested = tmp_path / "run"
    assert run_script(*given, untested, *corpora[:-2]).returncode == 0
    added, dropped = run_script(*given, untested, *corpora), run_script(*given, run, *corpora[:-2])
    assert one_line(added).strip() == (
        f"error: --output {untested}: holds a run without --test; test it with evaluate --run {untested} --test FILE, "
        "or choose another folder"
    )
    assert one_line(dropped).strip() == f"error: --output {run}: holds a run with --test; choose another folder"
    beside = run_script(run, untested, script=SCRIPT.with_name("compare.py"))
    assert "note: not all of these runs were tested on the same pairs" in beside.stderr
    assert run_script(run, script=SCRIPT.with_name("compare.py")).stderr == ""


def test_a_run_of_each_device_is_read_on_it_and_on_the_cpu(device: str, corpora: list[str], tmp_path: Path) -> None:
    """Its LSTMs, too; on a GPU an accuracy may differ from the CPU's by the pair that rounding decides."""
    script, cache, test = ROOT / "examples" / "esim.py", corpora[1], corpora[-1]
    small = ("--hidden-size", "6", "--vector-size", "20", "--epochs", "2", "--lr", "0.01")
    done = run_script("train", *corpora, *small, "--output", tmp_path / "run", script=script, device=device)
    assert done.returncode == 0, done.stderr
    trained = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    for where in dict.fromkeys((device, "cpu")):
        output = tmp_path / f"{where}.json"
        read = ("--run", tmp_path / "run", "--test", test, "--cache", cache, "--output", output)
        done = run_script("evaluate", *read, script=script, device=where)
        assert done.returncode == 0, done.stderr
        found = json.loads(output.read_text())["test"]
        assert found == trained if where == device else abs(found["accuracy"] - trained["accuracy"]) < 1.5 / 60


def test_files_of_one_name_do_not_replace_each_others_figures(run: Path, corpora: list[str], tmp_path: Path) -> None:
    mine, cache, (first, second) = shutil.copytree(run, tmp_path / "run"), corpora[1], (tmp_path / "a", tmp_path / "b")
    for folder, label in ((first, "neutral"), (second, "entailment")):
        folder.mkdir()
        (folder / "x.tsv").write_text(f"gold_label\tsentence1\tsentence2\n{label}\ta\tb\n")
    evaluate = ("evaluate", "--run", mine, "--cache", cache, "--test")
    for _ in range(2):
        done = run_script(*evaluate, first / "x.tsv")
        assert done.returncode == 0 and "part-of-speech" not in done.stdout
    held = (mine / "evaluation-x.json").read_bytes()
    assert "evaluation-x.json: holds the figures of pairs other than those of" in one_line(
        run_script(*evaluate, second / "x.tsv")
    )
    assert (mine / "evaluation-x.json").read_bytes() == held
    done = run_script(*evaluate, second / "x.tsv", "--output", mine / "evaluation-x.json")
    assert done.returncode == 0 and (mine / "evaluation-x.json").read_bytes() != held
    untagged = ["--cache", cache, "--train", corpora[3], "--dev", second / "x.tsv"]
    done = run_script("train", *untagged, *FAST, "--output", tmp_path / "untagged")
    assert "dev           1 pairs, which have no part-of-speech tags" in done.stdout, done.stderr


@pytest.mark.parametrize("before", [False, True])
def test_a_command_takes_denormal_numbers_for_0_and_leaves_the_cpu_as_it_was(
    before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of training took up to six times as long where gradients had become as small."""
    seen: list[bool] = []

    def train(*_: object) -> None:
        seen.append(are_flushed())
        if len(seen) == 2:
            raise InputError("no file")

    monkeypatch.setattr("nli_common.commands.train_run", train)
    monkeypatch.setattr(sys, "argv", ["decomposable_attention.py", "train"])
    able = torch.set_flush_denormal(before)
    try:
        main(decomposable_attention.SCRIPT)
        assert are_flushed() == (before and able)
        with pytest.raises(SystemExit):
            main(decomposable_attention.SCRIPT)
        assert are_flushed() == (before and able)
    finally:
        torch.set_flush_denormal(False)
    assert seen == [able, able]


def test_several_runs_are_evaluated_as_an_ensemble(run: Path, corpora: list[str], tmp_path: Path) -> None:
    other = tmp_path / "other"
    vectors = run.parent / "v.npz"
    done = run_script("train", *corpora, *FAST, "--vectors", vectors, "--seed", "1", "--output", other)
    assert done.returncode == 0, done.stderr
    cache, test, file = corpora[1], corpora[-1], tmp_path / "ensemble.json"
    done = run_script("evaluate", "--run", run, other, "--test", test, "--cache", cache, "--output", file)
    assert done.returncode == 0, done.stderr
    assert json.loads(file.read_text())["test"]["pairs"] == 60
    copy = shutil.copytree(run, tmp_path / "copy")
    done = run_script("evaluate", "--run", run, copy, "--test", test, "--cache", cache, "--output", file)
    assert json.loads(file.read_text())["test"] == json.loads((run / "metrics.json").read_text())["test"]
    assert f"{run}: is named twice" in one_line(run_script("evaluate", "--run", run, run, "--test", test))


def test_runs_of_an_ensemble_may_have_other_words_vectors_and_tags(
    run: Path, corpora: list[str], tmp_path: Path
) -> None:
    """Each reads the pairs by its own lexicon: their ensemble is the mean of what each predicts by itself."""
    other = tmp_path / "other"
    done = run_script("train", *corpora[:-1], corpora[-3], *FAST, "--seed", "1", "--output", other)
    assert done.returncode == 0, done.stderr
    lexicon, known = Lexicon.load(Run(other).lexicon), Lexicon.load(Run(run).lexicon)
    lexicon.tags.reverse()
    lexicon.save(Run(other).lexicon)
    assert set(lexicon.words) != set(known.words) and lexicon.words != known.words[: len(lexicon)]
    assert lexicon.tags != known.tags and len(set(lexicon.tags)) > 1
    shares = []
    for folder in (run, other):
        file = tmp_path / f"{folder.name}.jsonl"
        done = run_script("predict", "--run", folder, "--pairs", corpora[-1], "--output", file)
        assert done.returncode == 0, done.stderr
        shares.append([json.loads(line) for line in file.read_text().splitlines()])
    labels = Run(run).read_config()["labels"]
    right = [
        max(labels, key=lambda label: one[label] + two[label]) == one["gold_label"]
        for one, two in zip(*shares, strict=True)
    ]
    file = tmp_path / "ensemble.json"
    options = ("--test", corpora[-1], "--cache", corpora[1], "--output", file)
    done = run_script("evaluate", "--run", run, other, *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())["test"]
    assert found["pairs"] == len(right) == 60 and found["accuracy"] == sum(right) / 60
    alone = [sum(row["prediction"] == row["gold_label"] for row in rows) / 60 for rows in shares]
    assert found["accuracy"] not in alone, "the test would not see which of them was asked"


def test_evaluate_by_category(run: Path, tmp_path: Path) -> None:
    pairs = [{"pairID": f"{i}n", "gold_label": "neutral", "sentence1": "a dog", "sentence2": "a cat"} for i in range(4)]
    (tmp_path / "dev.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    (tmp_path / "tags.txt").write_text("0n\t#MODAL\n1n\t#MODAL #COREF\n")
    options = ("--test", tmp_path / "dev.jsonl", "--categories", tmp_path / "tags.txt", "--cache", tmp_path)
    done = run_script("evaluate", "--run", run, *options, "--output", tmp_path / "result.json")
    assert done.returncode == 0, done.stderr
    groups = json.loads((tmp_path / "result.json").read_text())["test"]["per_phenomenon"]
    assert set(groups) == {"#modal", "#coreference"} and "#coreference" in done.stdout


def one_line(done) -> str:
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--train", "none.tsv"], "--dev is needed with --train"),
        (["--dev", "none.tsv"], "--train is needed with --dev"),
        (["--train", "none.tsv", "--dev", "none.tsv"], "none.tsv: no such file"),
        (["--train", "x", "--optimizer", "adam"], "--lr is needed with --optimizer adam: the paper's is for adagrad"),
        (["--optimizer", "adagrad"], "--lr is needed with --optimizer adagrad: 0.001 is for adam"),
        (["--pairs", "10"], "--pairs must be at least 100, got 10"),
        (["--lr", "-1"], "--lr must be positive and finite, got -1.0"),
        (["--vectors", "none.txt"], "none.txt: no such file"),
        (["--unit-unknown"], "--unit-unknown: changes nothing without --unit-vectors"),
        (["--intra-attention", "--max-distance", "-1"], "error: --max-distance must be at least 0, got -1"),
        (["--hidden-size", "0"], "error: --hidden-size must be at least 1, got 0"),
        (["--dropout", "1"], "error: --dropout must be at least 0 and below 1, got 1.0"),
        (["--vector-size", "0"], "--vector-size must lie between 1 and 10,000, got 0"),
        (["--vector-size", "1000000000000"], "--vector-size must lie between 1 and 10,000, got 1000000000000"),
    ],
)
def test_options_that_do_not_fit_together(arguments: list[str], message: str, tmp_path: Path) -> None:
    assert message in one_line(run_script("train", *arguments, "--output", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_the_options_of_one_of_several_models_are_told_alike(tmp_path: Path) -> None:
    script, bad = SCRIPT.with_name("lstm_attention.py"), ("hybrid-model", "--hidden-size", "0")
    said = one_line(run_script("train", "--output", tmp_path / "run", *bad, script=script))
    assert said == "error: --hidden-size must be at least 1, got 0\n"


def test_bad_files_end_with_one_line_that_names_file_and_line(corpora: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("gold_label\tsentence1\tsentence2\nneutral\ta\tb\nmaybe\ta\tb\n")
    options = [*corpora[:-1], bad, *FAST, "--output", tmp_path / "run"]
    assert f"{bad}:3: unknown label 'maybe'" in one_line(run_script("train", *options))
    two = tmp_path / "two.tsv"
    two.write_text("gold_label\tsentence1\tsentence2\nduplicate\ta\tb\n")
    assert "has the label 'duplicate', the model's are entailment" in one_line(
        run_script("train", *corpora[:-1], two, *FAST, "--output", tmp_path / "run")
    )
    wide = tmp_path / "vectors.txt"
    wide.write_text("dog 1 2 3\ncat 1 2 3\nfox 1 2\n")
    assert f"{wide}:3: expected a word and 3 numbers, got 2" in one_line(
        run_script("train", *corpora, *FAST, "--vectors", wide, "--output", tmp_path / "run")
    )
    assert not (tmp_path / "run" / "metrics.json").exists()


def test_a_model_that_aligns_nothing_draws_no_alignment(tmp_path: Path, corpora: list[str]) -> None:
    script = SCRIPT.with_name("hypothesis_only.py")
    fast = ["--epochs", "1", "--hidden-size", "8"]
    done = run_script("train", *corpora, *fast, "--output", tmp_path / "run", script=script)
    assert done.returncode == 0, done.stderr
    options = ("--premise", "a dog", "--hypothesis", "a cat", "--figure", tmp_path / "x.png")
    done = run_script("predict", "--run", tmp_path / "run", *options, script=script)
    assert "--figure: HypothesisOnly aligns no words" in one_line(done) and done.stdout == ""
    assert "was written by hypothesis_only, this is decomposable_attention" in one_line(
        run_script("predict", "--run", tmp_path / "run", *options[:4])
    )


def test_folders_that_hold_no_run(run: Path, tmp_path: Path) -> None:
    options = ("--premise", "a dog", "--hypothesis", "a cat")
    assert "is this the folder of a run?" in one_line(run_script("predict", "--run", tmp_path, *options))
    assert "--run: expected at least one folder" in one_line(run_script("evaluate", "--test", "x.tsv", "--run"))
    assert "--hypothesis: expected a sentence" in one_line(
        run_script("predict", "--run", run, "--premise", "a dog", "--hypothesis", " ")
    )
    (tmp_path / "mine.txt").write_text("mine")
    assert "holds files that are not a run" in one_line(run_script("train", "--output", tmp_path))


def test_a_folder_whose_name_is_no_text_is_refused_before_training(tmp_path: Path) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/\xff")
    assert "expected a name in UTF-8" in one_line(run_script("train", *FAST, "--output", name))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["train", "--pairs", "100", *FAST]])
def test_a_reader_that_has_gone_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    """As with ``--help | head -1``."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment())
    os.close(write)
    assert done.stderr == "" and done.returncode == 1


def test_a_full_disk_behind_the_output_is_told_in_one_line(run: Path) -> None:
    command = [sys.executable, str(SCRIPT.with_name("compare.py")), str(run)]
    buffered = {name: value for name, value in environment().items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


def test_what_the_system_refuses_is_told_in_one_line(run: Path, tmp_path: Path) -> None:
    long, loop = tmp_path / ("x" * 300), tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "pairs.tsv").write_text("gold_label\tsentence1\tsentence2\nneutral\ta\tb\n")
    one = ("--run", run, "--premise", "a", "--hypothesis", "b")
    for option, place in (("--figure", long / "x.png"), ("--figure", long.with_suffix(".png"))):
        said = one_line(run_script("predict", *one, option, place))
        assert f"{option} {place}: cannot be written (File name too long)" in said
    assert "File name too long" in one_line(run_script("explain", *one, "--output", long / "x.html"))
    evaluate = ("evaluate", "--test", tmp_path / "pairs.tsv")
    assert "loop" in one_line(run_script(*evaluate, "--run", run, "--output", loop / "x.json"))
    assert "loop" in one_line(run_script(*evaluate, "--run", loop))
    compare = SCRIPT.with_name("compare.py")
    assert "File name too long" in one_line(run_script(long, script=compare))
    assert "loop" in one_line(run_script(loop, script=compare))


def test_an_option_that_is_given_twice_is_refused(corpora: list[str], tmp_path: Path) -> None:
    twice = run_script("train", *corpora, "--train", tmp_path / "more.tsv", "--output", tmp_path / "run")
    assert (
        one_line(twice).strip() == "error: --train: is given 2 times, expected once, with all of its values behind it"
    )
    equals = run_script("predict", "--run", "x", "--premise=a", "--premise", "b", "--hypothesis", "c")
    assert (
        one_line(equals).strip()
        == "error: --premise: is given 2 times, expected once, with all of its values behind it"
    )
    none = run_script("train", "--train", "None", "--dev", corpora[5], "--output", tmp_path / "run")
    assert "None: no such file" in one_line(none)


def test_another_optimizer_may_have_the_rate_of_the_default_one_if_it_is_asked_for(tmp_path: Path) -> None:
    other = ("train", "--optimizer", "adagrad", "--pairs", "99", "--output", tmp_path / "run")
    assert "--lr is needed with --optimizer adagrad" in one_line(run_script(*other))
    assert "--pairs must be at least 100" in one_line(run_script(*other, "--lr", "0.001")), "what is checked next"


def test_the_same_pairs_in_two_files_are_told(corpora: list[str], tmp_path: Path) -> None:
    train, dev = corpora[3], corpora[5]
    given = ("--train", train, "--dev", dev, "--test", dev, *FAST, "--vector-size", "8", *corpora[:2])
    told = run_script("train", *given, "--output", tmp_path / "run")
    assert told.stdout.count("note: --dev and --test are the same pairs") == 1 and "--train and" not in told.stdout
    assert "note: without --vectors each word's vector is random" in told.stdout


def test_help_waits_for_no_import_that_takes_seconds() -> None:
    code = "import sys; import decomposable_attention; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=SCRIPT.parent, capture_output=True, text=True, check=True)
    assert not {"scipy", "torch._dynamo", "torchmetrics", "transformers"} & set(done.stdout.split())


def test_runs_and_tables_go_to_folders_of_the_scripts_name() -> None:
    train, table = (
        inspect.signature(make(decomposable_attention.SCRIPT)).parameters for make in (_train_command, _table_command)
    )
    assert train["output"].default == Path("runs/decomposable_attention")
    assert table["output"].default == Path("runs/tables/decomposable_attention")
    assert (train["seed"].default, train["checkpoint_seconds"].default, table["seeds"].default) == (0, 60, 3)


def test_every_option_has_its_help() -> None:
    shown = run_script("train", "--help", columns=100).stdout  # in wider ones the groups stand side by side
    text = " ".join(shown.replace("│", " ").split())
    for owner in (Data, Recipe, DecomposableAttentionConfig):
        source = ast.parse(inspect.getsource(owner)).body[0]
        for node, following in itertools.pairwise(source.body):
            if isinstance(node, ast.AnnAssign) and node.target.id != "num_classes":
                assert f"--{node.target.id.replace('_', '-')}" in text
                told = ast.literal_eval(following.value)
                assert "\n" not in told, "help would break the line there"
                assert told in text


def test_damaged_folders_end_with_one_line(run: Path, tmp_path: Path) -> None:
    options = ("--premise", "a dog", "--hypothesis", "a cat")
    for name, content in (
        ("config.json", b"{}"),
        ("config.json", b"{"),
        ("config.json", b'{"script": "decomposable_attention", "labels": ["neutral"], "model": {"nothing": 1}}'),
        ("lexicon.safetensors", b"damaged"),
        ("model.safetensors", b"damaged"),
    ):
        copy = tmp_path / "copy"
        shutil.copytree(run, copy)
        (copy / name).write_bytes(content)
        said = one_line(run_script("predict", "--run", copy, *options))
        assert name in said and (name == "config.json" or "config.json" not in said)
        shutil.rmtree(copy)


def test_two_way_entailment_is_predicted_and_evaluated_by_its_own_labels(tmp_path: Path) -> None:
    rows = "".join(f"{label}\tthe $\\foo$ {i}\tb\n" for i, label in enumerate(["entailment", "not_entailment"] * 4))
    (tmp_path / "rte.tsv").write_text("gold_label\tsentence1\tsentence2\n" + rows)
    files = [option for name in ("train", "dev", "test") for option in (f"--{name}", tmp_path / "rte.tsv")]
    done = run_script("train", *files, *FAST, "--cache", tmp_path, "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    done = run_script("predict", "--run", tmp_path / "run", "--premise", "a", "--hypothesis", "b")
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"entailment", "not_entailment"}
    (tmp_path / "rte_1.0_one.tsv").write_text("gold_label\tsentence1\tsentence2\nentailment\ta\tb\n")
    done = run_script(
        "evaluate", "--run", tmp_path / "run", "--test", tmp_path / "rte_1.0_one.tsv", "--cache", tmp_path
    )
    assert done.returncode == 0 and (tmp_path / "run" / "evaluation-rte_1.0_one.json").exists()


def test_a_model_of_three_classes_is_measured_by_entailment_alone_where_the_pairs_are(
    run: Path, corpora: list[str], tmp_path: Path
) -> None:
    """Right is what HANS's authors count as right: neutral and contradiction are non-entailment."""
    three, two = tmp_path / "three.tsv", tmp_path / "two.tsv"
    sentences = [
        f"the {a} is {'not ' * n}running\tthe {b} is running"
        for a, b in (("dog", "cat"), ("cat", "cat"))
        for n in (0, 1)
    ]
    sentences += [f"a {'dog ' * n}sleeps\tthe cat {'runs ' * n}" for n in range(1, 40)]
    three.write_text("\n".join(["sentence1\tsentence2", *sentences]) + "\n")
    predict_file(decomposable_attention.SCRIPT, Run(run), three, None, tmp_path / "three-predictions.tsv")
    said = [row["prediction"] for row in predicted(tmp_path / "three-predictions.tsv")]
    assert len(set(said)) > 1, "or nothing is told"
    gold = [("entailment", "non-entailment")[n % 2] for n in range(len(said))]
    two.write_text(
        "\n".join(["gold_label\tsentence1\tsentence2", *map("\t".join, zip(gold, sentences, strict=True))]) + "\n"
    )
    right = sum((g == "entailment") == (s == "entailment") for g, s in zip(gold, said, strict=True))
    done = run_script(
        "evaluate", "--run", run, "--test", two, "--cache", corpora[1], "--output", tmp_path / "figures.json"
    )
    assert done.returncode == 0, done.stderr
    assert "note: every class but entailment counts as not_entailment here" in done.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())["test"]
    assert figures["accuracy"] == pytest.approx(right / len(said)) and len(figures["confusion"]) == 2
    assert set(figures["per_class"]) == {"entailment", "not_entailment"}
    done = run_script("predict", "--run", run, "--pairs", two, "--output", tmp_path / "two-predictions.tsv")
    assert done.stdout.startswith(f"{len(said)} pairs; {right} of {len(said)} labelled ones are right")
    assert [row["prediction"] for row in predicted(tmp_path / "two-predictions.tsv")] == said, (
        "by the model's own names"
    )


def test_what_a_reader_should_know_of_a_prediction_is_said(tmp_path: Path, corpora: list[str]) -> None:
    """That the run is not finished, and that a model which was given tags is given none."""
    output, pair = tmp_path / "run", ("--premise", "a dog is running", "--hypothesis", "a dog runs")
    tags = SCRIPT.with_name("lstm_attention.py")
    few = ["--epochs", "2", "attention-model", "--hidden-size", "8", "--num-tags", "47"]
    done = run_script("train", *corpora, "--vector-size", "8", "--output", output, *few, script=tags)
    assert done.returncode == 0, done.stderr
    done = run_script("predict", "--run", output, *pair, script=tags)
    told = "note: the run's pairs had part-of-speech tags, which this model reads; there are none here\n"
    assert done.returncode == 0 and done.stderr == told and len(done.stdout.splitlines()) == 3
    tagged = tmp_path / "tagged.tsv"
    tagged.write_text("gold_label\tsentence1\tsentence2\tpos1\tpos2\nneutral\ta dog\ta\tUDT UNN\tUDT\n")
    new = "note: 2 of 2 part-of-speech tags are new to the run, and read as none: UDT, UNN\n"
    assert new in run_script("predict", "--run", output, "--pairs", tagged, script=tags).stderr
    assert new in run_script("evaluate", "--run", output, "--test", tagged, script=tags).stdout
    (output / "metrics.json").rename(tmp_path / "metrics.json")
    (output / "checkpoint.safetensors").write_bytes(b"")
    done = run_script("explain", "--run", output, *pair, script=tags)
    assert done.stderr == f"note: {output}: this run is not finished; these are its best weights so far\n{told}"
    done = run_script("evaluate", "--run", output, "--test", corpora[-1], script=tags)
    assert f"note: {output}: this run is not finished; these are its best weights so far\n" in done.stdout
    assert done.returncode == 0
    assert not json.loads((output / "evaluation-test.json").read_text())["finished"]


def test_compare_keeps_a_class_and_a_phenomenon_of_one_name_apart(run: Path, tmp_path: Path) -> None:
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["test"] |= {"per_class": {"neutral": 0.123}, "per_phenomenon": {"neutral": 0.456}}
    for name, per_phenomenon in (("a-0", {"neutral": 0.456}), ("a-1", {"neutral": 0.456, "late": 0.25})):
        (tmp_path / name).mkdir()
        metrics["test"]["per_phenomenon"] = per_phenomenon
        (tmp_path / name / "metrics.json").write_text(json.dumps(metrics))
    said = run_script(tmp_path / "a-0", tmp_path / "a-1", "--group", script=SCRIPT.with_name("compare.py")).stdout
    assert "12.3" in said and "45.6" in said and "25.0" in said


def test_compare_groups_no_runs_that_differ_in_more_than_their_seed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = json.loads((run / "config.json").read_text())
    for name, changed in (
        ("a-0", {}),
        ("a-1", {"seed": 9}),
        ("a-2", {"model": config["model"] | {"hidden_size": 7}}),
        ("a-3", {"data": config["data"] | {"test": "another"}}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config | changed))
        shutil.copy(run / "metrics.json", tmp_path / name)
    compare, folders = SCRIPT.with_name("compare.py"), [tmp_path / f"a-{k}" for k in range(4)]
    assert "a (2 runs)" in run_script(*folders[:2], "--group", script=compare).stdout
    spelled = run_script(folders[0], tmp_path / "a-2" / ".." / "a-1", "--group", script=compare).stdout
    assert "a (2 runs)" in spelled and spelled.count("±") > 3
    for other, what in ((folders[2], "model.hidden_size"), (folders[3], "data.test")):
        said = one_line(run_script(folders[0], other, "--group", script=compare))
        assert f"{other} and {folders[0]} are runs with another {what}, not only with another seed" in said
    monkeypatch.chdir(tmp_path / "a-1")
    for options, column in (((), "a-1"), (("--group",), "a")):
        assert run_script(".", *options, script=compare).stdout.splitlines()[0].split() == ["accuracy", column]


def test_compare_keeps_a_class_groups_of_other_folders_apart(run: Path, tmp_path: Path) -> None:
    for name in ("a/run-0", "b/run-1"):
        (tmp_path / name).mkdir(parents=True)
        shutil.copy(run / "metrics.json", tmp_path / name)
    said = run_script(*(tmp_path / n for n in ("a/run-0", "b/run-1")), "--group", script=SCRIPT.with_name("compare.py"))
    assert "±" not in said.stdout and "(2 runs)" not in said.stdout


def test_compare_keeps_runs_apart_unless_they_are_grouped(run: Path, tmp_path: Path) -> None:
    for name, accuracy in (("a/run-0", 0.5), ("b/run-0", 0.7), ("c/run-1", 0.6)):
        metrics = json.loads((run / "metrics.json").read_text())
        metrics["test"]["accuracy"] = accuracy
        if name.startswith("c"):
            metrics["dev"] = metrics.pop("test")
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "metrics.json").write_text(json.dumps(metrics))
    compare = SCRIPT.with_name("compare.py")
    apart = run_script(*(tmp_path / name for name in ("a/run-0", "b/run-0", "c/run-1")), script=compare).stdout
    heading, every = (line.split() for line in apart.splitlines()[:2])
    assert heading == ["accuracy", str(tmp_path / "a/run-0"), str(tmp_path / "b/run-0"), "run-1", "(dev)"]
    assert every == ["all", "50.0", "70.0", "60.0"]
    assert "is this the folder of a run?" in one_line(run_script(tmp_path, script=compare))
    assert "expected the folder of at least one run" in one_line(run_script(script=compare))
    (tmp_path / "checkpoint.safetensors").write_bytes(b"")
    assert f"{tmp_path}: this run is not finished" in one_line(run_script(tmp_path, script=compare))
    long = [shutil.copytree(tmp_path / "a/run-0", tmp_path / f"{'long' * 20}-{k}-{k}") for k in range(3)]
    piped = run_script(*long, script=compare).stdout.splitlines()[0]
    assert all(path.name in piped for path in long), "a pipe cuts no name"
    twice = (tmp_path / "a/run-0", tmp_path / "b/../a/run-0")
    assert f"{twice[1]}: is named twice" in one_line(run_script(*twice, "--group", script=compare))
    shutil.copytree(tmp_path / "b/run-0", tmp_path / "a/run-1")
    grouped = run_script(tmp_path / "a/run-0", tmp_path / "a/run-1", "--group", script=compare).stdout
    assert "60.0 ± 14.1" in grouped and "run (2 runs)" in grouped


HEADER = "gold_label\tsentence1\tsentence2\n"


def test_the_accuracy_of_a_category_is_that_of_its_pairs(run: Path, tmp_path: Path) -> None:
    named = {"neutral": "modal", "entailment": "belief", "contradiction": "antonym"}
    gold = ["neutral", *named]
    pair = {"sentence1": "a dog", "sentence2": "a cat"}
    rows = [{"pairID": f"p{k}", "gold_label": label, **pair} for k, label in enumerate(gold)]
    (tmp_path / "dev.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "tags.txt").write_text("".join(f"p{k} #{named[label]}\n" for k, label in enumerate(gold)))
    files = (tmp_path / "dev.jsonl", None, tmp_path / "tags.txt", tmp_path, tmp_path / "e.json")
    evaluate_runs(decomposable_attention.SCRIPT, [Run(run)], *files)
    found = json.loads((tmp_path / "e.json").read_text())["test"]
    assert found["per_phenomenon"] == {f"#{named[label]}": share for label, share in found["per_class"].items()}
    assert sorted(found["per_class"].values()) == [0, 0, 1], "one text, one prediction"


def test_no_run_of_an_ensemble_may_have_random_vectors(run: Path, tmp_path: Path) -> None:
    random = Run(shutil.copytree(run, tmp_path / "random"))
    config = random.read_config()
    random.config.write_text(json.dumps(config | {"data": config["data"] | {"vectors": {"random": 20}}}))
    (tmp_path / "x.tsv").write_text(f"{HEADER}neutral\ta dog\ta cat\n")
    files = (tmp_path / "x.tsv", run.parent / "v.npz", None, tmp_path, tmp_path / "e.json")
    with pytest.raises(InputError, match=r"the run's own are random, and no file's fit them \(.*random\)"):
        evaluate_runs(decomposable_attention.SCRIPT, [Run(run), random], *files)


def test_an_ensemble_is_finished_if_all_its_runs_are(run: Path, tmp_path: Path) -> None:
    other = Run(shutil.copytree(run, tmp_path / "other"))
    other.metrics.unlink()
    other.checkpoint.touch()
    (tmp_path / "x.tsv").write_text(f"{HEADER}neutral\ta dog\ta cat\n")
    files = (tmp_path / "x.tsv", None, None, tmp_path, tmp_path / "e.json")
    evaluate_runs(decomposable_attention.SCRIPT, [Run(run), other], *files)
    assert json.loads((tmp_path / "e.json").read_text())["finished"] is False


def test_a_new_spelling_of_a_known_word_is_not_hashed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = Lexicon.load(Run(run).lexicon)
    assert {"the", "dog"} <= known.index.keys() and "DOG" not in known.index
    (tmp_path / "x.tsv").write_text(f"{HEADER}neutral\tthe DOG\tthe quokka\n")
    files = (tmp_path / "x.tsv", None, None, tmp_path, tmp_path / "e.json")
    evaluate_runs(decomposable_attention.SCRIPT, [Run(run)], *files)
    assert "1 of 3 words are new and hashed" in capsys.readouterr().out
