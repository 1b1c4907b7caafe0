"""One gated block: what goes from layer to layer."""

from pictures.flow import BOTH, PLAIN, PREMISE, Flow

flow = Flow(6.4, 3.6)
below = flow.box(1.4, 0.35, "$h^{L-1}$, the words", PREMISE, 1.7)
memory = flow.box(5.0, 0.35, "$c^{L-1}$, their memory", PREMISE, 1.9)
convolution = flow.box(1.4, 1.35, "one convolution, $k$ words wide", BOTH, 2.4)
output = flow.box(0.45, 2.15, "$o$  $\\sigma$", BOTH, 0.8)
candidate = flow.box(1.4, 2.15, "$g$  tanh", BOTH, 0.8)
forget = flow.box(2.35, 2.15, "$f$  $\\sigma$", BOTH, 0.8)
cell = flow.box(
    5.0, 2.15, "$c^L = f \\odot c^{L-1} + (1-f) \\odot h^{L-1}$", PLAIN, 2.7
)
hidden = flow.box(1.4, 3.2, "$h^L = o \\odot g + c^L$", PLAIN, 1.9)
flow.arrows(
    (below, convolution),
    (convolution, output),
    (convolution, candidate),
    (convolution, forget),
    (memory, cell),
    (below, cell),
    (forget, cell),
    (output, hidden),
    (candidate, hidden),
    (cell, hidden),
)
