#!/usr/bin/env bash
# ONNX's Attention (opset 24) with is_causal = 1 and a cache masks the keys after the query for any number of queries:
# query i sees the keys up to past + i. One would guess that ONNX Runtime does the same for one query as for two. With
# one query, three new keys and five cached keys, ONNX Runtime's CPU kernel also attends to the two future keys. With
# a second query in the call it masks them. The reference implementation of ONNX masks them in both calls.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
python/bin/python - <<'PY'
import numpy
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(3)
draw = numpy.random.default_rng(0)
new = lambda rows: draw.normal(size=(1, 1, rows, 4)).astype("float32")
inputs = {"Q": new(2), "K": new(3), "V": new(3), "past_key": new(5), "past_value": new(5)}
node = helper.make_node("Attention", ["Q", "K", "V", "", "past_key", "past_value"],
                        ["Y", "present_key", "present_value", "weights"], is_causal=1, qk_matmul_output_mode=3)


def weights(queries):
    given = inputs | {"Q": inputs["Q"][:, :, :queries]}
    graph = helper.make_graph(
        [node], "attention", [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in given.items()],
        [helper.make_tensor_value_info("weights", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)[0][0, 0], ReferenceEvaluator(model).run(None, given)[0][0, 0]


for queries in (1, 2):
    runtime, reference = weights(queries)
    print(f"{queries} queries, first query's weights of keys 6 and 7 (future):",
          f"onnxruntime {runtime[0, 6:].round(3)}, reference {reference[0, 6:].round(3)}")
    assert (reference[0, 6:] == 0).all()
    assert (runtime[0, 6:] > 0).all() if queries == 1 else (runtime[0, 6:] == 0).all()
PY
