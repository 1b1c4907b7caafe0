"""A browser, and the built site behind a local server. Needs Chromium and ``pip install '.[browser]'``."""

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

SITE = Path(__file__).parents[1] / "_build" / "html"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it is called by
        """Nothing."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The Chromium that CHROMIUM names or that is installed; otherwise Playwright's own."""
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        launched = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the built site."""
    assert (SITE / "index.html").exists(), "build the site first: make docs"
    server = ThreadingHTTPServer(
        ("localhost", 0), functools.partial(Quiet, directory=str(SITE))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
