"""The page that explains one pair: its numbers are the model's, its words are harmless, it needs nothing else."""

import base64
import dataclasses
import hashlib
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import pytest
import torch

import cafe
import decomposable_attention
import esim
import gated_cnn
import gaussian_transformer
import hypothesis_only
import lstm_attention
import stacked_alignment
from nli_common import figures
from nli_common.commands import main
from nli_common.errors import InputError
from nli_common.explaining import DARK, Alignment, Explanation, Features, explanation_of, page
from nli_common.predicting import PreparedPair, prepare_pair
from nli_common.runs import Run
from nli_common.script import Aligns, AlignsByHead, Propagates, Script
from nli_common.tokens import split_text
from runs import write_corpora

PREMISE, HYPOTHESIS = "A <b>tall</b> woman isn't near the dog & the quokka.", "Nobody sleeps."
ROUNDED = 5.1e-7
"""The page has six places."""
HOSTILE = ["<script>alert(1)</script>", "</script><!--", "&amp;", "\"'><img src=x onerror=alert(1)>", "{{ 7 * 7 }}"]
QUICK = ("--vector-size", "6", "--epochs", "1", "--lr", "0.01")


class Page(HTMLParser):
    """What a reader without JavaScript finds: tables of words and numbers; and the data behind them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.tables: dict[tuple[str, str], list[list[str]]] = {}
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "dd": []}
        self.data = ""
        self.open: list[str] = []
        self.table: list[list[str]] = []
        self.feed(text)
        self.data = json.loads(self.texts["script"][0])

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attributes}))
        if tag == "table":
            found = dict(attributes)
            self.table = self.tables.setdefault((found.get("data-kind", "classes"), found.get("data-view", "")), [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.table[-1].append("")
        elif tag in self.texts:
            self.texts[tag].append("")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.table[-1][-1] += data.strip("\n")
        elif self.open and self.open[-1] in self.texts:
            self.texts[self.open[-1]][-1] += data

    def numbers(self, kind: str, view: int | str) -> list[list[float]]:
        """The cells under and beside the heads."""
        heads = 2 if view == "" else 1
        rows = self.tables[kind, str(view)][heads:]
        return [[float(value.replace("−", "-")) for value in row[1:]] for row in rows]

    def words(self, kind: str, view: int | str) -> tuple[list[str], list[str]]:
        """Those of the rows and the columns."""
        table = self.tables[kind, str(view)]
        return [row[0] for row in table[1:]], table[0][1:]


def an_explanation(n: int = 3, m: int = 2, words: Callable[[int], str] = "w{}".format) -> Explanation:
    beta, alpha = torch.rand(n, m), torch.rand(m, n)
    return Explanation(
        model="Model",
        premise=[words(i) for i in range(n)],
        hypothesis=[words(j) for j in range(m)],
        classes=[("neutral", 0.75), ("not_entailment", 0.25)],
        alignments=[Alignment((beta / beta.sum(1, True)).tolist(), (alpha / alpha.sum(1, True)).tolist())],
        features=Features(("inter_cat", "inter_sub", "own"), (torch.randn(n, 3)).tolist(), torch.randn(m, 3).tolist()),
    )


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_corpora(tmp_path_factory.mktemp("corpora"), train=64)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In one process, without the pictures; the handler of SIGTERM is the script's while it runs."""
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: None)
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


def command(monkeypatch: pytest.MonkeyPatch, script: Script, *words: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", [script.name, *map(str, words)])
    main(script)


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line on stderr."""
    with pytest.raises(SystemExit) as stop:
        command(monkeypatch, *words)
    told = capsys.readouterr().err
    assert stop.value.code == 2 and told.startswith("error: ") and told.count("\n") == 1, told
    return told


SMALL = ("--hidden-size", "8")
TINY_CAFE = ("--encoder-size", "8", "--num-factors", "3", "--lstm-size", "8", "--prediction-size", "8")
MODELS = {
    "decomposable": (decomposable_attention, SMALL),
    "cafe": (cafe, TINY_CAFE),
    "cafe-without-alignment": (cafe, (*TINY_CAFE, "--no-inter-attention")),
    "gaussian": (gaussian_transformer, SMALL),
    "gated": (gated_cnn, (*SMALL, "--no-use-chars", "--no-use-pos")),
    "esim": (esim, SMALL),
    "stacked": (stacked_alignment, SMALL),
    "hybrid": (lstm_attention, ("hybrid-model", *SMALL)),
    "attention": (lstm_attention, ("attention-model", *SMALL)),
}
EXPLAINING = list(dict.fromkeys(module for module, _ in MODELS.values()))


@pytest.mark.parametrize("name", MODELS)
def test_a_trained_run_is_explained_by_its_own_numbers(
    name: str, corpora: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, options = MODELS[name]
    script, run = module.SCRIPT, tmp_path / "run"
    command(monkeypatch, script, "train", *corpora, *QUICK, "--output", run, *options)
    pair = ("--run", run, "--premise", PREMISE, "--hypothesis", HYPOTHESIS)
    capsys.readouterr()
    command(monkeypatch, script, "predict", *pair)
    predicted = [tuple(line.split()) for line in capsys.readouterr().out.splitlines()]
    command(monkeypatch, script, "explain", *pair)
    path = Path(capsys.readouterr().out.strip())
    assert path == run / "explanation.html"

    shown, read = Page(path.read_text(encoding="utf-8")), prepare_pair(script, Run(run), PREMISE, HYPOTHESIS)
    assert [(label, share) for label, _, share in shown.tables["classes", ""]] == predicted
    assert sum(shown.data["classes"].values()) == pytest.approx(1, abs=3 * ROUNDED)
    leading = ["NULL"] if module is decomposable_attention else []
    premise = [*leading, *split_text(PREMISE)]
    hypothesis = [*leading, "Nobody", "sleeps", "."]
    assert [shown.data[key] for key in ("premise", "hypothesis", "leading")] == [premise, hypothesis, len(leading)]
    weights_are_the_models(shown, read, premise, hypothesis)
    if isinstance(read.model, Propagates):
        scalars_are_the_models(shown, read)
    else:
        assert shown.data["features"] is None and ("premise", "") not in shown.tables


def weights_are_the_models(shown: Page, pair: PreparedPair, premise: list[str], hypothesis: list[str]) -> None:
    model, sides, expected = pair.model, (pair.premise, pair.hypothesis), []
    with torch.inference_mode():
        if isinstance(model, AlignsByHead):
            beta, alpha = model.alignment_by_head(*sides)
            for block in range(beta.shape[1]):
                for head in range(beta.shape[2]):
                    expected.append((str(block + 1), str(head + 1), beta[0, block, head], alpha[0, block, head]))
                if beta.shape[2] > 1:
                    expected.append((str(block + 1), "mean", beta[0, block].mean(0), alpha[0, block].mean(0)))
            last = [weights[0] for weights in model.alignment(*sides)]
            assert all(torch.equal(ours, theirs) for ours, theirs in zip(expected[-1][2:], last, strict=True))
        elif isinstance(model, Aligns):
            expected.append(("", "", *(weights[0] for weights in model.alignment(*sides))))
    assert len(shown.data["alignments"]) == len(expected)
    for view, (found, (block, head, beta, alpha)) in enumerate(zip(shown.data["alignments"], expected, strict=True)):
        assert (found["block"], found["head"]) == (block, head)
        for kind, weights, seen in (("beta", beta, beta), ("alpha", alpha, alpha.T)):
            ours = torch.tensor(found[kind], dtype=torch.float64)
            torch.testing.assert_close(ours, weights.double(), atol=ROUNDED, rtol=0)
            torch.testing.assert_close(ours.sum(-1), torch.ones(len(ours)).double(), atol=2e-5, rtol=0)
            read = torch.tensor(shown.numbers(kind, view))
            torch.testing.assert_close(read, seen, atol=5.1e-4, rtol=0)
            assert shown.words(kind, view) == (premise, hypothesis)


def scalars_are_the_models(shown: Page, pair: PreparedPair) -> None:
    with torch.inference_mode():
        scalars = pair.model.propagated_features(pair.premise, pair.hypothesis)
    found = shown.data["features"]
    assert tuple(found["names"]) == scalars.names
    assert scalars.names[:3] == ("intra_cat", "intra_sub", "intra_mul") and len(scalars.names) in (3, 6)
    for side in ("premise", "hypothesis"):
        values = getattr(scalars, side)[0]
        torch.testing.assert_close(torch.tensor(found[side]), values, atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(torch.tensor(shown.numbers(side, "")), values, atol=5.1e-3, rtol=1e-6)
        table = shown.tables[side, ""]
        assert table[0][1:] == ["intra", "inter"][: len(scalars.names) // 3]
        assert table[1][1:] == ["cat", "sub", "mul"] * (len(scalars.names) // 3)
        assert [row[0] for row in table[2:]] == shown.data[side][shown.data["leading"] :]


def test_what_cannot_be_explained_is_refused_in_one_line(
    corpora: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    script, run = lstm_attention.SCRIPT, tmp_path / "run"
    options = (*QUICK, "--output", run)
    command(monkeypatch, script, "train", *corpora, *options, "lstm-baseline", "--hidden-size", "4")
    pair = ("--premise", "a dog", "--hypothesis", "a cat")
    told = refused(monkeypatch, capsys, script, "explain", "--run", run, *pair)
    assert f"--run {run}: LSTMBaseline aligns no words" in told
    empty = ("--premise", "a dog", "--hypothesis", " ")
    told = refused(monkeypatch, capsys, script, "explain", "--run", run, *empty)
    assert "--hypothesis: expected a sentence, got no word in ' '" in told
    command(monkeypatch, script, "train", *corpora, *QUICK, "--output", tmp_path / "aligns", "attention-model")
    long = ("--premise", "dog " * 1000, "--hypothesis", "cat " * 501)
    told = refused(monkeypatch, capsys, script, "explain", "--run", tmp_path / "aligns", *long)
    assert "a page of 501,000 weights cannot be read, expected at most 500,000" in told
    told = refused(monkeypatch, capsys, script, "explain", "--run", tmp_path, *pair)
    assert "is this the folder of a run?" in told
    monkeypatch.setattr(os, "access", lambda folder, how: (folder, how) != (run, os.W_OK))
    said = f"--run {run}: cannot be written to; name the file to be written with --output"
    evaluate = ("evaluate", "--run", run, "--test", corpora[-1], "--cache", tmp_path)
    assert said in refused(monkeypatch, capsys, script, "explain", "--run", run, *pair)
    assert said in refused(monkeypatch, capsys, script, *evaluate)
    command(monkeypatch, script, *evaluate, "--output", tmp_path / "figures.json")
    assert (tmp_path / "figures.json").exists() and not list(run.glob("evaluation*"))
    assert not list(tmp_path.rglob("*.html")) and not list(tmp_path.rglob("*.tmp"))


def test_a_page_that_cannot_be_written_leaves_nothing(
    corpora: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    script, run = decomposable_attention.SCRIPT, tmp_path / "run"
    command(monkeypatch, script, "train", *corpora, *QUICK, "--output", run)
    pair = ("--run", run, "--premise", "a dog", "--hypothesis", "a cat")
    place = tmp_path / "new" / "page.html"
    capsys.readouterr()
    command(monkeypatch, script, "explain", *pair, "--output", place)
    assert capsys.readouterr().out == f"{place}\n" and not (run / "explanation.html").exists()
    before = place.read_bytes()

    def full_disk(path: Path, *_: object, **__: object) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "write_text", full_disk)
        told = refused(broken, capsys, script, "explain", *pair, "--output", place)
    assert f"{place}: cannot be written (No space left on device)" in told
    assert place.read_bytes() == before and [path.name for path in place.parent.iterdir()] == ["page.html"]


def test_probabilities_are_rounded_once() -> None:
    """With the six places that the page's data holds, the second of these would become 0.3548."""
    classes = [("neutral", 0.6452504), ("entailment", 0.3547496)]
    shown = Page(page(dataclasses.replace(an_explanation(), classes=classes)))
    assert [share for _, _, share in shown.tables["classes", ""]] == ["0.6453", "0.3547"]
    assert shown.data["classes"] == {"neutral": 0.64525, "entailment": 0.35475}


def test_numbers_that_are_none_are_refused() -> None:
    class Broken(torch.nn.Module):
        leading_tokens = ()

        def forward(self, premise: object, hypothesis: object) -> torch.Tensor:
            return torch.zeros(1, 3)

        def alignment(self, premise: object, hypothesis: object) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.full((1, 2, 2), float("nan")), torch.zeros(1, 2, 2)

    with pytest.raises(InputError, match="what the model computes of this pair is not finite"):
        explanation_of(PreparedPair(Broken(), ("a", "b", "c"), None, None, None, None))


@pytest.mark.parametrize("module", [*EXPLAINING, hypothesis_only], ids=lambda module: module.__name__)
def test_help_offers_it_where_a_model_shows_something(module, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    with pytest.raises(SystemExit):
        command(monkeypatch, module.SCRIPT, "--help")
    assert ("explain" in capsys.readouterr().out) == (module is not hypothesis_only)
    if module is hypothesis_only:
        with pytest.raises(SystemExit):
            command(monkeypatch, module.SCRIPT, "explain", "--run", "x", "--premise", "a", "--hypothesis", "b")


def test_words_are_text_wherever_they_stand() -> None:
    text = page(an_explanation(len(HOSTILE), len(HOSTILE), HOSTILE.__getitem__))
    shown = Page(text)
    assert [tag for tag, _ in shown.tags if tag in ("script", "img", "b", "style")] == [
        "style", "b", "b", "script", "script",
    ]  # fmt: skip
    assert shown.words("beta", 0) == shown.words("alpha", 0) == (HOSTILE, HOSTILE)
    assert shown.data["premise"] == shown.data["hypothesis"] == HOSTILE
    assert shown.texts["dd"] == [" ".join(HOSTILE)] * 2
    titles = {attributes["title"] for tag, attributes in shown.tags if "title" in attributes}
    assert titles == set(HOSTILE)
    block = text[text.index('id="explanation">') :].partition("</script>")[0]
    assert "<" not in block.partition(">")[2] and "&" not in block


def test_half_a_surrogate_pair_is_no_character() -> None:
    shown = Page(page(an_explanation(1, 1, "\ud800{}".format)).encode().decode())
    assert shown.words("beta", 0) == (["?0"], ["?0"]) and shown.data["premise"] == ["?0"]


def test_the_models_own_tokens_are_told_from_the_sentences_words() -> None:
    words = ["NULL", "dog"]
    it = dataclasses.replace(an_explanation(3, 3), premise=words, hypothesis=words, leading_tokens=("NULL",))
    shown = Page(page(dataclasses.replace(it, features=None)))
    assert shown.words("beta", 0) == (["NULL", *words],) * 2 and shown.texts["dd"] == ["NULL dog"] * 2
    marked = [attributes["title"] for _, attributes in shown.tags if attributes.get("class") == "leading"]
    assert marked == ["NULL (the model's own, in front of each sentence)"] * 4


def test_the_page_asks_for_nothing_else() -> None:
    text = page(an_explanation())
    shown = Page(text)
    for tag, attributes in shown.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset", "background", "xlink:href"):
            assert attributes.get(name, "data:,").startswith("data:"), (tag, name)
        assert not any(name.startswith("on") for name in attributes)
    style = "".join(shown.texts["style"])
    styled = [style, *(attributes.get("style", "") for _, attributes in shown.tags)]
    assert not re.search(r"url\(|@import|@font-face|image-set|expression", "".join(styled), re.IGNORECASE)
    code = shown.texts["script"][1]
    assert not re.search(r"//[a-z]|fetch|import\b|XMLHttp|WebSocket|sendBeacon|innerHTML|eval", code)
    [policy] = [found["content"] for _, found in shown.tags if found.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 60), (60, 1)])
def test_sentences_of_any_length(n: int, m: int) -> None:
    it = an_explanation(n, m)
    shown = Page(page(it))
    assert torch.tensor(shown.numbers("beta", 0)).shape == torch.tensor(shown.numbers("alpha", 0)).shape == (n, m)
    assert shown.words("beta", 0) == (it.premise, it.hypothesis)
    assert [len(shown.numbers(side, "")) for side in ("premise", "hypothesis")] == [n, m]


def test_bars_are_measured_by_the_columns_largest() -> None:
    features = Features(("a_x", "a_y"), [[2.0, 0.0], [-4.0, -0.001]], [[1.0, 0.0]])
    it = dataclasses.replace(an_explanation(2, 1), features=features)
    text = page(it)
    cells = re.findall(r'<td( class="minus")? style="--v:([\d.]+)"><span>(.+?)</span>', text)
    assert [(float(length), value) for _, length, value in cells] == [
        (0.5, "2.00"), (0.0, "0.00"), (1.0, "−4.00"), (1.0, "0.00"), (0.25, "1.00"), (0.0, "0.00"),
    ]  # fmt: skip
    assert [bool(minus) for minus, _, _ in cells] == [False, False, True, True, False, False]


def test_numbers_can_be_read_on_every_colour() -> None:
    """WCAG's contrast of 4.5 for each strength of both colour schemes, mixed as the style sheet mixes them."""
    style = "".join(Page(page(an_explanation())).texts["style"])
    schemes = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", part)) for part in style.split("@media")[:2]]
    assert len(schemes) == 2 and schemes[0]["low"] != schemes[1]["low"]
    assert "color-mix(in srgb, var(--high) calc(var(--w) * 100%), var(--low))" in style

    def channels(colour: str) -> list[float]:
        return [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]

    def luminance(rgb: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for scheme, step in product(schemes, range(1001)):
        strength = step / 1000
        mixed = [a + strength * (b - a) for a, b in zip(*map(channels, (scheme["low"], scheme["high"])), strict=True)]
        ink = channels(scheme["high-ink" if strength >= DARK else "low-ink"])
        dark, light = sorted((luminance(mixed), luminance(ink)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (scheme, strength)
    strong = re.findall(r'<td( class="dark")? style="--w:([\d.]+)"', page(an_explanation(9, 2)))
    assert {bool(dark) for dark, _ in strong} == {True, False}
    assert all(bool(dark) == (float(w) >= DARK) for dark, w in strong if abs(float(w) - DARK) > 1e-3)
