"""The built site in a browser: formulas, search, phones, dark mode; and nothing is fetched from elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import nlilayers

SITE = Path(__file__).parents[1] / "_build" / "html"
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if "_static" not in path.parts
)
LAYERS = [name for name in nlilayers.__all__ if name[0].isupper()]
PHONE, DESK = 390, 1200


@dataclass
class Watched:
    """A page, and what went wrong on it."""

    page: Page
    elsewhere: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, address: str) -> None:
        """Load it, and wait until formulas are drawn."""
        self.page.goto(address)
        self.page.wait_for_function(
            "!window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)"
        )


def watched(
    browser: Browser, width: int = DESK, scheme: str = "light"
) -> Iterator[Watched]:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme
    )  # type: ignore[arg-type]
    found = Watched(context.new_page())
    found.page.on(
        "request",
        lambda request: (
            found.elsewhere.append(request.url)
            if "localhost" not in request.url
            else None
        ),
    )
    found.page.on(
        "console",
        lambda said: (
            found.errors.append(said.text) if said.type == "error" else None
        ),
    )
    found.page.on("pageerror", lambda error: found.errors.append(str(error)))
    yield found
    context.close()


@pytest.fixture
def desk(browser: Browser) -> Iterator[Watched]:
    yield from watched(browser)


@pytest.fixture
def phone(browser: Browser) -> Iterator[Watched]:
    yield from watched(browser, PHONE, "dark")


def test_there_is_a_site() -> None:
    assert len(PAGES) > 60


@pytest.mark.parametrize("page", PAGES)
def test_at_a_desk(desk: Watched, site: str, page: str) -> None:
    desk.open(f"{site}/{page}")
    assert (desk.elsewhere, desk.errors) == ([], [])
    written = desk.page.locator("span.math, div.math").count()
    assert desk.page.locator("mjx-container").count() >= written
    assert desk.page.locator("mjx-merror").count() == 0
    broken = desk.page.evaluate(
        "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    )
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_on_a_phone_in_the_dark(phone: Watched, site: str, page: str) -> None:
    phone.open(f"{site}/{page}")
    assert (phone.elsewhere, phone.errors) == ([], [])
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE
    background = phone.page.evaluate(
        "getComputedStyle(document.body).backgroundColor"
    )
    assert all(
        int(level) < 60
        for level in background.removeprefix("rgb(").removesuffix(")").split(",")
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_search_finds_every_layer(desk: Watched, site: str, layer: str) -> None:
    desk.page.goto(f"{site}/search.html?q={layer}")
    found = desk.page.locator("#search-results a").filter(
        has_text=f"nlilayers.{layer}"
    )
    found.first.wait_for(timeout=20_000)
    found.first.click()
    assert desk.page.locator(f"[id='nlilayers.{layer}']").count() == 1
    assert (desk.elsewhere, desk.errors) == ([], [])
