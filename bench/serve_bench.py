"""Compares `attend serve` with `attend predict` and with the same model in process, and tests it under load.

Each figure is printed with its bar. Compared programs take turns. The clients share the machine with the server; the
cores that they took are printed, too. Without --model, trains a Transformer of 4 + 4 layers on random words for an
epoch. Every answer has --length tokens, and its search --beam hypotheses.
"""
# Needs the targets: attend_program answer_bench

import argparse
import json
import os
import pathlib
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from serve_clients import Connection, Crowd, Overload, in_turn, request

BUILD = pathlib.Path(__file__).resolve().parents[1] / "build" / "release"
WORDS = 10000


class Report:
    """Prints a line or an object of JSON per figure."""

    def __init__(self, as_json):
        self.as_json = as_json
        self.missed = 0

    def row(self, case, metric, value, unit="", bar=None, is_most=True):
        met = None if bar is None else value <= bar if is_most else value >= bar
        self.missed += met is False
        if self.as_json:
            print(json.dumps({"case": case, "metric": metric, "value": value, "bar": bar, "met": met}), flush=True)
            return
        aim = "" if bar is None else f"{'at most' if is_most else 'at least'} {bar:g} {'met' if met else 'MISSED'}"
        print(f"{case:<12}{metric:<48}{value:12,.4g} {unit:<10}{aim}", flush=True)


class Server:
    def __init__(self, work, *options):
        self.process = subprocess.Popen([work.program, "serve", work.folder, "--port", "0", *options], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def resident(self):
        """Memory in MiB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def processor(self):
        """Processor seconds of all threads."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Work:
    """A model, texts for it, and the answers of predict."""

    def __init__(self, options, folder):
        self.program = options.build / "attend"
        self.length, self.beam = options.length, options.beam
        self.lines = [line for line in (options.lines or self.make(folder)).read_text().splitlines() if line]
        self.folder = options.model or folder / "model"
        self.name = pathlib.Path(self.folder).resolve().name
        self.answers = self.predict(self.lines)[2]

    def make(self, folder):
        rng = random.Random(1)

        def line():
            return " ".join(f"w{rng.randrange(WORDS)}" for _ in range(max(4, round(rng.gauss(13.5, 4.5)))))

        pairs = [(text, " ".join(reversed(text.split()))) for text in (line() for _ in range(3 * WORDS // 13))]
        (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
        subprocess.run([self.program, "train", "--data", folder / "pairs.tsv", "--out", folder / "model",
                        "--source-units", "space", "--target-units", "space", "--set", "model.type=transformer",
                        "--set", "train.epochs=1", "--set", "train.validation_examples=16"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = folder / "lines.txt"
        path.write_text("".join(line() + "\n" for _ in range(1000)))
        return path

    def predict(self, lines, *options, beam=None):
        """(seconds, processor seconds, printed lines)"""
        begin, used = time.monotonic(), time_of_children()
        run = subprocess.run([self.program, "predict", self.folder, "--json", "--minimum-length", str(self.length),
                              "--maximum-length", str(self.length), "--beam", str(beam or self.beam), *options],
                             input="".join(line + "\n" for line in lines), text=True, capture_output=True)
        if run.returncode:
            sys.exit(run.stderr)
        return time.monotonic() - begin, time_of_children() - used, run.stdout.splitlines()

    def request(self, port, texts, **fields):
        fields = {"texts": texts, "minimum_length": self.length, "maximum_length": self.length,
                  "beam": self.beam} | fields
        return request(port, "/v1/predict", json.dumps(fields).encode())

    def whole(self, answers):
        """The body of a response with these answers."""
        return f'{{"model":"{self.name}","answers":[{",".join(answers)}]}}'.encode()


def time_of_children():
    """Processor seconds of child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure_throughput(work, report, options):
    """Answers per second with 64 clients and one text per request, relative to predict without its start."""
    lines = work.lines * options.rounds
    wanted = [work.whole([answer]) for answer in work.answers] * options.rounds
    turns = []
    with Server(work) as server:
        requests = [work.request(server.port, [line]) for line in lines]
        in_turn(server.port, requests[:256], 64)
        for _ in range(options.turns):
            whole, start = work.predict(lines), work.predict(lines[:1])
            cost, server_cost = time.process_time(), server.processor()
            seconds, answers = in_turn(server.port, requests, 64)
            if [answer.body for answer in answers] != wanted:
                sys.exit("the server's answers differ from predict")
            turns.append((whole[0] - start[0], whole[1] - start[1], seconds, server.processor() - server_cost,
                          time.process_time() - cost))

    def median(figure):
        return statistics.median(figure(*turn) for turn in turns)

    report.row("throughput", "predict", median(lambda alone, *_: len(lines) / alone), "texts/s")
    report.row("throughput", "64 clients", median(lambda alone, used, seconds, *_: len(lines) / seconds), "texts/s")
    report.row("throughput", "64 clients over predict", median(lambda alone, used, seconds, *_: alone / seconds), "",
               0.85, is_most=False)
    report.row("throughput", "over predict, processor time", median(lambda alone, used, seconds, served, _: used / served))
    report.row("throughput", "cores that the clients took", median(lambda *turn: turn[4] / turn[2]))


def measure_lone(work, report, options):
    """One client, one text at a time, compared with the same calls in process."""
    lines = work.lines[:options.lone]
    with Server(work) as server, tempfile.NamedTemporaryFile("w") as file:
        file.write("".join(line + "\n" for line in lines))
        file.flush()
        requests = [work.request(server.port, [line]) for line in lines]
        process = subprocess.Popen(
            [options.build / "answer_bench", work.folder, file.name, "--threads", str(os.cpu_count()),
             "--beam", str(work.beam), "--length", str(work.length), "--one-by-one"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        inside, outside = [], []
        for turn in range(options.turns + 1):
            process.stdin.write("\n")
            process.stdin.flush()
            seconds = json.loads(process.stdout.readline())["seconds"]
            answers = in_turn(server.port, requests, 1)[1]
            if turn > 0:  # the first is warm-up
                inside += seconds
                outside += [answer.seconds for answer in answers]
        process.stdin.close()
        process.wait()
    for name, values in (("in process", inside), ("lone client", outside)):
        report.row("lone", f"{name}, median", 1e3 * percentile(values, 0.5), "ms")
    most = 1.3 * 1e3 * percentile(inside, 0.99) + 5
    report.row("lone", "in process, p99", 1e3 * percentile(inside, 0.99), "ms")
    report.row("lone", "lone client, p99", 1e3 * percentile(outside, 0.99), "ms", most)


def measure_overload(work, report, options):
    """Three times the capacity, without and with retries; the server takes 512 connections."""
    deadline = 5.0
    with Server(work, "--deadline", str(deadline)) as server:
        requests = [work.request(server.port, [line]) for line in work.lines]
        for retries in (0, 2):
            unloaded = server.processor()
            seconds, before = in_turn(server.port, requests * options.rounds, 64)
            unloaded = (server.processor() - unloaded) / len(before)
            capacity = len(before) / seconds
            cost, served = time.process_time(), server.processor()
            answers, within = Overload(server.port, requests, 3 * capacity, 560, retries).run(options.overload)
            cost = (time.process_time() - cost) / options.overload
            served = server.processor() - served
            good = [answer.seconds for answer in answers if answer.status == 200]
            refused = [answer.seconds for answer in answers if answer.status in (429, 503)]
            case = "overload" if retries == 0 else "retries"
            report.row(case, "capacity", capacity, "texts/s")
            in_time = sum(answer.status == 200 for answer in answers[:within])
            report.row(case, "goodput over capacity", in_time / options.overload / capacity, "", 0.9, is_most=False)
            report.row(case, "goodput over capacity, processor time of the server", len(good) * unloaded / served)
            report.row(case, "sent over capacity", len(answers) / options.overload / capacity)
            report.row(case, "refused of the requests", len(refused) / len(answers))
            report.row(case, "refusals, p99", 1e3 * percentile(refused or [0], 0.99), "ms", 20)
            report.row(case, "slowest answer", max(good or [0]), "s", deadline)
            report.row(case, "neither answered nor refused", len(answers) - len(good) - len(refused), "", 0)
            report.row(case, "cores that the clients took", cost)
            report.row(case, "cores that the server took", served / options.overload)


class SlowClient:
    """Sends a head, or a body of a MiB, byte by byte, and leaves before the answer."""

    def __init__(self, crowd, number, life):
        self.connection = crowd.open()
        self.crowd = crowd
        port = crowd.port
        body = b"{" + b" " * 1000
        self.data = request(port, "/health?" + "a" * 500) if number % 2 else request(
            port, "/v1/predict", body).replace(b"Length: 1001", b"Length: 1048576")
        self.sent = 0 if number % 2 else len(self.data) - 900
        if self.sent:
            self.connection.send(self.data[:self.sent], None)
        self.end = time.monotonic() + life

    def move(self):
        self.connection.send(self.data[self.sent:self.sent + 1], None)
        self.sent += 1
        if time.monotonic() < self.end:
            return True
        if self.connection.socket.fileno() >= 0:
            self.crowd.drop(self.connection, reset=True)
        return False


def measure_slow(work, report, options):
    """Slow clients, 511 at a time, while another client requests /health."""
    with Server(work) as server, Crowd(server.port) as crowd:
        health = Connection(server.port)
        in_turn(server.port, [work.request(server.port, [line]) for line in work.lines[:128]], 64)
        begin = most = server.resident()
        seconds, clients, opened = [], [], 0
        while opened < options.connections or clients:
            while len(clients) < 511 and opened < options.connections:
                clients.append(SlowClient(crowd, opened, options.life))
                opened += 1
            clients = [client for client in clients if client.move()]
            crowd.wait(0)
            health.send(request(server.port, "/health"), "health")
            while not health.take():
                data = health.socket.recv(4096)
                if not data:
                    sys.exit("the server closed the connection that asks for /health")
                health.received += data
            seconds.append(time.monotonic() - health.begun)
            most = max(most, server.resident())
            time.sleep(0.05)
        health.close()
    report.row("slow", "connections", opened)
    report.row("slow", "growth of the resident memory", most - begin, "MiB", 64)
    report.row("slow", "/health, p99", 1e3 * percentile(seconds, 0.99), "ms")
    report.row("slow", "/health, slowest", 1e3 * max(seconds), "ms", 50)


# Malformed requests and the status of their responses.
MALFORMED = ((b'{"texts": ["a"', 400), (b"[]", 422), (b'{"texts": ["\xff"]}', 400), (b"[" * 100, 422),
             (b'{"texts": ["a"], "beam": 0}', 422), (b'{"texts": []}', 422), (b'{"text": ["a"]}', 422),
             (b'{"texts": ["a"], "seed": -9223372036854775808}', 422), (b'{"texts": ["a"], "beam": 1e999}', 400))


class Soak:
    """Random requests of all kinds; some clients are killed before the answer."""

    def __init__(self, work, port, clients):
        self.work, self.port, self.clients = work, port, clients
        self.rng = random.Random(1)
        self.beams = work.predict(work.lines, "--nbest", "2", beam=4)[2]
        self.counts = dict.fromkeys(("answered", "killed", "refused", "failed", "wrong"), 0)

    def draw(self):
        """The bytes of a request, and the required status and body; None allows any body."""
        kind = self.rng.randrange(20)
        if kind == 0:
            body, status = self.rng.choice(MALFORMED)
            return request(self.port, "/v1/predict", body), status, None
        if kind == 1:
            path, status = self.rng.choice((("/metrics", 200), ("/health", 200), ("/v1/models", 200), ("/none", 404)))
            return request(self.port, path), status, None
        count = 1 if kind < 14 else self.rng.randrange(2, 9)
        first = self.rng.randrange(len(self.work.lines) - count)
        fields, answers = ({}, self.work.answers) if kind < 18 else ({"beam": 4, "nbest": 2}, self.beams)
        return (self.work.request(self.port, self.work.lines[first:first + count], **fields), 200,
                self.work.whole(answers[first:first + count]))

    def send(self, crowd, connection):
        data, status, body = self.draw()
        connection.send(data, (status, body))
        if self.rng.randrange(20):
            return
        crowd.drop(connection, reset=True)
        self.counts["killed"] += 1
        self.send(crowd, crowd.open())

    def take(self, answer):
        status, body = answer.asked
        if answer.status != status:
            self.counts["failed"] += 1
        elif body is not None and body != answer.body:
            self.counts["wrong"] += 1
        else:
            self.counts["answered" if status == 200 else "refused"] += 1

    def run(self, seconds, sample):
        begin = sampled = time.monotonic()
        with Crowd(self.port) as crowd:
            for _ in range(self.clients):
                self.send(crowd, crowd.open())
            while time.monotonic() < begin + seconds:
                for answer in crowd.wait(1):
                    self.take(answer)
                    self.send(crowd, answer.connection if answer.status else crowd.open())
                if time.monotonic() > sampled + 1:
                    sampled = time.monotonic()
                    sample()


def measure_soak(work, report, options):
    """Growth of the resident memory from the second quarter to the last, and wrong answers."""
    with Server(work) as server:
        soak, resident = Soak(work, server.port, 16), []
        soak.run(60 * options.minutes, lambda: resident.append(server.resident()))
    quarter = len(resident) // 4
    growth = statistics.median(resident[-quarter:]) - statistics.median(resident[quarter:2 * quarter])
    report.row("soak", "minutes", options.minutes)
    for name in ("answered", "refused", "killed"):
        report.row("soak", name, soak.counts[name], "requests")
    report.row("soak", "answers that differ from predict", soak.counts["wrong"], "", 0)
    report.row("soak", "another status than was due", soak.counts["failed"], "", 0)
    report.row("soak", "resident memory", resident[-1], "MiB")
    report.row("soak", "its growth from the second quarter to the last", growth, "MiB", 8)


PARTS = {"throughput": measure_throughput, "lone": measure_lone, "overload": measure_overload, "slow": measure_slow,
         "soak": measure_soak}


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="measure only this part; repeatable")
    parser.add_argument("--build", type=pathlib.Path, default=BUILD, help="folder of the programs")
    parser.add_argument("--model", type=pathlib.Path, help="folder of a model of texts")
    parser.add_argument("--lines", type=pathlib.Path, help="sources for it, one a line")
    parser.add_argument("--length", type=int, default=14, help="tokens of every answer")
    parser.add_argument("--beam", type=int, default=1, help="hypotheses of every answer's search")
    parser.add_argument("--rounds", type=int, default=5, help="how often the lines are asked a turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--lone", type=int, default=500, help="lines of the lone client")
    parser.add_argument("--overload", type=float, default=60, help="seconds of the overload")
    parser.add_argument("--connections", type=int, default=10000, help="number of slow clients, at most 511 at once")
    parser.add_argument("--life", type=float, default=1, help="seconds of a slow client")
    parser.add_argument("--minutes", type=float, default=30, help="minutes of the soak")
    parser.add_argument("--json", action="store_true", help="print an object per figure")
    options = parser.parse_args()
    if (options.model is None) != (options.lines is None):
        parser.error("--model and --lines go together")
    return options


def main():
    options = read_options()
    # Each client takes a file descriptor.
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    report = Report(options.json)
    with tempfile.TemporaryDirectory() as folder:
        work = Work(options, pathlib.Path(folder))
        for name in options.part or PARTS:
            PARTS[name](work, report, options)
    sys.exit(f"{report.missed} bars missed" if report.missed else 0)


main()
