"""One gated block: what goes from layer to layer."""

from pictures.flow import BOTH, PLAIN, PREMISE, Flow

flow = Flow(6.4, 3.6)
below = flow.box(1.6, 0.35, "$h^{L-1}$, the words", PREMISE, 1.7)
memory = flow.box(5.0, 0.35, "$c^{L-1}$, their memory", PREMISE, 1.9)
convolution = flow.box(1.6, 1.2, "one convolution, $k$ words wide", BOTH, 2.6)
output = flow.box(0.55, 2.05, "$o$  $\\sigma$", BOTH, 0.8)
candidate = flow.box(1.6, 2.05, "$g$  tanh", BOTH, 0.8)
forget = flow.box(2.65, 2.05, "$f$  $\\sigma$", BOTH, 0.8)
cell = flow.box(
    5.0, 2.05, "$c^L = f \\odot c^{L-1} + (1-f) \\odot h^{L-1}$", PLAIN, 2.7
)
hidden = flow.box(1.6, 3.15, "$h^L = o \\odot g + c^L$", PLAIN, 1.9)
flow.arrows(
    (below, convolution),
    (convolution, output),
    (convolution, candidate),
    (convolution, forget),
    (memory, cell),
    (forget, cell),
    (output, hidden),
    (candidate, hidden),
    (cell, hidden),
)
