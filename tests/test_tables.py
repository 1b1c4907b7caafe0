"""Tables of results: rows settle into what is trained, shared runs are trained once, ours stand beside the paper's."""

import dataclasses
import importlib
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from decomposable_attention import SCRIPT, DecomposableAttentionConfig
from nli_common import table_figures, table_reports, table_runs
from nli_common.batches import PairDataset, evaluation_loader
from nli_common.corpora import Pair
from nli_common.data import Corpus, open_corpus
from nli_common.errors import InputError
from nli_common.evaluating import chosen, evaluate_on, lexicons_for
from nli_common.inputs import Data, fingerprint
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics
from nli_common.models import restore
from nli_common.options import converted, parse_options
from nli_common.recipe import Recipe
from nli_common.runs import Run, claim, read_metrics
from nli_common.script import Script
from nli_common.table_reports import markdown
from nli_common.table_runs import run_table, settle
from nli_common.tables import Row, Table
from nli_common.train_runs import train_run
from runs import write_corpora

SCRIPTS = [path.stem for path in Path(__file__).parent.parent.joinpath("examples/paper_tables").glob("[!_]*.py")]
GRID = Table(
    "Fig. 1",
    ("test",),
    tuple(Row(f"{h}, {m}", {"hidden_size": h, "max_distance": m}, (60.0 + h,)) for h in (3, 4) for m in (1, 2)),
    figure="grid",
    axes=("hidden_size", "max_distance"),
)
PLAIN = Table(
    "Table 1: two models and both together",
    ("dev", "test"),
    (
        Row("vanilla", {}, (90.5, 86.3), "382K"),
        Row("intra-attention", {"intra_attention": True}, (None, 86.8)),
        Row("vanilla, ensemble", ensemble=True),
    ),
    measures=("dev", "test"),
    note="A note.",
    figure="points",
    shown=1,
)
SWEEP = dataclasses.replace(GRID, figure="sweep", axes=("hidden_size",))
UNIT = dataclasses.replace(SCRIPT, data=Data(unit_vectors=True))
TABLED = dataclasses.replace(SCRIPT, tables={"1": PLAIN, "grid": GRID, "sweep": SWEEP})


def test_a_row_with_many_options_has_a_folder_that_can_be_made(tmp_path: Path) -> None:
    changes = {"lr": "0.123456789", "clip_norm": "1.23456789", "batch_size": "123", "patience": "12", "l2": "0.0001234"}
    changes |= {"dropout": "0.123456789", "min_lr": "0.0123456", "normalized_decay": "0.00123", "warmup_epochs": "0.5"}
    changes |= {"max_distance": "7", "restart_epochs": "5", "restart_factor": "3"}
    names = [settle(SCRIPT, Row("long", {"hidden_size": size}), changes, Data()).name for size in (8, 9)]
    assert len(set(names)) == 2 and all(len(name.encode()) < 220 for name in names)
    assert all((tmp_path / f"{name}-seed12").mkdir() is None for name in names)
    assert settle(SCRIPT, Row("short", {"hidden_size": 8}), {}, Data()).name == "decomposable-attention-hidden_size=8"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    folder = tmp_path_factory.mktemp("corpora")
    options = write_corpora(folder)
    named = {options[i][2:]: Path(options[i + 1]) for i in range(0, len(options), 2)}
    return Data(**named, vector_size=5)


SMALL = ["epochs=1", "hidden_size=6", "batch_size=32", "lr=0.01"]


@pytest.fixture(scope="module")
def trained(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("tables")
    run_table(TABLED, "1", data, [data.dev], [], 2, SMALL, output)
    return output


def test_a_table_has_ours_beside_the_papers(trained: Path) -> None:
    table = json.loads((trained / "1.json").read_text())
    vanilla, intra, ensemble = table["rows"]
    for row, options in ((vanilla, {}), (intra, {"intra_attention": True})):
        runs = [json.loads((trained / f"{row['settings']}-seed{seed}" / "metrics.json").read_text()) for seed in (0, 1)]
        for split in ("test", "dev", "train"):
            assert row["ours"][split] == pytest.approx([100 * run[split]["accuracy"] for run in runs])
        assert row["ours"]["also 1"] == row["ours"]["dev"]
        assert row["ours"]["dev neutral"] == pytest.approx([100 * run["dev"]["per_class"]["neutral"] for run in runs])
        assert row["ours"]["seconds/epoch"] == pytest.approx([160 / run["pairs_per_second"] for run in runs])
        assert row["ours"]["seconds to test"] == pytest.approx([60 / run["inference_pairs_per_second"] for run in runs])
        assert row["options"] == options and row["parameters"] == runs[0]["parameters"]
    assert intra["parameters"] > vanilla["parameters"] and ensemble["parameters"] == 2 * vanilla["parameters"]
    assert ensemble["settings"] == vanilla["settings"]
    for rate in ("pairs_per_second", "inference_pairs_per_second"):
        assert ensemble[rate] == pytest.approx(vanilla[rate] / 2)
    text = (trained / "1.md").read_text()
    lines = text.splitlines()
    assert lines[0] == "# Table 1: two models and both together" and "A note." in lines
    assert lines[2].startswith("Ours: ")
    head, first, second = ([cell.strip() for cell in lines[k].strip("|").split("|")] for k in (4, 6, 7))
    names = [
        "parameters",
        "paper: parameters",
        "ours: dev",
        "paper: dev",
        "ours: test",
        "paper: test",
        "ours: also 1",
        "training pairs/s",
        "pairs/s",
    ]
    assert head[1:] == names
    one, two = dict(zip(head, first, strict=True)), dict(zip(head, second, strict=True))
    papers = [f"paper: {name}" for name in ("parameters", "dev", "test")]
    assert [one[name] for name in ("", *papers)] == ["vanilla", "382K", "90.5", "86.3"]
    assert [two[name] for name in ("", *papers)] == ["intra-attention", "", "", "86.8"]
    mean = sum(vanilla["ours"]["test"]) / 2
    assert one["ours: test"].startswith(f"{mean:.1f} ± ") and one["parameters"] == f"{vanilla['parameters']:,}"
    assert lines[-1] == "![Table 1: two models and both together](1.png)"
    assert "trained on train.tsv, dev dev.tsv, test test.tsv, also 1: dev.tsv" in lines[2]
    assert "2 seeds" in lines[2] and "hidden_size=6" in lines[2]
    assert (trained / "1.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_right_comes_in_the_corpus_s_order(trained: Path, data: Data) -> None:
    """Categories and paired comparisons go by it; batches come in another."""
    settings = json.loads((trained / "1.json").read_text())["rows"][0]["settings"]
    run, corpus = Run(trained / f"{settings}-seed0"), open_corpus(data.test, data.cache)
    right, _ = table_runs.evaluate_on(SCRIPT, [run], corpus, "test")
    lexicon, labels = Lexicon.load(run.lexicon), run.read_config()["labels"]
    model, pairs = restored(run), PairDataset(corpus, lexicon, labels, corpus.phenomena)
    with torch.inference_mode():
        each = [bool(model(b.premise, b.hypothesis).argmax() == b.label[0]) for b in map(pairs.__getitem__, range(60))]
    assert right.tolist() == each and 0 < sum(each) < len(each) == len(corpus)


def restored(run: Run) -> torch.nn.Module:
    return restore(SCRIPT, run, Lexicon.load(run.lexicon))


def test_an_ensemble_averages_probabilities(trained: Path, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble = json.loads((trained / "1.json").read_text())["rows"][2]
    runs = [Run(trained / f"{ensemble['settings']}-seed{seed}") for seed in (0, 1)]
    corpus = open_corpus(data.test, data.cache)
    _, metrics = table_runs.evaluate_on(SCRIPT, runs, corpus, "test")
    assert ensemble["ours"]["test"] == [100 * metrics["accuracy"]] and "dev" not in ensemble["ours"]
    asked: list[list[torch.Tensor]] = []
    monkeypatch.setattr("nli_common.evaluating.chosen", lambda logits: asked.append(logits) or chosen(logits))
    table_runs.evaluate_on(SCRIPT, runs, corpus, "test")
    [logits] = asked
    lexicon, labels = Lexicon.load(runs[0].lexicon), runs[0].read_config()["labels"]
    batches = evaluation_loader(PairDataset(corpus, lexicon, labels, corpus.phenomena))
    for each, run in zip(logits, runs, strict=True):
        model = restored(run)
        with torch.inference_mode():
            wanted = torch.cat([model(batch.premise, batch.hypothesis) for batch in batches])
        torch.testing.assert_close(each, wanted, rtol=0, atol=0)
    sure, one, another = (torch.tensor([x]) for x in ([9.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]))
    assert chosen([sure, one, another]).item() == 0, "two of three would say the second"
    sure, one, another = (torch.tensor([x]) for x in ([30.0, 0.0, 0.0], [-2.0, 0.0, -9.0], [-2.0, 0.0, -9.0]))
    assert chosen([sure, one, another]).item() == 1, "a mean of logits, or of logarithms, would be of the first"
    assert chosen([sure]).item() == 0 and chosen([one]).item() == 1


def test_each_run_of_an_ensemble_is_given_the_vectors_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "read_config", lambda run: {"data": {"vectors": "a file's"}})
    vectors = tmp_path / "v.npz"
    np.savez(vectors, words=np.array(["cat", "bird"]), vectors=np.array([[1.0, 2.0], [3.0, 4.0]]))
    corpus = Corpus.from_pairs([Pair(["dog"], ["cat", "bird"], "neutral")], "a pair")
    runs = [Run(tmp_path / name) for name in ("few", "more")]
    for run, words in zip(runs, (["dog"], ["cat", "dog"]), strict=True):
        run.folder.mkdir()
        Lexicon(words, torch.zeros(len(words), 2)).save(run.lexicon)
    for order in (runs, runs[::-1]):
        few, more = (lexicons_for([run], corpus, vectors)[0] for run in runs)
        together = dict(zip(order, lexicons_for(order, corpus, vectors), strict=True))
        for run, alone in zip(runs, (few, more), strict=True):
            assert together[run].words == alone.words and torch.equal(together[run].vectors, alone.vectors)
        assert few.vectors[few.index["cat"]].tolist() == [1, 2] and more.vectors[more.index["cat"]].tolist() == [0, 0]


def test_files_of_another_task_are_refused_before_any_training(data: Data, tmp_path: Path) -> None:
    other = tmp_path / "quora.tsv"
    other.write_text("gold_label\tsentence1\tsentence2\nduplicate\ta\tb\n")
    with pytest.raises(InputError, match=r"quora\.tsv: has the label 'duplicate', the model's are entailment"):
        run_table(TABLED, "1", data, [other], [], 1, SMALL, tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_a_table_goes_on_where_it_was_interrupted(trained: Path, data: Data) -> None:
    """Runs that are finished are not trained again, and the numbers stay."""
    before = (trained / "1.json").read_text()
    files = {path: path.stat().st_mtime_ns for path in trained.glob("*/*.safetensors")}
    run_table(TABLED, "1", data, [data.dev], [], 2, SMALL, trained)
    assert (trained / "1.json").read_text() == before
    assert {path: path.stat().st_mtime_ns for path in trained.glob("*/*.safetensors")} == files


def test_a_table_stays_until_one_of_more_seeds_is_whole(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, trained = tmp_path / "1.json", []
    run_table(TABLED, "1", data, [], [], 1, SMALL, tmp_path)
    whole = held.read_text()

    def train(*given: Any) -> None:
        trained.append(given[5].folder)
        if len(trained) == 4:  # the second seed of the second row
            raise KeyboardInterrupt
        train_run(*given)

    monkeypatch.setattr(table_runs, "train_run", train)
    with pytest.raises(KeyboardInterrupt):
        run_table(TABLED, "1", data, [], [], 2, SMALL, tmp_path)
    assert held.read_text() == whole
    monkeypatch.undo()
    run_table(TABLED, "1", data, [], [], 1, SMALL, tmp_path)
    run_table(TABLED, "1", data, [], [], 2, SMALL, tmp_path)
    rows = json.loads(held.read_text())["rows"]
    assert [len(row["ours"]["test"]) for row in rows] == [2, 2, 1]


def test_what_train_refuses_a_table_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--lr is needed with --optimizer adagrad: 0.001 is for adam"):
        run_table(TABLED, "1", Data(pairs=200), [], [], 1, ["optimizer=adagrad"], tmp_path / "tables")
    with pytest.raises(InputError, match="--options num_classes: the training pairs tell the number of classes"):
        run_table(TABLED, "1", Data(pairs=200), [], [], 1, ["num_classes=2"], tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_a_table_of_files_whose_names_are_no_text(data: Data, tmp_path: Path) -> None:
    other = Path(os.fsdecode(bytes(tmp_path) + b"/d\xff.tsv"))
    other.write_bytes(data.dev.read_bytes())
    run_table(TABLED, "1", data, [other], [], 1, SMALL, tmp_path / "tables")
    assert r"also 1: d\udcff.tsv" in (tmp_path / "tables" / "1.md").read_text()


def test_each_run_of_a_table_has_its_seed(trained: Path) -> None:
    """Its configuration says so, and it has other weights than the first."""
    row = json.loads((trained / "1.json").read_text())["rows"][0]
    runs = [Run(trained / f"{row['settings']}-seed{seed}") for seed in (0, 1)]
    assert [run.read_config()["seed"] for run in runs] == [0, 1]
    assert len({fingerprint(run.weights) for run in runs}) == 2


def test_what_all_rows_are_trained_with_is_told_in_their_folders_names(trained: Path) -> None:
    row = json.loads((trained / "1.json").read_text())["rows"][1]
    options = "-batch_size=32-epochs=1-hidden_size=6-intra_attention=True-lr=0.01"
    assert row["settings"] == f"decomposable-attention{options}"
    names = {settle(SCRIPT, Row("r"), {"lr": lr}, Data()).name for lr in ("0.1", "0.2")}
    assert names == {"decomposable-attention-lr=0.1", "decomposable-attention-lr=0.2"}


def test_a_table_is_locked_while_it_is_trained_and_free_afterwards(
    trained: Path, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def train(*_: object) -> None:
        with pytest.raises(InputError) as caught:
            claim(trained, ".1.lock", [])
        refused.append(str(caught.value))

    monkeypatch.setattr(table_runs, "train_run", train)
    run_table(TABLED, "1", data, [data.dev], [], 2, SMALL, trained)
    assert len(refused) == 6 and all("another process is training there" in message for message in refused)
    claim(trained, ".1.lock", []).release()


def test_other_files_are_tested_with_the_tables_vectors(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Path | None]] = []

    def evaluate(
        script: Script, runs: list[Run], corpus: Corpus, source: str, vectors: Path | None
    ) -> tuple[torch.Tensor, Metrics]:
        asked.append((source, vectors))
        return evaluate_on(script, runs, corpus, source, vectors)

    monkeypatch.setattr(table_runs, "evaluate_on", evaluate)
    np.savez(tmp_path / "v.npz", words=np.array(["dog", "cat"]), vectors=np.eye(2, 5, dtype=np.float16))
    table = Table("T", ("test", "dev"), (Row("one"), Row("both", ensemble=True)))
    script = dataclasses.replace(SCRIPT, tables={"t": table})
    with_vectors = dataclasses.replace(data, vectors=tmp_path / "v.npz")
    run_table(script, "t", with_vectors, [data.dev], [], 1, SMALL, tmp_path / "tables")
    assert asked == [(source, tmp_path / "v.npz") for source in ("dev", "test", "also 1")]


def test_a_table_of_other_options_is_not_replaced(trained: Path, data: Data) -> None:
    before = {path: path.read_bytes() for path in trained.iterdir() if path.is_file()}
    with pytest.raises(InputError, match=r"1.json has a table with options .*; choose another folder"):
        run_table(TABLED, "1", data, [data.dev], [], 2, [*SMALL, "dropout=0.1"], trained)
    assert {path: path.read_bytes() for path in trained.iterdir() if path.is_file()} == before


def test_a_table_of_more_is_not_replaced_by_one_of_less(trained: Path, data: Data) -> None:
    before = {path: path.read_bytes() for path in trained.iterdir() if path.is_file()}
    with pytest.raises(InputError, match=r"--seeds 1: .*1\.json has a table of 2; choose another folder"):
        run_table(TABLED, "1", data, [data.dev], [], 1, SMALL, trained)
    with pytest.raises(InputError, match=r"the runs of 1\.json were .*also 1: dev\.tsv, these .*test\.tsv; choose"):
        run_table(TABLED, "1", data, [], [], 2, SMALL, trained)
    assert {path: path.read_bytes() for path in trained.iterdir() if path.is_file()} == before


def test_a_file_whose_name_begins_like_another_is_another(tmp_path: Path) -> None:
    facts = {"script": "cafe", "options": {}, "corpus": "c", "seeds": 1, "data": "trained on a.tsv, also 1: dev.tsv"}
    (tmp_path / "1.json").write_text(json.dumps(facts))
    table_runs._require_extended(tmp_path / "1.json", facts | {"data": f"{facts['data']}, also 2: test.tsv"})
    with pytest.raises(InputError, match=r"these .*dev\.tsv\.gz; choose another folder"):
        table_runs._require_extended(tmp_path / "1.json", facts | {"data": f"{facts['data']}.gz"})
    with pytest.raises(InputError, match=r"has a table with script 'cafe', where this one has 'esim'; choose another"):
        table_runs._require_extended(tmp_path / "1.json", facts | {"script": "esim"})


def test_a_table_of_test_pairs_needs_some(data: Data, tmp_path: Path) -> None:
    untested = dataclasses.replace(data, test=None)
    with pytest.raises(InputError, match="--test is needed: Table 1: two models and both together has a column of it"):
        run_table(TABLED, "1", untested, [], [], 1, SMALL, tmp_path / "tables")
    assert not (tmp_path / "tables").exists()
    of_dev = dataclasses.replace(SCRIPT, tables={"d": Table("T", ("dev",), (Row("one"),), measures=("dev",))})
    run_table(of_dev, "d", untested, [], [], 1, SMALL, tmp_path / "tables")
    assert (tmp_path / "tables" / "d.md").exists()


def test_a_file_is_tested_again_with_other_vectors(
    trained: Path, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = json.loads((trained / "1.json").read_text())["rows"][0]
    run, asked = Run(trained / f"{row['settings']}-seed0"), []

    def evaluate(
        script: Script, runs: list[Run], corpus: Corpus, source: str, vectors: Path | None
    ) -> tuple[torch.Tensor, Metrics]:
        asked.append(vectors)
        return evaluate_on(script, runs, corpus, source)

    monkeypatch.setattr(table_runs, "evaluate_on", evaluate)
    vectors, (other,) = tmp_path / "v.txt", table_runs.open_others([data.train], [], data.cache)
    for text in (None, "one", "two"):
        if text is not None:
            vectors.write_text(text)
        for _ in range(2):
            table_runs._figures(SCRIPT, run, read_metrics(run.metrics), [other], None if text is None else vectors)
    assert asked == [None, vectors, vectors]


@pytest.mark.parametrize(("splits", "pairs"), [({"dev": 30, "test": 70}, 70), ({"dev": 30}, 30)])
def test_the_time_to_test_is_that_of_the_test_pairs(splits: dict[str, int], pairs: int, tmp_path: Path) -> None:
    metrics = {
        split: {"pairs": count, "accuracy": 0.5, "per_class": {}, "per_phenomenon": {}}
        for split, count in splits.items()
    }
    speeds = {"training_pairs": 6000, "pairs_per_second": 10.0, "inference_pairs_per_second": 5.0}
    figures = table_runs._figures(SCRIPT, Run(tmp_path), metrics | speeds, [], None)
    assert figures["seconds to test"] == pairs / 5
    assert (figures["seconds/epoch"], figures["minutes/epoch"]) == (600, 10)


def test_other_files_are_tested_by_category(trained: Path, data: Data, tmp_path: Path) -> None:
    rows = [{"pairID": f"{i}n", "gold_label": "neutral", "sentence1": "a dog", "sentence2": "a"} for i in range(3)]
    (tmp_path / "dev_1.0.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "tags.txt").write_text("0n #MODAL\n2n #COREF\n")
    files = [data.dev, tmp_path / "dev_1.0.jsonl"], [tmp_path / "tags.txt"]
    with pytest.raises(InputError, match=r"tags\.txt: annotates no pair of"):
        table_runs.open_others(*files, data.cache)
    (other,) = table_runs.open_others(files[0][1:], files[1], data.cache)
    assert (other.key, other.name, len(other.corpus)) == ("also 1", "dev_1.0", 3)
    settings = json.loads((trained / "1.json").read_text())["rows"][0]["settings"]
    run = Run(trained / f"{settings}-seed0")
    metrics = json.loads(run.metrics.read_text())
    figures = table_runs._figures(SCRIPT, run, metrics, [other], None)
    right = 100.0 * (figures["also 1 neutral"] == 100)
    assert figures["also 1 #modal"] == figures["also 1 #coreference"] == right and figures["also 1"] == right
    again = table_runs._figures(SCRIPT, run, metrics, [other], None)
    assert again == figures and len(list(run.folder.glob("evaluation-dev_1.0-*.json"))) == 1
    (held,) = run.folder.glob("evaluation-dev_1.0-*.json")
    held.write_text(held.read_text().replace(fingerprint(run.weights), "those of a run that was here before"))
    assert table_runs._figures(SCRIPT, run, metrics, [other], None) == figures
    assert json.loads(held.read_text())["weights"] == fingerprint(run.weights), "measured again"
    corrected = other._replace(categories={"modal": [0], "coreference": [1]})
    table_runs._figures(SCRIPT, run, metrics, [corrected], None)
    (held,) = run.folder.glob("evaluation-dev_1.0-*.json")
    assert json.loads(held.read_text())["categories"] == corrected.categories
    with pytest.raises(InputError, match="expected at most the 0 files of --also, got 1"):
        table_runs.open_others([], files[1], data.cache)


def test_half_a_table_can_be_read() -> None:
    facts = {"seeds": 1, "options": {}, "data": "x"}
    text = markdown(PLAIN, [], facts)
    assert "| vanilla | 382K | 90.5 | 86.3 |" in text


def test_a_file_that_the_paper_does_not_have_has_a_column_of_its_own() -> None:
    ours = {"parameters": 381_803, "pairs_per_second": 1.0, "inference_pairs_per_second": 1.0}
    ours["ours"] = {"train": [70.0], "test": [50.0], "also 1": [60.0, 80.0], "also 1 neutral": [1.0]}
    text = markdown(PLAIN, [ours], {"seeds": 2, "options": {}, "data": "x"})
    assert "| ours: also 1 |" in text and "| 70.0 ± 14.1 |" in text and "neutral" not in text
    own = dataclasses.replace(PLAIN, measures=("also 1", *PLAIN.measures[1:]))
    assert markdown(own, [ours], {"seeds": 2, "options": {}, "data": "x"}).count("also 1") == 1


def test_a_table_of_many_columns_is_turned() -> None:
    table = Table("T", ("a", "b", "c"), (Row("x", {}, (1, 2, 3)),))
    text = markdown(table, [], {"seeds": 1, "options": {}, "data": "x"})
    assert "|  | x |" in text and "| paper: b | 2 |" in text


def test_a_columns_figures_have_the_same_decimals() -> None:
    table = Table("T", ("a", "b"), (Row("x", {}, (79.0, 29)), Row("y", {}, (77.25, None)), Row("z", {}, (77.9, 8))))
    text = markdown(table, [], {"seeds": 1, "options": {}, "data": "x"})
    table_of_one = Table("T", ("a",), (Row("x", {}, (88.0,)),))
    assert "| x | 88.0 |" in markdown(table_of_one, [], {"seeds": 1, "options": {}, "data": "x"})
    assert "| x | 79.00 | 29 |" in text and "| y | 77.25 |  |" in text and "| z | 77.90 | 8 |" in text


def test_a_spread_is_that_of_a_sample() -> None:
    assert table_reports._spread([60.0, 80.0]) == "70.0 ± 14.1"
    mean, deviation = table_figures._ours({"ours": {"dev": [60.0, 80.0]}}, dataclasses.replace(PLAIN, shown=0))
    assert mean == 70 and deviation == pytest.approx(14.142, abs=1e-3)


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="T, x: expected 2 figures, got 1"):
        Table("T", ("a", "b"), (Row("x", {}, (1.0,)),))
    with pytest.raises(ValueError, match="T: expected 2 measures, got 1"):
        Table("T", ("a", "b"), (), measures=("test",))
    assert Table("T", (), (Row("x"),), measures=("test", "train")).measures == ("test", "train")
    assert Table("T", ("a", "b", "c"), ()).measures == ("test", "also 1", "also 2")


@pytest.mark.parametrize("name", ["grid", "sweep"])
def test_grids_and_sweeps_are_drawn(name: str, data: Data, tmp_path: Path) -> None:
    run_table(TABLED, name, data, [], [], 1, [*SMALL[:1], *SMALL[2:]], tmp_path)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / f"{name}.json").read_text())["rows"]) == 4


def panels(table: Table, ours: list[list[float]], corpus: str, monkeypatch: pytest.MonkeyPatch) -> list[Axes]:
    """The axes of a table's picture with these figures of ours, row by row."""
    figures: list[Figure] = []
    monkeypatch.setattr(table_figures, "save_figure", lambda figure, path: figures.append(figure))
    results = [{"ours": {table.measures[table.shown]: values}} for values in ours]
    table_figures.plot_table(table, results, corpus, Path("x.png"))
    return figures[0].axes


def drawn(table: Table, ours: list[list[float]], monkeypatch: pytest.MonkeyPatch) -> Axes:
    return panels(table, ours, "SNLI", monkeypatch)[0]


def ticks(axis: Any) -> dict[float, str]:
    return {place: label.get_text() for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)}


def test_each_rows_point_stands_beside_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = drawn(PLAIN, [[80.0, 90.0], [70.0]], monkeypatch)
    assert ticks(axes.yaxis) == {0: "vanilla", 1: "intra-attention"}
    assert axes.yaxis_inverted(), "the first row is the uppermost"
    by_label = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    (ours, *_), paper = by_label["ours: SNLI"], by_label["paper: test"]
    assert by_label["ours: SNLI"].has_xerr
    assert list(zip(*ours.get_data(), strict=True)) == [(85, 0), (70, 1)]
    assert list(zip(*paper.get_data(), strict=True)) == [(86.3, 0), (86.8, 1)]


def test_the_papers_points_have_an_axis_of_their_own_beside_another_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, papers = panels(PLAIN, [[80.0], [70.0]], "generated corpus", monkeypatch)
    labels = [axes.get_legend_handles_labels()[1] for axes in (ours, papers)]
    assert labels == [["ours: generated corpus, one seed"], ["paper: test"]]
    assert not ours.containers[0].has_xerr, "one seed has no spread"
    assert ours.get_ylim() == papers.get_ylim() and ours.get_xlim() != papers.get_xlim()
    assert len(panels(PLAIN, [[80.0], [70.0]], "SNLI", monkeypatch)) == 1
    unprinted = dataclasses.replace(PLAIN, rows=tuple(Row(row.name) for row in PLAIN.rows))
    assert len(panels(unprinted, [[80.0], [70.0]], "generated corpus", monkeypatch)) == 1


def test_a_grids_squares_stand_at_their_options(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = drawn(GRID, [[31.0], [32.0], [41.0], [42.0]], monkeypatch)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hidden size", "max distance")
    assert (ticks(axes.xaxis), ticks(axes.yaxis)) == ({0: "3", 1: "4"}, {0: "1", 1: "2"})
    assert axes.images[0].get_array().tolist() == [[31, 41], [32, 42]]
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts == {(0, 0): "31.0", (0, 1): "32.0", (1, 0): "41.0", (1, 1): "42.0"}


def test_each_line_of_a_sweep_is_of_its_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Row(f"{m}, {h}", {"hidden_size": h}, (h + k,)) for k, m in enumerate(("near", "far")) for h in (3, 4)]
    axes = drawn(dataclasses.replace(SWEEP, rows=tuple(rows)), [[30.0], [40.0], [45.0, 55.0], [60.0]], monkeypatch)
    handles, labels = axes.get_legend_handles_labels()
    lines = {label: getattr(handle, "lines", [handle])[0] for handle, label in zip(handles, labels, strict=True)}
    assert {label: list(zip(*line.get_data(), strict=True)) for label, line in lines.items()} == {
        "near, SNLI, one seed": [(3, 30), (4, 40)],
        "near, paper": [(3, 3), (4, 4)],
        "far, SNLI": [(3, 50), (4, 60)],
        "far, paper": [(3, 4), (4, 5)],
    }
    assert axes.get_xlabel() == "hidden size"
    assert [line.has_yerr for line in axes.containers] == [False, True]
    table = dataclasses.replace(SWEEP, rows=tuple(rows))
    ours, papers = panels(table, [[30.0], [40.0], [50.0], [60.0]], "generated corpus", monkeypatch)
    assert ours.get_ylim() != papers.get_ylim() and papers.get_xlabel() == "hidden size"
    assert [label.rpartition(", ")[2] for label in papers.get_legend_handles_labels()[1]] == ["paper", "paper"]


def test_rows_settle_over_changes_over_the_scripts_own() -> None:
    row = Row("r", {"hidden_size": 7, "lr": 0.5, "unit_vectors": True})
    changes = {"hidden_size": "9", "epochs": "2", "dropout": "0"}
    settings = settle(SCRIPT, row, changes, Data(pairs=500))
    assert settings.config == DecomposableAttentionConfig(hidden_size=7, dropout=0.0)
    assert settings.recipe == dataclasses.replace(SCRIPT.quick, lr=0.5, epochs=2)
    assert settings.data == Data(pairs=500, unit_vectors=True)
    own = settle(SCRIPT, Row("r"), {}, Data(train=Path("x")))
    assert own.recipe == SCRIPT.recipe and own.name == "decomposable-attention"
    names = {settle(SCRIPT, Row("r", {"dropout": d}), {}, Data()).name for d in (0.1, 0.2, 0.3)}
    names |= {settle(SCRIPT, Row("r"), {}, data).name for data in (Data(pairs=500), Data(vector_size=50))}
    assert len(names) == 5
    assert settle(SCRIPT, Row("r"), {}, Data(unit_vectors=True)).data.unit_vectors
    assert settle(UNIT, Row("r"), {}, Data(unit_vectors=False)).data.unit_vectors is False
    assert settle(SCRIPT, Row("r", script="lstm_attention"), {}, Data()).data.unit_vectors
    with pytest.raises(InputError, match="row 'r': decomposable_attention has no option nothing"):
        settle(SCRIPT, Row("r", {"nothing": 1}), {}, Data())
    with pytest.raises(InputError, match="row 'r': hidden_size must be at least 1"):
        settle(SCRIPT, Row("r", {"hidden_size": 0}), {}, Data())
    with pytest.raises(InputError, match="row 'r': --epochs must be at least 1, got 0"):
        settle(SCRIPT, Row("r"), {"epochs": "0"}, Data())


def test_options_for_all_rows(tmp_path: Path) -> None:
    words = ["epochs=3", "lr=1e-3", "glorot=False", "optimizer=adam", "clip_norm=None", "vectors=a/b.txt"]
    options = parse_options(words)
    assert converted(DecomposableAttentionConfig(), options) == {"glorot": False}
    assert converted(Data(), options) == {"vectors": Path("a/b.txt")}
    assert converted(Recipe(), options) == {"epochs": 3, "lr": 1e-3, "optimizer": "adam", "clip_norm": None}
    for part, wrong in (
        (Recipe(), "epochs=2.5"),
        (Recipe(), "optimizer=sgd"),
        (DecomposableAttentionConfig(), "glorot=x"),
    ):
        option, value = wrong.split("=")
        with pytest.raises(InputError, match=f"--options {option}: expected .*, got '{value}'"):
            converted(part, parse_options([wrong]))
    with pytest.raises(InputError, match="--options epochs: is given twice"):
        parse_options(["epochs=3", "lr=1", "epochs=5"])
    assert parse_options(["hidden-size=4"]) == {"hidden_size": "4"}
    with pytest.raises(InputError, match="--options glorot: expected True or False, got 'yes'"):
        converted(DecomposableAttentionConfig(), {"glorot": "yes"})
    for wrong in ("epochs", "=3", "a b=3"):
        with pytest.raises(InputError, match="expected NAME=VALUE"):
            parse_options([wrong])
    with pytest.raises(InputError, match="--options train: is an option of the table itself: --train"):
        run_table(TABLED, "1", Data(), [], [], 1, ["train=a.jsonl"], tmp_path / "tables")
    with pytest.raises(InputError, match="--options vector_size: is an option of the table itself: --vector-size"):
        run_table(TABLED, "1", Data(), [], [], 1, ["vector_size=7"], tmp_path / "tables")
    with pytest.raises(InputError, match="--options nothing: no row has this option"):
        run_table(TABLED, "1", Data(), [], [], 1, ["nothing=1"], tmp_path / "tables")
    with pytest.raises(InputError, match="--options max_distance: every row of this table has its own"):
        run_table(TABLED, "grid", Data(), [], [], 1, ["max_distance=1"], tmp_path / "tables")
    with pytest.raises(InputError, match="--options min_lr: changes nothing with --optimizer adam"):
        run_table(TABLED, "1", Data(), [], [], 1, ["min_lr=0.01", "optimizer=adam"], tmp_path / "tables")
    with pytest.raises(InputError, match="--options: make the rows 'vanilla' and 'intra-attention' the same"):
        run_table(TABLED, "1", Data(), [], [], 1, ["intra_attention=True"], tmp_path / "tables")
    with pytest.raises(InputError, match="--options distances: expected one of signed, absolute, two-sided, got 'x'"):
        run_table(TABLED, "1", Data(), [], [], 1, ["distances=x"], tmp_path / "tables")
    with pytest.raises(InputError, match="--seeds must be at least 1, got 0"):
        run_table(TABLED, "1", Data(), [], [], 0, [], tmp_path / "tables")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_row_of_every_paper_settles(name: str) -> None:
    """Options exist, models can be configured, the paper's figures fit their columns."""
    script: Script = importlib.import_module(name).SCRIPT
    assert script.tables and script.tables == importlib.import_module(f"paper_tables.{name}").TABLES
    for table in script.tables.values():
        assert len({row.name for row in table.rows}) == len(table.rows)
        for row in table.rows:
            for column, measure in zip(table.columns, table.measures, strict=False):
                assert all(measure.startswith(split) for split in ("train", "dev") if column.split()[0] == split)
            for measure, figure in zip(table.measures, row.paper, strict=False):
                assert figure is None or "/epoch" in measure or "seconds" in measure or 1 < figure <= 100
            for data in (Data(), Data(train=Path("x"))):
                settings = settle(script, row, {}, data)
                assert isinstance(settings.recipe, Recipe) and not settings.recipe.problems()
        if table.figure in ("grid", "sweep"):
            assert all(set(table.axes) <= set(row.options) for row in table.rows)


@pytest.fixture
def of_the_docs() -> Any:
    """The command that trains the tables of the documentation."""
    place = Path(__file__).parents[1] / "docs" / "tables" / "train.py"
    spec = importlib.util.spec_from_file_location("train", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_table_is_in_the_docs_and_trained_by_their_command(of_the_docs: Any) -> None:
    planned = [(trained.script, name) for trained in of_the_docs.PLAN for name in trained.names]
    scripts = {script: importlib.import_module(script).SCRIPT for script, _ in planned}
    assert sorted(planned) == sorted((script, name) for script in scripts for name in scripts[script].tables)
    assert sorted(planned) == sorted((page.parent.name, page.stem) for page in of_the_docs.TABLES.glob("*/*.md"))


def test_the_docs_tables_are_of_what_their_command_asks_for(of_the_docs: Any) -> None:
    for trained in of_the_docs.PLAN:
        for name in trained.names:
            held = json.loads((of_the_docs.TABLES / trained.script / f"{name}.json").read_text())
            assert held["options"] == parse_options(trained.options) and held["seeds"] == trained.seeds
            also = "".join(f", also {k}: {file}" for k, file in enumerate(trained.also, start=1))
            pairs = f"trained and tested on the generated corpus, {trained.pairs:,} training pairs"
            assert held["data"] == pairs + also


def test_the_docs_other_pairs_are_read_with_their_categories(of_the_docs: Any, data: Data, tmp_path: Path) -> None:
    of_the_docs.write_samples(tmp_path)
    files = [[tmp_path / name for name in names] for names in (of_the_docs.BOTH_OTHERS, of_the_docs.ANNOTATIONS)]
    for other in table_runs.open_others(*files, data.cache):
        assert len(other.corpus) == 2_000 and other.corpus.tags
        named = [other.corpus.phenomena[k] for k in other.corpus.phenomenon]
        negated = [place for place, phenomenon in enumerate(named) if phenomenon == "negation"]
        assert other.categories["negation"] == negated and "long sentence" in other.categories
    for other in table_runs.open_others([tmp_path / name for name in of_the_docs.BOTH_HARD], [], data.cache):
        assert set(other.corpus.phenomena) == set(of_the_docs.HARD)


def test_long_names_differ_in_their_last_option() -> None:
    changes = {"lr": "0.123456789", "clip_norm": "1.23456789", "batch_size": "123", "patience": "12", "l2": "0.0001234"}
    changes |= {"dropout": "0.123456789", "min_lr": "0.0123456", "normalized_decay": "0.00123", "max_distance": "7"}
    changes |= {"restart_epochs": "5", "restart_factor": "3"}
    row = Row("long", {"hidden_size": 8})
    settings = (settle(SCRIPT, row, changes | {"warmup_epochs": epochs}, Data()) for epochs in ("0.5", "0.25"))
    assert len({each.name for each in settings}) == 2
