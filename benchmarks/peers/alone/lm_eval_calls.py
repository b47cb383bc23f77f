"""lm-evaluation-harness's API model on a loopback server: URL CALLS CONCURRENCY → JSON."""

from __future__ import annotations

import json
import logging
import sys
import time

PROMPT = "Question {i}: a train leaves at {i} o'clock with 42 people in it. " * 4


def main(url: str, calls: int, concurrency: int) -> None:
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import (
        LocalChatCompletion,
    )

    logging.disable(logging.WARNING)
    model = LocalChatCompletion(
        model="m0",
        base_url=f"{url}/chat/completions",
        num_concurrent=concurrency,
        tokenizer_backend=None,
        tokenized_requests=False,
        max_retries=1,
    )
    settings = {"until": [], "max_gen_toks": 256}
    asked = []
    for i in range(calls):
        text = model.apply_chat_template([{"role": "user", "content": PROMPT.format(i=i)}])
        asked.append(Instance("generate_until", {}, (text, dict(settings)), i))
    wall, cpu = time.perf_counter(), time.process_time()
    answers = model.generate_until(asked, disable_tqdm=True)
    taken, used = time.perf_counter() - wall, time.process_time() - cpu
    assert len(answers) == calls
    assert all(answers)
    print(json.dumps({"calls_per_s": calls / taken, "cpu_ms": used / calls * 1e3}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
