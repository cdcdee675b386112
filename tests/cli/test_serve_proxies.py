"""The proxies of docs/serving.md, with the configuration that stands there, in front of attend serve."""

import http.client
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile

import program
import proxies
from program import settings
from test_serve import Server
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
        (cls.shared / data).write_text(lines)
        run = program.attend("train", "--data", data, "--out", "text",
                             *settings(small | {"train.epochs": 1}), cwd=cls.shared)
        assert run.returncode == 0, run.stderr

    def start(self, name):
        """A server, and a proxy in front of it that listens at a Unix socket, which is returned."""
        if proxies.executable(name) is None:
            program.skip(f"{name} is missing: install it")
        server = Server("text", "--port", 0, "--host", "attend.example", cwd=self.shared)
        self.addCleanup(server.end)
        path = self.folder / "proxy"
        self.run_proxy(proxies.command(name, self.folder, server.url.rsplit(":", 1)[1], path=path), path)
        return path

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
        """(status, headers, body)"""
        connection = Connection(path)
        self.addCleanup(connection.close)
        connection.request(method, target, body, {"Content-Type": "application/json", "Origin": origin})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def check(self, path):
        status, headers, _ = self.ask(path, "GET", "/")
        self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, "text/html"))

        def text_of(body):
            status, _, answer = self.ask(path, "POST", "/v1/completions", body)
            self.assertEqual(status, 200, answer)
            return json.loads(answer)["choices"][0]["text"]

        fields = {"prompt": "the", "max_tokens": 9}
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

    def test_nginx(self):
        self.check(self.start("nginx"))

    def test_haproxy(self):
        self.check(self.start("haproxy"))

    def test_caddy(self):
        self.check(self.start("caddy"))


if __name__ == "__main__":
    program.main()
