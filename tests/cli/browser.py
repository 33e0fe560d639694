"""A headless Chromium, driven over a pair of pipes (the DevTools protocol). Plain Python 3."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """Its path: $CHROMIUM or the first of the usual names; None where there is none."""
    return os.environ.get("CHROMIUM") or next((p for p in map(shutil.which, NAMES) if p), None)


class Browser:
    def __init__(self, program, width=1400, height=1000):
        self.home = tempfile.mkdtemp(prefix="isomer-browser-")
        out_r, self.out = os.pipe()
        self.inp, in_w = os.pipe()

        def child():
            a, b = os.dup(out_r), os.dup(in_w)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--remote-debugging-pipe",
                "--user-data-dir=" + self.home,
                "--window-size=%d,%d" % (width, height),
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=child,
            close_fds=False,
            start_new_session=True,
        )
        os.close(out_r)
        os.close(in_w)
        self.buffer, self.serial, self.events, self.session = b"", 0, [], None
        target = next(
            t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"
        )
        self.session = self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)

    def size(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def _read(self, seconds):
        end = time.time() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.inp], [], [], max(0, end - time.time()))[0]:
                raise TimeoutError("the browser says nothing")
            piece = os.read(self.inp, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, seconds=60, **params):
        self.serial += 1
        message = {"id": self.serial, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read(seconds)
            if answer.get("id") == self.serial:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Load a file; then events holds what happened on the way."""
        self.events = []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        end = time.time() + 60
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._read(max(1, end - time.time())))
        self.settle()

    def settle(self):
        self.js("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() => f(1))))")

    def js(self, code):
        r = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in r:
            raise RuntimeError(json.dumps(r["exceptionDetails"])[:600])
        return r["result"].get("value")

    def key(self, key, text=None):
        codes = {
            "ArrowDown": 40,
            "ArrowUp": 38,
            "ArrowLeft": 37,
            "ArrowRight": 39,
            "Enter": 13,
            "Escape": 27,
            "Home": 36,
            "End": 35,
            "Tab": 9,
        }
        text = (
            text if text is not None else key if len(key) == 1 else "\r" if key == "Enter" else None
        )
        down = {
            "type": "keyDown" if text else "rawKeyDown",
            "key": key,
            "windowsVirtualKeyCode": codes.get(key, 0),
        }
        self.call("Input.dispatchKeyEvent", **dict(down, **({"text": text} if text else {})))
        self.call(
            "Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes.get(key, 0)
        )
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def complaints(self):
        """Errors and warnings of the console, exceptions, and addresses asked for beyond the file
        and its data."""
        bad = []
        for e in self.events:
            p = e.get("params", {})
            if e.get("method") == "Runtime.exceptionThrown":
                bad.append(
                    p["exceptionDetails"].get("exception", {}).get("description")
                    or p["exceptionDetails"]["text"]
                )
            elif e.get("method") == "Runtime.consoleAPICalled" and p["type"] in (
                "error",
                "warning",
                "assert",
            ):
                bad.append(str([a.get("value") for a in p["args"]]))
            elif e.get("method") == "Log.entryAdded" and p["entry"]["level"] in (
                "error",
                "warning",
            ):
                bad.append(p["entry"]["text"])
            elif e.get("method") == "Network.requestWillBeSent" and not p["request"][
                "url"
            ].startswith(("file:", "data:")):
                bad.append("asks for " + p["request"]["url"])
        return bad

    def picture(self, path, full=False):
        r = self.call(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=bool(full),
            **({"clip": dict(x=0, y=0, scale=1, **full)} if full else {}),
        )
        with open(path, "wb") as f:
            f.write(base64.b64decode(r["data"]))

    def close(self):
        os.close(self.out)
        os.close(self.inp)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
