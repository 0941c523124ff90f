"""A headless Chromium over the DevTools protocol."""

import base64
import itertools
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request

from websockets.sync.client import connect

OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
]
START_S = 60
LIMIT_S = 30


class Browser:
    """A browser that ends with its block."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="chromium-")
        command = [program, *OPTIONS, f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.port = self._port()

    def _port(self):
        found = pathlib.Path(self.folder, "DevToolsActivePort")
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            lines = found.read_text().split() if found.exists() else []
            if len(lines) >= 2:
                return int(lines[0])
            time.sleep(0.05)
        raise RuntimeError("Chromium does not start")

    def page(self):
        """A page of its own."""
        address = f"http://127.0.0.1:{self.port}/json/new?about:blank"
        request = urllib.request.Request(address, method="PUT")
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            return Page(json.load(answer)["webSocketDebuggerUrl"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    """A page; what its console and its policies report is kept in `faults`."""

    def __init__(self, address):
        self.socket = connect(address, max_size=1 << 27, compression=None)
        self.numbers = itertools.count(1)
        self.faults = []
        for domain in ["Page", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv(timeout=LIMIT_S))
            self._note(answer)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _note(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.faults.append(json.dumps(parameters["exceptionDetails"])[:600])
        if event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.faults.append(parameters["entry"]["text"])

    def open(self, address, width, height, scheme="light"):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.call("Page.navigate", url=address)

    def value(self, expression):
        """The value of JavaScript in the page; of a promise when it is kept."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression, limit_s=LIMIT_S):
        """Waits until JavaScript is true."""
        end = time.monotonic() + limit_s
        while not self.value(f"Boolean({expression})"):
            if time.monotonic() > end:
                text = self.value("document.body.innerText.slice(0, 2000)")
                raise RuntimeError(f"{expression} is not true within {limit_s} s:\n{text}")
            time.sleep(0.02)

    def click(self, selector):
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def key(self, name, code):
        for kind in ["keyDown", "keyUp"]:
            event = {"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", **event, text="\r" if name == "Enter" else "")

    def picture(self, path, is_whole=True):
        """A picture of the page, as PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=is_whole)
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))
