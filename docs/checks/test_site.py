"""The built site: nothing comes from elsewhere, nothing leads nowhere, and every public name is in it.

``make docs`` builds it into ``docs/_build/html`` and runs this.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from sphinx.util.inventory import InventoryFile

import nlilayers
from nlilayers import functional, masking

SITE = Path(__file__).parents[1] / "_build" / "html"
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if "_static" not in path.parts
)
LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}
ELSEWHERE = re.compile(r"^(https?:)?//")


@cache
def soup(page: str) -> BeautifulSoup:
    return BeautifulSoup((SITE / page).read_text(encoding="utf-8"), "html.parser")


def loaded(page: str) -> Iterator[str]:
    """What a browser fetches to show a page."""
    for tag, attribute in LOADING.items():
        for element in soup(page).find_all(tag):
            names = element.get("rel", []) if tag == "link" else []
            if element.get(attribute) and not {"canonical", "author"} & set(names):
                yield element[attribute]
    for style in soup(page).find_all("style"):
        yield from re.findall(r"url\(['\"]?([^)'\"]+)", style.get_text())


def test_there_is_a_site() -> None:
    assert len(PAGES) > 60, f"build the site first: {len(PAGES)} pages in {SITE}"


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    assert [address for address in loaded(page) if ELSEWHERE.match(address)] == []


@pytest.mark.parametrize(
    "sheet",
    sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.css")),
)
def test_no_style_is_loaded_from_elsewhere(sheet: str) -> None:
    text = (SITE / sheet).read_text(encoding="utf-8")
    found = re.findall(r"url\(['\"]?([^)'\"]+)", text) + re.findall(
        r"@import ['\"]([^'\"]+)", text
    )
    assert [address for address in found if ELSEWHERE.match(address)] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_within_the_site_lead_somewhere(page: str) -> None:
    nowhere = []
    addresses = [a["href"] for a in soup(page).find_all("a", href=True)] + list(
        loaded(page)
    )
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (
            (SITE / page).parent / unquote(parts.path)
            if parts.path
            else SITE / page
        )
        if not target.exists():
            nowhere.append(address)
        elif parts.fragment and target.suffix == ".html":
            other = target.resolve().relative_to(SITE.resolve()).as_posix()
            fragment = unquote(parts.fragment)
            if not soup(other).find(id=fragment) and not soup(other).find(
                attrs={"name": fragment}
            ):
                nowhere.append(address)
    assert nowhere == []


@pytest.mark.parametrize("page", PAGES)
def test_pictures_say_what_they_show(page: str) -> None:
    images = [
        image
        for image in soup(page).find_all("img")
        if not image.find_parent(class_="sphx-glr-thumbcontainer")
    ]
    assert [
        image["src"] for image in images if len(image.get("alt", "").split()) < 2
    ] == []


def test_thumbnails_have_their_titles() -> None:
    thumbnails = soup("gallery_pages/index.html").find_all(
        class_="sphx-glr-thumbcontainer"
    )
    assert thumbnails and all(
        thumbnail.find(class_="sphx-glr-thumbnail-title").get_text()
        for thumbnail in thumbnails
    )


def test_every_public_name_is_in_the_reference() -> None:
    with (SITE / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    known = {
        name
        for kind, names in inventory.items()
        if kind.startswith("py:")
        for name in names
    }
    public = {f"nlilayers.{name}" for name in nlilayers.__all__}
    public |= {
        f"nlilayers.{module.__name__.rpartition('.')[2]}.{n}"
        for module in (functional, masking)
        for n in module.__all__
    }
    assert public - known == set()
