"""The page of `explain` in a browser: pointer, keys, roles, contrast, phones; and nothing is fetched."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect

from nli_common.explaining import Alignment, Explanation, Features, page

PREMISE = ["<i>A</i>", "small", "dog", "sleeps", "&", "snores"]
HYPOTHESIS = ["an", "animal", "is", "awake"]


def explanation(n: int, m: int, *, heads: int = 2) -> Explanation:
    """Numbers that differ everywhere, and an alignment with NULL in two blocks."""
    torch.manual_seed(0)
    premise, hypothesis = (
        [words[i % len(words)] for i in range(k)]
        for words, k in ((PREMISE, n), (HYPOTHESIS, m))
    )
    alignments = [
        Alignment(
            (torch.randn(n + 1, m + 1) * 2).softmax(-1).tolist(),
            torch.randn(m + 1, n + 1).softmax(-1).tolist(),
            b,
            h,
        )
        for b in ("1", "2")
        for h in (*map(str, range(1, heads + 1)), "mean")
    ]
    names = [f"{a}_{c}" for a in ("intra", "inter") for c in ("cat", "sub", "mul")]
    features = Features(
        names, (torch.randn(n, 6) * 5).tolist(), (torch.randn(m, 6) * 5).tolist()
    )
    classes = [("entailment", 0.7), ("neutral", 0.2), ("contradiction", 0.1)]
    return Explanation(
        "Model", premise, hypothesis, classes, ("NULL",), alignments, features
    )


class Opened:
    """A page, what it asked for and what it complained of."""

    def __init__(
        self, browser: Browser, it: Explanation, folder: Path, **options: object
    ) -> None:
        self.it = it
        file = folder / "explanation.html"
        file.write_text(page(it), encoding="utf-8")
        self.context = browser.new_context(
            **{"viewport": {"width": 1200, "height": 900}, **options}
        )
        self.page: Page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "console", lambda message: self.complaints.append(message.text)
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri())
        self.address = file.as_uri()

    def readout(self) -> Locator:
        return self.page.locator("#readout")

    def cell(self, kind: str, i: int, j: int) -> Locator:
        row = self.page.locator(f'table[data-kind="{kind}"]:visible tbody tr').nth(
            i
        )
        return row.locator("td").nth(j)

    def told(self, view: int, i: int, j: int) -> str:
        alignment = self.it.alignments[view]
        words = [["NULL", *side] for side in (self.it.premise, self.it.hypothesis)]
        weights = f"β {alignment.beta[i][j]:.4f}, α {alignment.alpha[j][i]:.4f}"
        return f"premise {words[0][i]}, hypothesis {words[1][j]}, {weights}"


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    it = Opened(browser, explanation(6, 4), tmp_path)
    yield it
    assert it.complaints == [] and it.requests == [it.address]
    it.context.close()


def test_hovering_shows_the_words_and_both_weights_and_marks_row_and_column(
    opened: Opened,
) -> None:
    opened.cell("beta", 2, 3).hover()
    expect(opened.readout()).to_have_text(opened.told(5, 2, 3))
    for kind in ("beta", "alpha"):
        table = opened.page.locator(f'table[data-kind="{kind}"]:visible')
        assert table.locator("thead th.line").all_inner_texts() == ["is"]
        assert table.locator("tbody th.line").all_inner_texts() == ["small"]
        assert (
            table.locator("td.line").count() == 7 + 5 - 1
            and table.locator("td.hot").count() == 1
        )
    opened.cell("alpha", 6, 0).hover()
    expect(opened.readout()).to_have_text(opened.told(5, 6, 0))
    opened.page.locator("h1").hover()
    assert opened.page.locator(".line, .hot").count() == 0


def test_the_keys_move_one_focus_through_a_grid(opened: Opened) -> None:
    page = opened.page
    page.locator("[name=numbers]").focus()
    page.keyboard.press("Tab")
    expect(opened.cell("beta", 0, 0)).to_be_focused()
    places = [
        ("ArrowRight", (0, 1)), ("ArrowDown", (1, 1)), ("ArrowLeft", (1, 0)), ("ArrowLeft", (1, 0)), ("End", (1, 4)),
        ("ArrowRight", (1, 4)), ("ArrowUp", (0, 4)), ("ArrowUp", (0, 4)), ("Control+End", (6, 4)),
        ("ArrowDown", (6, 4)), ("Home", (6, 0)), ("Control+Home", (0, 0)), ("ArrowDown", (1, 0)),
    ]  # fmt: skip
    for key, place in places:
        page.keyboard.press(key)
        expect(opened.cell("beta", *place)).to_be_focused()
        expect(opened.readout()).to_have_text(opened.told(5, *place))
        assert (
            page.locator('table[data-kind="beta"]:visible td[tabindex="0"]').count()
            == 1
        )
    page.keyboard.press("Tab")
    expect(opened.cell("alpha", 0, 0)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(opened.cell("beta", 1, 0)).to_be_focused()
    page.keyboard.press("Alt+ArrowRight")
    expect(opened.cell("beta", 1, 0)).to_be_focused()


def test_where_nothing_is_pointed_at_the_focused_cell_is_told(
    opened: Opened,
) -> None:
    opened.cell("beta", 3, 1).click()
    expect(opened.cell("beta", 3, 1)).to_be_focused()
    opened.cell("beta", 5, 4).hover()
    expect(opened.readout()).to_have_text(opened.told(5, 5, 4))
    opened.page.locator("h1").hover()
    expect(opened.readout()).to_have_text(opened.told(5, 3, 1))


def test_block_and_head_are_chosen_and_the_place_is_kept(opened: Opened) -> None:
    page = opened.page
    assert page.locator(".view:visible").count() == 1
    opened.cell("beta", 4, 2).click()
    page.get_by_label("Block").select_option("1")
    page.get_by_label("Head").select_option("2")
    assert page.locator(".view:visible").get_attribute("data-block") == "1"
    cell = page.locator('.view:visible table[data-kind="beta"] td[tabindex="0"]')
    cell.focus()
    expect(opened.readout()).to_have_text(opened.told(1, 4, 2))
    opened.cell("alpha", 0, 1).hover()
    expect(opened.readout()).to_have_text(opened.told(1, 0, 1))


def test_scalars_are_told_by_name(opened: Opened) -> None:
    features = opened.it.features
    assert features is not None
    for side, words, values in (
        ("premise", PREMISE, features.premise),
        ("hypothesis", HYPOTHESIS, features.hypothesis),
    ):
        opened.cell(side, 3, 5).hover()
        told = f"{side} {words[3]}, inter mul {values[3][5]:.4f}".replace("-", "−")
        expect(opened.readout()).to_have_text(told)
        opened.cell(side, 0, 0).focus() if side == "premise" else opened.cell(
            side, 0, 0
        ).click()
    opened.page.keyboard.press("ArrowRight")
    told = f"hypothesis an, intra sub {features.hypothesis[0][1]:.4f}".replace(
        "-", "−"
    )
    expect(opened.readout()).to_have_text(told)


def test_roles_and_the_live_region(opened: Opened) -> None:
    page = opened.page
    assert page.get_by_role("grid").count() == 4
    grid = page.get_by_role(
        "grid", name=re.compile("what each premise word looks at")
    )
    assert (
        grid.get_by_role("row").count() == 8
        and grid.get_by_role("gridcell").count() == 35
    )
    assert (
        grid.get_by_role("rowheader").count() == 7
        and grid.get_by_role("columnheader").count() == 6
    )
    assert page.get_by_role("status").get_attribute("aria-live") == "polite"


def test_numbers_are_shown_on_demand(opened: Opened) -> None:
    cell = opened.cell("beta", 0, 0)
    wide = cell.bounding_box()["width"]
    opened.page.get_by_label("Numbers").uncheck()
    assert cell.bounding_box()["width"] < wide
    assert (
        cell.locator("span").evaluate(
            "element => getComputedStyle(element).fontSize"
        )
        == "0px"
    )
    opened.page.get_by_label("Numbers").check()
    assert (
        cell.locator("span").evaluate(
            "element => getComputedStyle(element).fontSize"
        )
        != "0px"
    )


@pytest.mark.parametrize("words", [1, 9, 60])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(
    browser: Browser, tmp_path: Path, words: int, scheme: str
) -> None:
    it = Opened(
        browser,
        explanation(words, words, heads=1),
        tmp_path,
        viewport={"width": 390, "height": 844},
        color_scheme=scheme,
        has_touch=True,
    )
    assert it.page.evaluate("document.documentElement.scrollWidth") == 390
    it.page.get_by_label("Numbers").check()
    assert it.page.evaluate("document.documentElement.scrollWidth") == 390
    it.cell("beta", 0, 1).tap()
    expect(it.readout()).to_have_text(it.told(3, 0, 1))
    assert it.complaints == [] and it.requests == [it.address]
    it.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    """WCAG's 4.5 between each text and the first colour behind it, marked or not."""
    it = Opened(browser, explanation(6, 4), tmp_path, color_scheme=scheme)
    for hovered in (None, ("beta", 2, 3), ("premise", 1, 1)):
        if hovered:
            it.cell(*hovered).hover()
        ratios = it.page.evaluate(CONTRASTS)
        assert len(ratios) > 100
        assert [found for found in ratios if found[0] < 4.5] == []
    it.context.close()


CONTRASTS = """() => {
  const channels = (colour) => {
    const numbers = colour.match(/[-.\\d]+/g).map(Number);
    return colour.startsWith("rgb") ? numbers.map((value, k) => k < 3 ? value / 255 : value) : numbers;
  };
  const luminance = (colour) => channels(colour).slice(0, 3)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (channels(colour)[3] !== 0) return colour;
    }
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("script, select")) continue;
    const colours = [getComputedStyle(element).color, behind(element)];
    const [dark, light] = colours.map(luminance).sort((a, b) => a - b);
    found.push([(light + 0.05) / (dark + 0.05), element.outerHTML.slice(0, 80)]);
  }
  return found;
}"""


def test_without_javascript_it_is_a_set_of_tables(
    browser: Browser, tmp_path: Path
) -> None:
    it = Opened(browser, explanation(6, 4), tmp_path, java_script_enabled=False)
    assert it.page.locator("table:visible").count() == 1 + 2 * 6 + 2
    assert (
        it.page.locator("h3:visible").all_inner_texts()[-1]
        == "Block 2, mean of its heads"
    )
    assert (
        not it.page.locator("#readout").is_visible()
        and not it.page.locator("#controls").is_visible()
    )
    cell = it.page.locator(".map tbody td").first
    assert cell.inner_text() == f"{it.it.alignments[0].beta[0][0]:.3f}"
    assert it.page.locator(".bars tbody th").first.inner_text() == "<i>A</i>"
    assert it.complaints == [] and it.requests == [it.address]
    it.context.close()


def test_a_script_that_slipped_in_would_not_run(
    browser: Browser, tmp_path: Path
) -> None:
    """The page's policy allows its own script alone, by its hash."""
    it = Opened(browser, explanation(1, 1), tmp_path)
    it.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')"
    )
    it.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 2'}))"
    )
    it.page.wait_for_timeout(200)
    assert it.page.evaluate("window.ran") is None and any(
        "Content Security Policy" in text for text in it.complaints
    )
    assert not [url for url in it.requests if url.startswith("http")]
    it.context.close()
