"""Watches a paused run in Chromium, steers it to its end, and prints what the page has shown.

    check.py CHROMIUM ADDRESS FOLDER [AXE.js]

FOLDER gets pictures of the page, narrow and wide, light and dark. The last line of the output is
JSON: the numbers of the page at the end, and its summary.
"""

import json
import pathlib
import sys
import time

from browser import Browser

SIZES = [(360, 800), (1600, 1000)]
STATE = "document.getElementById('state')?.textContent"
CANVASES = """[...document.querySelectorAll('canvas')]
    .filter((canvas) => canvas.offsetParent)
    .map((canvas) => canvas.toDataURL())"""


def terms(page, name):
    """A list of terms as names with texts."""
    rows = f"""[...document.querySelectorAll('#{name} > div')]
        .map((row) => [row.dataset.name, row.querySelector('dd').textContent])"""
    return dict(page.value(rows))


def steps(page):
    """The steps that the page shows."""
    numbers = terms(page, "numbers")
    return int((numbers.get("ticks") or numbers["bursts"]).replace(",", ""))


def until_steps(page, is_reached):
    end = time.monotonic() + 30
    while not is_reached(steps(page)):
        assert time.monotonic() < end, terms(page, "numbers")
        time.sleep(0.02)


def settled(page):
    """The steps of a paused run, when the last state has arrived."""
    while True:
        before = steps(page)
        time.sleep(0.4)
        if steps(page) == before:
            return before


def changed(page):
    """How many pictures change while the run continues."""
    before = page.value(CANVASES)
    time.sleep(0.6)
    return sum(one != other for one, other in zip(before, page.value(CANVASES)))


def pictures(browser, address, folder):
    for width, height in SIZES:
        for scheme in ["light", "dark"]:
            page = browser.page()
            page.open(address, width, height, scheme)
            page.wait("document.querySelector('#numbers div')")
            assert page.value("document.documentElement.scrollWidth") <= width
            theme = page.value("document.documentElement.dataset.theme")
            assert theme == scheme, f"{theme}, not {scheme}"
            height = page.value("document.documentElement.scrollHeight")
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            page.call("Emulation.setDeviceMetricsOverride", **size)
            time.sleep(0.5)
            page.picture(pathlib.Path(folder, f"{width}-{scheme}.png"))
            assert not page.faults, page.faults


def accessible(page, axe):
    """Rules of axe that the page breaks."""
    page.value(pathlib.Path(axe).read_text() + ";0")
    found = page.value("axe.run().then(({ violations }) => violations.map(({ id, nodes }) => "
                       "`${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`))")
    assert not found, found


def main(program, address, folder, axe=None):
    with Browser(program) as browser:
        page = browser.page()
        begin = time.monotonic()
        page.open(address, 1600, 1000)
        page.wait(f"{STATE} === 'paused'")
        first_s = time.monotonic() - begin
        assert page.value("document.querySelectorAll('#pause:enabled').length") == 1
        # The keyboard is enough: the first control is the one that continues.
        page.key("Tab", 9)
        page.wait("document.activeElement.id === 'pause'")
        page.value("document.getElementById('speed').value = '1';"
                   "document.getElementById('speed').dispatchEvent(new Event('change'))")
        page.key("Enter", 13)
        until_steps(page, lambda count: count > 20)
        assert page.value(STATE) == "running"
        moving = changed(page)
        other = browser.page()
        other.open(address, 360, 800)
        other.wait(f"{STATE} === 'running'")
        assert changed(other) > 0, "the second page stands still"
        pictures(browser, address, folder)
        if axe:
            accessible(page, axe)
        page.click("#pause")
        other.wait(f"{STATE} === 'paused'")
        before = settled(page)
        assert settled(other) == before
        other.click("#step")
        until_steps(page, lambda count: count == before + 1)
        time.sleep(0.3)
        assert changed(page) == 0, "paused, and pictures change"
        page.value("document.getElementById('speed').value = '';"
                   "document.getElementById('speed').dispatchEvent(new Event('change'))")
        page.click("#pause")
        page.click("#stop")
        page.wait(f"{STATE} === 'ended'")
        result = {
            "first_picture_s": first_s,
            "moving": moving,
            "numbers": terms(page, "numbers"),
            "summary": terms(page, "results"),
            "faults": page.faults + other.faults,
            "cookies": page.value("document.cookie"),
        }
        print(json.dumps(result))


main(*sys.argv[1:])
