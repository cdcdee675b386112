#!/usr/bin/env bash
# In an OpenAPI schema "default" is the server's value if a field is absent, so one would guess that a generated
# client leaves an optional field out unless it is set. openapi-python-client puts the default into the constructor
# and sends it with every request. If the presence of a field has a meaning (a temperature asks for sampling), the
# server answers such a client and curl differently, unless its schema has no defaults.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python openapi-python-client==0.29.1
cat >api.json <<'JSON'
{"openapi": "3.1.0", "info": {"title": "draws", "version": "1"}, "paths": {"/draw": {"post": {"operationId": "draw",
 "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "required": ["prompt"],
  "properties": {"prompt": {"type": "string"}, "temperature": {"type": "number", "default": 1.0},
   "seed": {"type": "integer"}}}}}},
 "responses": {"200": {"description": "done", "content": {"application/json": {"schema": {"type": "object"}}}}}}}}}
JSON
python/bin/openapi-python-client generate --path api.json --output-path client >generate.log 2>&1 || true
PYTHONPATH=client python/bin/python - <<'PY'
from draws_client.models import DrawBody

sent = DrawBody(prompt="a").to_dict()
print("sent:", sent)
assert sent == {"prompt": "a", "temperature": 1.0}
PY
