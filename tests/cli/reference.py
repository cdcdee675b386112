"""Attention as plain Python loops over nested lists [T][D], directly from the formulas."""

import math


def dot(a, b):
    assert len(a) == len(b)
    return sum(x * y for x, y in zip(a, b))


def times(matrix, vector):
    return [dot(row, vector) for row in matrix]


def plus(a, b):
    return [x + y for x, y in zip(a, b)]


def additive(q, k, p, activation, past_term=None):
    a = times(p["W_q"], q) if "W_q" in p else q
    b = times(p["W_k"], k) if "W_k" in p else k
    offset = p.get("b", [0.0] * len(a))
    past_term = past_term or [0.0] * len(a)
    return sum(v * activation(x + y + o + t)
               for v, x, y, o, t in zip(p["v"], a, b, offset, past_term))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def cosine(q, k, p):
    return p.get("beta", 1.0) * dot(q, k) / math.sqrt(dot(q, q) * dot(k, k))


def elu_features(x):
    return [a + 1 if a > 0 else math.exp(a) for a in x]


def positive_features(x, omega):
    """Choromanski et al. 2021, eq. 5, of x / D^(1/4)."""
    x = [a / len(x) ** 0.25 for a in x]
    return [math.exp(dot(w, x) - dot(x, x) / 2) / math.sqrt(len(omega)) for w in omega]


# score(q, k, position of k, parameters). For scores that look back, "previous" has the weights of
# the previous query and "total" the sums of all earlier weights.
SCORES = {
    "dot": lambda q, k, j, p: dot(q, k),
    "scaled_dot": lambda q, k, j, p: dot(q, k) / math.sqrt(len(q)),
    "disentangled_dot": lambda q, k, j, p: dot(q, k) / math.sqrt(3 * len(q)),
    "general": lambda q, k, j, p: dot(q, times(p["W"], k)),
    "additive": lambda q, k, j, p: additive(q, k, p, math.tanh),
    "additive_sigmoid": lambda q, k, j, p: additive(q, k, p, sigmoid),
    "additive_relu": lambda q, k, j, p: additive(q, k, p, lambda x: max(0.0, x)),
    "additive_leaky_relu": lambda q, k, j, p: additive(q, k, p, lambda x: max(0.2 * x, x)),
    "linear": lambda q, k, j, p: dot(p["w_q"], q) + dot(p["w_k"], k) + p.get("b", 0.0),
    "squared_distance": lambda q, k, j, p: -sum((x - y) ** 2 for x, y in zip(q, k)),
    "absolute_distance": lambda q, k, j, p: -sum(abs(x - y) for x, y in zip(q, k)),
    "cosine": lambda q, k, j, p: cosine(q, k, p),
    "location": lambda q, k, j, p: times(p["W"], q)[j] if "W" in p else q[j],
    "elu_features": lambda q, k, j, p: dot(elu_features(q), elu_features(k)),
    "positive_features": lambda q, k, j, p: dot(positive_features(q, p["omega"]),
                                                positive_features(k, p["omega"])),
}


def location_term(j, previous, total, p):
    """U f_j, f = F * previous with zero padding (Chorowski et al. 2015, eq. 8)."""
    width = len(p["F"][0])
    around = [previous[j + o - width // 2] if 0 <= j + o - width // 2 < len(previous) else 0.0
              for o in range(width)]
    return times(p["U"], times(p["F"], around))


# The contribution of earlier weights (the previous ones and their sum) to the mapped key j.
LOOKS_BACK = {
    "location_sensitive": location_term,
    "coverage": lambda j, previous, total, p: [w * total[j] for w in p["w_c"]],
}


def score_of(name, q, k, j, p, previous, total):
    if name in LOOKS_BACK:
        return additive(q, k, p, math.tanh, LOOKS_BACK[name](j, previous, total, p))
    return SCORES[name](q, k, j, p)


def threshold(total_above):
    """Returns t between -100 and 100 with total_above(t) = 1; the sum decreases with t."""
    low, high = -100.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if total_above(middle) > 1 else (low, middle)
    return (low + high) / 2


def one_hot(place, length):
    return [1.0 if j == place else 0.0 for j in range(length)]


def expected_alignment(p, before):
    """Raffel et al. 2017, eq. 9: every key before j was skipped since the previous query's key."""
    return [p[j] * sum(before[k] * math.prod(1 - p[l] for l in range(k, j)) for k in range(j + 1))
            for j in range(len(p))]


def first_stop(p, before):
    start = max(range(len(before)), key=lambda j: before[j]) if any(before) else len(p)
    stops = [j for j in range(start, len(p)) if p[j] >= 0.5]
    return one_hot(stops[0] if stops else -1, len(p))


def normalise(name, scores, before, sink=None, parameter=1.5):
    """Returns the weights of a row of scores (-inf: out of scope) and its log-normaliser."""
    name, _, number = name.partition(":")
    alive = [s for s in scores if s != -math.inf]
    if sink is None and not alive:
        return [0.0] * len(scores), -math.inf
    if name in ("softmax", "temperature", "scalable"):
        number = number if name == "temperature" else 1
        scores = [s / float(number or 1) for s in scores]
        total = sum(map(math.exp, scores)) + (math.exp(sink) if sink is not None else 0.0)
        return [math.exp(s) / total for s in scores], math.log(total)
    if name == "sigmoid":
        return [sigmoid(s) if s != -math.inf else 0.0 for s in scores], 0.0
    if name == "none":
        return [s if s != -math.inf else 0.0 for s in scores], 0.0
    if name == "linear":
        total = sum(alive)
        return [s / total if s != -math.inf else 0.0 for s in scores], math.log(total)
    if name in ("sparsemax", "entmax15"):
        weigh = ((lambda s, t: max(0.0, s - t)) if name == "sparsemax"
                 else (lambda s, t: max(0.0, (s - t) / 2) ** 2))
        t = threshold(lambda t: sum(weigh(s, t) for s in alive))
        return [weigh(s, t) for s in scores], t
    if name == "entmax":
        a = float(number or 0) or parameter
        weigh = lambda s, t: max(0.0, (a - 1) * (s - t)) ** (1 / (a - 1))
        t = threshold(lambda t: sum(weigh(s, t) for s in alive))
        return [weigh(s, t) if s != -math.inf else 0.0 for s in scores], t
    if name == "softpick":
        total = sum(abs(math.exp(s) - 1) for s in alive) + 1e-8
        return [max(0.0, math.exp(s) - 1) / total for s in scores], math.log(total)
    if name == "stick_breaking":
        p = [sigmoid(s) if s != -math.inf else 0.0 for s in scores]
        return [x * math.prod(1 - y for y in p[j + 1:]) for j, x in enumerate(p)], 0.0
    if name == "top_k":
        least = sorted(alive, reverse=True)[:int(number or 8)][-1]
        total = sum(math.exp(s) for s in alive if s >= least)
        return [math.exp(s) / total if s >= least else 0.0 for s in scores], math.log(total)
    if name in ("hard", "gumbel"):
        best = max(range(len(scores)), key=lambda j: scores[j])
        return one_hot(best, len(scores)), math.log(sum(map(math.exp, alive)))
    p = [sigmoid(s) if s != -math.inf else 0.0 for s in scores]
    return {"monotonic": expected_alignment, "monotonic_hard": first_stop}[name](p, before), 0.0


def bucket(distance, count, looks_ahead, farthest=128):
    """The buckets of Raffel et al. 2020, as in their code."""
    found = 0
    if looks_ahead:
        count //= 2
        found = count if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = count // 2
    if distance < exact:
        return found + distance
    wide = int(math.log(distance / exact) / math.log(farthest / exact) * (count - exact))
    return found + min(exact + wide, count - 1)


def clip(x, most):
    return max(-most, min(most, x))


def predicted_centre(q, keys, p):
    """Luong et al. 2015, eq. 9."""
    hidden = [math.tanh(x) for x in times(p["centre_W_p"], q)]
    return keys * sigmoid(dot(p["centre_v_p"], hidden))


def bias_term(part, scope):
    """Returns the function (i, j, q, number of keys, parameters) of one part of a bias."""
    name, _, size = part.partition(":")

    def gaussian(i, j, q, keys, p):
        if "gaussian_centres" in p:
            centre, width = p["gaussian_centres"][i], p["gaussian_widths"][i]
        else:
            centre, width = predicted_centre(q, keys, p), float(scope.partition(":")[2]) / 2
        return -((j - centre) ** 2) / (2 * width ** 2)

    def grid(i, j, q, keys, p):
        height, width = (len(p["grid_table"]) + 1) // 2, (len(p["grid_table"][0]) + 1) // 2
        return p["grid_table"][j // width - i // width + height - 1][j % width - i % width
                                                                     + width - 1]

    def relative(i, j, q, keys, p):
        longest = (len(p["relative_keys_table"]) - 1) // 2
        return dot(q, p["relative_keys_table"][clip(j - i, longest) + longest]) / math.sqrt(len(q))

    def by_distance(table, x, i, j):
        reach = len(table) // 2
        return dot(x, table[min(max(i - j + reach, 0), 2 * reach - 1)]) / math.sqrt(3 * len(x))

    def sandwich(i, j, q, keys, p):
        columns = int(size)
        return p["sandwich_factors"] * sum(math.cos((i - j) / 10000 ** (a / columns)) - 1
                                           for a in range(2, columns + 1, 2))

    def forget(i, j, q, keys, p):
        between = p["forget_gates"][min(i, j) + 1:max(i, j) + 1]
        return -sum(math.log1p(math.exp(-gate)) for gate in between)

    def cope(i, j, q, keys, p):
        table, scale = p["cope_table"], 1 / math.sqrt(len(q))
        position = sum(sigmoid(scale * dot(q, k)) for k in p["keys"][j:i + 1])
        position = min(position, len(table) - 1)
        share = position - math.floor(position)
        return scale * (dot(q, table[math.floor(position)]) * (1 - share)
                        + dot(q, table[math.ceil(position)]) * share)

    def fire(i, j, q, keys, p):
        c = p["fire_c"]
        x = math.log(c * abs(i - j) + 1) / (
            math.log(c * max(p["fire_threshold"], i) + 1) + 1e-6)
        return p["fire_b_2"] + sum(
            w2 * max(0.0, w1 * x + b1)
            for w1, b1, w2 in zip(p["fire_W_1"], p["fire_b_1"], p["fire_W_2"]))

    return {
        "kerple_log": lambda i, j, q, keys, p: -p["kerple_log_p"] * math.log(
            1 + p["kerple_log_a"] * abs(i - j)),
        "kerple_power": lambda i, j, q, keys, p: -p["kerple_power_a"] * float(
            abs(i - j)) ** p["kerple_power_p"],
        "sandwich": sandwich,
        "forget": forget,
        "cope": cope,
        "fire": fire,
        "dense": lambda i, j, q, keys, p: p["dense_bias"][i][j],
        "alibi": lambda i, j, q, keys, p: -p["alibi_slopes"] * abs(i - j),
        "buckets": lambda i, j, q, keys, p: p["buckets_table"][
            bucket(j - i, len(p["buckets_table"]), "causal" not in scope)],
        "relative_keys": relative,  # part of the scaled dot score
        # parts of the disentangled dot score
        "content_to_position": lambda i, j, q, keys, p: by_distance(
            p["content_to_position_table"], q, i, j),
        "position_to_content": lambda i, j, q, keys, p: by_distance(
            p["position_to_content_table"], p["keys"][j], i, j),
        "gaussian": gaussian,
        "grid": grid,
        "offset": lambda i, j, q, keys, p: p["offset"],
        "sink": lambda i, j, q, keys, p: 0.0,
    }[name]


def allowed(scope, i, j, q, keys, p):
    """Returns whether a scope, written as on the command line, lets query i see key j."""
    def one(text):
        name, _, numbers = text.strip().partition(":")
        numbers = [int(x) for x in numbers.split(",") if x]
        if name == "causal":
            return j <= i + (numbers[0] if numbers else 0)
        if name == "window":
            return i - numbers[0] <= j <= i + numbers[-1]
        if name == "dilated":
            return abs(i - j) <= numbers[0] and (j - i) % numbers[1] == 0
        if name == "global":
            return i < numbers[0] or j < numbers[0]
        if name == "top_blocks":
            assert keys <= numbers[0], "one block"
            return True
        if name == "around":
            centre = p["gaussian_centres"][i] if "gaussian_centres" in p else predicted_centre(
                q, keys, p)
            return abs(j - centre) <= numbers[0]
        assert name == "all", text
        return True

    return any(all(map(one, clause.split("&"))) for clause in scope.split("|"))


def score_factor(normaliser, keys, p):
    """Nakanishi 2025; with a length as in Llama 4."""
    name, _, length = normaliser.partition(":")
    if name != "scalable":
        return 1.0
    s = p.get("scalable_scale", 0.43)
    return 1 + s * math.log(1 + keys // float(length)) if length else s * math.log(max(keys, 1))


def attend(query, key, value, score="scaled_dot", parameters=None, allows=lambda i, j: True,
           bias=lambda i, j, q: 0.0, normaliser="softmax", soft_cap=0.0):
    """Returns the output of `attend compute --scores --weights` as nested lists."""
    p = parameters or {}
    result = {"context": [], "lse": [], "scores": [], "weights": []}
    previous, total = [0.0] * len(key), [0.0] * len(key)
    before = one_hot(0, len(key))
    for i, q in enumerate(query):
        scores = []
        factor = score_factor(normaliser, sum(allows(i, j) for j in range(len(key))), p)
        for j, k in enumerate(key):
            s = factor * score_of(score, q, k, j, p, previous, total)
            if soft_cap:
                s = soft_cap * math.tanh(s / soft_cap)
            scores.append(s + bias(i, j, q) if allows(i, j) else -math.inf)
        weights, lse = normalise(normaliser, scores, before, p.get("sink"),
                                 p.get("entmax_alpha", 1.5))
        previous = before = weights
        total = plus(total, weights)
        result["scores"].append(scores)
        result["weights"].append(weights)
        result["lse"].append(lse)
        result["context"].append(
            [sum(w * v[d] for w, v in zip(weights, value)) for d in range(len(value[0]))]
        )
    return result


def rotated(rows, share=1.0, change=lambda a, columns, f: f, magnitude=1.0):
    """Su et al. 2021, eq. 34. `change` maps the frequency f of the columns a and a + 1."""
    out = []
    for position, row in enumerate(rows):
        turned, columns = list(row), int(share * len(row))
        for a in range(0, columns, 2):
            angle = position * change(a, columns, 10000 ** (-a / columns))
            c, s = magnitude * math.cos(angle), magnitude * math.sin(angle)
            turned[a:a + 2] = [row[a] * c - row[a + 1] * s, row[a] * s + row[a + 1] * c]
        out.append(turned)
    return out


def by_yarn(rows, p):
    """Peng et al. 2024, 3.2-3.4, with 32 turns and 1."""
    def change(a, columns, f):
        first, last = (columns * math.log(p["length"] / (turns * 2 * math.pi))
                       / (2 * math.log(10000)) for turns in (32, 1))
        first, last = max(math.floor(first), 0), min(math.ceil(last), columns - 1)
        ramp = min(1.0, max(0.0, (a / 2 - first) / (last - first or 0.001)))
        return f * (1 - ramp) + f / p["factor"] * ramp

    return rotated(rows, change=change, magnitude=0.1 * math.log(p["factor"]) + 1)


def by_llama3(rows, p):
    def change(a, columns, f):
        share = (f * p["length"] / (2 * math.pi) - 1) / 3
        share = min(1.0, max(0.0, share))
        return f * share + f / p["factor"] * (1 - share)

    return rotated(rows, change=change)


def with_sinusoids(rows):
    """Vaswani et al. 2017, 3.5."""
    return [[x + (math.cos if a % 2 else math.sin)(position / 10000 ** ((a - a % 2) / len(row)))
             for a, x in enumerate(row)] for position, row in enumerate(rows)]


def shortened(projection, rows):
    return [[dot(weights, column) for column in zip(*rows)] for weights in projection]


def with_positions(rows, table):
    return [plus(row, position) for row, position in zip(rows, table)]


def mapped(matrix, rows):
    return [[dot(line, row) for line in matrix] for row in rows]


def difference(query, key, value, p, choices):
    """Ye et al. 2024, eq. 1: the weights as queries, with an identity as keys."""
    first, second = (attend(q, k, value, choices["score"])["weights"]
                     for q, k in ((query, key), (p["query_2"], p["key_2"])))
    weights = [[w - p["factor"] * other for w, other in zip(*rows)] for rows in zip(first, second)]
    return weights, [one_hot(j, len(key)) for j in range(len(key))]


def branches(query, key, p):
    """Yuan et al. 2025, eq. 5-12, for one head; the first block, the own one and the one before
    are always selected."""
    block, count, window = (int(p[name]) for name in ("block", "count", "window"))

    def shares(q, keys):
        scores = [dot(q, k) / math.sqrt(len(q)) for k in keys]
        top = max(scores, default=0.0)
        powers = [math.exp(s - top) for s in scores]
        return [x / sum(powers) for x in powers]

    rows = []
    for i, q in enumerate(query):
        total, own = [0.0] * len(key), i // block
        means = [[sum(column) / block for column in zip(*key[b * block:(b + 1) * block])]
                 for b in range((i + 1) // block)]
        weights = shares(q, means)
        worth = {b: weights[b] if b < len(weights) else 0.0 for b in range(own + 1)}
        worth.update({b: math.inf for b in (0, own - 1, own) if b >= 0})
        chosen = sorted(worth, key=lambda b: (-worth[b], b))[:count]
        for j in range(len(weights) * block):
            total[j] += p["gates"][i][0] * weights[j // block] / block
        for gate, seen in ((1, [j for j in range(i + 1) if j // block in chosen]),
                           (2, [j for j in range(i + 1) if j > i - window])):
            for j, share in zip(seen, shares(q, [key[j] for j in seen])):
                total[j] += p["gates"][i][gate] * share
        rows.append(total)
    return rows, [one_hot(j, len(key)) for j in range(len(key))]


def softmax(scores):
    top = max(scores)
    powers = [math.exp(s - top) for s in scores]
    return [x / sum(powers) for x in powers]


def remembered(query, key, p):
    """Munkhdalai et al. 2024, eq. 2-7 and 10, for one head."""
    segment, gate = int(p["segment"]), sigmoid(p["beta"])
    rows = []
    for i, q in enumerate(query):
        begin = i // segment * segment
        near = softmax([dot(q, key[j]) / math.sqrt(len(q)) for j in range(begin, i + 1)])
        far = [dot(elu_features(q), elu_features(key[j])) for j in range(begin)]
        rows.append([gate * x / sum(far) for x in far] + [(1 - gate) * x for x in near]
                    + [0.0] * (len(key) - i - 1))
    return rows, [one_hot(j, len(key)) for j in range(len(key))]


def mixed(query, key, p):
    """Golovneva et al. 2025, 3, for one head."""
    kernel = p["kernel"]

    def score(i, j):
        seen = 0 <= j <= i
        return dot(query[i], key[j]) / math.sqrt(len(query[i])) if seen and j < len(key) else 0.0

    rows = []
    for i in range(len(query)):
        row = softmax([sum(kernel[a][b] * score(i - len(kernel) + 1 + a, j - len(kernel[0]) // 2 + b)
                           for a in range(len(kernel)) for b in range(len(kernel[0])))
                       for j in range(i + 1)])
        rows.append([p["mix"][0][0][0] * w for w in row] + [0.0] * (len(key) - i - 1))
    return rows, [one_hot(j, len(key)) for j in range(len(key))]


def faded(query, key):
    """Leviathan et al. 2024, 3: F of all rows."""
    scores = [[max(0.0, dot(q, k) / math.sqrt(len(q))) for k in key] for q in query]
    return [[sum(scores[t][j] for t in range(j + 1, i)) if j > 0 else 0.0
             for j in range(len(key))] for i in range(len(query))]


# Changes of a mechanism to queries, keys and values before its choices apply.
MODULES = {
    "rope": lambda q, k, v, p: (rotated(q), rotated(k), v),
    "partial_rope": lambda q, k, v, p: (rotated(q, p["share"]), rotated(k, p["share"]), v),
    "yarn": lambda q, k, v, p: (by_yarn(q, p), by_yarn(k, p), v),
    "llama3": lambda q, k, v, p: (by_llama3(q, p), by_llama3(k, p), v),
    "sinusoidal": lambda q, k, v, p: tuple(map(with_sinusoids, (q, k, v))),
    "learned_positions": lambda q, k, v, p: tuple(
        with_positions(x, p["positions"]) for x in (q, k, v)),
    "latent": lambda q, k, v, p: (q, mapped(p["K"], k), mapped(p["V"], v)),
    "attention_residuals": lambda q, k, v, p: (q, [
        [x / math.sqrt(dot(row, row) / len(row) + 1e-6) for x in row] for row in k], v),
    "linformer": lambda q, k, v, p: (q, shortened(p["E"], k), shortened(p.get("F", p["E"]), v)),
}


def convolution_bias(i, j, p):
    """Cordonnier et al. 2020, eq. 9."""
    width = int(p["width"])
    delta = (j // width - i // width, j % width - i % width)
    return -p["alpha"] * sum((d - c) ** 2 for d, c in zip(delta, p["Delta"]))


def mechanism(name, choices, query, key, value, parameters, **more):
    """As attend(), for a mechanism with its choices."""
    p = parameters
    if name == "differential":
        query, key = difference(query, key, value, p, choices)
        choices = {**choices, "score": "dot", "normaliser": "none"}
    if name == "nsa":
        query, key = branches(query, key, p)
        choices = {**choices, "score": "dot", "normaliser": "none"}
    for form, weights_of in (("infini", remembered), ("multi_token", mixed)):
        if name == form:
            query, key = weights_of(query, key, p)
            choices = {**choices, "score": "dot", "normaliser": "none"}
    if name in MODULES:
        query, key, value = MODULES[name](query, key, value, p)
    lowered = faded(query, key) if name == "selective" else []
    parts = [bias_term(part.strip(), choices["scope"])
             for part in choices["bias"].split("+") if part.strip()]

    def bias(i, j, q):
        if name == "convolution":
            return convolution_bias(i, j, p)
        if name == "selective":
            return -lowered[i][j]
        return sum(part(i, j, q, len(key), dict(p, keys=key)) for part in parts)

    def allows(i, j):
        if name == "dsa":
            best = sorted(range(len(key)), key=lambda n: (-p["index"][i][n], n))
            return j in best[:int(p["count"])]
        if name == "block_sparse":
            block = int(p["block"])
            return bool(p["layout"][i // block][j // block])
        return allowed(choices["scope"], i, j, query[i], len(key), p)

    score = choices["score"]
    if name == "convolution":
        query = [[0.0] * len(q) for q in query]
    return attend(query, key, value, score, p, allows, bias, choices["normaliser"], **more)
