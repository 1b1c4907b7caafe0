"""One highway layer: some of what was made of x, some of x itself."""

from pictures.flow import BOTH, PLAIN, PREMISE, Flow

flow = Flow(5.6, 2.8)
x = flow.box(2.8, 0.35, "$x$", PREMISE)
transform = flow.box(0.95, 1.25, r"$\mathrm{act}(W_H x + b_H)$", BOTH, 1.7)
gate = flow.box(2.8, 1.25, r"gate  $T = \sigma(W_T x + b_T)$", BOTH, 1.8)
carry = flow.box(4.65, 1.25, "$P(x)$", BOTH, 1.2)
y = flow.box(
    2.8, 2.35, r"$y = T \odot \mathrm{act}(\cdot) + (1 - T) \odot P(x)$", PLAIN, 3.2
)
flow.arrows(
    (x, transform), (x, gate), (x, carry), (transform, y), (gate, y), (carry, y)
)
