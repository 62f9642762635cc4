"""Pictures of the live service's pages for the README and the documentation.

    python benchmarks/screenshots.py docs/figures
    python benchmarks/screenshots.py docs/figures --service demo   # continues this demo

Starts the demo service and waits until the served model is 15 points better than the source model,
on at least 100 audited samples. Then it takes a picture of the labelling page and of the dashboard.
Needs Chromium, as the browser tests do, and up to an hour for a new service.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from attakit.client import Client
from attakit.client.dashboard_bodies import AccuracyBody

WIDTH = 1100
GAIN, AUDITED = 0.15, 100
HEIGHTS = {"labelling": 760, "dashboard": 1330}  # the dashboard down to its charts


@contextmanager
def demo(folder: Path) -> Iterator[str]:
    """Run the demo service inside the block, and yield its address."""
    command = [sys.executable, "-m", "attakit", "serve", "--demo", "--port", "0"]
    command += ["--folder", str(folder)]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    try:
        yield next(line for line in service.stdout if line.startswith("Serving on")).split()[-1]
    finally:
        service.terminate()
        service.wait()


def wait_for_a_gain(address: str, seconds: float) -> None:
    """Wait until learning has brought something, or give up."""
    end = time.monotonic() + seconds
    with Client(address) as client:
        while time.monotonic() < end and not has_gained(client.status().accuracy):
            time.sleep(5.0)


def has_gained(accuracy: AccuracyBody | None) -> bool:
    if accuracy is None or accuracy.source is None or accuracy.count < AUDITED:
        return False
    return accuracy.value - accuracy.source.value >= GAIN


def take(page: Page, address: str, path: Path) -> None:
    page.set_viewport_size({"width": WIDTH, "height": HEIGHTS[path.stem]})
    page.goto(address)
    name = page.get_by_label("Name")
    if name.is_visible():  # the labelling page asks once
        name.fill("Ada")
        name.press("Enter")
    page.wait_for_timeout(3000)  # questions and charts are fetched
    page.screenshot(path=path)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder for the pictures")
    parser.add_argument("--seconds", type=float, default=3600, help="longest wait for a gain")
    parser.add_argument("--service", type=Path, help="folder of a demo; a new one if not given")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with TemporaryDirectory() as new, demo(options.service or Path(new)) as address:
        wait_for_a_gain(address, options.seconds)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page()
            take(page, f"{address}/label", options.folder / "labelling.png")
            take(page, f"{address}/", options.folder / "dashboard.png")


if __name__ == "__main__":
    main()
