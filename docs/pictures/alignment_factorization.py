"""A word, what was aligned to it, and the three machines that compare them."""

from pictures.flow import BOTH, HYPOTHESIS, PLAIN, PREMISE, Flow

flow = Flow(6.4, 2.9)
word = flow.box(2.2, 0.35, "word $x$", PREMISE)
aligned = flow.box(4.2, 0.35, "aligned to it, $a$", HYPOTHESIS)
pairs = [
    flow.box(x, 1.15, text)
    for x, text in ((1.2, "$[x; a]$"), (3.2, "$x - a$"), (5.2, r"$x \odot a$"))
]
machines = [
    flow.box(pair.x, 1.85, text, BOTH, 1.7)
    for pair, text in zip(pairs, ("$F_c$", "$F_s$", "$F_m$"), strict=True)
]
scalars = flow.box(3.2, 2.55, "three scalars  $y_c, y_s, y_m$", PLAIN, 2.6)
for pair, machine in zip(pairs, machines, strict=True):
    flow.arrows((word, pair), (aligned, pair), (pair, machine), (machine, scalars))
