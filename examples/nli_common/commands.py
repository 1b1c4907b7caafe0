"""The command line of a script: train, evaluate, predict, explain, table."""

import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import torch.distributed as dist
import tyro
from tyro.conf import DisallowNone

from nli_common.denormals import flushed_denormals
from nli_common.errors import InputError
from nli_common.evaluating import evaluate_runs
from nli_common.exits import told_in_one_line
from nli_common.explaining import explain_pair
from nli_common.inputs import CACHE, Data
from nli_common.options import require_effect, require_named_once, require_rate
from nli_common.predicting import predict_file, predict_pair
from nli_common.recipe import Recipe
from nli_common.runs import Run
from nli_common.script import Script
from nli_common.table_runs import run_table
from nli_common.train_runs import train_run


def main(script: Script) -> None:
    """Run the script's command line; bad input ends with one line on stderr and exit code 2."""
    commands = {
        "train": _train_command(script),
        "evaluate": _evaluate_command(script),
        "predict": _predict_command(script),
    }
    if script.explains:
        commands["explain"] = _explain_command(script)
    if script.tables:
        commands["table"] = _table_command(script)
    signal.signal(signal.SIGTERM, _interrupt)
    style = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    try:
        with told_in_one_line(), flushed_denormals():
            require_named_once(sys.argv[1:])
            tyro.extras.subcommand_cli_from_dict(commands, prog=f"{script.name}.py", config=style)
            _leave_other_processes()
    except KeyboardInterrupt as stop:
        number = signal.Signals(stop.args[0] if stop.args else signal.SIGINT)
        trains = not {"train", "table"}.isdisjoint(sys.argv[1:2])
        goes_on = "; the same command goes on from its last checkpoint" if trains else ""
        print(f"stopped by {number.name}{goes_on}", file=sys.stderr)
        sys.exit(128 + number)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt(number)


def _leave_other_processes() -> None:
    """End the threads that exchanged tensors: one that is still busy when the interpreter goes aborts the process."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def _given(option: str) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in sys.argv)


def _train_command(script: Script) -> Any:
    config_type: Any
    config_type, config_default = _configurations(script)
    paper = script.recipe if _given("--train") else script.quick

    def train(
        config: config_type = config_default,
        recipe: Recipe = paper,
        data: Data = script.data,
        seed: int = 0,
        output: Path = Path("runs") / script.name,
        checkpoint_seconds: float = 60.0,
    ) -> None:
        """Train the model; repeating the command resumes an interrupted run.

        Args:
            config: The model.
            recipe: How it is trained: the paper's recipe with --train (train --train FILE --help shows it), and a short
                one for the generated corpus.
            data: The files.
            seed: Seed of the initial weights, the order of the pairs, and dropout.
            output: Folder of this run: configuration, lexicon, weights, metrics.json, figures.
            checkpoint_seconds: Write a checkpoint this often, besides one at the end of each epoch.
        """
        config = _checked(config)
        require_effect((config, type(config)()), (recipe, paper), (data, script.data))
        require_rate(recipe, paper, given=_given("--lr"))
        train_run(script, config, recipe, data, seed, Run(output), checkpoint_seconds)

    return train


def _evaluate_command(script: Script) -> Any:
    def evaluate(
        run: tuple[Path, ...],
        test: Path,
        vectors: Path | None = None,
        categories: Path | None = None,
        cache: Path = CACHE,
        output: Path | None = None,
    ) -> None:
        """Evaluate a run on another file, without training; of several runs, the mean of their probabilities.

        Args:
            run: Folders that train wrote. A single run's figures go to evaluation-NAME.json there.
            test: Pairs, in any format that train takes.
            vectors: Vectors for words that the run has not seen; without it they are hashed.
            categories: MultiNLI's annotations: a pair's ID and its #CATEGORIES in each line.
            cache: Folder in which indexed corpora are cached.
            output: Write the figures to this file.
        """
        evaluate_runs(script, [Run(folder) for folder in run], test, vectors, categories, cache, output)

    return evaluate


def _predict_command(script: Script) -> Any:
    def predict(
        run: Path,
        premise: DisallowNone[str | None] = None,
        hypothesis: DisallowNone[str | None] = None,
        figure: Path | None = None,
        pairs: Path | None = None,
        vectors: Path | None = None,
        output: Path | None = None,
    ) -> None:
        """Classify one pair, or every pair of a file, with a run's folder alone; new words work too.

        Args:
            run: Folder that train wrote.
            premise: What is given, as text.
            hypothesis: What may follow from it, as text.
            figure: Write the word alignment of this pair to a .png, .pdf or .svg file.
            pairs: In place of one pair, a file of pairs in any format that train takes; a label of - stands for none.
            vectors: With --pairs, vectors for words that the run has not seen; without it they are hashed.
            output: With --pairs, the file to write: every class's probability for each pair, as JSON in a .jsonl file,
                as tab-separated values in any other. Without it they are printed.
        """
        if premise is not None and hypothesis is not None and (pairs, vectors, output) == (None, None, None):
            predict_pair(script, Run(run), premise, hypothesis, figure)
        elif pairs is not None and (premise, hypothesis, figure) == (None, None, None):
            predict_file(script, Run(run), pairs, vectors, output)
        else:
            raise InputError(
                "predict: expected either --premise and --hypothesis, with --figure if wanted, "
                "or --pairs, with --output and --vectors if wanted"
            )

    return predict


def _explain_command(script: Script) -> Any:
    def explain(run: Path, premise: str, hypothesis: str, output: Path | None = None) -> None:
        """Show in one HTML page which words the model aligned, and what it predicts for the pair.

        Args:
            run: Folder that train wrote.
            premise: What is given, as text.
            hypothesis: What may follow from it, as text.
            output: The page; without it, explanation.html in the run's folder.
        """
        explain_pair(script, Run(run), premise, hypothesis, output)

    return explain


def _table_command(script: Script) -> Any:
    choices: Any = Literal[tuple(script.tables)]
    titles = "; ".join(f"{name} ({table.title})" for name, table in script.tables.items())
    names: Any = Annotated[choices, tyro.conf.arg(help=titles)]

    def table(
        name: tyro.conf.Positional[names],
        data: Data = script.data,
        also: tuple[Path, ...] = (),
        categories: tuple[Path, ...] = (),
        seeds: int = 3,
        options: tuple[str, ...] = (),
        output: Path = Path("runs") / "tables" / script.name,
    ) -> None:
        """Train every row of one of the paper's tables and print ours beside the paper's figures.

        Repeating the command trains the remaining runs; a run that several rows share is trained only once. Tables are
        written as NAME.md, NAME.json and NAME.png.

        Args:
            name: The table.
            data: The files; without --train, the generated corpus.
            also: More test files, the table's next columns.
            categories: MultiNLI's annotations of the first, second … of these files.
            seeds: Runs of each row, from seed 0.
            options: NAME=VALUE for every row that has this option of train and no value of its own: epochs=3 lr=1e-3.
            output: Folder of the tables and their runs.
        """
        require_effect((data, script.data))
        run_table(script, name, data, also=also, categories=categories, seeds=seeds, options=options, output=output)

    return table


def _configurations(script: Script) -> tuple[Any, Any]:
    """The type of the configuration option and its default; with several models, each is a word of the command line."""
    types = [_unchecked(kind) for kind in script.models]
    if len(types) == 1:
        return types[0], types[0]()
    named = (Annotated[kind, tyro.conf.subcommand(name=script.short_name(kind))] for kind in types)
    return Union[tuple(named)], types[0]()  # noqa: UP007 - the members are not known here


def _unchecked(kind: type) -> Any:
    """A configuration's class for the parser, which would tell what its checks find under a name of its own."""
    return type(kind.__name__, (kind,), {"__post_init__": lambda config: None, "__doc__": kind.__doc__})


def _checked(unchecked: Any) -> Any:
    """The configuration that was parsed.

    Raises:
        InputError: if its options are bad, or do not fit together.
    """
    kind: Any = type(unchecked).__base__
    try:
        return kind(**vars(unchecked))
    except ValueError as error:
        field, _, problem = str(error).partition(" ")
        raise InputError(f"--{field.replace('_', '-')} {problem}") from None
