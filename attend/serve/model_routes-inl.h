#pragma once

#include "attend/http/http_message.h"

namespace attend {

class Service;

// GET /health, /livez and /ping: 200 while the server runs.
void answer_alive(Service& service, const HttpRequest& request, const HttpReply& reply);
// GET /ready and /readyz: 503 until the models are loaded, and while the server shuts down.
void answer_ready(Service& service, const HttpRequest& request, const HttpReply& reply);
// GET /metrics, for Prometheus.
void answer_metrics(Service& service, const HttpRequest& request, const HttpReply& reply);
// GET /v1/models, and /v1/models/NAME for a single model, in OpenAI's format.
void answer_models(Service& service, const HttpRequest& request, const HttpReply& reply);
void answer_model(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
