"""Samples of several models, collected from a local server, become pairs and a card section."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest

from routeyard.datacards.card import preference_sections
from routeyard.flows.ledgers import ask_prompts, model_to_ask
from routeyard.flows.tasks.curate import made_for
from routeyard.flows.workspace import BuildContext
from routeyard.pipelines.collect.collect import collect, responses_table
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import RecipeError, Retryable
from routeyard.pipelines.curate.preference import COLUMNS, export_preferences
from routeyard.pipelines.curate.rule import curate
from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.schemas import CONTRACTS, MODELS, QUERIES
from routeyard.schemas.recipe import Recipe
from tests.calls.loopback import Loopback, answer, completion, error

N, SAMPLES = 30, 5
#: Chance that a model gives the right sum; what it says otherwise scatters.
SKILL = {"large": 0.85, "small": 0.45, "other": 0.6}


def queries():
    return QUERIES.from_rows(
        {
            "query_id": "q" + hashlib.sha256(str(i).encode()).hexdigest()[:20],
            "source": "sums",
            "source_id": str(i),
            "task": "sums",
            "domain": "math",
            "question": f"What is {i} + {i}?",
            "prompt": f"What is {i} + {i}?\n\nEnd with one line: Answer: N",
            "choices": [],
            "references": [str(2 * i)],
            "scorer": "numeric",
            "metadata": "{}",
        }
        for i in range(N)
    )


def draw(*parts) -> float:
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def behave(body, seen):
    """Sums with each model's skill; judges and self-assessments are answered too."""
    prompt, model = body["messages"][-1]["content"], body["model"]
    if "does it follow" in prompt.casefold():
        lines = dict(line.split(": ", 1) for line in prompt.splitlines() if ": " in line)
        first, second = (json.loads(lines[f"Answer {i}"]).split()[-1] for i in (1, 2))
        return answer(completion("yes" if first == second else "no"))
    if "Is the answer right?" in prompt:
        top = [
            {"token": "Yes", "logprob": math.log(0.6)},
            {"token": "No", "logprob": math.log(0.2)},
        ]
        return answer(with_logprobs("Yes", [("Yes", math.log(0.6), top)]))
    i = int(prompt.split()[2])
    u = draw(model, i, body["seed"])
    value = (
        2 * i if u < SKILL[model] else 2 * i + 1 + int(draw("wrong", model, i, body["seed"]) * 3)
    )
    text = ("Answer: {}", "It is {:.2f}.\nAnswer: {:.2f}")[int(u * 100) % 2].format(value, value)
    top = [{"token": "Answer", "logprob": math.log(0.7)}, {"token": "It", "logprob": math.log(0.2)}]
    return answer(with_logprobs(text, [("Answer", math.log(0.7), top), (":", -0.5, [])]))


def with_logprobs(text, found):
    content = [{"token": t, "logprob": lp, "top_logprobs": top} for t, lp, top in found]
    return completion(
        choices=[
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
                "logprobs": {"content": content},
            }
        ]
    )


def recipe(server, rule=None):
    return Recipe.model_validate(
        {
            "name": "sums",
            "version": "1.0.0",
            "sources": [{"name": "sums", "path": "x.jsonl", "fields": {"question": "q"}}],
            "pool": {
                "models": [{"model_id": name} for name in SKILL],
                "providers": [{"name": "local", "base_url": server.base_url}],
            },
            "collect": {
                "samples": SAMPLES, "temperature": 1.0, "seed": 1,
                "logprobs": True, "top_logprobs": 2, "retry": {"attempts": 1, "pause_after": 1000},
            },
            "curate": [rule] if rule else [],
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def server():
    with Loopback(behave) as running:
        yield running


@pytest.fixture(scope="module")
def tables(server, tmp_path_factory):
    said = recipe(server)
    table = queries()
    with SqliteLedger(tmp_path_factory.mktemp("collected") / "ledger.sqlite") as ledger:
        made = plan(table, said.pool, said.collect, ledger)
        assert collect(made, ledger).complete
        responses = responses_table(made, ledger)
    models = MODELS.from_rows(
        {"model_id": name, "kind": "real", "simulated": True} for name in SKILL
    )
    verdicts = file_verdicts(table, responses)
    labels = decide(table, responses, verdicts, policy=said.label)
    return {
        "queries": table, "models": models, "responses": responses,
        "verdicts": verdicts, "labels": labels,
    }  # fmt: skip


def applied(server, tables, root, **parameters):
    rule = {"rule": "preference", "strong": "large", "weak": "small", **parameters}
    said = recipe(server, rule)
    context = BuildContext(said.name, root, root)
    return curate(
        tables,
        [(one.rule, one.parameters) for one in said.curate],
        make=lambda name, given: made_for(context, said.pool, said.collect, name, given),
    )


def test_from_samples_to_table_card_and_training_file(server, tables, tmp_path):
    result = applied(
        server, tables, tmp_path, basis=["semantic_entropy", "correctness"], estimator="discrete"
    )
    figures = result.figures[0]["figures"]
    preferences = CONTRACTS["preferences"].check(result.tables["preferences"])
    assert figures["pairs_by_basis"]["semantic_entropy"]["pairs"] == N
    # The better model is the surer one on most of these sums.
    wins = figures["pairs_by_basis"]["semantic_entropy"]
    assert wins["strong_wins"] > wins["weak_wins"]
    assert figures["entailment_calls"] <= figures["entailment_calls_naive"]
    shares = [row["tie_share"] for row in figures["tau_sweep"]]
    assert shares == sorted(shares)
    assert figures["tau_sweep"][0]["agreement"] > 0.5
    power = {(r["model_id"], r["estimator"]): r["auroc"] for r in figures["predictive_power"]}
    assert power["small", "discrete"] > 0.5
    # "2.00" and "2" are one meaning: the scorer decides, not the spelling.
    entropies = result.tables["entropies"].to_pylist()
    certain = [r for r in entropies if r["model_id"] == "large" and r["n_clusters"] == 1]
    assert certain

    # Figures must survive the manifest: JSON there and back gives the same section.
    said = {"curate": {"rules": json.loads(json.dumps([dict(f) for f in result.figures]))}}
    section = preference_sections(said)
    assert "| τ | ties | large wins | small wins | comparable | agreement |" in section
    assert section.count("\n| 0.1 |") == 1
    assert preference_sections({}) == ""

    import datasets

    out = export_preferences(preferences, tmp_path / "train.parquet", entropies=False)
    loaded = datasets.load_dataset(
        "parquet", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.column_names == list(COLUMNS)
    assert len(loaded) == preferences.num_rows
    row = loaded[0]
    assert json.loads(row["prompt"])[0].startswith("What is")
    assert row["winner_model_a"] + row["winner_model_b"] + row["winner_tie"] == 1


def test_sequence_probabilities_come_from_the_servers_logprobs(server, tables, tmp_path):
    result = applied(server, tables, tmp_path)
    assert set(result.figures[0]["figures"]["estimators"]) == {"sequence_probability"}
    estimators = set(result.tables["entropies"].column("estimator").to_pylist())
    assert "rao_blackwell" in estimators
    signals = result.tables["signals"].to_pylist()
    assert {row["model_id"] for row in signals} == {"small"}
    assert signals[0]["unreturned_mass"] == pytest.approx(0.1)
    assert signals[0]["self_assessment"] is None


def test_a_judge_decides_and_is_paid_once(server, tables, tmp_path):
    backend = {"name": "judge", "model": "judge-1", "provider": "local", "reads": "answer"}
    first = applied(server, tables, tmp_path, backend=backend, estimator="discrete")
    asked = server.requests
    again = applied(server, tables, tmp_path, backend=backend, estimator="discrete")
    assert server.requests == asked
    assert first.figures[0]["figures"] == again.figures[0]["figures"]
    assert first.figures[0]["figures"]["backend"] == "judge:judge-1"
    with SqliteLedger(tmp_path / "ledger" / "ledger.sqlite") as ledger:
        assert {attempt.purpose for attempt in ledger.attempts()} == {"entailment"}


def test_a_passing_outage_stops_the_run_and_the_next_one_goes_on(tables, tmp_path):
    # A table made during an outage would be kept, and its gaps with it.
    backend = {"name": "judge", "model": "judge-1", "provider": "local", "reads": "answer"}
    up = []
    with Loopback(lambda body, seen: behave(body, seen) if up else error(503)) as shaky:
        with pytest.raises(Retryable, match="entailment questions to 'judge-1'"):
            applied(shaky, tables, tmp_path, backend=backend, estimator="discrete")
        up.append(1)
        result = applied(shaky, tables, tmp_path, backend=backend, estimator="discrete")
    assert result.figures[0]["figures"]["pairs"] == N


def test_a_judge_that_refuses_for_good_makes_no_pair(tables, tmp_path):
    # It answers the first question: one that refuses all of them is a fault of set-up.
    answers = iter([answer(completion("no"))])
    with Loopback(lambda body, seen: next(answers, error(400))) as down:
        backend = {"name": "judge", "model": "judge-1", "provider": "local", "reads": "answer"}
        result = applied(down, tables, tmp_path, backend=backend, estimator="discrete")
    figures = result.figures[0]["figures"]
    assert figures["no_pair"]["backend_failed"] > 0
    # What equality alone settles needs no judge.
    assert figures["pairs"] + figures["no_pair"]["backend_failed"] == N


def test_self_assessment_is_asked_of_the_weak_model(server, tables, tmp_path):
    result = applied(server, tables, tmp_path, self_assessment=True)
    signals = result.tables["signals"]
    assert signals.column("self_assessment").null_count == 0
    assert signals.column("self_assessment")[0].as_py() == pytest.approx(0.75)


def test_what_no_recipe_can_write_is_refused(server, tables, tmp_path):
    with pytest.raises(RecipeError, match="no parameter 'entailment'"):
        applied(server, tables, tmp_path, entailment="x")
    with pytest.raises(RecipeError, match="cannot be made"):
        applied(server, tables, tmp_path, backend={"name": "cross_encoder", "modle": "x"})
    with pytest.raises(RecipeError, match="no model 'judge-9'"):
        applied(server, tables, tmp_path, backend={"name": "judge", "model": "judge-9"})


def test_prompts_are_asked_once_whatever_their_number(server, tmp_path: Path):
    said = recipe(server)
    model = model_to_ask(said.pool, "small")
    prompts = ["What is 1 + 1?"] * 5 + ["What is 2 + 2?"]
    before = server.requests
    context = BuildContext(said.name, tmp_path, tmp_path)
    how = {"purpose": "probe", "parameters": {"seed": 3}}
    found = ask_prompts(context, said.pool, said.collect, model, prompts, **how)
    assert server.requests == before + 2
    assert len({one.text for one in found[:5]}) == 1
    assert found[0].logprobs is not None
