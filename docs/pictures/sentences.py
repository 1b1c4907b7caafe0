"""The figure of a model of two sentences: a column for each, and boxes across both where they meet."""

from pictures.flow import BOTH, HYPOTHESIS, PREMISE, Box, Flow

LEFT, RIGHT, STEP = 1.55, 4.65, 0.78


def draw(*steps: str | tuple[str, str]) -> None:
    """From bottom to top.

    Args:
        steps: a pair of texts is a box for each sentence; one text is a box that sees both.
    """
    flow = Flow(6.2, STEP * len(steps) + 0.1)
    below: list[Box] = []
    for level, step in enumerate(steps):
        y = STEP * (level + 0.5) + 0.05
        if isinstance(step, str):
            boxes = [
                flow.box(
                    (LEFT + RIGHT) / 2, y, step, BOTH, RIGHT - LEFT + 2.6, 0.46
                )
            ]
        else:
            sides = zip((LEFT, RIGHT), step, (PREMISE, HYPOTHESIS), strict=True)
            boxes = [
                flow.box(x, y, text, colour, 2.6, 0.46) for x, text, colour in sides
            ]
        connect(flow, below, boxes)
        below = boxes


def connect(flow: Flow, below: list[Box], above: list[Box]) -> None:
    """An arrow in each column; boxes across both have two."""
    if not below:
        return
    columns = [box.x for box in (below if len(below) > 1 else above)]
    if len(columns) == 1:
        flow.arrow(below[0], above[0])
        return
    for i, x in enumerate(columns):
        start, end = below[min(i, len(below) - 1)], above[min(i, len(above) - 1)]
        flow.arrow(Box(x, start.y, 0, start.height), Box(x, end.y, 0, end.height))
