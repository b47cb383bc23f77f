"""A sentence encoder whose transformer computes in OpenVINO, in float32 and one thread."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from routeyard.pipelines.errors import SourceError

#: Cosines between the two backends' vectors differ from 1 by less.
_SAME = 1e-5
_PLAIN = "leave '@openvino' out of its name: torch reads every encoder"


def through_openvino(model: Any) -> Any:
    """The model of sentence-transformers with its transformer compiled; the rest stays.

    About half of torch's CPU time, and the same vectors to 1e-6 in cosine
    (`python -m benchmarks embed --backend openvino`). Weights and graph are read by
    OpenVINO's own reader of torch modules; its `convert_model` would report each use
    to its makers.

    Raises:
        SourceError: OpenVINO is not installed, cannot read this model, or computes others.
    """
    try:
        import openvino
        from openvino.frontend import FrontEndManager
        from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder
    except ImportError:
        raise SourceError(
            "OpenVINO is not installed",
            where="embed.encoder",
            next_step="pip install -c constraints.txt '.[openvino]', or leave '@openvino' out",
        ) from None
    under = model[0].model
    example = dict(model.tokenizer(["a text", "b"], padding=True, return_tensors="pt"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the tracer: the result is compared below
            reader = FrontEndManager().load_by_framework("pytorch")
            decoder = TorchScriptPythonDecoder(under, example_input=example)
            graph = reader.convert(reader.load(decoder))
        hidden = graph.output("last_hidden_state")
    except Exception as error:  # the library raises RuntimeError and its own kinds
        raise SourceError(
            f"OpenVINO cannot read this encoder: {type(error).__name__}: {str(error)[:200]}",
            where="embed.encoder",
            next_step=_PLAIN,
        ) from error
    settings = {
        "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32",
    }  # fmt: skip
    place = hidden.get_index()
    request = openvino.Core().compile_model(graph, "CPU", settings).create_infer_request()
    wanted = [port.get_any_name() for port in graph.inputs]

    def forward(**given: Any) -> Any:
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        found = request.infer({name: given[name].numpy() for name in wanted}, share_inputs=True)
        return BaseModelOutput(last_hidden_state=torch.from_numpy(found[place].copy()))

    texts = ["a text", "b " * 40, "another, longer text: " * 30]
    plain = model.encode(texts, normalize_embeddings=True)
    under.forward = forward
    cosines = (plain * model.encode(texts, normalize_embeddings=True)).sum(axis=1)
    if not np.all(cosines > 1 - _SAME):
        raise SourceError(
            f"OpenVINO computes other vectors than torch with this encoder (cosine {min(cosines)})",
            where="embed.encoder",
            next_step=_PLAIN,
        )
    return model
