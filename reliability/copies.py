"""Layers, models, configurations and batches in other processes, other dtypes, and from the meta device."""

import copy
import pickle
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from nli_common.batches import PairDataset, loader, shared
from nli_common.data import Batch
from nli_common.generated import generated_corpus
from nli_common.lexicon import Lexicon
from reliability.cases import CASES, CONFIGS, MODELS, Case, Tensors, lexicon, outputs
from reliability.transforms import difference

KINDS = ("similar lengths", "same lengths", "the first pairs", "one process's part")
"""Of batches: as training and evaluation ask for them."""


def batches_by_workers(method: str, pairs: int, kinds: Sequence[str] = KINDS) -> dict[str, int]:
    """Batches from two worker processes against those made here: how many are equal to the bit, in each order."""
    corpus = generated_corpus(pairs, "train")
    dataset = PairDataset(corpus, Lexicon.random(corpus.words, 3, tags=corpus.tags), corpus.labels, corpus.phenomena)
    made = {
        "similar lengths": loader(dataset, 16, 0),
        "same lengths": loader(dataset, 16, 0, same_lengths=True),
        "the first pairs": loader(dataset, 16, None, limit=pairs // 3),
        "one process's part": shared(loader(dataset, 16, 0), 1, 2),
    }
    found = {}
    for name in kinds:
        batches = made[name]
        workers: DataLoader[Batch] = DataLoader(
            batches.dataset,
            batch_sampler=batches.batch_sampler,
            collate_fn=batches.collate_fn,
            num_workers=2,
            multiprocessing_context=method,
        )
        ours, theirs = list(batches), list(workers)
        if len(ours) != len(theirs) or not all(map(_same, ours, theirs)):
            raise AssertionError(f"workers by {method} give other batches of {name}")
        found[name] = len(ours)
    return found


def _same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return torch.equal(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else a is None and b is None


def in_a_fresh_process(names: Sequence[str]) -> dict[str, float]:
    """Each module pickled, called in a process that was spawned, and copied: the largest difference of its outputs."""
    calls = {name: (CASES[name].module(), CASES[name].inputs(3, 5)) for name in names}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        answers = pickle.loads(pool.submit(_answer, pickle.dumps(calls)).result())
    found = {}
    for name, (module, inputs) in calls.items():
        expected = outputs(module, inputs)
        found[name] = max(
            difference(answers[name], expected), difference(outputs(copy.deepcopy(module), inputs), expected)
        )
    return found


def _answer(message: bytes) -> bytes:
    calls: dict[str, tuple[nn.Module, Tensors]] = pickle.loads(message)
    return pickle.dumps({n: tuple(y.detach() for y in outputs(module, x)) for n, (module, x) in calls.items()})


def configurations_in_a_fresh_process() -> int:
    """Every configuration, a lexicon and a batch go to a spawned process and come back equal; how many."""
    words = lexicon()
    sent = ([config for _, config in CONFIGS.values()], words)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        configs, returned = pool.submit(_echo, sent).result()
    if configs != sent[0] or vars(returned).keys() != vars(words).keys():
        raise AssertionError("a configuration came back another")
    for name, value in vars(words).items():
        came = getattr(returned, name)
        if not (torch.equal(came, value) if isinstance(value, Tensor) else came == value):
            raise AssertionError(f"a lexicon's {name} came back another")
    return len(configs) + 1


def _echo(sent: object) -> object:
    return sent


def there_and_back(case: Case) -> float:
    """A state in bfloat16's numbers, to float64 and back, and to the meta device's shapes: the largest difference."""
    module, twin, inputs = case.module().bfloat16(), case.module(1).bfloat16(), case.inputs(3, 5)
    state = {name: x.double() for name, x in module.state_dict().items()}
    twin.load_state_dict({name: x.bfloat16() for name, x in state.items()})
    shapes = copy.deepcopy(module).to("meta").state_dict()
    if {name: x.shape for name, x in shapes.items()} != {name: x.shape for name, x in state.items()}:
        raise AssertionError("the meta device has other shapes")
    return difference(outputs(twin.double(), inputs), outputs(module.double(), inputs))


def assigned(case: Case) -> float:
    """A module on the meta device that is given another's tensors by ``assign=True``: the difference of its outputs."""
    module, inputs = case.module(), case.inputs(3, 5)
    with torch.device("meta"):
        hollow = case.build().double().eval()
    hollow.load_state_dict(module.state_dict(), assign=True)
    for name, parameter in hollow.named_parameters():
        if parameter.data_ptr() != module.get_parameter(name).data_ptr():
            raise AssertionError(f"{name} was copied")
    return difference(outputs(hollow, inputs), outputs(module, inputs))


def filled(case: Case) -> float:
    """A module on the meta device that is emptied onto the CPU and loaded: the difference of its outputs.

    A model's word vectors are no part of its state, and are put back by hand.
    """
    module, inputs = case.module(), case.inputs(3, 5)
    with torch.device("meta"):
        hollow = case.build().double().eval()
    hollow.to_empty(device="cpu")
    for x in (*hollow.parameters(), *hollow.buffers()):
        x.data.fill_(77)
    hollow.load_state_dict(module.state_dict())
    for name, buffer in hollow.named_buffers():
        if name not in module.state_dict():
            buffer.copy_(module.get_buffer(name))
    return difference(outputs(hollow, inputs), outputs(module, inputs))


def unsaved(case: Case) -> list[str]:
    """The buffers that are no part of a module's state."""
    module = case.module()
    return [name for name, x in module.named_buffers() if name not in module.state_dict() and x.numel()]


def refusals(case: Case) -> int:
    """A state without a key, with another one, and with another shape; each refusal names the key. How many keys."""
    module, keys = case.module(), 0
    whole = module.state_dict()
    for key, value in whole.items():
        keys += 1
        renamed = {**{k: v for k, v in whole.items() if k != key}, f"{key}_other": value}
        larger = {**whole, key: value.new_zeros((*value.shape, 2))}
        for state, parts in ((renamed, (f'"{key}"', f'"{key}_other"')), (larger, (f"size mismatch for {key}:",))):
            try:
                module.load_state_dict(state)
            except RuntimeError as error:
                if not all(part in str(error) for part in parts):
                    raise AssertionError(f"{key} is not in {error}") from None
            else:
                raise AssertionError(f"a state with another {key} was accepted")
    return keys


def unsaved_of_models() -> dict[str, list[str]]:
    """What ``to_empty`` would leave empty in each reference model."""
    return {name: unsaved(case) for name, case in MODELS.items()}
