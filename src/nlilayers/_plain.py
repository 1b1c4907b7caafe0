"""Modules whose call is known from their class: nothing that was done to one of them changes it."""

from collections.abc import Callable, Collection
from typing import Any

from torch import nn


def is_plain(module: nn.Module, forwards: Collection[Callable[..., Any]]) -> bool:
    """Whether calling a module does what one of these ``forward`` methods does, and no hook more.

    Its parameters may have parametrizations, and its gradients hooks.
    """
    called = type(module).__call__ is nn.Module.__call__
    hooked = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
    return type(module).forward in forwards and called and not hooked
