"""attend serve with untrusted clients: size limits, disconnects, deadlines, foreign pages."""

import http.client
import json
import pathlib
import shutil
import socket
import tempfile

import program
from program import PAIRS, SMALL, settings
from test_serve import Server

# Minutes of work for one of the model's threads, ended earlier by a disconnect or a deadline.
LONG = {"texts": ["bab"], "beam": 64, "minimum_length": 4096, "maximum_length": 4096}


class Limits(program.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        run = program.attend("train", "--data", "pairs.tsv", "--out", "words",
                             *settings(SMALL | {"model.hidden": 1024, "train.steps": 2}), cwd=cls.shared)
        assert run.returncode == 0, run.stderr

    def serve(self, *arguments, **options):
        server = Server("words", "--port", 0, *arguments, cwd=self.shared, **options)
        self.addCleanup(server.end)
        return server

    def send(self, server, data):
        """Returns a connection that has sent these bytes."""
        client = socket.create_connection(("localhost", int(server.url.rsplit(":", 1)[1])), 300)
        self.addCleanup(client.close)
        client.sendall(data)
        return client

    def predict(self, server, fields, lines=b""):
        """Returns a connection that has sent a request and not read the answer."""
        body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        return self.send(server, b"POST /v1/predict HTTP/1.1\r\nHost: %s\r\n%s"
                         b"Content-Type: application/json\r\nContent-Length: %d\r\n"
                         b"Connection: close\r\n\r\n%s"
                         % (server.url.split("//")[1].encode(), lines, len(body), body))

    def status(self, client):
        answer = b"".join(iter(lambda: client.recv(65536), b""))
        return int(answer.split()[1]), answer

    def figures(self, server):
        """Returns the figures of /metrics by name."""
        lines = server.ask("GET", "/metrics")[2].splitlines()
        return {name: float(value)
                for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    def wait_for(self, server, name, value):
        while self.figures(server).get(name) != value:
            pass

    def test_limits_at_the_byte(self):
        server = self.serve("--body-bytes", 1 << 20)
        host = server.url.split("//")[1].encode()
        for size, wanted in ((8192, 200), (8193, 431)):
            head = b"GET /health HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nX-Filler: " % host
            filled = head + b"x" * (size - len(head) - 4) + b"\r\n\r\n"
            self.assertEqual(self.status(self.send(server, filled))[0], wanted, size)
        for size, wanted in ((1 << 20, 200), ((1 << 20) + 1, 413)):
            body = b'{"texts": ["bab"]' + b" " * (size - 18) + b"}"
            self.assertEqual(self.status(self.predict(server, body))[0], wanted, size)
        for depth, wanted in ((8, b"strings"), (9, b"nested 8 deep")):
            body = b'{"texts": %s}' % (b"[" * (depth - 1) + b"]" * (depth - 1))
            found, answer = self.status(self.predict(server, body))
            self.assertEqual(found, 422)
            self.assertIn(wanted, answer)

    def test_work_is_bounded(self):
        server = self.serve()
        asked = {"texts": ["bab"], "minimum_length": 0, "maximum_length": 4096}
        for more, words in (({"beam": 64, "texts": ["bab"] * 2}, "at most 262144"),
                            ({"samples": 64, "texts": ["bab"] * 2}, "at most 262144"),
                            ({"beam": 64, "details": True, "texts": ["bab" * 100]}, "attention weights"),
                            ({"beam": 64, "coverage_penalty": 1, "texts": ["bab" * 100]}, "attention weights")):
            status, body = server.predict(**asked | more)
            self.assertEqual(status, 422, body)
            self.assertIn(words, body)
        status, _, body = server.ask("POST", "/v1/completions",
                                     {"prompt": ["bab"] * 2, "n": 64, "temperature": 1, "max_tokens": 4096})
        self.assertEqual(status, 422, body)

    def test_a_stream_has_a_deadline(self):
        server = self.serve("--stream-deadline", 0.001)
        asked = {"prompt": ["bab"] * 4, "n": 16, "temperature": 2, "seed": 1, "max_tokens": 4096, "stream": True}
        status, headers, body = server.ask("POST", "/v1/completions", asked)
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        *_, last, rest = body.split("\n\n")
        error = json.loads(last.removeprefix("data: "))["error"]
        self.assertEqual((rest, error["code"]), ("", "deadline_exceeded"))
        self.assertIn("over 0.001 s", error["message"])
        # Its work has ended.
        while "attend_batch_size_count 1" not in server.ask("GET", "/metrics")[2]:
            pass
        self.assertEqual(server.predict(texts=["bab"])[0], 200)

    def test_a_full_queue_and_clients_that_leave(self):
        server = self.serve("--queue", 1, "--threads", 2, "--deadline", 3600, "--log", "json")
        running = []
        for count in (1, 2):  # both threads of the model, and both of its queue
            running.append(self.predict(server, LONG | {"length_penalty": count}))
            self.wait_for(server, "attend_batch_size_count", count)
        waiting = self.predict(server, {"texts": ["bab"]})
        self.wait_for(server, "attend_queue_size", 1)
        status, headers, body = server.ask("POST", "/v1/predict", {"texts": ["bab"]})
        self.assertEqual((status, headers["Retry-After"]), (429, "1"))
        self.assertEqual(json.loads(body)["error"]["code"], "queue_full")
        # The head suffices for this refusal; refusals of the head itself come first.
        self.assertEqual(self.status(self.predict(server, b"no JSON"))[0], 429)
        self.assertEqual(server.ask("GET", "/v1/predict")[0], 405)
        # A waiting request is answered after the client of a running one disconnects.
        running[0].close()
        self.assertEqual(self.status(waiting)[0], 200)
        # A waiting request makes room when its client disconnects, and its answer goes to no other
        # client.
        running.append(self.predict(server, LONG | {"length_penalty": 3}))
        self.wait_for(server, "attend_batch_size_count", 4)
        left = self.predict(server, {"texts": ["dad"], "beam": 2})
        self.wait_for(server, "attend_queue_size", 1)
        left.close()
        while sum('"gone"' in line for line in server.errors) < 2:
            pass
        stays = self.predict(server, {"texts": ["bab"]})
        running[2].close()
        status, answer = self.status(stays)
        self.assertEqual(status, 200, answer)
        printed = program.attend("predict", "words", "--json", cwd=self.shared, stdin="bab\n")
        self.assertTrue(answer.endswith(b'"answers":[%s]}' % printed.stdout.strip().encode()), answer)

    def test_an_answer_that_is_late_is_given_up(self):
        server = self.serve("--deadline", 1, "--log", "json")
        late = [self.predict(server, LONG | {"length_penalty": i}) for i in range(2)]
        for client in late:
            status, answer = self.status(client)
            self.assertEqual(status, 504, answer)
            self.assertIn(b"\r\nX-Should-Retry: false\r\n", answer)
            self.assertIn(b"over 1 s", answer)
        # Their work has ended; otherwise both threads of the model would be busy for minutes.
        while server.predict(texts=["bab"])[0] != 200:
            pass
        server.end()
        events = [json.loads(line) for line in server.errors]
        self.assertEqual([event["status"] for event in events[:2]], [504, 504])

    def test_threads_share_one_heap(self):
        """With separate heaps, each would grow to the size of the largest request."""
        server = self.serve("--threads", 2)
        self.assertEqual(server.predict(texts=["bab"], beam=4)[0], 200)
        maps = [line.split() for line in
                pathlib.Path(f"/proc/{server.process.pid}/maps").read_text().splitlines()]
        # glibc reserves 64 MiB of addresses per thread heap and opens the used part.
        heaps = [used for used, left in zip(maps, maps[1:])
                 if (used[1], left[1], len(used)) == ("rw-p", "---p", 5)
                 and int(left[0].split("-")[1], 16) - int(used[0].split("-")[0], 16) == 64 << 20]
        self.assertEqual(heaps, [])

    def test_hosts_and_pages(self):
        server = self.serve("--cors-origin", "https://friend.example, https://Other.example",
                            env={"ATTEND_SERVE_HOST": "one.example,two.example"})
        for host, wanted in (("one.example", 200), ("TWO.example:8443", 200), ("evil.example", 421),
                             ("localhost", 421), ("127.0.0.1:1", 421)):
            self.assertEqual(server.ask("GET", "/v1/models", headers={"Host": host})[0], wanted, host)
            for path in ("/health", "/livez", "/ready", "/readyz", "/ping"):  # probes only know an address
                self.assertEqual(server.ask("GET", path, headers={"Host": host})[0], 200, host)
        for origin, wanted in (("https://friend.example", 200), ("https://other.example", 200),
                               ("http://friend.example", 403), ("null", 403)):
            status, headers, _ = server.ask("POST", "/v1/predict", {"texts": ["bab"]},
                                            {"Origin": origin})
            self.assertEqual(status, wanted, origin)
            self.assertEqual(headers.get("Access-Control-Allow-Origin"),
                             origin if wanted == 200 else None)
        status, headers, body = server.ask(
            "OPTIONS", "/v1/predict", headers={"Origin": "https://friend.example",
                                               "Access-Control-Request-Method": "POST"})
        self.assertEqual((status, body), (200, ""))
        self.assertIn("Content-Type", headers["Access-Control-Allow-Headers"])
        # After a proxy that uses the address as the server's name.
        page = {"Origin": "https://attend.example", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(server.ask("POST", "/v1/predict", {"texts": ["bab"]}, page)[0], 200)

    def test_the_address_of_the_connection(self):
        server = self.serve("--address", "0.0.0.0")
        port = server.url.rsplit(":", 1)[1]
        for address, wanted in (("127.0.0.2", 200), ("127.0.0.1", 421)):
            connection = http.client.HTTPConnection(address, int(port), timeout=300)
            self.addCleanup(connection.close)
            status = server.ask("GET", "/metrics", headers={"Host": f"127.0.0.2:{port}"},
                                connection=connection)[0]
            self.assertEqual(status, wanted, address)

    def test_a_body_in_chunks(self):
        server = self.serve()
        body = json.dumps({"texts": ["bab"]}).encode()
        connection = server.connect()
        connection.request("POST", "/v1/predict", iter([body[:5], body[5:]]),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.read().decode()), server.predict(texts=["bab"]))
        connection.close()
        self.assertEqual(server.ask("POST", "/v1/predict", body, {"Content-Encoding": "gzip"})[0], 415)
        self.assertEqual(self.status(self.send(server, b"POST /health HTTP/1.1\r\nHost: x\r\n"
                                               b"Connection: close\r\n\r\n"))[0], 405)

    def test_a_client_without_the_key_keeps_no_room(self):
        (self.shared / "key").write_text("secret\n")
        server = self.serve("--key-file", "key")
        head = (b"POST /v1/predict HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000000\r\n\r\n" % server.url.split("//")[1].encode())
        self.assertEqual(self.status(self.send(server, head))[0], 401)


if __name__ == "__main__":
    program.main()
