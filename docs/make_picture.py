"""Take the screenshot docs/guide/report.png for the README. Run `make demo` first. Needs playwright and Chromium."""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Open the demo's report and take a screenshot of its first page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 880}, color_scheme="light")
        page.goto((ROOT / "truthcal-demo" / "report.html").as_uri())
        page.screenshot(path=ROOT / "docs" / "guide" / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
