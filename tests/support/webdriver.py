"""A headless Chromium, driven over WebDriver by the standard library."""

import base64
import json
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

PATIENCE = 120  # seconds after which a page that does not get on has failed
DRIVER_STARTS = 100  # at most, while other programs take its ports
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing():
    """The programs of Debian's chromium and chromium-driver that are not installed."""
    return [name for name in ("chromium", "chromedriver") if not shutil.which(name)]


def start_driver():
    """The process of a driver and its port.

    With port 0 the driver takes a free port of IPv6, then needs the same port of IPv4. If another
    program has that one, the driver ends, and the next start takes another port.
    """
    for _ in range(DRIVER_STARTS):
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        printed = ""
        for line in driver.stdout:
            if "started successfully on port" in line:
                return driver, int(line.rstrip().rstrip(".").split()[-1])
            printed += line
        driver.stdout.close()
        driver.wait()
        if "port not available" not in printed:
            break
    raise RuntimeError(f"chromedriver did not start:\n{printed}")


class Browser:
    """A window of `width` x `height` pixels; a context manager."""

    def __init__(self, width, height, dark=False, touch=False):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver, port = start_driver()
        self.session = ""
        try:
            self.address = f"http://127.0.0.1:{port}"
            self._begin(width, height, dark)
        except BaseException:
            self.close()
            raise
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=touch)
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def _begin(self, width, height, dark):
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--window-size={width},{height}", f"--user-data-dir={self.profile.name}",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update"]
        always = {"browserName": "chrome", "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
                  "timeouts": {"script": 1000 * PATIENCE, "pageLoad": 1000 * PATIENCE},
                  "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")}}
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": always}})
        self.session = f"/session/{answer['sessionId']}"

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        # The driver is on this machine, whatever proxy there is to others.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=2 * PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def call(self, method, path, body=None):
        return self._call(method, self.session + path, body)

    def cdp(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """Returns the result of a function body, after its promise if it returns one."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, condition):
        """Until it holds in a frame of the page; gives up after PATIENCE."""
        self.run("return new Promise(resolve => {"
                 f"const look = () => {{ if ({condition}) resolve(); else requestAnimationFrame(look); }};"
                 "look(); })")

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def keys(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def actions(self, *sources):
        self.call("POST", "/actions", {"actions": list(sources)})

    def logs(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self):
        if self.session:
            try:
                self.call("DELETE", "")
            except (OSError, RuntimeError):
                pass
        self.driver.terminate()
        self.driver.wait(timeout=20)
        self.driver.stdout.close()
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
