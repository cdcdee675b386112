"""The proxies of docs/serving.md with their documented configuration, between clients and attend serve."""

import grp
import http.client
import json
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import tempfile

import program
from program import settings
from test_serve import Server
from test_serve_routes import MODELS
from test_serving_docs import PAGE

NGINX = """daemon off;
user {user} {group};
pid {folder}/pid;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/bodies;
  proxy_temp_path {folder}/answers;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
{block}
}}
"""


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

    def start(self, name, command, changes):
        """Starts a server, and a proxy for it that listens at a Unix socket."""
        path = shutil.which(command[0], path="/usr/sbin:/usr/bin:/usr/local/bin")
        if path is None:
            program.skip(f"{command[0]} is missing: install it")
        server = Server("text", "--port", 0, "--host", "attend.example", cwd=self.shared)
        self.addCleanup(server.end)
        block = re.search(rf"(?ms)^```{name}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))[1]
        for old, new in changes:
            self.assertIn(old, block)
            block = block.replace(old, new)
        block = block.replace("127.0.0.1:8080", server.url.split("//")[1])
        return server, block, [path, *command[1:]]

    def run_proxy(self, command, socket_path):
        proxy = subprocess.Popen(list(map(str, command)), cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, env=program.environment() | {
                                     "HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder),
                                     "XDG_CONFIG_HOME": str(self.folder)})
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
        path = self.folder / "proxy"
        _, block, command = self.start("nginx", ["nginx"], [("127.0.0.1:8081", f"unix:{path}")])
        file = self.write("nginx.conf", NGINX.format(
            folder=self.folder, block=block, user=pwd.getpwuid(os.getuid())[0],
            group=grp.getgrgid(os.getgid())[0]))
        self.run_proxy([*command, "-e", "stderr", "-p", self.folder, "-c", file], path)
        self.check(path)

    def test_haproxy(self):
        path = self.folder / "proxy"
        _, block, command = self.start("haproxy", ["haproxy"], [("127.0.0.1:8081", str(path))])
        self.run_proxy([*command, "-q", "-f", self.write("haproxy.cfg", block)], path)
        self.check(path)

    def test_caddy(self):
        path = self.folder / "proxy"
        _, block, command = self.start("caddy", ["caddy", "run", "--adapter", "caddyfile", "--config"],
                                       [("bind 127.0.0.1", f"bind unix/{path}")])
        block = "{\n  admin off\n}\n" + block
        self.run_proxy([*command, self.write("Caddyfile", block)], path)
        self.check(path)


if __name__ == "__main__":
    program.main()
