"""The page in a real browser: load, add points, change the kernel, optimise, see the change: with the library
and as static files. Skipped where Chromium or its driver is absent.

The picture for the documentation is written to the folder GRAMIAN_SCREENSHOTS, or to a temporary one.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.explore.conftest import STATIC, Running

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="Chromium and chromedriver are not installed"
)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1400,950"
)
PATIENCE = 60


class Page:
    """The page, as somebody sees and uses it."""

    def __init__(self, driver) -> None:
        self.driver = driver

    def open(self, address: str, scene: str = "first", state: str = "here") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{address}#scene={scene}")
        self.until(lambda: self.js("return document.documentElement.dataset.ready") == "yes")
        self.until(lambda: self.js("return document.documentElement.dataset.state") == state)

    def js(self, code: str, *arguments):
        return self.driver.execute_script(code, *arguments)

    def until(self, true) -> None:
        WebDriverWait(self.driver, PATIENCE, 0.05).until(lambda _: true())

    def one(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    @property
    def evidence(self) -> float | None:
        value = self.js("return document.getElementById('evidence').dataset.value")
        return float(value) if value else None

    @property
    def points(self) -> int:
        return len(self.all("#panels .panel:first-child .point"))

    def changed(self, before: float | None) -> float:
        self.until(lambda: self.evidence not in (before, None))
        return self.evidence

    def click(self, right: int, down: int) -> None:
        """Into the first picture, so many pixels from its corner."""
        plot = self.one("#panels svg")
        self.js("arguments[0].scrollIntoView({block: 'center'})", plot)
        width, height = plot.size["width"], plot.size["height"]
        chain = ActionChains(self.driver).move_to_element_with_offset(
            plot, right - width // 2, down - height // 2
        )
        chain.click().perform()

    def errors(self) -> list[str]:
        return [e["message"] for e in self.driver.get_log("browser") if e["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Page]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('browser')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(PATIENCE)
    yield Page(driver)
    driver.quit()


@pytest.fixture(scope="module")
def static() -> Iterator[str]:
    """The same files from a plain server, as on a documentation site."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments) -> None:
            pass

    Quiet.extensions_map = {**Quiet.extensions_map, ".mjs": "text/javascript"}
    handler = functools.partial(Quiet, directory=str(STATIC))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_a_lesson(page, running, tmp_path):
    """Load, add and move points, change the kernel, optimise, undo, copy: each is seen."""
    page.open(running.address)
    first = page.changed(None)
    assert page.points == 9
    page.until(lambda: "the library agrees" in page.text("#agrees"))

    page.click(600, 120)
    page.until(lambda: page.points == 10)
    second = page.changed(first)
    page.until(lambda: "Log evidence" in page.js("return document.getElementById('live').textContent"))

    point = page.all("#panels .point")[-1]
    page.js("arguments[0].focus()", point)
    point.send_keys(Keys.ARROW_DOWN)
    third = page.changed(second)
    assert page.js("return arguments[0].getAttribute('aria-label')", point).startswith("Point 10: x ")
    point.send_keys(Keys.DELETE)
    assert page.changed(third) == pytest.approx(first)
    assert page.points == 9

    formula = page.text("#formula")
    page.one("#kernel input[type=range]").send_keys(Keys.ARROW_RIGHT * 3)
    fourth = page.changed(first)
    assert page.text("#formula") != formula
    Select(page.one("#kernel .factor select")).select_by_value("Matern12")
    fifth = page.changed(fourth)
    page.until(lambda: "gm.Matern12" in page.text("#code"))

    page.one("#optimise").click()
    page.until(lambda: page.one("#optimise").text == "Optimise" and page.evidence > fifth + 0.1)
    page.until(lambda: "the library agrees" in page.text("#agrees"))
    best = page.evidence
    own: dict[str, object] = {}
    page.until(lambda: "gm.Matern12(lengthscale=1.0)" not in page.text("#code"))
    exec(page.js("return document.getElementById('code').textContent").replace("print(", "str("), own)
    assert own["post"].evidence.value == pytest.approx(best, rel=1e-9)
    assert own["prior"].fit(own["X"], own["y"]).condition(own["X"], own["y"]).evidence.value == pytest.approx(
        best, abs=1e-6
    )

    folder = Path(os.environ.get("GRAMIAN_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    page.js("scrollTo(0, 0)")
    assert page.driver.save_screenshot(str(folder / "explorer.png"))
    assert (folder / "explorer.png").stat().st_size > 20_000

    page.one("#undo").click()
    page.until(lambda: page.evidence == pytest.approx(fifth))
    assert page.errors() == []


def test_dragging_a_point(page, running):
    page.open(running.address)
    before = page.changed(None)
    point = page.all("#panels .point")[4]
    page.js("arguments[0].scrollIntoView({block: 'center'})", point)
    label = point.get_attribute("aria-label")
    ActionChains(page.driver).drag_and_drop_by_offset(
        point.find_element(By.CSS_SELECTOR, ".hit"), 60, -40
    ).perform()
    page.changed(before)
    assert page.points == 9
    assert page.all("#panels .point")[4].get_attribute("aria-label") != label


def test_what_the_library_alone_can_do(page, running):
    """Student's t beside Gaussian noise: asked for, and shown."""
    page.open(running.address, "outliers")
    page.until(lambda: "by the library" in page.text("#panels"))
    assert len(page.all("#panels .panel")) == 2
    assert page.errors() == []


CSV = "day,kind,sold\n1,a,3\n2,b,4\n3,a,6\n4,b,7\n5,a,9\n"


def test_tables_of_the_page(page, running, tmp_path):
    page.open(running.address)
    (tmp_path / "wrong.csv").write_text("x,y\n1,2\n2,many\n")
    page.one("#file").send_keys(str(tmp_path / "wrong.csv"))
    page.until(lambda: page.one("#message").is_displayed())
    assert page.text("#message") == "wrong.csv, line 3, column “y”: “many” is not a number."
    (tmp_path / "right.csv").write_text(CSV)
    page.one("#file").send_keys(str(tmp_path / "right.csv"))
    page.until(lambda: page.text("#title") == "right.csv")
    assert not page.one("#message").is_displayed()
    assert page.points == 5
    Select(page.one("#col-y")).select_by_value("kind")
    page.until(lambda: "two classes" in page.text("#panels"))
    assert page.errors() == []


def test_a_table_of_the_command(page, tmp_path):
    (tmp_path / "sales.csv").write_text(CSV)
    explorer = Running(tmp_path / "sales.csv", "--target", "sold")
    try:
        page.open(explorer.address)
        page.until(lambda: page.text("#title") == "sales.csv")
        assert page.points == 5
        page.until(lambda: "gm.Matern52" in page.text("#code"))
    finally:
        assert explorer.end()[0] == 0


def test_static_files_alone(page, static):
    """Without a server behind it: solved and optimised in the page; what needs the library says so."""
    page.open(static, state="none")
    before = page.changed(None)
    assert "browser alone" in page.text("#status")
    page.one("#optimise").click()
    page.until(lambda: page.one("#optimise").text == "Optimise" and page.evidence > before + 1)
    asked = page.js("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert asked
    assert all(name.startswith(static) for name in asked)
    page.open(static, "step", "none")
    page.until(lambda: "A deep Gaussian process needs the library" in page.text("#panels"))
    assert page.errors() == []


WIDE = """
    const inside = (e) => e.closest(".unseen, .skip, pre, .formula");
    const seen = (e) => (e.offsetParent !== null || e.tagName === "svg") && !inside(e);
    const out = (b) => b.width > 1 && (b.right > innerWidth + 1 || b.left < -1);
    return [...document.querySelectorAll("button, select, input, svg, h2, .panel, .card, .term")]
      .filter((e) => seen(e) && out(e.getBoundingClientRect())).map((e) => e.outerHTML.slice(0, 80));
"""
NAMELESS = """
    const named = (e) => e.labels?.[0]?.textContent.trim() || e.ariaLabel || e.textContent.trim();
    return [...document.querySelectorAll("button, select, input")].filter((e) => !named(e))
      .map((e) => e.outerHTML);
"""


@pytest.mark.parametrize("width", [1400, 390])
def test_every_scene_fits_the_screen(page, static, width):
    """Nothing wider than the screen, no picture empty, every control with a name, no error."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open(static, "first", "none")
        scenes = page.js("return [...document.getElementById('scene').options].map((o) => o.value)")
        assert len(scenes) >= 12
        for scene in scenes:
            page.open(static, scene, "none")
            page.until(lambda: page.all("#panels svg") or page.all("#panels .needs"))
            page.until(lambda: page.js("return document.getElementById('code').textContent.length") > 50)
            assert page.js("return document.documentElement.scrollWidth") <= width, scene
            assert page.js(WIDE) == [], scene
            assert page.js(NAMELESS) == [], scene
            assert not page.all(".panel .needs") or scene in ("outliers", "step")
            assert page.errors() == [], scene
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
