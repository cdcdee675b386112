"""Random requests of tools/serve_languages.py and checks of their answers."""

import gzip
import json
import random
import urllib.request
from dataclasses import dataclass, field

from serve_models import KEY

NAMES = ["text", "reviews", "large"]
LARGEST = 16 << 20
WORDS = ["a", "fine", "dull", "film", "naïve", "Straße", "映画", "🙂", '"', "\\", "<b>", "&amp;", "%20", "7", "'"]

TWICE = {"caddy java": "Caddy 2.6 says '100 Continue' itself and passes on the server's; Java 17 takes the second one "
                       "for the answer, and waits for minutes"}

# Reason of each known difference, by the name of the case.
EXPLAINED = {"envoy curl predict-http1.0": "Envoy refuses HTTP/1.0 unless accept_http_10 is set"}


@dataclass
class Told:
    """Answer that a program read: status, HTTP version, content type, body, number of its action; or an error."""

    status: int = 0
    version: str = ""
    kind: str = ""
    number: int = 0
    body: bytes = b""
    error: str = ""

    @classmethod
    def read(cls, parts, folder):
        """Reads the fields of a line that a program printed."""
        if parts[1] == "error":
            return cls(error=parts[2])
        name, status, version, kind, number = parts
        return cls(int(status), version, kind, int(number), (folder / name).read_bytes())


@dataclass
class Case:
    """One request. `accepts` returns the error in the body of the answer, or an empty text."""

    name: str
    path: str
    body: bytes = None
    action: str = "whole"
    method: str = ""
    fields: dict = field(default_factory=dict)
    has_key: bool = True
    status: int = 200
    kind: str = "application/json"
    accepts: callable = None
    number: int = None
    at_least: int = 0
    without: dict = field(default_factory=dict)  # reasons of omissions, by "LANGUAGE" or "WAY LANGUAGE"
    curl: tuple = ()

    def is_for(self, language, way):
        left_out = language in self.without or f"{way} {language}" in self.without
        return not left_out and (language == "curl" or not self.curl)

    def head(self, sender):
        """Header fields; the id names the sender."""
        content = {"Content-Type": "application/json"} if self.body is not None else {}
        key = {"Authorization": f"Bearer {KEY}"} if self.has_key else {}
        return content | key | {"X-Request-Id": f"{sender}-{self.name}"} | self.fields

    def verb(self):
        return self.method or ("GET" if self.body is None else "POST")

    def line(self, url, folder, sender):
        """Line of the plan, see tools/clients/README.md."""
        file = "-"
        if self.body is not None:
            file = folder / f"{self.name}.asked"
            file.write_bytes(self.body)
        fields = "&".join(f"{name}={value}" for name, value in self.head(sender).items())
        return "\t".join([self.name, self.action, self.verb(), url + self.path, fields, str(file)]) + "\n"

    def wrong(self, told, way):
        """Error in an answer, or an empty text."""
        if self.action == "abandon":
            return "" if told.error else "answered too soon"
        if told.error:
            return told.error
        if told.status != self.status:
            return f"status {told.status} in place of {self.status}: {told.body[:200]!r}"
        if way == "nginx" and self.status == 413:
            return ""  # nginx sends its own page
        if told.kind.split(";")[0] != self.kind:
            return f"type {told.kind}"
        if self.number is not None and told.number != self.number:
            return f"number {told.number} in place of {self.number}"
        if told.number < self.at_least:
            return f"{told.number} pieces"
        return self.accepts(told.body) if self.accepts else ""


def equal_to(wanted):
    """Check: the body equals `wanted`."""
    return lambda body: "" if body == wanted else f"{body[:150]!r} in place of {wanted[:150]!r}"


def error_with(text):
    """Check: the body is an error of the server, and its message contains `text`."""
    def accepts(body):
        message = json.loads(body)["error"]["message"]
        return "" if text in message else f"message {message!r} without '{text}'"
    return accepts


def completes(texts):
    """Check: the events of the stream add up to `texts`."""
    def accepts(body):
        *events, last, empty = body.decode().split("\n\n")
        if (last, empty) != ("data: [DONE]", ""):
            return f"the stream ends with {body[-60:]!r}"
        found = [""] * len(texts)
        for event in events:
            for choice in json.loads(event.removeprefix("data: "))["choices"]:
                found[choice["index"]] += choice["text"]
        return "" if found == texts else f"{found} in place of {texts}"
    return accepts


def body_of(**fields):
    return json.dumps(fields, ensure_ascii=False).encode()


def answers(model, lines):
    """Body of /v1/predict with these lines of `predict --json`."""
    return f'{{"model":"{model}","answers":[{",".join(lines)}]}}'.encode()


def read(url, path):
    """(Content-Length, body) of an answer, by urllib."""
    asked = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(asked) as answer:
        return int(answer.headers["Content-Length"]), answer.read()


def of_predictions(generator, predicted):
    """Texts for predictions, with each way to send a body."""
    texts = [" ".join(generator.choices(WORDS, k=generator.randint(1, 9))) for _ in range(12)]
    body, wanted = body_of(model="reviews", texts=texts), equal_to(answers("reviews", predicted("reviews", texts)))
    large = body + b" " * 3000000
    yield Case("predict", "/v1/predict", body, accepts=wanted)
    yield Case("predict-chunked", "/v1/predict", body, "chunked", accepts=wanted)
    yield Case("predict-expect", "/v1/predict", body, "expect", accepts=wanted, without=TWICE)
    yield Case("predict-large", "/v1/predict", large, accepts=wanted)
    yield Case("predict-large-chunked", "/v1/predict", large, "chunked", accepts=wanted)
    yield Case("predict-large-expect", "/v1/predict", large, "expect", accepts=wanted, without=TWICE)
    yield Case("predict-gzip", "/v1/predict", body, fields={"Accept-Encoding": "gzip"}, accepts=wanted)
    yield Case("predict-close", "/v1/predict", body, accepts=wanted, curl=("-H", "Connection: close"))
    yield Case("predict-http1.0", "/v1/predict", body, accepts=wanted, curl=("--http1.0",))
    yield Case("predict-upgrade", "/v1/predict", body, accepts=wanted, curl=("--http2",))
    yield Case("predict-many", "/v1/predict", body, "many", accepts=wanted, number=1)
    yield Case("predict-later", "/v1/predict", body, "later", accepts=wanted, number=1)


def of_streams(generator, predicted):
    prompts = ["".join(generator.choices("abcdefg tho", k=generator.randint(1, 20))).strip() or "a" for _ in range(4)]
    lines = map(json.loads, predicted("large", prompts, "--maximum-length", 100))
    texts = [line["predictions"][0]["target"] for line in lines]
    asked = {"model": "large", "prompt": prompts, "max_tokens": 100, "stream": True}
    yield Case("stream", "/v1/completions", body_of(**asked), "stream", kind="text/event-stream",
               accepts=completes(texts), at_least=5)
    asked |= {"prompt": ["the cat"] * 32, "max_tokens": 240}
    yield Case("leave", "/v1/completions", body_of(**asked), "leave", kind="text/event-stream")
    yield Case("abandon", "/v1/completions", body_of(**asked | {"stream": False}), "abandon")


def of_pages(url):
    """Requests without a body."""
    length, models = read(url, "/v1/models")
    page = read(url, "/")[1]
    yield Case("models", "/v1/models", accepts=equal_to(models), number=length)
    yield Case("query", "/v1/models?after=%C3%A9&limit=1", accepts=equal_to(models), number=length)
    yield Case("head", "/v1/models", method="HEAD", accepts=equal_to(b""), number=length)
    yield Case("page", "/", kind="text/html", accepts=equal_to(page))
    yield Case("page-without-key", "/", kind="text/html", accepts=equal_to(page), has_key=False)
    yield Case("slash", "/v1/models/", status=404, accepts=error_with("path"))
    yield Case("slashes", "//v1/models", status=404, accepts=error_with("path"))


def of_refusals():
    body = body_of(model="reviews", texts=["a"])
    large, gone = body + b" " * 3000000, error_with("key")
    yield Case("no-key", "/v1/predict", body, has_key=False, status=401, accepts=gone)
    yield Case("no-key-large", "/v1/predict", large, has_key=False, status=401, accepts=gone)
    yield Case("no-key-chunked", "/v1/predict", large, "chunked", has_key=False, status=401, accepts=gone)
    # Go before 1.21.12 reuses a connection to a proxy although it has not sent the announced body.
    yield Case("no-key-expect", "/v1/predict", large, "expect", has_key=False, status=401, accepts=gone,
               fields={"Connection": "close"},
               without={"java": "Java 17 waits until its deadline for an invitation that does not come"})
    beyond = body + b" " * LARGEST
    yield Case("too-large", "/v1/predict", beyond, status=413, accepts=error_with("bytes"))
    yield Case("too-large-chunked", "/v1/predict", beyond, "chunked", status=413, accepts=error_with("bytes"))
    yield Case("compressed", "/v1/predict", gzip.compress(body), fields={"Content-Encoding": "gzip"}, status=415,
               accepts=error_with("Content-Encoding"))
    yield Case("method", "/v1/predict", body, method="PUT", status=405, accepts=error_with("POST"))
    yield Case("another-model", "/v1/predict", body_of(model="none", texts=["a"]), status=404,
               accepts=error_with("none"))


def drawn(seed, predicted):
    """Requests with a body; `predicted(model, texts, *options)` returns lines of `attend predict --json`."""
    generator = random.Random(seed)
    return [*of_predictions(generator, predicted), *of_streams(generator, predicted), *of_refusals()]
