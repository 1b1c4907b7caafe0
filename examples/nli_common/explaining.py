"""What a model makes of one pair, as one HTML page that needs no network: prediction, alignment, scalars of words."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from torch import Tensor

from nli_common.data import Sentence
from nli_common.errors import InputError
from nli_common.figures import shown
from nli_common.files import write_text
from nli_common.memory import memory_for
from nli_common.predicting import PreparedPair, prepare_pair
from nli_common.runs import Run, require_alike, require_replaceable, require_writable
from nli_common.script import Aligns, AlignsByHead, Propagates, Script

Rows = list[list[float]]
DARK = 0.645
"""Cells whose colour is at least this strong have the other colour of text: there both have a contrast of 4.5."""
LARGEST = 500_000
"""Weights of a page; some 50 MB."""
PLACES = 6
"""Decimal places of the numbers that a page holds."""
DOCTYPE = "<!doctype html>"
"""What a page begins with."""


@dataclass(frozen=True)
class Alignment:
    """Weights of the hypothesis for each premise word, ``(n, m)``, and of the premise for each hypothesis word."""

    beta: Rows
    alpha: Rows
    block: str = ""
    head: str = ""


@dataclass(frozen=True)
class Features:
    """The scalars of each word of both sentences, ``(words, names)``."""

    names: Sequence[str]
    premise: Rows
    hypothesis: Rows


@dataclass(frozen=True)
class Explanation:
    """Everything that the page shows."""

    model: str
    premise: Sequence[str]
    hypothesis: Sequence[str]
    classes: Sequence[tuple[str, float]]
    """Each label with its probability, the most probable first."""
    leading_tokens: Sequence[str] = ()
    """What the model put before the words of each sentence: the first rows and columns of the alignments."""
    alignments: Sequence[Alignment] = ()
    """The last is shown first."""
    features: Features | None = None


def explain_pair(script: Script, run: Run, premise: str, hypothesis: str, output: Path | None) -> None:
    """Write the page of one pair, and print where it lies.

    Raises:
        InputError: if a sentence is empty, the folder is bad, the model has nothing to show, or the page cannot be
            written or would replace the run's own file, or any that is no page.
    """
    require_replaceable("output", output, [run])
    require_alike("output", output, DOCTYPE, "explain")
    if output is None:
        require_writable(run)
    pair = prepare_pair(script, run, premise, hypothesis)
    if not isinstance(pair.model, Aligns | Propagates):
        raise InputError(f"--run {run.folder}: {type(pair.model).__name__} aligns no words")
    path = run.folder / "explanation.html" if output is None else output
    text = page(explanation_of(pair))
    write_text(path, text)
    print(path)


def explanation_of(pair: PreparedPair) -> Explanation:
    """What the model can show of the pair.

    Raises:
        InputError: if what it computes are no numbers, or more of them than a page can show or memory can hold.
    """
    model, premise, hypothesis = pair.model, pair.premise, pair.hypothesis
    with memory_for(premise, hypothesis), torch.inference_mode():
        [shares] = _finite(model(premise, hypothesis).softmax(-1)).tolist()
        alignments = list(_alignments(model, premise, hypothesis)) if isinstance(model, Aligns) else []
        features = None
        if isinstance(model, Propagates):
            scalars = model.propagated_features(premise, hypothesis)
            features = Features(scalars.names, _numbers(scalars.premise[0]), _numbers(scalars.hypothesis[0]))
    return Explanation(
        model=type(model).__name__,
        premise=pair.corpus.tokens(pair.corpus.premise, 0),
        hypothesis=pair.corpus.tokens(pair.corpus.hypothesis, 0),
        classes=sorted(zip(pair.labels, shares, strict=True), key=lambda item: -item[1]),
        leading_tokens=model.leading_tokens if isinstance(model, Aligns) else (),
        alignments=alignments,
        features=features,
    )


def page(explanation: Explanation) -> str:
    """The explanation as HTML; script, style and numbers are within it."""
    folder = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["signed"] = signed
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    script, style = ((folder / f"explanation.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    sides = [shown([*explanation.leading_tokens, *words]) for words in (explanation.premise, explanation.hypothesis)]
    features = explanation.features
    columns = [] if features is None else list(zip(*features.premise, *features.hypothesis, strict=True))
    return environment.get_template("explanation.html").render(
        it=explanation,
        premise=sides[0],
        hypothesis=sides[1],
        leading=len(explanation.leading_tokens),
        groups=[] if features is None else list(_groups(features.names)),
        largest=[max(map(abs, column)) or 1.0 for column in columns],
        dark=DARK,
        data={
            "premise": sides[0],
            "hypothesis": sides[1],
            "leading": len(explanation.leading_tokens),
            "classes": {label: round(share, PLACES) for label, share in explanation.classes},
            "alignments": [asdict(alignment) for alignment in explanation.alignments],
            "features": None if features is None else asdict(features),
        },
        script=Markup(script),
        style=Markup(style),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def signed(value: float) -> str:
    """Two places behind a real minus sign, and no minus before 0.

    >>> signed(-1.5), signed(-0.001)
    ('−1.50', '0.00')
    """
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def _alignments(model: Aligns, premise: Sentence, hypothesis: Sentence) -> Iterator[Alignment]:
    if not isinstance(model, AlignsByHead):
        beta, alpha = model.alignment(premise, hypothesis)
        _require_readable(beta)
        yield Alignment(_numbers(beta[0]), _numbers(alpha[0]))
        return
    beta, alpha = (weights[0] for weights in model.alignment_by_head(premise, hypothesis))  # (blocks, heads, n, m)
    _require_readable(beta)
    for block, heads in enumerate(zip(beta, alpha, strict=True), start=1):
        for head, (b, a) in enumerate(zip(*heads, strict=True), start=1):
            yield Alignment(_numbers(b), _numbers(a), str(block), str(head))
        if head > 1:
            b, a = (weights.mean(dim=0) for weights in heads)
            yield Alignment(_numbers(b), _numbers(a), str(block), "mean")


def _require_readable(weights: Tensor) -> None:
    if weights.numel() > LARGEST:
        raise InputError(
            f"explain: a page of {weights.numel():,} weights cannot be read, expected at most {LARGEST:,}; "
            "take shorter sentences"
        )


def _numbers(values: Tensor) -> Rows:
    """A matrix as rows of the numbers that the page holds."""
    return [[round(value, PLACES) for value in row] for row in _finite(values).tolist()]


def _finite(values: Tensor) -> Tensor:
    if not values.isfinite().all():
        raise InputError("explain: what the model computes of this pair is not finite")
    return values


def _groups(names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """What stands before the last underscore of neighbouring names, and what stands behind it in each of them."""
    for group, members in groupby((name.rpartition("_") for name in names), key=lambda parts: parts[0]):
        yield group, [kind for _, _, kind in members]
