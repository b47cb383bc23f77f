"""Makes the pictures of these pages from a real workspace: `python docs/pictures.py yard`.

The workspace is the tutorial's: the demo, and an evaluation of it. Charts of the release's card
are copied; pages of its site are photographed with Chromium (`playwright install chromium`, or
one on the PATH), which requests nothing from elsewhere.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

PICTURES = Path(__file__).parent / "pictures"
#: Picture → page of the site.
PAGES = {
    "site_release": "demo/1.0.0/index.html",
    "site_routers": "demo/1.0.0/routers.html",
}


def make(yard: Path) -> list[Path]:
    """Write every picture; returns their paths."""
    from playwright.sync_api import sync_playwright

    from routeyard.flows.site import write

    PICTURES.mkdir(exist_ok=True)
    (release,) = yard.glob("releases/demo/1.0.0")
    plots = sorted((release / "plots").glob("*.svg"))
    made = [Path(shutil.copy(plot, PICTURES / f"card_{plot.name}")) for plot in plots]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        write([yard], Path(folder) / "site")
        browser = play.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1100, "height": 780})
        for name, place in PAGES.items():
            page.goto((Path(folder) / "site" / place).as_uri())
            page.wait_for_timeout(1500)
            page.screenshot(path=PICTURES / f"{name}.png")
            made.append(PICTURES / f"{name}.png")
        browser.close()
    return made


if __name__ == "__main__":
    make(Path(sys.argv[1]))
