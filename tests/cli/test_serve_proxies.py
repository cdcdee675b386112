"""Tests proxies with their configurations in docs/serving.md, between clients and attend serve."""

import http.client
import json
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

import program
import proxies
from program import PAIRS, SMALL, settings
from test_serve import Server
from test_serve_limits import LONG
from test_serve_routes import MODELS


class Connection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path):
        super().__init__("attend.example", timeout=300)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(300)
        self.sock.connect(self.path)


class Proxies(program.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        data, lines, small = MODELS["text"]
        slow = SMALL | {"model.hidden": 1024, "train.steps": 2}
        for name, file, content, chosen in (("text", data, lines, small | {"train.epochs": 1}),
                                            ("words", "pairs.tsv", PAIRS, slow)):
            (cls.shared / file).write_text(content)
            run = program.attend("train", "--data", file, "--out", name, *settings(chosen), cwd=cls.shared)
            assert run.returncode == 0, run.stderr

    def start(self, name):
        """Starts a server and a proxy; returns the server and the proxy's Unix socket."""
        if proxies.executable(name) is None:
            program.skip(f"{name} is missing: install it")
        server = Server("text", "words", "--port", 0, "--host", "attend.example", "--log", "json", "--deadline", 240,
                        cwd=self.shared)
        self.addCleanup(server.end)
        path = self.folder / "proxy"
        self.run_proxy(proxies.command(name, self.folder, server.url.rsplit(":", 1)[1], path=path), path)
        return server, path

    def run_proxy(self, command, socket_path):
        proxy = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=program.environment() | proxies.environment(self.folder))
        self.addCleanup(proxy.stdout.close)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.terminate)
        while True:
            self.assertIsNone(proxy.poll(), proxy.stdout.read() if proxy.poll() is not None else "")
            connection = Connection(socket_path)
            try:
                connection.request("GET", "/ready")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            finally:
                connection.close()

    def ask(self, path, method, target, body=None, origin="http://attend.example"):
        """Returns (status, headers, body)."""
        connection = Connection(path)
        self.addCleanup(connection.close)
        connection.request(method, target, body, {"Content-Type": "application/json", "Origin": origin})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def check(self, server, path):
        status, headers, _ = self.ask(path, "GET", "/")
        self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, "text/html"))

        def text_of(body):
            status, _, answer = self.ask(path, "POST", "/v1/completions", body)
            self.assertEqual(status, 200, answer)
            return json.loads(answer)["choices"][0]["text"]

        fields = {"model": "text", "prompt": "the", "max_tokens": 9}
        body = json.dumps(fields).encode()
        text = text_of(body)
        self.assertEqual(text_of(iter([body[:9], body[9:]])), text)
        self.assertEqual(text_of(body + b" " * 3000000), text)
        stream = self.ask(path, "POST", "/v1/completions", json.dumps(fields | {"stream": True}))[2]
        *events, last, empty = stream.split("\n\n")
        self.assertEqual((last, empty), ("data: [DONE]", ""))
        choices = [choice for event in events
                   for choice in json.loads(event.removeprefix("data: "))["choices"]]
        self.assertEqual("".join(choice["text"] for choice in choices), text)
        self.assertEqual(self.ask(path, "POST", "/v1/completions", body, "http://evil.example")[0], 403)

        self.abandon(server, path)

    def abandon(self, server, path):
        """The proxy reports the client's disconnection, and the server cancels the request."""
        def batches():
            return re.search(r"(?m)^attend_batch_size_count (\d+)$", server.ask("GET", "/metrics")[2])[1]

        connection, before = Connection(path), batches()
        connection.request("POST", "/v1/predict", json.dumps(LONG | {"model": "words"}),
                           {"Content-Type": "application/json", "X-Request-Id": "abandoned"})
        while batches() == before:
            pass
        connection.close()
        while not (said := [json.loads(line) for line in server.errors if '"abandoned"' in line]):
            pass
        self.assertEqual([event["event"] for event in said], ["gone"], said)

    def test_nginx(self):
        self.check(*self.start("nginx"))

    def test_haproxy(self):
        self.check(*self.start("haproxy"))

    def test_caddy(self):
        self.check(*self.start("caddy"))


if __name__ == "__main__":
    program.main()
