"""Several processes: DistributedDataParallel, FSDP2, a launched script, loaders' workers, and copies that travel."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import torch
from reliability import copies, launched, parallel
from reliability.cases import CASES, MODELS, Case
from reliability.spread import page
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.data import DataLoader

from nli_common.checkpoints import load_weights, save_weights
from nli_common.data import Batch
from nli_common.errors import InputError
from nli_common.runs import Run
from nlilayers import FactorizationMachine
from runs import ROOT, launcher, run_script, write_corpora
from sharded import sharded_starts, share_of_a_batch

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def test_two_processes_train_as_one_does() -> None:
    for (net, way), figures in parallel.spread_training(steps=5).items():
        assert figures["losses"] < 1e-12 and figures["parameters"] < 1e-12, (net, way, figures)
        assert figures["moved"] > 1e-3, f"{net} learned nothing"


def test_accelerate_launches_two_processes_on_a_cpu_by_the_environment(tmp_path: Path) -> None:
    """Its --cpu starts one process whatever --num_processes says, and cannot stand beside --multi_gpu.

    Two with half a batch each learn as one does with all of it, also by a decay that depends on the batch's size.
    """
    options, weights = write_corpora(tmp_path, train=21), []  # of a batch of 5, one process has 3
    for name, option, processes, batch in (("env", "--multi_gpu", 2, 4), ("cpu", "--cpu", 1, 8)):
        arguments = launched.training(options, batch, 1, tmp_path / name)
        arguments[arguments.index("adagrad")] = "adamwr"
        done = launched.run(launched.accelerate(option), [*arguments, "--normalized-decay", "0.5"])
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / name / "config.json").read_text())["processes"] == processes
        weights.append(load_file(tmp_path / name / "model.safetensors"))
    assert_close(*weights, atol=1e-8, rtol=0)


def test_of_several_processes_one_predicts(tmp_path: Path) -> None:
    """Each has a share of the pairs in a training; here one has them all, and writes them once."""
    options, run = write_corpora(tmp_path, train=20), tmp_path / "run"
    done = run_script(*launched.training(options, 8, 1, run), script=launched.SCRIPT)
    assert done.returncode == 0, done.stderr
    one, two = tmp_path / "1.tsv", tmp_path / "2.tsv"
    command = ["predict", "--run", str(run), "--pairs", str(tmp_path / "test.tsv"), "--output"]
    for done in (
        run_script(*command, one, script=launched.SCRIPT),
        launched.run(launcher(2), [*command, str(two)]),
    ):
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("60 pairs") == 1
    assert one.read_text() == two.read_text()


def test_of_several_processes_one_writes_a_table(tmp_path: Path) -> None:
    options, output = write_corpora(tmp_path, train=20), tmp_path / "tables"
    small = ["--seeds", "1", "--options", "epochs=1", "hidden_size=4", "batch_size=8"]
    command = ["table", "1", *options, "--also", str(tmp_path / "dev.tsv"), *small, "--output", str(output)]
    done = launched.run(launcher(2), command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("# Table 1") == 1
    rows = json.loads((output / "1.json").read_text())["rows"]
    for row in rows:
        config = json.loads((output / f"{row['settings']}-seed0" / "config.json").read_text())
        assert config["processes"] == 2 and row["ours"]["also 1"] == row["ours"]["dev"]
    assert len(rows) == 2


def test_a_run_goes_on_with_as_many_processes_as_it_began_with(tmp_path: Path) -> None:
    Run(tmp_path).claim({"processes": 2}).release()
    with pytest.raises(InputError, match="with processes=2 where this one has 1"):
        Run(tmp_path).claim({"processes": 1})


def test_weights_that_do_not_fit_are_refused_by_their_key_in_one_line(tmp_path: Path) -> None:
    save_weights(tmp_path / "w", FactorizationMachine(5, 3))
    with pytest.raises(InputError, match="size mismatch for factors") as caught:
        load_weights(tmp_path / "w", FactorizationMachine(5, 4))
    assert "\n" not in str(caught.value)


def test_sharded_parameters_start_as_whole_ones_do() -> None:
    """Where a part of one is written to, what is written is lost."""
    for layer, parameters in sharded_starts().items():
        for name, (whole, sharded) in parameters.items():
            if len(whole.unique()) < 4:
                assert torch.equal(sharded.reshape(whole.shape), whole), (layer, name)
            else:
                spread = whole.std()
                assert abs(sharded.std() / spread - 1) < 0.1 and abs(sharded.mean()) < 0.1 * spread, (layer, name)


def test_processes_share_the_sentences_of_a_convolution() -> None:
    assert share_of_a_batch() < 1e-12


def test_fully_shard_takes_no_scalar_parameter() -> None:
    assert parallel.refusal_of_scalars().startswith("fully_shard doesn't support scalar parameters. ")


def test_a_launched_script_ends_as_one_process_does_and_goes_on_when_killed(tmp_path: Path) -> None:
    """161 pairs in batches of 16: one batch in the middle has a single pair, which one process goes without."""
    found = launched.both_ways(tmp_path, train=161, epochs=3, same_lengths=False, kills=1, launcher=launcher)
    assert found["kills"] == 1, "the run ended before it could be killed"
    assert found["losses"] < 1e-12 and found["weights"] < 1e-7


def test_a_launched_run_that_fails_is_told_with_what_it_said(tmp_path: Path) -> None:
    """It would be started anew without end."""
    options = write_corpora(tmp_path, train=20)
    (tmp_path / "dev.tsv").unlink()
    arguments = launched.training(options, 8, 1, tmp_path / "run")
    with pytest.raises(AssertionError, match=r"the run ended with 2: [^$]*dev\.tsv: no such file"):
        launched.run_and_kill(launcher(1), arguments, tmp_path / "run" / "checkpoint.safetensors")


def test_a_launched_table_is_written_and_printed_once(tmp_path: Path) -> None:
    """Its only row leaves a process that writes nothing nothing to wait for."""
    files = write_corpora(tmp_path, 64)
    options = [*files, "--also", files[-1], "--seeds", "1", "--options", "epochs=1", "hidden_size=8"]
    command = ["table", "snli", *options, "--output", str(tmp_path / "table")]
    done = launched.run(launched.torchrun(), command, script=ROOT / "examples" / "esim.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count((tmp_path / "table" / "snli.md").read_text()) == 1, done.stdout
    assert (tmp_path / "table" / "snli.json").exists() and not list(tmp_path.rglob("*.tmp"))


def test_workers_make_the_same_batches() -> None:
    assert all(count > 2 for count in copies.batches_by_workers("fork", 120).values())
    assert copies.batches_by_workers("spawn", 120, ["the first pairs"]) == {"the first pairs": 3}


def test_other_labels_from_a_worker_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many pairs, as long as they should be."""

    class Mistaken(DataLoader):
        def __iter__(self) -> Iterator[Batch]:
            return (batch._replace(label=batch.label.flip(0)) for batch in super().__iter__())

    monkeypatch.setattr(copies, "DataLoader", Mistaken)
    with pytest.raises(AssertionError, match="workers by fork give other batches of the first pairs"):
        copies.batches_by_workers("fork", 60, ["the first pairs"])


@pytest.mark.parametrize("copied", [copies.there_and_back, copies.assigned, copies.filled], ids=lambda f: f.__name__)
def test_what_a_state_leaves_out_is_seen(copied: Callable[[Case], float]) -> None:
    numbers = count(1.0)

    class Numbered(nn.Linear):
        """Each has a number of its own, which is no part of its state."""

        def __init__(self) -> None:
            super().__init__(3, 3)
            self.number = next(numbers)

        def forward(self, x: Tensor) -> Tensor:
            return self.number * super().forward(x)

    assert copied(Case(Numbered, lambda batch, length, *_: (torch.ones(batch, length, 3).double(),))) > 0


def test_everything_goes_to_another_process_and_back() -> None:
    assert set(copies.in_a_fresh_process(list(CASES)).values()) == {0.0}
    assert copies.configurations_in_a_fresh_process() == 11


def test_word_vectors_are_no_part_of_a_models_state() -> None:
    """``to_empty`` empties them, and no state brings them back; ``assign=True`` leaves them alone."""
    assert copies.unsaved(CASES["DecomposableAttention"]) == ["model.embedding.words.vectors"]
    assert not any(copies.unsaved(CASES[name]) for name in CASES if name not in MODELS)


@every_case
@pytest.mark.parametrize("copied", [copies.there_and_back, copies.assigned, copies.filled], ids=lambda f: f.__name__)
def test_a_state_is_all_that_a_module_is(case: Case, copied: Callable[[Case], float]) -> None:
    assert copied(case) == 0


@every_case
def test_a_state_that_does_not_fit_is_refused_by_its_key(case: Case) -> None:
    assert copies.refusals(case) == len(case.module().state_dict())


def test_the_page_is_what_was_measured() -> None:
    held = json.loads((Path(copies.__file__).parent / "spread.json").read_text())
    written = page(held)
    assert f"| {held['launched'][0]['pairs']:,} |" in written and held["limits"]["fully_shard"] in written
    held["parallel"][0]["losses"] = 0.5
    assert "| 5e-01 |" in page(held) != written
