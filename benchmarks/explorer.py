"""The explorer in a real browser: a frame while a point is dragged, and how soon 200 points answer.

    python benchmarks/explorer.py [--frames 300]

Starts `gramian explore` and headless Chromium (Debian's packages chromium and chromium-driver). A point is
moved once a frame, as fast as frames come. `work` is the time that a frame takes from the new place of the
point to the last change of the page; at 60 frames a second there are 16.7 ms for it. `library` is a question
of the page to the library and back: the posterior at 181 places with five draws. Of each the fastest tenth,
the median and the slowest twentieth; on a busy machine the first says what the page takes, the others what
the neighbours leave of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from websockets.sync.client import connect

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1400,950"
)
DRAG = """
const [frames, done] = arguments, svg = document.querySelector("#panels svg"), times = [];
const fire = (type, at, x, y) =>
  at.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX: x, clientY: y, pointerId: 1 }));
svg.setPointerCapture = () => {};
const box = svg.getBoundingClientRect();
fire("pointerdown", svg.querySelector(".point .hit"), box.left + 200, box.top + 150);
performance.clearMeasures("frame");
let k = 0;
const step = (now) => {
  times.push(now);
  fire("pointermove", svg, box.left + 150 + 150 * Math.sin(k / 40), box.top + 150 + 80 * Math.cos(k / 17));
  if (k++ < frames) return requestAnimationFrame(step);
  fire("pointerup", svg, 0, 0);
  const work = performance.getEntriesByName("frame").map((e) => e.duration);
  done([work, times.slice(1).map((t, i) => t - times[i])]);
};
requestAnimationFrame(step);
"""


def told(name: str, milliseconds: list[float]) -> None:
    values = np.percentile(milliseconds, [10, 50, 95])
    print(f"{name:52s} {values[0]:8.1f} {values[1]:8.1f} {values[2]:8.1f}  ms")


def table(folder: Path, n: int) -> Path:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-5, 5, n))
    rows = np.column_stack([x, np.sin(x) + 0.1 * rng.standard_normal(n)])
    np.savetxt(folder / f"n{n}.csv", rows, delimiter=",", header="x,y", comments="", fmt="%.4f")
    return folder / f"n{n}.csv"


def posterior(n: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-5, 5, n))
    factor = {"name": "Matern52", "values": {"lengthscale": 1.0}, "held": []}
    problem = {
        "dims": 1,
        "kernel": {"terms": [{"scale": 1.0, "factors": [factor]}]},
        "likelihood": {"gaussian": {"noise": 0.05}},
        "X": X[:, None].tolist(),
        "y": np.sin(X).tolist(),
    }
    return {
        "ask": "posterior",
        "problem": problem,
        "grid": np.linspace(-5, 5, 181)[:, None].tolist(),
        "draws": 5,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=300)
    frames = parser.parse_args().frames
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("Chromium and chromedriver are needed: apt-get install chromium chromium-driver")
    command = [sys.executable, "-m", "gramian", "explore", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    folder = Path(tempfile.mkdtemp())
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS.split(), f"--user-data-dir={folder / 'browser'}"]:
        options.add_argument(flag)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        browser = webdriver.Chrome(options=options, service=Service(driver))
        browser.set_script_timeout(300)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n{'':52s}  fastest   median  slowest")
        try:
            for n in (10, 30, 100, 200):
                browser.get("about:blank")
                browser.get(address)
                time.sleep(2)
                browser.find_element(By.ID, "file").send_keys(str(table(folder, n)))
                time.sleep(2)
                work, between = browser.execute_async_script(DRAG, frames)
                told(f"work of a frame, one picture, n = {n}", work[20:])
                if n == 30:
                    told(f"from frame to frame, n = {n}", between[20:])
            for scene, what in (
                ("eplaplace", "Laplace, EP and VI side by side, n = 18"),
                ("counts", "Poisson counts by Laplace, n = 28"),
                ("map", "a map, n = 26"),
                ("sparse", "exact, VFE and FITC side by side, n = 60"),
            ):
                browser.get("about:blank")
                browser.get(f"{address}#scene={scene}")
                time.sleep(2)
                told(f"work of a frame, {what}", browser.execute_async_script(DRAG, frames)[0][20:])
        finally:
            browser.quit()
        own, origin = address.replace("http:", "ws:") + "ws", "/".join(address.split("/")[:3])
        with connect(own, origin=origin, compression=None, max_size=None) as line:
            line.recv(60)
            taken = []
            for k in range(30):
                began = time.perf_counter()
                line.send(json.dumps({**posterior(200), "id": k}))
                line.recv(120)
                taken.append(1000 * (time.perf_counter() - began))
            told("library, n = 200 (after the first)", taken[1:])
            print(f"{'the first, with its imports':52s} {taken[0]:8.1f}  ms")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
