"""`routeyard cost` and `audit WORKSPACE` over a workspace that asked a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.pipelines.collect.collect import collect
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas import RESPONSES
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.loopback import Do, Loopback, answer, completion, error
from tests.support.small_recorded import write


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    """A workspace in which one model was metered well and one was not."""

    def behave(body: dict[str, Any], seen: int) -> Do:
        if body["model"] == "vendor/good":
            return answer(completion("forty-two", model="vendor/good"))
        if body["messages"][0]["content"] == "q7":
            return error(400)
        return answer(completion("forty-two", model="other", usage=None))

    ids = [f"q{i}" for i in range(30)]
    queries = pa.table({"query_id": ids, "task": ["t"] * 30, "prompt": ids})
    workspace = tmp_path / "yard"
    price = {"price_in": 1.0, "price_out": 10.0, "price_date": "2026-01-01"}
    with (
        Loopback(behave) as server,
        SqliteLedger(workspace / "ledger" / "ledger.sqlite") as ledger,
    ):
        pool = Pool(
            models=[
                Model(model_id="good", endpoint_model="vendor/good", **price),
                Model(model_id="bad", **price),
            ],
            providers=[Provider(name="p", base_url=server.base_url)],
        )
        collect(plan(queries, pool, Collect(), ledger), ledger)
    return workspace


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """(exit code, decoded JSON) of a command."""
    code = run([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_ledger_is_summarised(yard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = said(capsys, "cost", "ledger", "-w", str(yard))
    bad, good = rows
    assert code == 0
    assert (good["model_id"], good["ok"], good["cost_unknown"]) == ("good", 30, 0)
    assert good["cost_usd"] == pytest.approx(30 * (10 * 1 + 5 * 10) / 1e6)
    assert (bad["ok"], bad["errors"], bad["cost_unknown"]) == (29, 1, 29)
    assert bad["cost_usd"] is None  # unknown is not zero
    assert run(["cost", "ledger", "-w", str(yard)]) == 0
    assert "good" in capsys.readouterr().out


def test_the_audit_names_what_is_wrong_and_exits_3(
    yard: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, findings = said(capsys, "audit", str(yard))
    assert code == 3
    assert {(f["check"], f["model_id"], f["count"]) for f in findings} == {
        ("usage_missing", "bad", 29),
        ("price_unknown", "bad", 29),
        ("served_model", "bad", 29),
    }
    assert run(["audit", str(yard)]) == 3
    out = capsys.readouterr().out
    assert "served by 'other'" in out
    assert "q0/0" in out


def test_what_the_recipe_waives_is_printed_with_its_reason(
    yard: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waivers = [{"gate": "metering:usage_missing", "reason": "Recorded without usage."}]
    asked = {"provider": "openai"}  # recorded answers are in no ledger
    recipe = str(write(tmp_path / "recipe", release={"waivers": waivers}, collect=asked))
    assert run(["audit", str(yard), "--recipe", recipe]) == 3
    assert "usage_missing: bad: waived: Recorded without usage." in capsys.readouterr().out
    waivers[0]["gate"] = "metering"
    write(tmp_path / "recipe", release={"waivers": waivers}, collect=asked)
    assert run(["audit", str(yard), "--recipe", recipe]) == 0
    shown = capsys.readouterr().out
    assert shown.count("waived: Recorded without usage.") == 3
    assert "metering: no unresolved finding" in shown


def test_a_workspace_is_repriced_beside_itself(
    yard: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("model_id,price_in,price_out,price_date\nvendor/good,2,20,2026-06-01\n")
    code, figures = said(capsys, "cost", "reprice", str(yard), "--prices", str(prices))
    assert code == 0
    bad, good = figures["models"]
    assert good["usd_after"] == pytest.approx(2 * good["usd_before"])
    assert (good["price_date_after"], good["kept"]) == ("2026-06-01", False)
    assert (bad["kept"], bad["usd_after"], bad["unknown_after"]) == (True, None, 30)
    folder = Path(figures["path"])
    assert folder == tmp_path / "yard.repriced-2026-06-01"
    RESPONSES.check(pq.read_table(folder / "responses.parquet"))
    # Never overwritten.
    assert run(["cost", "reprice", str(yard), "--prices", str(prices)]) == 2


def test_a_release_is_repriced_beside_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tmp_path / "releases" / "x" / "1.0.0"
    (release / "data").mkdir(parents=True)
    row = {"query_id": "q", "model_id": "vendor/m", "sample": 0, "text": "a", "status": "ok"}
    row |= {"prompt_tokens": 1000, "completion_tokens": 10, "attempts": 1}
    pq.write_table(RESPONSES.from_rows([row]), release / "data" / "responses.parquet")
    from routeyard.schemas import MODELS

    models = MODELS.from_rows([{"model_id": "vendor/m", "kind": "real", "simulated": False}])
    pq.write_table(models, release / "data" / "models.parquet")
    listed = tmp_path / "openrouter.json"
    pricing = {"prompt": "0.0000025", "completion": "0.00001"}
    unknown = {"id": "auto", "pricing": {"prompt": "-1", "completion": "-1"}}
    listed.write_text(json.dumps({"data": [{"id": "vendor/m", "pricing": pricing}, unknown]}))
    assert run(["cost", "reprice", str(release), "--prices", str(listed)]) == 2  # no day
    assert "--date" in capsys.readouterr().err
    code, figures = said(
        capsys, "cost", "reprice", str(release), "--prices", str(listed), "--date", "2026-11-01"
    )
    assert code == 0
    assert figures["models"][0]["usd_before"] is None
    assert figures["models"][0]["usd_after"] == pytest.approx((1000 * 2.5 + 10 * 10) / 1e6)
    repriced = pq.read_table(Path(figures["path"]) / "models.parquet").to_pylist()[0]
    assert (repriced["price_in"], repriced["price_date"]) == (2.5, "2026-11-01")
    assert sorted(p.name for p in (release / "data").iterdir()) == [
        "models.parquet",
        "responses.parquet",
    ]


def test_a_shared_ledger_is_read_where_the_workspace_has_none(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    from routeyard.pipelines.collect.postgres import PostgresLedger

    price = {"price_in": 1.0, "price_out": 10.0, "price_date": "2026-01-01"}
    queries = pa.table({"query_id": ["q"], "task": ["t"], "prompt": ["q"]})
    said_by_all = answer(completion("forty-two", model="good"))
    with Loopback(lambda *_: said_by_all) as server, PostgresLedger(postgres) as ledger:
        provider = Provider(name="p", base_url=server.base_url)
        pool = Pool(models=[Model(model_id="good", **price)], providers=[provider])
        collect(plan(queries, pool, Collect(), ledger), ledger)
    # As a build leaves it: stage outputs here, answers in the database.
    (tmp_path / "yard" / "stages").mkdir(parents=True)
    monkeypatch.setenv("ROUTEYARD_LEDGER", postgres)
    code, rows = said(capsys, "cost", "ledger", "-w", str(tmp_path / "yard"))
    assert (code, [row["ok"] for row in rows]) == (0, [1])
    code, found = said(capsys, "audit", str(tmp_path / "yard"))
    assert code in (0, 3)
    assert not any("unknown cost" in one["says"] for one in found)
    prices = tmp_path / "prices.yaml"
    prices.write_text("- {model_id: good, price_in: 2, price_out: 20, price_date: '2026-02-02'}\n")
    code, _ = said(capsys, "cost", "reprice", str(tmp_path / "yard"), "--prices", str(prices))
    assert code == 0
    table = pq.read_table(tmp_path / "yard.repriced-2026-02-02" / "responses.parquet")
    assert table["cost_usd"].to_pylist() == [pytest.approx((10 * 2 + 5 * 20) / 1e6)]


def test_a_workspace_without_a_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cost", "ledger", "-w", str(tmp_path)]) == 2
    assert "has no ledger" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []  # looking makes nothing


def test_a_price_list_becomes_a_dated_file_that_a_recipe_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = {
        "data": [
            {"id": "vendor/m", "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
            {"id": "vendor/other", "pricing": {"prompt": "1", "completion": "1"}},
        ]
    }

    class Listing(Loopback):
        def receive(self, method: str, path: str, body: bytes) -> Do:
            assert (method, path) == ("GET", "/v1/models")
            return answer(listed)

    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "1", "question": "1+1?", "answer": "2"}\n')
    recipe = tmp_path / "r.yaml"

    def write(extra: str, url: str) -> None:
        recipe.write_text(f"""
name: priced
version: 1.0.0
sources:
  - name: s
    path: {questions}
    scorer: numeric
    task: sums
    fields: {{id: id, question: question, references: answer}}
pool:
  {extra}
  models: [{{model_id: mine, endpoint_model: vendor/m}}]
  providers: [{{name: p, base_url: "{url}", price_list: openrouter}}]
collect: {{max_tokens: 100}}
""")

    with Listing(lambda body, seen: answer({})) as server:
        write("", server.base_url)
        assert run(["cost", "prices", str(recipe), "--out", str(tmp_path / "prices.yaml")]) == 0
        capsys.readouterr()
        write("prices: prices.yaml", server.base_url)
        code, said_ = said(capsys, "plan", str(recipe), "--workspace", str(tmp_path / "yard"))
    assert code == 0
    (model,) = said_["models"]
    assert model["calls"] == 1
    assert model["cost_usd"] == pytest.approx((model["prompt_tokens"] + 2 * 100) / 1e6)
    assert model["price_date"] is not None
    with Listing(lambda body, seen: answer({})) as server:
        write("", server.base_url)
        recipe.write_text(recipe.read_text().replace("mine, endpoint_model: vendor/m", "nobody"))
        assert run(["cost", "prices", str(recipe), "--out", str(tmp_path / "none.yaml")]) == 2
        assert "name none of its models" in capsys.readouterr().err
        assert not (tmp_path / "none.yaml").exists()
    # A flag that does not fit is refused in words.
    bad = ["plan", str(recipe), "--reask-truncated", "50", "--workspace", str(tmp_path / "y")]
    assert run(bad) == 2
    assert "larger than 'max_tokens'" in capsys.readouterr().err


def test_a_workspace_of_recorded_answers_is_audited_without_a_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # It has no ledger: the findings lay in a stage's folder under hashes of questions.
    entry = {"path": "answers.jsonl", "fields": {"query": "id", "model": "model", "text": "output",
             "prompt_tokens": "in", "completion_tokens": "out"}}  # fmt: skip
    priced = {"price_in": 1.0, "price_out": 2.0, "price_date": "2026-01-01"}
    recipe = write(
        tmp_path,
        collect={"provider": "recorded", "recorded": [entry]},
        pool={"models": [{"model_id": "careful", **priced}, {"model_id": "hasty"}]},
        release={},
    )
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        row |= {"in": 9, "out": 900 if number == 6 else None if number == 8 else 3}
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counted = {
        ("usage_missing", "careful", 1),
        ("implausible_count", "careful", 1),
        ("price_unknown", "careful", 1),
        ("price_unknown", "hasty", 11),
    }
    yard = tmp_path / "yard"
    words = ["audit", str(yard)]
    capsys.readouterr()
    code, found = said(capsys, *words, "--recipe", str(recipe))
    assert code == 3
    assert {(f["check"], f["model_id"], f["count"]) for f in found} == counted
    (odd,) = [f for f in found if f["check"] == "implausible_count"]
    assert odd["at"] == ["answers.jsonl, line 7"]
    # `recipe check` counts them too, and what to do is not what is done already.
    assert run(["recipe", "check", str(recipe)]) == 2
    shown = capsys.readouterr().out
    assert "as they state none and the model has no price (limit 0%) (hasty 11; first" in shown
    assert (
        "as their tokens are not known (limit 0%) (careful 1; first answers.jsonl, line 9)" in shown
    )
    steps = shown.split("cannot have that many tokens (careful 1; first answers.jsonl, line 7)")
    assert "columns that hold the provider's counts" in steps[1].splitlines()[1]
    assert "price" not in steps[1].splitlines()[1]
    # After a build the workspace knows its recipe.
    assert run(["build", str(recipe), "--workspace", str(yard)]) == 3
    assert "careful: 1 answers whose text" in capsys.readouterr().err
    code, found = said(capsys, *words)
    assert (code, {(f["check"], f["model_id"], f["count"]) for f in found}) == (3, counted)
    (odd,) = [f for f in found if f["check"] == "implausible_count"]
    assert odd["at"] == ["answers.jsonl, line 7"]
    assert run(words) == 3
    assert "looked at: the recording" in capsys.readouterr().out
