"""Vectors from a pretrained encoder: what they are, that each sentence is read once, and the model on top of them."""

import copy
import dataclasses
import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor, nn
from torch.testing import assert_close
from transformers import (
    AutoModel,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    BertPreTrainedModel,
    BertTokenizerFast,
    GPT2Config,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    T5Config,
)

import runs
from gaussian_transformer import SCRIPT, GaussianTransformer, GaussianTransformerConfig
from nli_common import contextual
from nli_common.contextual import ContextualVectors, LayerInsertion, LayerMix, VectorCache, fingerprint_of_folder
from nli_common.data import Sentence
from nli_common.errors import InputError
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.predicting import prepare_pair
from nli_common.runs import Run
from nli_common.train_runs import train_run
from nlilayers import AlignmentFactorization, GatedConvEncoder, GaussianPrior, GaussianSelfAttention, Highway
from nlilayers.masking import lengths_to_mask
from strategies import normal

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdt", *(f"##{letter}" for letter in "abcdt"), "cat", ","]
WORDS = ["cat", "bad", "Cat", "tab,cat", "zebra", "a", "dab", "\u200b"]
NOTHING = WORDS.index("\u200b")
LEXICON = Lexicon.random(WORDS, 5)
SIZES = {"num_hidden_layers": 2, "hidden_size": 6, "num_attention_heads": 3, "intermediate_size": 11}
LONGEST = 13


def write_encoder(folder: Path, seed: int = 0) -> Path:
    """A BERT of random weights, far from its tiny start, and a vocabulary of its own."""
    torch.manual_seed(seed)
    encoder = BertModel(BertConfig(vocab_size=len(PIECES), max_position_embeddings=LONGEST, **SIZES))
    for parameter in encoder.parameters():
        parameter.data = torch.randn_like(parameter) / 2
    encoder.save_pretrained(folder)
    BertTokenizerFast(vocab={piece: k for k, piece in enumerate(PIECES)}).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def sentence(*rows: list[int]) -> Sentence:
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.tensor([row + [0] * (int(lengths.max()) - len(row)) for row in rows])
    return Sentence(tokens, lengths_to_mask(lengths))


def loaded(vectors: ContextualVectors) -> bool:
    return "_encoder" in vars(vectors)


def read_alone(folder: Path, words: list[str]) -> Tensor:
    """Every layer of one sentence, word by word: the mean of its pieces, found by tokenizing each word by itself."""
    tokenizer, encoder = BertTokenizerFast.from_pretrained(folder), BertModel.from_pretrained(folder).eval()
    pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    ids = [PIECES.index("[CLS]"), *(piece for word in pieces for piece in word), PIECES.index("[SEP]")]
    with torch.no_grad():
        states = encoder(torch.tensor([ids]), output_hidden_states=True).hidden_states
    result, place = torch.zeros(len(states), len(words), states[0].shape[-1]), 1
    for i, word in enumerate(pieces):
        for layer, state in enumerate(states):
            if word:
                result[layer, i] = sum(state[0, place + k] for k in range(len(word))) / len(word)
        place += len(word)
    return result


# What the vectors are


def test_a_word_is_the_mean_of_its_pieces_in_every_layer(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    rows = [[0, 1, 2, 3], [4, 3], [6, 5, 1]]
    layers = vectors(sentence(*rows))
    assert layers.shape == (3, 3, 4, 6) and (vectors.num_layers, vectors.dim) == (3, 6)
    for row, ids in enumerate(rows):
        expected = read_alone(folder, [WORDS[i] for i in ids])
        assert_close(layers[:, row, : len(ids)], expected, atol=2e-5, rtol=2**-10)  # half precision's last bit


def test_a_word_depends_on_its_sentence(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    layers = vectors(sentence([0, 1], [0, 4]))
    assert (layers[:, 0, 0] - layers[:, 1, 0])[1:].abs().max() > 1e-2


def test_words_that_the_encoder_cannot_see_are_0(folder: Path, tmp_path: Path) -> None:
    """One that its tokenizer drops, and those beyond the longest text that it takes: two places are [CLS] and [SEP]."""
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    layers = vectors(sentence([0, NOTHING, 1], [0] * (LONGEST + 4)))
    assert torch.all(layers[:, 0, 1] == 0) and torch.all(layers[:, 0, [0, 2]].abs().amax(-1) > 0)
    assert torch.equal(layers[:, 1].abs().amax((0, 2)) > 0, torch.arange(LONGEST + 4) < LONGEST - 2)


@settings(max_examples=15)
@given(rows=st.lists(st.lists(st.integers(0, len(WORDS) - 1), max_size=5), min_size=1, max_size=4))
def test_padding_and_batch_mates_change_nothing(folder: Path, tmp_path: Path, rows: list[list[int]]) -> None:
    batch = sentence(*rows)
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    layers = vectors(batch)
    assert torch.all(layers[:, ~batch.mask] == 0)
    assert torch.equal(vectors(Sentence(batch.tokens.masked_fill(~batch.mask, 3), batch.mask)), layers)
    for row, ids in enumerate(rows):
        if ids:
            assert torch.equal(vectors(sentence(ids))[:, 0], layers[:, row, : len(ids)])


def test_padding_may_stand_anywhere(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    words = vectors(sentence([2, 3]))
    mask = torch.tensor([[False, True, True], [True, False, True]])
    padded = vectors(Sentence(torch.tensor([[4, 2, 3], [2, 4, 3]]), mask))
    assert_close(padded[:, mask], torch.cat([words[:, 0], words[:, 0]], dim=1), atol=0, rtol=0)
    assert not padded[:, ~mask].any()


def test_numbers_too_large_for_half_precision_stay_finite(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    vectors._encoder[1].embeddings.LayerNorm.bias.data.fill_(1e9)
    assert torch.all(vectors(sentence([0, 1]))[0] == 65504)
    below = ContextualVectors(folder, LEXICON, tmp_path / "below.sqlite3")
    below._encoder[1].embeddings.LayerNorm.bias.data.fill_(-1e9)
    assert torch.all(below(sentence([0, 1]))[0] == -65504)


def test_an_encoder_computes_in_float32_whatever_is_around_it(folder: Path, tmp_path: Path) -> None:
    """However its weights are kept: its vectors are those of every later run, too."""
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    under_autocast = ContextualVectors(folder, LEXICON, tmp_path / "autocast.sqlite3")
    with torch.autocast("cpu", torch.bfloat16):
        lowered = under_autocast(sentence([0, 1, 2]))
    assert torch.equal(lowered, vectors(sentence([0, 1, 2])))
    AutoModel.from_pretrained(folder).to(torch.bfloat16).save_pretrained(tmp_path / "half")
    for path in folder.glob("*token*"):
        (tmp_path / "half" / path.name).write_bytes(path.read_bytes())
    half = ContextualVectors(tmp_path / "half", LEXICON, tmp_path / "cache.sqlite3")
    assert {parameter.dtype for parameter in half._encoder[1].parameters()} == {torch.float32}


def test_nothing_is_downloaded_and_no_code_of_a_folder_is_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    for kind in ("AutoConfig", "AutoTokenizer", "AutoModel"):
        loader = getattr(sys.modules["transformers"], kind)

        def load(place: str, loader: Any = loader, kind: str = kind, **options: Any) -> Any:
            asked.append((loader.__name__, options["local_files_only"], options["trust_remote_code"]))
            assert kind != "AutoTokenizer" or options["add_prefix_space"], "RoBERTa's and GPT-2's would refuse words"
            return loader.from_pretrained(place, **options)

        monkeypatch.setattr(sys.modules["transformers"], kind, SimpleNamespace(from_pretrained=load))
    ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")(sentence([0]))
    assert asked == [(kind, True, False) for kind in ("AutoConfig", "AutoTokenizer", "AutoModel")]


def test_a_folder_is_told_from_one_whose_files_have_other_names(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.json").write_text("{}")
    one, two = (fingerprint_of_folder(tmp_path / name) for name in ("one", "two"))
    assert one != two


def other_encoder(folder: Path, config: PretrainedConfig) -> Path:
    """A tiny encoder of another family, with the tokenizer of the first."""
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer(), unk_token="[UNK]").save_pretrained(folder)
    return folder


def tokenizer() -> Tokenizer:
    made = Tokenizer(WordLevel({piece: k for k, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    return made


OTHERS = {
    "roberta": RobertaConfig(
        vocab_size=len(PIECES), max_position_embeddings=LONGEST, pad_token_id=1, bos_token_id=0, eos_token_id=2, **SIZES
    ),
    "gpt2": GPT2Config(vocab_size=len(PIECES), n_positions=LONGEST, n_embd=6, n_layer=2, n_head=3),
    "t5": T5Config(vocab_size=len(PIECES), d_model=6, d_kv=2, d_ff=11, num_layers=2, num_heads=3),
}


@pytest.mark.parametrize("family", OTHERS)
def test_encoders_of_other_families_are_read(family: str, tmp_path: Path) -> None:
    """RoBERTa's first positions are none of a text, GPT-2 has no padding, and T5 a decoder, which is left out."""
    vectors = ContextualVectors(other_encoder(tmp_path, OTHERS[family]), LEXICON, tmp_path / "cache.sqlite3")
    layers = vectors(sentence([0, 5], [0] * (LONGEST + 4)))
    assert layers.shape == (3, 2, LONGEST + 4, 6) and layers.isfinite().all()
    seen = layers[:, 1].abs().amax((0, 2)) > 0
    assert int(seen.sum()) == {"roberta": LONGEST - 2, "gpt2": LONGEST, "t5": LONGEST + 4}[family]
    assert_close(layers[:, 0, :2], vectors(sentence([0, 5]))[:, 0], atol=1e-6, rtol=2**-10)


def test_half_a_character_is_a_word_like_any_other(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, Lexicon.random(["cat", "a\ud800"], 5), tmp_path / "cache.sqlite3")
    assert vectors(sentence([0, 1, 0])).isfinite().all()


# What the module is


def test_the_encoder_is_no_part_of_the_module(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    layers = vectors(sentence([0, 1]))
    assert loaded(vectors) and not layers.requires_grad
    assert not list(vectors.parameters()) and not vectors.state_dict() and not list(vectors.children())
    assert not vectors.train()._encoder[1].training
    assert repr(vectors) == f"ContextualVectors({folder}, num_layers=3, dim=6)"


def test_the_vectors_are_where_and_as_precise_as_the_module(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    single = vectors(sentence([0, 1]))
    assert single.dtype == torch.float32
    double = vectors.double()(sentence([0, 1]))
    assert double.dtype == torch.float64 and torch.equal(double.float(), single)


def test_copies_agree(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    layers = vectors(sentence([0, 1]))
    for twin in (copy.deepcopy(vectors), pickle.loads(pickle.dumps(vectors))):
        assert torch.equal(twin(sentence([0, 1])), layers)
        assert not loaded(twin) and torch.equal(twin(sentence([5, 1])), vectors(sentence([5, 1])))


def test_loading_the_encoder_draws_no_random_number(folder: Path, tmp_path: Path) -> None:
    """Or else dropout would depend on which sentences were read before; weights that a folder lacks are drawn."""
    BertForMaskedLM(BertConfig(vocab_size=len(PIECES), **SIZES)).save_pretrained(tmp_path)
    BertTokenizerFast.from_pretrained(folder).save_pretrained(tmp_path)
    vectors = ContextualVectors(tmp_path, LEXICON, tmp_path / "cache.sqlite3")
    before = torch.get_rng_state()
    vectors(sentence([0, 1]))
    assert loaded(vectors) and torch.equal(torch.get_rng_state(), before)


# The file


def test_the_encoder_reads_a_sentence_once(folder: Path, tmp_path: Path) -> None:
    vectors = ContextualVectors(folder, LEXICON, tmp_path / "cache.sqlite3")
    seen: list[int] = []
    vectors._encoder[1].register_forward_pre_hook(
        lambda _, __, inputs: seen.append(len(inputs["input_ids"])), with_kwargs=True
    )
    vectors(sentence([0, 1], [0, 1], [1, 0]))
    vectors(sentence([1, 0], [4], [0, 1]))
    assert seen == [2, 1]
    vectors(sentence(*([i, j, k] for i in range(6) for j in range(6) for k in range(2))))
    assert seen == [2, 1, 32, 32, 8]


def test_a_later_run_needs_no_encoder_at_all(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache.sqlite3"
    layers = ContextualVectors(folder, LEXICON, cache)(sentence([0, 1], [2]))
    later = ContextualVectors(str(folder), Lexicon.random(WORDS[::-1], 5), cache)
    last = len(WORDS) - 1
    assert torch.equal(later(sentence([last, last - 1], [last - 2])), layers) and not loaded(later)
    later(sentence([3]))
    assert loaded(later)


def test_each_encoder_has_its_own_vectors(folder: Path, tmp_path: Path) -> None:
    other = write_encoder(tmp_path / "other", seed=1)
    cache = tmp_path / "cache.sqlite3"
    one, two = (ContextualVectors(place, LEXICON, cache)(sentence([0, 1])) for place in (folder, other))
    assert (one - two).abs().max() > 1e-2
    same = ContextualVectors(write_encoder(tmp_path / "same"), LEXICON, cache)
    assert torch.equal(same(sentence([0, 1])), one) and not loaded(same)
    config = other / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"do_lower_case": False}))
    changed = ContextualVectors(other, LEXICON, cache)
    changed(sentence([0, 1]))
    assert loaded(changed), "another tokenizer makes another encoder"


def test_words_are_not_confused_with_their_joints(folder: Path, tmp_path: Path) -> None:
    lexicon = Lexicon.random(["a", "b c", "a b", "c", '", "'], 5)
    vectors = ContextualVectors(folder, lexicon, tmp_path / "cache.sqlite3")
    layers = vectors(sentence([0, 1], [2, 3], [0, 3]))
    assert len(sqlite3.connect(tmp_path / "cache.sqlite3").execute("SELECT key FROM vectors").fetchall()) == 3
    assert not torch.equal(layers[:, 0], layers[:, 1])


def test_a_key_keeps_its_first_value(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "cache.sqlite3")
    cache.add([(b"one", b"first"), (b"two", b"\x00\xff")])
    cache.add([(b"one", b"second")])
    assert cache.read([b"two", b"none", b"one"]) == {b"one": b"first", b"two": b"\x00\xff"}


def test_a_failed_addition_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Any:
        yield b"one", b"first"
        raise RuntimeError("the encoder broke")

    cache = VectorCache(tmp_path / "cache.sqlite3")
    with pytest.raises(RuntimeError, match="broke"):
        cache.add(broken())
    assert cache.read([b"one"]) == {}


WRITER = """
import sys; from pathlib import Path; from nli_common.contextual import VectorCache
cache, name, count = VectorCache(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
for k in range(count):
    cache.add((f"{name} {k} {part}".encode(), bytes([k % 251]) * 40_000) for part in range(3))
    print(k, flush=True)
"""


def writer(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    environment = {**runs.environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_killed_process_leaves_whole_additions(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite3"
    process = writer(path, "killed", 100_000)
    assert process.stdout is not None
    for line in process.stdout:
        if line == "7\n":
            time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    cache = VectorCache(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        count = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
    assert count % 3 == 0 and count >= 3 * 8
    keys = [f"killed {k} {part}".encode() for k in range(count // 3) for part in range(3)]
    held = cache.read(keys)
    assert all(held[key] == bytes([k // 3 % 251]) * 40_000 for k, key in enumerate(keys))
    cache.add([(b"later", b"works")])
    assert cache.read([b"later"]) == {b"later": b"works"}


def test_processes_share_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite3"
    processes = [writer(path, "shared" if k < 2 else "own", 10) for k in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    keys = [f"{name} {k} {part}".encode() for name in ("shared", "own") for k in range(10) for part in range(3)]
    assert len(VectorCache(path).read(keys)) == 60


# What cannot be


def test_what_is_no_encoder_is_refused(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"nowhere: not the folder of an encoder \(it has no config.json\)"):
        ContextualVectors(tmp_path / "nowhere", LEXICON)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="holds no AutoConfig"):
        ContextualVectors(tmp_path, LEXICON)
    BertConfig(**SIZES).save_pretrained(tmp_path)
    vectors = ContextualVectors(tmp_path, LEXICON, tmp_path / "cache.sqlite3")
    with pytest.raises(InputError, match=r"holds no tokenizer, expected one of tokenizer\.json, vocab\.txt"):
        vectors(sentence([0]))
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:100])
    with pytest.raises(InputError, match="holds no AutoModel"):
        ContextualVectors(tmp_path, LEXICON, tmp_path / "cache.sqlite3")(sentence([0]))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"needs transformers: pip install 'nlilayers\[contextual\]'"):
        ContextualVectors(folder, LEXICON)


def test_what_is_no_cache_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no database, but long enough to be taken for one" * 20)
    for path in (tmp_path, text, text / "below"):
        with pytest.raises(InputError, match=f"{path}: not a usable cache of vectors"):
            VectorCache(path).read([b"key"])


# Mixing layers


def test_a_mixture_of_layers_equals_its_loop() -> None:
    mix, layers = LayerMix(3).double(), normal(1, 3, 2, 5, 7)
    assert sum(p.numel() for p in mix.parameters()) == 4
    assert_close(mix(layers), layers.mean(0), atol=1e-12, rtol=1e-12)
    mix.s.data, mix.gamma.data = normal(2, 3), torch.tensor(1.7, dtype=torch.float64)
    shares = [s.item() for s in mix.s.exp() / mix.s.exp().sum()]
    for b, i, c in ((0, 0, 0), (1, 4, 6), (0, 3, 2)):
        expected = 1.7 * sum(share * float(layers[j, b, i, c]) for j, share in enumerate(shares))
        assert mix(layers)[b, i, c].item() == pytest.approx(expected, abs=1e-12)


def test_an_insertion_projects_both(tmp_path: Path) -> None:
    insertion = LayerInsertion(3, 7, 5).double()
    x, layers = normal(1, 2, 4, 5), normal(2, 3, 2, 4, 7)
    y = insertion(x, layers)
    weight, bias = insertion.projection.weight, insertion.projection.bias
    assert_close(y, x @ weight[:, :5].T + insertion.mix(layers) @ weight[:, 5:].T + bias, atol=1e-12, rtol=1e-12)


# The Gaussian Transformer on top of them


@pytest.fixture
def config(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GaussianTransformerConfig:
    monkeypatch.setattr(contextual, "CACHE", tmp_path)
    return GaussianTransformerConfig(hidden_size=6, num_heads=3, encoder=str(folder), start="glorot")


def test_the_parameters_with_elmos_sizes(tmp_path: Path) -> None:
    """Three layers of 1,024 features, two mixtures of them: the encoder's own parameters do not count."""
    BertConfig(num_hidden_layers=2, hidden_size=1024).save_pretrained(tmp_path)
    model = GaussianTransformer(GaussianTransformerConfig(encoder=str(tmp_path)), LEXICON)
    assert sum(p.numel() for p in model.parameters()) == 884_301


def test_the_encoder_enters_twice(config: GaussianTransformerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of word and character vectors, and beside what the encoding blocks make, each time in its own mixture."""
    model = GaussianTransformer(config, LEXICON).double().eval()
    premise = sentence([0, 1, 2], [4, 3])
    layers = model.words(premise)
    x = model.position(model.projection[1](model.projection[0](layers)))
    for block in model.encoding:
        x = block(x, premise.mask)
    assert_close(model.encode(premise), model.insertion(x, layers), atol=1e-12, rtol=1e-12)
    before = GaussianTransformer(dataclasses.replace(config, norm="pre"), LEXICON).double().eval()
    monkeypatch.setattr(before, "encoding", nn.ModuleList())
    x = before.position(before.projection(layers))
    assert_close(before.encode(premise), before.insertion(before.norm_encoded(x), layers), atol=1e-12, rtol=1e-12)
    mixes = [part for part in model.modules() if isinstance(part, LayerMix)]
    assert len(mixes) == 2
    logits = model(premise, premise)
    for mix in mixes:
        mix.s.data[0] += 1
        assert (model(premise, premise) - logits).abs().max() > 1e-6
        mix.s.data[0] -= 1
    names = [*model.state_dict(), *(name for name, _ in model.named_parameters())]
    assert not any(name.startswith("words") for name in names)


@settings(max_examples=10)
@given(data=st.data())
def test_the_models_padding_and_batch_mates_change_nothing(
    config: GaussianTransformerConfig, data: st.DataObject
) -> None:
    torch.manual_seed(0)
    model = GaussianTransformer(config, LEXICON).double().eval()
    words = st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=5)
    rows = [data.draw(st.lists(words, min_size=2, max_size=2)) for _ in range(2)]
    premise, hypothesis = sentence(*rows[0]), sentence(*rows[1])
    logits = model(premise, hypothesis)
    garbled = (Sentence(s.tokens.masked_fill(~s.mask, 3), s.mask) for s in (premise, hypothesis))
    assert torch.equal(model(*garbled), logits)
    for row in range(2):
        alone = model(sentence(rows[0][row]), sentence(rows[1][row]))
        assert_close(alone[0], logits[row], atol=1e-12, rtol=1e-12)
    empty = Sentence(premise.tokens, torch.zeros_like(premise.mask))
    assert torch.isfinite(model(empty, empty)).all()


def test_every_parameter_is_used(config: GaussianTransformerConfig) -> None:
    torch.manual_seed(0)
    model = GaussianTransformer(config, LEXICON).double()
    nn.functional.cross_entropy(model(sentence([0, 1, 2, 3]), sentence([4, 3])), torch.tensor([1])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def test_a_run_trains_predicts_and_resumes_from_the_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = runs.ROOT / "examples" / "gaussian_transformer.py"
    data = runs.write_corpora(tmp_path, train=40)
    sizes = ["--hidden-size", "8", "--num-encoding-blocks", "1", "--epochs", "1"]
    output, relative = tmp_path / "run", os.path.relpath(folder)
    result = runs.run_script("train", *data, *sizes, "--encoder", relative, "--output", output, script=script)
    assert result.returncode == 0, result.stderr
    assert json.loads((output / "config.json").read_text())["model"]["encoder"] == str(folder)
    assert "vector is random" not in result.stdout, "the encoder takes its place"
    assert (tmp_path / "cache" / "nlilayers" / "contextual.sqlite3").exists()
    pair = ["--premise", "a cat sat", "--hypothesis", "a dab"]
    result = runs.run_script("predict", "--run", output, *pair, script=script)
    assert result.returncode == 0 and "entailment" in result.stdout, result.stderr
    (folder_moved := folder.rename(folder.with_name("moved")))
    try:
        result = runs.run_script("predict", "--run", output, *pair, script=script)
    finally:
        folder_moved.rename(folder)
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and str(folder) in result.stderr


def test_a_run_belongs_to_its_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one at the same place would be read by weights that were learned on the first."""
    monkeypatch.setattr(contextual, "CACHE", tmp_path)
    encoder, run = write_encoder(tmp_path / "encoder"), Run(tmp_path / "run")
    config = GaussianTransformerConfig(hidden_size=6, num_heads=3, num_encoding_blocks=1, encoder=str(encoder))
    given = (SCRIPT, config, dataclasses.replace(SCRIPT.quick, epochs=1), Data(pairs=100, vector_size=3), 0, run)
    train_run(*given)
    prepare_pair(SCRIPT, run, "a cat sat", "a dab")
    train_run(*given)
    hashed = []
    with monkeypatch.context() as patch:
        patch.setattr(contextual, "_hash", lambda file: hashed.append(file.name) or "0")
        with pytest.raises(InputError, match="another encoder"):
            prepare_pair(SCRIPT, run, "a cat sat", "a dab")
    assert len(hashed) == len(set(hashed)) > 0, "the files are read once"
    write_encoder(encoder, seed=1)
    with pytest.raises(InputError, match=f"--run {run.folder}: was trained on another encoder than is in {encoder}"):
        prepare_pair(SCRIPT, run, "a cat sat", "a dab")
    with pytest.raises(InputError, match=f"{run.folder}.*encoder"):
        train_run(*given)
    written = json.loads(run.config.read_text())
    run.config.write_text(json.dumps(written | {"model": written["model"] | {"encoder": None}}))
    with pytest.raises(InputError, match=f"--run {run.folder}: was trained on an encoder, and config.json names none"):
        prepare_pair(SCRIPT, run, "a cat sat", "a dab")


class Head(nn.Module):
    """Layers that set what their children hold."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.context, self.highway = GaussianSelfAttention(width, 2), Highway(width)
        self.convolve, self.compare = GatedConvEncoder(width, width, 2), AlignmentFactorization(width, 4)


class WithHead(BertPreTrainedModel):  # type: ignore[misc]  # transformers does not say what it is
    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert, self.head = BertModel(config), Head(config.hidden_size)
        self.post_init()


def test_a_head_on_a_loaded_encoder_starts_as_it_is_made_once_it_is_reset(tmp_path: Path) -> None:
    """As the page of conventions says: from the inside out. What the encoder was loaded with stays."""
    write_encoder(tmp_path)
    model = WithHead.from_pretrained(tmp_path)
    assert not all(torch.equal(p, q) for p, q in zip(_fixed(model.head), _fixed(Head(6)), strict=True))
    torch.manual_seed(0)
    for module in reversed(list(model.head.modules())):
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    assert all(torch.equal(p, q) for p, q in zip(_fixed(model.head), _fixed(Head(6)), strict=True))
    drawn = torch.cat([model.head.compare.subtract.factors.flatten(), model.head.context.in_proj.weight.flatten()])
    assert drawn.isfinite().all()
    for ours, theirs in zip(model.bert.parameters(), BertModel.from_pretrained(tmp_path).parameters(), strict=True):
        assert torch.equal(ours, theirs)


def _fixed(head: Head) -> list[Tensor]:
    """What starts at numbers that are not drawn."""
    prior, gate = head.context.prior, head.highway.gates[0]
    assert isinstance(prior, GaussianPrior) and isinstance(gate, nn.Linear) and gate.bias is not None
    return [prior.w, prior.b, gate.bias, *(block.bias for block in head.convolve.blocks)]
