#!/usr/bin/env bash
# OpenAI's answer to a prompt that is too long has the code context_length_exceeded. One would guess that litellm
# raises its ContextWindowExceededError, which starts its fall-backs, for this code. It reads the English message
# instead: the same status and code with other words is a plain BadRequestError, and no fall-back starts.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python litellm==1.110.2
LITELLM_LOCAL_MODEL_COST_MAP=True python/bin/python - <<'PY'
import http.server
import json
import threading

import litellm

litellm.suppress_debug_info = True
said = {}


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"error": {"message": said["now"], "type": "invalid_request_error", "param": "prompt",
                                     "code": "context_length_exceeded"}}).encode()
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
raised = []
for said["now"] in ("This model's maximum context length is 8 tokens.", "The prompt has 9 tokens, the model reads 8."):
    try:
        litellm.text_completion(model="text-completion-openai/x", prompt="a", api_key="k", max_retries=0,
                                api_base=f"http://127.0.0.1:{server.server_port}/v1")
    except Exception as error:
        raised.append(type(error).__name__)
        print(f"{raised[-1]}: {said['now']}")
assert raised == ["ContextWindowExceededError", "BadRequestError"], raised
PY
