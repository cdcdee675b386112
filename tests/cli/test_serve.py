"""attend serve: answers over HTTP equal the output of predict."""

import http.client
import json
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import program
from program import PAIRS, SMALL, settings

SOURCES = [line.split("\t")[0] for line in PAIRS.splitlines()]


class Server:
    """A server that has reported that it is ready."""

    def __init__(self, *arguments, cwd, env=None):
        self.errors = []
        self.process = subprocess.Popen(
            [program.PROGRAM, "serve", *map(str, arguments)], cwd=cwd, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=program.environment() | (env or {}), text=True)
        self.reader = threading.Thread(target=self.read_errors, daemon=True)
        self.reader.start()
        self.url = self.process.stdout.readline().split()[-1]
        self.said = self.process.stdout.readline()

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def connect(self):
        return http.client.HTTPConnection("localhost", int(self.url.rsplit(":", 1)[1]), timeout=300)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Returns (status, headers, body)."""
        connection = connection or self.connect()
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        connection.request(method, path, body, {"Content-Type": "application/json"} | (headers or {}))
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read().decode()

    def answer(self, path, **fields):
        """Returns the JSON of an answer with status 200."""
        status, _, body = self.ask("POST", path, fields)
        assert status == 200, body
        return json.loads(body)

    def refusal(self, path, status, **fields):
        """Returns the body of an answer with this status."""
        found, _, body = self.ask("POST", path, fields)
        assert found == status, body
        return body

    def predict(self, **fields):
        status, _, body = self.ask("POST", "/v1/predict", fields)
        return status, body

    def end(self):
        """Sends SIGTERM; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class Serve(program.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        for name in ("words", "others"):
            run = program.attend("train", "--data", "pairs.tsv", "--valid", "pairs.tsv", "--out", name,
                                 *settings(SMALL | {"train.epochs": 2, "train.seed": len(name)}),
                                 cwd=cls.shared)
            assert run.returncode == 0, run.stderr

    def serve(self, *arguments, models=("words",), **options):
        server = Server(*models, "--port", 0, *arguments, cwd=self.shared, **options)
        self.addCleanup(server.end)
        return server

    def lines(self, texts, *options, model="words"):
        """Returns the lines of predict --json for the texts."""
        run = program.attend("predict", model, "--json", *options, cwd=self.shared,
                             stdin="".join(f"{text}\n" for text in texts))
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.splitlines()

    def whole(self, lines, model="words"):
        return f'{{"model":"{model}","answers":[{",".join(lines)}]}}'

    def test_answers_are_those_of_predict_to_the_byte(self):
        server = self.serve()
        texts = SOURCES[:9] + ["", "zzz", "b" * 40, "é"]
        for options, fields in (
                ((), {}),
                (("--beam", 4, "--nbest", 3, "--wu-length-penalty", "--length-penalty", 0.5),
                 {"beam": 4, "nbest": 3, "wu_length_penalty": True, "length_penalty": 0.5}),
                (("--details", "--unknown", "copy", "--maximum-length", 3),
                 {"details": True, "unknown": "copy", "maximum_length": 3}),
                (("--samples", 2, "--top-k", 5, "--temperature", 1.5, "--seed", 9),
                 {"samples": 2, "top_k": 5, "temperature": 1.5, "seed": 9})):
            status, body = server.predict(texts=texts, **fields)
            self.assertEqual(status, 200, body)
            self.assertEqual(body, self.whole(self.lines(texts, *options)), fields)
        prefixed = self.lines([f"{text}\tB" for text in texts[:3]], "--prefixes")
        self.assertEqual(server.predict(texts=texts[:3], prefixes=["B"] * 3)[1], self.whole(prefixed))
        self.assertEqual(server.end(), 0)

    def test_answers_do_not_depend_on_company(self):
        server = self.serve("--threads", 2)
        greedy, beams = self.lines(SOURCES), self.lines(SOURCES, "--beam", 3)
        wrong = []

        def client(first):
            connection = server.connect()
            for i in range(first, len(SOURCES), 8):
                for beam, lines in ((1, greedy), (3, beams)):
                    status, _, body = server.ask(
                        "POST", "/v1/predict", {"texts": [SOURCES[i]], "beam": beam},
                        connection=connection)
                    if status != 200 or body != self.whole([lines[i]]):
                        wrong.append((status, body))
                # An invalid request among the others.
                server.ask("POST", "/v1/predict", {"texts": ["b"], "prefixes": ["no such token"]},
                           connection=connection)
            connection.close()

        threads = [threading.Thread(target=client, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        metrics = server.ask("GET", "/metrics")[2]
        answered = 2 * len(SOURCES)
        self.assertRegex(metrics, rf'code="200"}} {answered}\n')
        self.assertRegex(metrics, rf"attend_queue_duration_seconds_count {answered + len(SOURCES)}\n")
        self.assertNotRegex(metrics, r"attend_tokens_total 0\n")

    def test_several_models(self):
        server = self.serve(models=("words", "others/"))
        listed = json.loads(server.ask("GET", "/v1/models")[2])
        self.assertEqual([model["id"] for model in listed["data"]], ["words", "others"])
        for model in ("words", "others"):
            self.assertEqual(server.predict(texts=["bab"], model=model)[1],
                             self.whole(self.lines(["bab"], model=model), model))
        status, body = server.predict(texts=["bab"])
        self.assertEqual((status, json.loads(body)["error"]["param"]), (422, "model"))
        status, body = server.predict(texts=["bab"], model="../words")
        self.assertEqual((status, json.loads(body)["error"]["code"]), (404, "model_not_found"))

    def test_scores_are_those_of_score(self):
        server = self.serve()
        answers = ["The dog bit the man.", "It was not unexpected.", "x y"]
        first = self.write("a.txt", "The dog bit the man.\nIt was unexpected.\nx z\n")
        second = self.write("b.txt", "The dog had bit him.\nNobody knew.\ny x\n")
        references = (first.read_text() + second.read_text()).splitlines()
        for options, fields in (
                (("--metric", "bleu,chrf++,token_error", "--units", "char", "--lowercase",
                  "--smooth", "floor", "--smooth-value", "0.5", "--tokenise", "intl"),
                 {"metrics": ["bleu", "chrf++", "token_error"], "units": "char",
                  "lowercase": True, "smooth": "floor", "smooth_value": 0.5, "tokenise": "intl"}),
                (("--sentences",), {"sentences": True})):
            printed = self.succeed("score", "--json", "--reference", first, "--reference", second,
                                   *options, stdin="".join(f"{line}\n" for line in answers)).stdout
            status, _, body = server.ask("POST", "/v1/score", {"answers": answers,
                                                              "references": references} | fields)
            self.assertEqual(status, 200, body)
            wanted = printed.splitlines()
            if "sentences" in fields:
                wanted = [f'{{"sentences":[{",".join(wanted)}]}}']
            self.assertEqual([body], wanted)

    def test_refusals_name_the_field(self):
        server = self.serve("--strict")
        for fields, status, param, words in (
                ({}, 422, "texts", "missing"),
                ({"texts": ["a"] * 33}, 422, "texts", "from 1 to 32"),
                ({"texts": ["a"], "beam": 0}, 422, "beam", "from 1 to 64"),
                ({"texts": ["a"], "baem": 2}, 422, "baem", "did you mean beam?"),
                ({"texts": ["a"], "nbest": 2}, 422, "nbest", "raise beam"),
                ({"texts": ["a"], "samples": 2, "beam": 2}, 422, "beam", "drawn"),
                ({"texts": ["a"], "prefixes": ["a", "b"]}, 422, "prefixes", "2 prefixes for 1"),
                ({"texts": ["b", "a"], "prefixes": ["", "no"]}, 422, "texts", "texts[1]: "),
                ({"texts": ["a"], "minimum_length": 9, "maximum_length": 2}, 422, None, "maximum"),
                ({"texts": ["a"], "keep_seen": True}, 422, "keep_seen", "rank")):
            found, body = server.predict(**fields)
            error = json.loads(body)["error"]
            self.assertEqual((found, error["param"]), (status, param), body)
            self.assertIn(words, error["message"])
            self.assertEqual(error["type"], "invalid_request_error")
        self.assertEqual(server.ask("POST", "/v1/predict", b'{"texts": ["\xff"]}')[0], 400)

    def test_a_request_is_logged(self):
        server = self.serve("--log", "json")
        server.ask("GET", "/health?a=b", headers={"X-Request-Id": "mine"})
        server.ask("GET", "/v1/models", headers={"Host": "evil.example"})
        self.assertEqual(server.end(), 0)
        first, second = map(json.loads, server.errors)
        self.assertEqual((first["event"], first["id"], first["target"], first["status"]),
                         ("request", "mine", "/health?a=b", 200))
        self.assertEqual((second["event"], second["target"], second["status"]),
                         ("refused", "/v1/models", 421))
        self.assertIn("'evil.example'", second["reason"])

    def test_a_key_and_a_name(self):
        key = self.write("key", "secret\n")
        server = self.serve("--key-file", key, env={"ATTEND_SERVE_HOST": "Attend.Example"})
        self.assertEqual(server.predict(texts=["a"])[0], 401)
        status, _, _ = server.ask("POST", "/v1/predict", {"texts": ["a"]},
                                  {"Authorization": "Bearer secret", "Host": "attend.example"})
        self.assertEqual(status, 200)

    def test_a_unix_socket(self):
        path = self.folder / "socket"
        server = Server("words", "--socket", path, cwd=self.shared)
        self.addCleanup(server.end)
        self.assertEqual(server.url, f"unix:{path}")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer)
        self.assertEqual(server.end(), 0)
        self.assertFalse(path.exists())

    def test_tls(self):
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-keyout", "key.pem", "-out", "certificate.pem", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost"], cwd=self.folder, capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        certificate, key = self.folder / "certificate.pem", self.folder / "key.pem"
        server = self.serve("--certificate", certificate, "--certificate-key", key)
        self.assertRegex(server.url, r"\Ahttps://127\.0\.0\.1:\d+\Z")
        port = int(server.url.rsplit(":", 1)[1])
        tls = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("localhost", port, context=tls, timeout=300)
        texts = SOURCES[:32]
        for _ in range(3):
            body = server.ask("POST", "/v1/predict", {"texts": texts, "details": True},
                              connection=connection)[2]
            self.assertEqual(body, self.whole(self.lines(texts, "--details")))
        # A client that sends more than is read receives the refusal and a proper end of TLS.
        with tls.wrap_socket(socket.create_connection(("localhost", port)),
                             server_hostname="localhost") as client:
            client.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: localhost:%d\r\n"
                           b"Content-Type: application/json\r\nContent-Length: 20000000\r\n\r\n"
                           % port + b" " * 200000)
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
        # Clients without TLS receive no HTTP response, and others are still served.
        with socket.create_connection(("localhost", port)) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertNotIn(b"HTTP/", b"".join(iter(lambda: client.recv(4096), b"")))
        self.assertEqual(server.ask("GET", "/ready", connection=connection)[0], 200)
        connection.close()
        self.assertEqual(server.end(), 0)
        for arguments, word in ((("--certificate", certificate), "both files"),
                                (("--certificate", key, "--certificate-key", key), "key.pem"),
                                (("--certificate", certificate, "--certificate-key", certificate),
                                 "certificate.pem: holds no key")):
            run = program.attend("serve", "words", "--port", 0, *arguments, cwd=self.shared)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(word, run.stderr)

    def test_the_end(self):
        server = self.serve("--drain-seconds", 600)
        connection = server.connect()
        self.assertEqual(server.ask("GET", "/ready", connection=connection)[0], 200)
        server.process.send_signal(signal.SIGTERM)
        while server.ask("GET", "/ready", connection=connection)[0] != 503:
            pass
        # It continues to answer until the second signal.
        status, _, body = server.ask("POST", "/v1/predict", {"texts": ["bab"]}, connection=connection)
        self.assertEqual((status, body), (200, self.whole(self.lines(["bab"]))))
        self.assertEqual(server.end(), 1)

    def test_a_model_that_is_not_there_stops_the_start(self):
        run = program.attend("serve", "none", "--port", 0, cwd=self.shared)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, r"\Aattend: [^\n]*none[^\n]*\n\Z")
        self.assertRegex(run.stdout, r"\Aattend: listening at http://127\.0\.0\.1:\d+\n\Z")
        for arguments, word in ((("words", "--address", "here"), "--address"),
                                (("words", "words/"), "two models")):
            run = program.attend("serve", "--port", 0, *arguments, cwd=self.shared)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(word, run.stderr)


if __name__ == "__main__":
    program.main()
