"""lm-evaluation-harness's own GSM8K filters and metric over rows on standard input.

Rows are JSON lines with `gold` and `output`; prints seconds and verdicts per filter, as
its task file of GSM8K sets them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    import lm_eval
    import yaml
    from lm_eval.api.metrics import (
        exact_match_hf_evaluate,
    )
    from lm_eval.filters import build_filter_ensemble

    task = yaml.safe_load(
        (Path(lm_eval.__file__).parent / "tasks" / "gsm8k" / "gsm8k.yaml").read_text()
    )
    metric = task["metric_list"][0]
    ignored = metric["regexes_to_ignore"]
    rows = [json.loads(line) for line in sys.stdin]
    found = {}
    for filter_ in task["filter_list"]:
        steps = [
            (step["function"], {k: v for k, v in step.items() if k != "function"} or None)
            for step in filter_["filter"]
            if step["function"] != "take_first"
        ]
        chain = build_filter_ensemble(filter_["name"], steps).filters
        began = time.process_time()
        answers = [[row["output"]] for row in rows]
        for make in chain:
            answers = list(make().apply(answers, [{} for _ in rows]))
        right = [
            bool(
                exact_match_hf_evaluate(
                    [answer[0]],
                    [row["gold"]],
                    regexes_to_ignore=ignored,
                    ignore_case=True,
                )["exact_match"]
            )
            for answer, row in zip(answers, rows, strict=True)
        ]
        seconds = time.process_time() - began
        found[filter_["name"]] = {"seconds": seconds, "right": right}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
