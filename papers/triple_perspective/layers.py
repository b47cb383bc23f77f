"""Hidden states where a release has none: an encoder's layers in the place of the small model's."""

from __future__ import annotations

from dataclasses import replace

from routeyard.papers.reproduction import Stand
from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.evaluate.signals import LocalModel, pooled

#: Reads the questions in the place of the small model.
READER = encoders.ALIASES["minilm"]
#: Tokens of a question that it reads.
LONGEST = 64


def with_layers(stand: Stand) -> Stand:
    """The release with hidden states, where it is not the paper's data and has none.

    A question's states are the mean-pooled layers of a sentence encoder: they have the paper's
    form, and say what the question is about rather than what the small model makes of it.
    """
    context = stand.context
    if not stand.unlike or context.core.hidden is not None or context.pair is None:
        return stand
    try:
        loaded = encoders.loaded(READER)
    except SourceError:
        return stand
    reader = LocalModel(READER, loaded[0].auto_model, loaded.tokenizer, "cpu", LONGEST)
    prompts = context.tables["queries"].select(["query_id", "prompt"]).to_pylist()
    known = {row["query_id"]: row["prompt"] for row in prompts}
    texts = [known[query] for query in context.core.query_ids]
    states = pooled(reader, texts, batch_size=16)
    made = replace(context, _evaluations={})
    made.__dict__["core"] = replace(context.core, hidden=states, hidden_of=context.pair[0])
    return replace(
        stand, context=made, unlike=f"{stand.unlike}, with an encoder's layers for hidden states"
    )
