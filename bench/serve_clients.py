"""Clients of `attend serve` on loopback: one thread with raw sockets, which costs little next to the server."""

import collections
import heapq
import itertools
import select
import socket
import struct
import time

# asked: the caller's mark of the request. status 0: the server closed the connection without an answer.
Answer = collections.namedtuple("Answer", "connection asked status body head seconds")


def request(port, path, body=None):
    """The bytes of a GET, or of a POST of JSON."""
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", f"Host: localhost:{port}"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


class Connection:
    """One client with at most one open request."""

    def __init__(self, port):
        self.begun = time.monotonic()
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.asked = None  # None: no open request

    def send(self, data, asked):
        self.asked = asked
        self.begun = time.monotonic()
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # the server's reason may still be read

    def take(self):
        """(status, body, head) of a complete answer, else None."""
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self.received[:end + 2]
        place = head.find(b"Content-Length: ") + 16
        whole = end + 4 + int(head[place:head.find(b"\r\n", place)])
        if len(self.received) < whole:
            return None
        body, self.received = self.received[end + 4:whole], self.received[whole:]
        return int(head[9:12]), body, head

    def close(self, reset=False):
        """`reset`: as if the client was killed."""
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Crowd:
    """Connections to one server, and their answers as they arrive."""

    def __init__(self, port):
        self.port = port
        self.poll = select.epoll()
        self.connections = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in list(self.connections.values()):
            self.drop(connection)
        self.poll.close()

    def open(self):
        connection = Connection(self.port)
        self.poll.register(connection.socket, select.EPOLLIN)
        self.connections[connection.socket.fileno()] = connection
        return connection

    def drop(self, connection, reset=False):
        del self.connections[connection.socket.fileno()]
        self.poll.unregister(connection.socket)
        connection.close(reset)

    def wait(self, seconds):
        """Answers that arrived, after at most `seconds`. Connections that the server closed are dropped."""
        answers = []
        for number, _ in self.poll.poll(max(0, seconds)):
            connection = self.connections[number]
            try:
                data = connection.socket.recv(1 << 16)
            except OSError:
                data = b""
            connection.received += data
            found = connection.take()
            if connection.asked is not None and (found or not data):
                answers.append(Answer(connection, connection.asked, *(found or (0, b"", b"")),
                                      time.monotonic() - connection.begun))
                connection.asked = None
            if not data:
                self.drop(connection)
        return answers


def in_turn(port, requests, clients):
    """Each client sends the next request after its answer: (seconds, answers in order)."""
    answers = [None] * len(requests)
    left = iter(enumerate(requests))
    begin = time.monotonic()
    with Crowd(port) as crowd:
        for number, data in itertools.islice(left, clients):
            crowd.open().send(data, number)
        awaited = min(clients, len(requests))
        while awaited:
            for answer in crowd.wait(60):
                answers[answer.asked] = answer
                following = next(left, None)
                if following and answer.status:
                    answer.connection.send(following[1], following[0])
                else:
                    awaited -= 1
    return time.monotonic() - begin, answers


class Overload:
    """Requests at a steady rate, over at most `connections`; if all are in use, a request is not sent.

    `retries`: how often a client retries after 429 or 5xx, as OpenAI's clients do: after Retry-After, else after half a
    second and double that, and not if X-Should-Retry is false."""

    def __init__(self, port, requests, rate, connections, retries=0):
        self.crowd = Crowd(port)
        self.requests = itertools.cycle(requests)
        self.rate, self.connections, self.retries = rate, connections, retries
        self.idle, self.again, self.answers, self.sent = [], [], [], 0

    def ask(self, data, tries):
        while self.idle and self.idle[-1].socket.fileno() < 0:  # the server closed it
            self.idle.pop()
        if not self.idle and len(self.crowd.connections) >= self.connections:
            return
        connection = self.idle.pop() if self.idle else self.crowd.open()
        connection.send(data, (data, tries))
        self.sent += 1

    def take(self, answer):
        self.answers.append(answer._replace(connection=None, body=b""))
        data, tries = answer.asked
        told = answer.status == 429 or answer.status >= 500
        if told and tries < self.retries and b"\r\nX-Should-Retry: false\r\n" not in answer.head:
            pause = 1.0 if b"\r\nRetry-After: 1\r\n" in answer.head else 0.5 * 2**tries
            heapq.heappush(self.again, (time.monotonic() + pause, self.sent, data, tries + 1))
        if answer.status and b"\r\nConnection: close\r\n" not in answer.head:
            self.idle.append(answer.connection)

    def run(self, seconds):
        """All answers, and the number that arrived in time."""
        begin = time.monotonic()
        with self.crowd as crowd:
            count = 0
            while (now := time.monotonic()) < begin + seconds:
                while count < (now - begin) * self.rate:
                    self.ask(next(self.requests), 0)
                    count += 1
                while self.again and self.again[0][0] <= now:
                    _, _, data, tries = heapq.heappop(self.again)
                    self.ask(data, tries)
                for answer in crowd.wait(0.001):
                    self.take(answer)
            within = len(self.answers)
            while len(self.answers) < self.sent:
                late = crowd.wait(60)
                if not late:
                    break
                for answer in late:
                    self.take(answer)
        return self.answers, within
