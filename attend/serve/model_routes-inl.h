#pragma once

#include "attend/http/http_message.h"

namespace attend {

class Service;

// GET /health, /livez and /ping, as long as the server runs.
void answer_alive(Service& service, const HttpRequest& request, const HttpReply& reply);
// GET /ready and /readyz: 503 until the models are loaded, and before the server ends.
void answer_ready(Service& service, const HttpRequest& request, const HttpReply& reply);
// GET /metrics, for Prometheus.
void answer_metrics(Service& service, const HttpRequest& request, const HttpReply& reply);
// GET /v1/models, and /v1/models/NAME for one of them, as OpenAI's clients read them.
void answer_models(Service& service, const HttpRequest& request, const HttpReply& reply);
void answer_model(Service& service, const HttpRequest& request, const HttpReply& reply);

}  // namespace attend
