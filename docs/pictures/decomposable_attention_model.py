"""Parikh et al. 2016, Figure 1."""

from pictures.sentences import draw

draw(
    ("NULL, premise words $a$", "NULL, hypothesis words $b$"),
    ("project to 200", "project to 200"),
    ("optional: IntraAlign, appended", "optional: IntraAlign, appended"),
    "attend: DecomposableAlign, both directions",
    ("compare: $G([a_i; \\beta_i])$", "compare: $G([b_j; \\alpha_j])$"),
    ("sum over the words", "sum over the words"),
    "aggregate: $H([v_1; v_2])$, the classes",
)
