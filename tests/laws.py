"""The laws that every sequence layer obeys; a test is one line per law.

A layer maps sentences ``(batch, length, features)`` and their masks to one output per sentence, position by position:
``layer(*sentences, *masks)``. A law builds what it needs and raises an ``AssertionError`` when the layer breaks it.
"""

import copy
import io
import pickle
import warnings
from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close

from strategies import Sentences, normal

GARBAGE = (float("nan"), float("inf"), -float("inf"), 1e4, -1e4, 0.0)


def outputs(layer: nn.Module, sentences: Sentences) -> tuple[Tensor, ...]:
    result = layer(*sentences.tensors, *sentences.masks)
    return result if isinstance(result, tuple) else (result,)


def randomised(layer: nn.Module, seed: int = 0) -> nn.Module:
    """The layer in float64 with every parameter drawn anew: a bias that starts at 0 would hide what it does."""
    layer = layer.double()
    for k, parameter in enumerate(layer.parameters()):
        parameter.data = normal(seed + 100 + k, *parameter.shape, scale=0.5).to(parameter.device)
    return layer


def with_garbage(sentences: Sentences, garbage: float) -> Sentences:
    tensors = (
        x.masked_fill(~mask[..., None], garbage) for x, mask in zip(sentences.tensors, sentences.masks, strict=True)
    )
    return Sentences(tuple(tensors), sentences.masks)


def garbage_in_padding_changes_nothing(layer: nn.Module, sentences: Sentences) -> None:
    expected = outputs(layer, sentences)
    for garbage in GARBAGE:
        for ours, theirs in zip(outputs(layer, with_garbage(sentences, garbage)), expected, strict=True):
            assert torch.equal(ours, theirs), f"garbage {garbage} in the padding changed the output"


def appended_padding_changes_nothing(layer: nn.Module, sentences: Sentences) -> None:
    def padded(x: Tensor, width: int) -> Tensor:
        return nn.functional.pad(x, (0, 0, 0, width), value=float("nan"))

    longer = Sentences(
        tuple(padded(x, 3 + k) for k, x in enumerate(sentences.tensors)),
        tuple(nn.functional.pad(mask, (0, 3 + k), value=False) for k, mask in enumerate(sentences.masks)),
    )
    for k, (ours, theirs) in enumerate(zip(outputs(layer, longer), outputs(layer, sentences), strict=True)):
        length = sentences.tensors[k].shape[1]
        assert_close(ours[:, :length], theirs, atol=1e-12, rtol=1e-12)
        assert torch.all(ours[:, length:] == 0)


def padded_outputs_are_zero(layer: nn.Module, sentences: Sentences) -> None:
    for y, mask in zip(outputs(layer, with_garbage(sentences, float("nan"))), sentences.masks, strict=True):
        assert torch.all(y[~mask] == 0), "a padded position is not exactly 0"
        assert torch.isfinite(y).all()


def no_gradient_reaches_padding(layer: nn.Module, sentences: Sentences) -> None:
    for garbage in GARBAGE:
        _no_gradient_reaches(layer, with_garbage(sentences, garbage))


def _no_gradient_reaches(layer: nn.Module, sentences: Sentences) -> None:
    leaves = tuple(x.clone().requires_grad_() for x in sentences.tensors)
    ys = outputs(layer, Sentences(leaves, sentences.masks))
    parameters = tuple(layer.parameters())
    upstream = [normal(9 + k, *y.shape).to(y.device) for k, y in enumerate(ys)]
    grads = torch.autograd.grad(ys, leaves + parameters, upstream, allow_unused=True)
    for x, mask, grad in zip(leaves, sentences.masks, grads[: len(leaves)], strict=True):
        assert grad is not None and grad.shape == x.shape
        assert torch.all(grad[~mask] == 0), "a gradient reached the padding"
    assert all(torch.isfinite(grad).all() for grad in grads if grad is not None)


def what_arrives_at_padding_goes_no_further(layer: nn.Module, sentences: Sentences) -> None:
    """A gradient at a padded output, such as the NaN of a division by its length, which is 0."""
    leaves = tuple(x.clone().requires_grad_() for x in sentences.tensors)
    ys = outputs(layer, Sentences(leaves, sentences.masks))
    parameters = tuple(layer.parameters())

    def gradients(garbage: float) -> tuple[Tensor | None, ...]:
        upstream = [
            normal(9 + k, *y.shape).to(y.device).masked_fill(~mask[..., None], garbage)
            for k, (y, mask) in enumerate(zip(ys, sentences.masks, strict=True))
        ]
        return torch.autograd.grad(ys, leaves + parameters, upstream, retain_graph=True, allow_unused=True)

    expected = gradients(0.0)
    for garbage in (float("nan"), float("inf"), -float("inf"), 1e4):
        for ours, theirs in zip(gradients(garbage), expected, strict=True):
            assert (ours is None) == (theirs is None)
            assert ours is None or torch.equal(ours, theirs), f"a gradient of {garbage} at padding went further"


def a_mask_that_changes_later_changes_no_gradient(layer: nn.Module, sentences: Sentences) -> None:
    """Or autograd refuses to go back: nothing that it does not watch may be kept as it was given."""
    parameters = tuple(layer.parameters())
    for frozen in (False, True):
        leaves = tuple(x.clone().requires_grad_(not frozen) for x in sentences.tensors)
        wanted = parameters if frozen else leaves + parameters
        if not wanted:
            continue
        gradients = []
        for changes in (False, True):
            masks = tuple(mask.clone() for mask in sentences.masks)
            loss = sum(y.square().sum() for y in outputs(layer, Sentences(leaves, masks)))
            for mask in masks if changes else ():
                mask.logical_not_()
            try:
                gradients.append(torch.autograd.grad(loss, wanted, allow_unused=True))
            except RuntimeError as error:
                assert changes and "modified by an inplace operation" in str(error)
                break
        else:
            for ours, expected in zip(*reversed(gradients), strict=True):
                assert ours is None or torch.equal(ours, expected), "the mask's change reached a gradient"


def sentences_without_words_give_zero(layer: nn.Module, sentences: Sentences) -> None:
    empty = Sentences(sentences.tensors, tuple(torch.zeros_like(mask) for mask in sentences.masks))
    assert all(torch.all(y == 0) for y in outputs(layer, empty))
    no_gradient_reaches_padding(layer, empty)


def examples_do_not_see_each_other(layer: nn.Module, sentences: Sentences) -> None:
    together = outputs(layer, sentences)
    for i in range(sentences.x.shape[0]):
        one = Sentences(
            tuple(x[i : i + 1] for x in sentences.tensors), tuple(mask[i : i + 1] for mask in sentences.masks)
        )
        for ours, theirs in zip(outputs(layer, one), together, strict=True):
            assert_close(ours[0], theirs[i], atol=1e-12, rtol=1e-12)


def permuting_the_batch_permutes_the_output(layer: nn.Module, sentences: Sentences) -> None:
    order = torch.arange(sentences.x.shape[0], device=sentences.x.device).flip(0)
    permuted = Sentences(tuple(x[order] for x in sentences.tensors), tuple(mask[order] for mask in sentences.masks))
    for ours, theirs in zip(outputs(layer, permuted), outputs(layer, sentences), strict=True):
        assert_close(ours, theirs[order], atol=1e-12, rtol=1e-12)


def gradients_are_right(layer: nn.Module, sentences: Sentences) -> None:
    """Numerical against analytical gradients, for the inputs and every parameter."""
    leaves = tuple(x.clone().requires_grad_() for x in sentences.tensors)
    names = [name for name, _ in layer.named_parameters()]
    count = len(leaves)

    def call(*arguments: Tensor) -> tuple[Tensor, ...]:
        parameters = dict(zip(names, arguments[count:], strict=True))
        result = torch.func.functional_call(layer, parameters, (*arguments[:count], *sentences.masks))
        return result if isinstance(result, tuple) else (result,)

    parameters = tuple(p.detach().clone().requires_grad_() for p in layer.parameters())
    assert torch.autograd.gradcheck(call, leaves + parameters, atol=1e-7, rtol=1e-5)


def copies_agree(layer: nn.Module, fresh: nn.Module, sentences: Sentences) -> None:
    """A state_dict, a pickle and a deep copy hold all that the output depends on."""
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    fresh = fresh.double().to(sentences.x.device)
    fresh.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
    for twin in (fresh, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        for ours, theirs in zip(outputs(twin, sentences), outputs(layer, sentences), strict=True):
            assert torch.equal(ours, theirs)


def dtype_follows(layer: nn.Module, sentences: Sentences) -> None:
    """Lower precision gives its own dtype, near the float64 result."""
    exact = outputs(layer, sentences)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.2), (torch.float16, 0.03)):
        lower = copy.deepcopy(layer).to(dtype)
        for ours, theirs in zip(outputs(lower, sentences.to(dtype)), exact, strict=True):
            assert ours.dtype == dtype and ours.device == theirs.device
            assert_close(ours.double(), theirs, atol=tolerance, rtol=tolerance)


def autocast_agrees(layer: nn.Module, sentences: Sentences) -> None:
    single, device = sentences.to(torch.float32), sentences.x.device.type
    layer = copy.deepcopy(layer).float()
    with torch.autocast(device, dtype=torch.bfloat16):
        lower = outputs(layer, single)
    for ours, theirs in zip(lower, outputs(layer, single), strict=True):
        assert_close(ours.float(), theirs, atol=0.2, rtol=0.2)


def memory_layout_does_not_matter(layer: nn.Module, sentences: Sentences) -> None:
    strided = Sentences(
        tuple(x.transpose(0, 2).contiguous().transpose(0, 2) for x in sentences.tensors),
        tuple(mask.t().contiguous().t() for mask in sentences.masks),
    )
    for ours, theirs in zip(outputs(layer, strided), outputs(layer, sentences), strict=True):
        assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def an_empty_batch_gives_an_empty_batch(layer: nn.Module, sentences: Sentences) -> None:
    empty = Sentences(tuple(x[:0] for x in sentences.tensors), tuple(mask[:0] for mask in sentences.masks))
    for y, x in zip(outputs(layer, empty), sentences.tensors, strict=True):
        assert y.shape[:2] == (0, x.shape[1])


def every_parameter_has_a_gradient_of_zero(layer: nn.Module, outputs: tuple[Tensor, ...]) -> None:
    """A parameter without one, where others have theirs, keeps processes that train together waiting for it."""
    names, parameters = zip(*layer.named_parameters(), strict=True)
    gradients = torch.autograd.grad([y.sum() for y in outputs], parameters, allow_unused=True)
    for name, gradient in zip(names, gradients, strict=True):
        assert gradient is not None, f"{name} has no gradient"
        assert torch.all(gradient == 0), f"{name} has a gradient other than 0"


def no_mask_means_all_real(layer: nn.Module, sentences: Sentences) -> None:
    real = Sentences(sentences.tensors, tuple(torch.ones_like(mask) for mask in sentences.masks))
    result = layer(*sentences.tensors)
    for ours, theirs in zip(result if isinstance(result, tuple) else (result,), outputs(layer, real), strict=True):
        assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def wrong_masks_are_refused(layer: nn.Module, sentences: Sentences, names: tuple[str, ...]) -> None:
    for k, name in enumerate(names):
        right = sentences.masks[k]
        for wrong in (right.double(), right.long(), right[:, :-1], right[:, None], right[None]):
            masks = [*sentences.masks[:k], wrong, *sentences.masks[k + 1 :]]
            try:
                layer(*sentences.tensors, *masks)
            except ValueError as error:
                for part in (name, str(tuple(right.shape)), str(wrong.dtype), str(tuple(wrong.shape))):
                    assert part in str(error), f"{part!r} is not in {error}"
            else:
                raise AssertionError(f"{name} of {wrong.dtype} and shape {tuple(wrong.shape)} was accepted")


def compiles(layer: nn.Module, sizes: Callable[[int], Sentences], backend: str = "inductor") -> None:
    """One graph, one compilation over ten shapes, equal to eager; so are the gradients of words and parameters."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    layer = layer.float()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    for size in range(2, 12):
        given = sizes(size).to(torch.float32)
        sentences = Sentences(tuple(x.requires_grad_() for x in given.tensors), given.masks)
        leaves = (*sentences.tensors, *layer.parameters())
        told = []
        for program in (compiled, layer):
            ys = outputs(program, sentences)
            gradients = torch.autograd.grad(sum(y.square().sum() for y in ys), leaves)
            told.append((ys, gradients))
        (ours, our_gradients), (theirs, their_gradients) = told
        assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
        assert_close(our_gradients, their_gradients, atol=1e-4, rtol=1e-4)
    assert counter.frame_count == 1, f"compiled {counter.frame_count} times"


def _dynamic_shapes(sentences: Sentences) -> tuple[dict[int, object], ...]:
    batch = torch.export.Dim("batch", min=2, max=1024)
    lengths = [torch.export.Dim(f"length{k}", min=2, max=4096) for k in range(len(sentences.tensors))]
    return tuple([{0: batch, 1: length} for length in lengths] * 2)


def exports(layer: nn.Module, sizes: Callable[[int], Sentences]) -> torch.export.ExportedProgram:
    """torch.export, run at a shape that it never saw; what it exported."""
    layer, seen, unseen = layer.float(), sizes(3).to(torch.float32), sizes(6).to(torch.float32)
    program = torch.export.export(layer, (*seen.tensors, *seen.masks), dynamic_shapes=_dynamic_shapes(seen))
    for ours, theirs in zip(outputs(program.module(), unseen), outputs(layer, unseen), strict=True):
        assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    return program


def is_traced_and_kept(layer: nn.Module, sizes: Callable[[int], Sentences]) -> None:
    """torch.jit.trace: saved, loaded, and run at a shape that it never saw, with the layer's gradients."""
    layer, seen, unseen = layer.float(), sizes(3).to(torch.float32), sizes(6).to(torch.float32)
    with pytest.warns((DeprecationWarning, FutureWarning), match="jit"):
        traced = torch.jit.trace(layer, (*seen.tensors, *seen.masks), check_trace=False)
        buffer = io.BytesIO()
        torch.jit.save(traced, buffer)
        buffer.seek(0)
        loaded = torch.jit.load(buffer)
    gradients = []
    for program in (loaded, layer):
        leaves = tuple(x.clone().requires_grad_() for x in unseen.tensors)
        ys = outputs(program, Sentences(leaves, unseen.masks))
        gradients.append((*ys, *torch.autograd.grad(sum(y.square().sum() for y in ys), leaves)))
    for ours, theirs in zip(*gradients, strict=True):
        assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def onnx_by_tracing_agrees(layer: nn.Module, sizes: Callable[[int], Sentences]) -> None:
    """ONNX of torch's older exporter, run at a shape that the export never saw."""
    layer, seen, buffer = layer.float().eval(), sizes(3).to(torch.float32), io.BytesIO()
    given = (*seen.tensors, *seen.masks)
    names = [f"input{k}" for k in range(len(given))]
    axes = {name: {0: "batch", 1: f"length{k % len(seen.tensors)}"} for k, name in enumerate(names)}
    with warnings.catch_warnings(action="ignore"):  # it is deprecated
        torch.onnx.export(layer, given, buffer, dynamo=False, input_names=names, dynamic_axes=axes)
    _onnxruntime_agrees(buffer, layer, sizes(6))


def onnx_by_export_agrees(
    layer: nn.Module, sizes: Callable[[int], Sentences], program: torch.export.ExportedProgram | None = None
) -> None:
    """ONNX of torch's newer exporter, of the layer or of what torch.export has made of it, run at another shape."""
    layer, seen, buffer = layer.float().eval(), sizes(3).to(torch.float32), io.BytesIO()
    if program is None:
        given, shapes = (*seen.tensors, *seen.masks), _dynamic_shapes(seen)
        torch.onnx.export(layer, given, dynamic_shapes=shapes, verbose=False).save(buffer)
    else:
        torch.onnx.export(program, verbose=False).save(buffer)
    _onnxruntime_agrees(buffer, layer, sizes(6))


def _onnxruntime_agrees(model: io.BytesIO, layer: nn.Module, unseen: Sentences) -> None:
    session = onnxruntime.InferenceSession(model.getvalue(), providers=["CPUExecutionProvider"])
    unseen = unseen.to(torch.float32)
    feed = {i.name: t.numpy() for i, t in zip(session.get_inputs(), (*unseen.tensors, *unseen.masks), strict=True)}
    for ours, theirs in zip(session.run(None, feed), outputs(layer, unseen), strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-5, rtol=1e-5)
