"""Start of attend serve: settings, the socket of systemd, and an end before models are loaded."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import program
from program import PAIRS, SMALL, settings
from test_serve import Server

UNITS = pathlib.Path(__file__).resolve().parents[2] / "cmake/systemd"


class Start(program.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        run = program.attend("train", "--data", "pairs.tsv", "--out", "words",
                             *settings(SMALL | {"train.epochs": 1}), cwd=cls.shared)
        assert run.returncode == 0, run.stderr

    def serve(self, *arguments, **options):
        server = Server(*arguments, cwd=self.shared, **options)
        self.addCleanup(server.end)
        return server

    def refuse_to_serve(self, *arguments, words, env=None):
        run = program.attend("serve", *arguments, cwd=self.shared,
                             env=program.environment() | (env or {}))
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertRegex(run.stderr, r"\Aattend: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, run.stderr)

    def test_options_variables_and_a_file(self):
        self.write("key", "secret\n")
        config = self.write("serve.toml", f"""[serve]
models = "{self.shared / 'words'}"
port = 1
host = "file.example"
key_file = "key"
log = "json"
""")
        # Options override variables, and variables override the file.
        server = self.serve("--config", config, "--port", 0,
                            env={"ATTEND_SERVE_PORT": "2", "ATTEND_SERVE_HOST": "variable.example"})
        for host, status in (("variable.example", 200), ("file.example", 421)):
            self.assertEqual(server.ask("GET", "/", headers={"Host": host})[0], status)
        self.assertEqual(server.predict(texts=["bab"])[0], 401, "the key's file is beside the other")
        self.assertEqual(server.end(), 0)
        self.assertTrue(all(line.startswith("{") for line in server.errors))

    def test_settings_that_are_none(self):
        config = self.write("serve.toml", "[serve]\nprot = 1\n")
        for arguments, env, words in (
                (("words", "--config", config), {}, ["serve.toml:2:", "serve.port"]),
                (("words",), {"ATTEND_SERVE_PROT": "1"}, ["ATTEND_SERVE_PROT", "PORT"]),
                (("words",), {"ATTEND_SERVE_PORT": "x"}, ["ATTEND_SERVE_PORT"]),
                (("words", "--port", "65536"), {}, ["serve.port=65536", "65535"]),
                (("words", "--log", "xml"), {}, ["serve.log=xml", "lines, json"]),
                (("words", "--host", "*"), {}, ["serve.host '*'", "attend.example"]),
                (("words", "--host", "https://x"), {}, ["serve.host 'https://x'"]),
                (("words", "--host", "a.example:0"), {}, ["serve.host 'a.example:0'"]),
                (("=words",), {}, ["'=words'", "NAME=FOLDER"]),
                (("words", "--cors-origin", "https://a/b"), {}, ["https://a/b", "without a path"]),
                ((), {}, ["no model is named"])):
            self.refuse_to_serve(*arguments, words=words, env=env)

    def test_threads_that_cannot_be_started(self):
        """Memory suffices for the model's threads, with 64 MiB each, but not for the threads of requests."""
        def limit():
            program.resource.setrlimit(program.resource.RLIMIT_STACK, (64 << 20, 64 << 20))
            program.resource.setrlimit(program.resource.RLIMIT_AS, (13 << 30, 13 << 30))
        run = subprocess.run([program.PROGRAM, "serve", "words", "--port", "0", "--threads", "128"],
                             cwd=self.shared, env=program.environment() | {"OMP_NUM_THREADS": "1"},
                             capture_output=True, text=True, timeout=300, preexec_fn=limit)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertRegex(run.stderr, r"\Aattend: thread \d+ of 128 cannot be started: [^\n]+\n\Z")

    def start_with(self, listener, *arguments, count=1):
        """Returns a server that inherits a socket as from systemd."""
        hand_on = ("import os, sys\nos.dup2(int(sys.argv[1]), 3)\n"
                   "os.environ |= {'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': sys.argv[2]}\n"
                   "os.execv(sys.argv[3], sys.argv[3:])")
        process = subprocess.Popen(
            [sys.executable, "-c", hand_on, str(listener.fileno()), str(count), program.PROGRAM,
             "serve", "words", *arguments], cwd=self.shared, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=program.environment(),
            pass_fds=[listener.fileno()])
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_the_socket_of_systemd(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            # Clients that connect before the server starts wait for it.
            client = socket.create_connection(("127.0.0.1", port), 300)
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n\r\n"
                           % port)
            process = self.start_with(listener, "--port", "1")
            self.assertEqual(process.stdout.readline(),
                             f"attend: listening at http://127.0.0.1:{port}\n")
            answer = b"".join(iter(lambda: client.recv(4096), b""))
            client.close()
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)
            self.assertEqual(process.stdout.readline(), "attend: ready\n")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60), 0)
            # The socket belongs to the starting process, which may start the server again.
            socket.create_connection(("127.0.0.1", port)).close()
            two = self.start_with(listener, count=2)
            self.assertEqual(two.wait(60), 2)
            self.assertIn("LISTEN_FDS is 2", two.stderr.read())

    def test_a_request_waits_for_the_models_of_a_socket(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            client.request("POST", "/v1/predict", json.dumps({"model": "m9", "texts": ["bab"]}),
                           {"Content-Type": "application/json"})
            process = self.start_with(listener, *(f"m{i}=words" for i in range(10)))
            answer = client.getresponse()
            self.assertEqual(answer.status, 200, answer.read())
            client.close()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60), 0)

    def test_names_of_models(self):
        (self.shared / "current").symlink_to("words")
        self.addCleanup((self.shared / "current").unlink)
        server = self.serve("current", "second=words/", "words/", "--port", 0)
        models = json.loads(server.ask("GET", "/v1/models")[2])["data"]
        self.assertEqual([model["id"] for model in models], ["current", "second", "words"])

    def test_the_terminal_closes(self):
        server = self.serve("words", "--port", 0)
        for _ in range(2):  # a terminal may send it twice
            server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.wait(60), 0)

    def test_nohup(self):
        """`nohup` starts a program with the signal ignored."""
        process = subprocess.Popen(
            ["sh", "-c", 'trap "" HUP; exec "$0" serve words --port 0', program.PROGRAM],
            cwd=self.shared, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=program.environment())
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline(), process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        # If both signals counted, the second one would end it at once, with 1.
        self.assertEqual(process.wait(60), 0)

    def test_the_socket_of_another_process_is_left_alone(self):
        env = {"LISTEN_PID": "1", "LISTEN_FDS": "1"}
        self.assertRegex(self.serve("words", "--port", 0, env=env).url, r"http://127\.0\.0\.1:\d+")

    def test_an_end_while_models_are_loaded(self):
        """On a machine so fast that the models are loaded already, the end looks the same."""
        models = [str(self.folder / f"words{i}") for i in range(60)]
        for model in models:
            shutil.copytree(self.shared / "words", model)
        process = subprocess.Popen([program.PROGRAM, "serve", *models, "--port", "0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=program.environment())
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertIn("listening at http", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(process.stderr.read(), "")

    def test_the_units_of_systemd(self):
        if shutil.which("systemd-analyze") is None:
            program.skip("systemd-analyze is missing: install systemd")
        unit = (UNITS / "attend.service.in").read_text()
        program_folder = pathlib.Path(program.PROGRAM).resolve().parent
        service = self.write("attend.service",
                             unit.replace("@CMAKE_INSTALL_FULL_BINDIR@", str(program_folder)))
        units = [service, self.write("attend.socket", (UNITS / "attend.socket").read_text())]
        run = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True,
                             text=True)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))
        # 100 means no protection.
        run = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                              "--threshold=20", service], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout[-300:])


if __name__ == "__main__":
    program.main()
