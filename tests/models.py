"""What the tests of whole models share: a small lexicon, drawn sentences, the laws, and weights as plain lists."""

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

import strategies
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from nlilayers.masking import lengths_to_mask
from strategies import normal

TAGS = ["DT", "NN", "VBZ"]
TINY = Lexicon([f"w{i}" for i in range(40)], normal(0, 40, 7).float().double(), tags=TAGS)  # a model rounds them


@st.composite
def sentences(draw: st.DrawFn, batch: int = 3, shortest: int = 1) -> Sentence:
    """Sentences of up to six words, with tags, the unknown tag 0 among them."""
    lengths = torch.tensor(draw(st.lists(st.integers(shortest, 6), min_size=batch, max_size=batch)))
    mask = lengths_to_mask(lengths, max(1, int(lengths.max())))
    generator = torch.Generator().manual_seed(draw(strategies.seeds))
    tokens = torch.randint(len(TINY), mask.shape, generator=generator)
    return Sentence(tokens, mask, torch.randint(1 + len(TAGS), mask.shape, generator=generator) * mask)


def full(*rows: list[int], pos: list[list[int]] | None = None) -> Sentence:
    """Sentences of one length, without padding."""
    tokens = torch.tensor(rows)
    return Sentence(tokens, torch.ones_like(tokens, dtype=torch.bool), None if pos is None else torch.tensor(pos))


def alone(sentence: Sentence, row: int) -> Sentence:
    """One sentence without its padding."""
    real = sentence.mask[row]
    pos = None if sentence.pos is None else sentence.pos[row][real][None]
    return Sentence(sentence.tokens[row][real][None], real[real][None], pos)


def reordered(sentence: Sentence, order: list[int]) -> Sentence:
    pos = None if sentence.pos is None else sentence.pos[:, order]
    return Sentence(sentence.tokens[:, order], sentence.mask[:, order], pos)


def behind_padding(sentence: Sentence, columns: int) -> Sentence:
    """The same sentences with all of their padding, and some more, before the words."""
    wide = widened(sentence, columns)
    words_last = wide.mask.to(torch.uint8).argsort(dim=1, stable=True)
    return Sentence(*(None if x is None else x.gather(1, words_last) for x in wide))


def widened(sentence: Sentence, columns: int) -> Sentence:
    def pad(x: Tensor, value: int) -> Tensor:
        return nn.functional.pad(x, (0, columns), value=value)

    pos = None if sentence.pos is None else pad(sentence.pos, 1)
    return Sentence(pad(sentence.tokens, int(sentence.tokens.max())), pad(sentence.mask, False), pos)


def randomised(model: nn.Module, seed: int = 0, scale: float = 0.5) -> nn.Module:
    """The model in float64 and in evaluation, its parameters drawn anew: a small start would hide what they do."""
    model = model.double().eval()
    for k, parameter in enumerate(model.parameters()):
        parameter.data = normal(seed + k, *parameter.shape, scale=scale)
    return model


def trainable(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def padding_and_batch_mates_change_nothing(model: nn.Module, premise: Sentence, hypothesis: Sentence) -> None:
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        assert_close(model(alone(premise, row), alone(hypothesis, row))[0], logits[row], atol=1e-12, rtol=1e-12)
    assert_close(model(widened(premise, 2), widened(hypothesis, 3)), logits, atol=1e-12, rtol=1e-12)
    garbled = (
        s._replace(tokens=s.tokens.masked_fill(~s.mask, 39), pos=s.pos.masked_fill(~s.mask, len(TAGS)))
        for s in (premise, hypothesis)
    )
    assert torch.equal(model(*garbled), logits)
    padding_before_words_is_refused_or_changes_nothing(model, premise, hypothesis)


def padding_before_words_is_refused_or_changes_nothing(
    model: nn.Module, premise: Sentence, hypothesis: Sentence
) -> None:
    try:
        moved = model(behind_padding(premise, 2), behind_padding(hypothesis, 1))
    except ValueError as refused:
        assert str(refused).startswith("mask must have the real words of each sentence first")
    else:
        assert_close(moved, model(premise, hypothesis), atol=1e-12, rtol=1e-12)


def sentences_without_words_are_harmless(model: nn.Module) -> None:
    """An empty sentence beside full ones: finite numbers, and the full ones keep theirs."""
    some = full([1, 2, 3], [4, 5, 6])
    empty = some._replace(mask=torch.tensor([[False] * 3, [True] * 3]))
    for premise, hypothesis in ((empty, some), (some, empty), (empty, empty)):
        logits = model(premise, hypothesis)
        assert torch.isfinite(logits).all()
        assert_close(logits[1], model(some, some)[1], atol=1e-12, rtol=1e-12)
        model.zero_grad()
        (logits * normal(1, *logits.shape)).sum().backward()
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


def every_parameter_gets_a_gradient(model: nn.Module) -> None:
    premise = full([1, 2, 3, 4], pos=[[1, 2, 3, 1]])
    model(premise, full([5, 6, 7], pos=[[3, 2, 1]]))[0, 0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def it_overfits_nine_pairs(model: nn.Module, lr: float = 3e-3, steps: int = 300, words: int = 40) -> None:
    """Within so many steps, looked at after every tenth."""
    generator = torch.Generator().manual_seed(1)
    premise, hypothesis = (full(*torch.randint(words, (9, 5), generator=generator).tolist()) for _ in range(2))
    label = torch.arange(9) % 3
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(1, steps + 1):
        loss = nn.functional.cross_entropy(model.train()(premise, hypothesis), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 and torch.equal(model.eval()(premise, hypothesis).argmax(-1), label):
            return
    raise AssertionError(f"{type(model).__name__} did not learn nine pairs within {steps} steps")


Linear = tuple[list[list[float]], list[float]]


def linear_of(layer: nn.Module) -> Linear:
    assert isinstance(layer, nn.Linear)
    return layer.weight.tolist(), layer.bias.tolist()


def perceptron_of(layers: nn.Module) -> list[Linear]:
    return [linear_of(layer) for layer in layers.modules() if isinstance(layer, nn.Linear)]


def lstm_of(layer: nn.Module) -> tuple[list[list[float]], list[list[float]], list[float], list[float]]:
    assert isinstance(layer, nn.LSTM)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    w_input, w_hidden, b_input, b_hidden = (getattr(layer, name).tolist() for name in names)
    return w_input, w_hidden, b_input, b_hidden


def layers_of(lstm: nn.Module) -> list[tuple]:
    """A bidirectional sentence LSTM's layers, each with its two directions."""
    return [(lstm_of(right), lstm_of(left)) for right, left in zip(lstm.rightward, lstm.leftward, strict=True)]
