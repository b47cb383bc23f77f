"""`--map` and `--models`: a person says which column is what, in any table."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from routeyard.flows.audits import audit_path
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest import mapping
from routeyard.pipelines.ingest.results import ROLES, read_results
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe import Recorded
from tests.conftest import Call

#: Columns of the arm, the question, the score and the prompt's tokens, in six languages.
NAMES = [
    ("moteur", "numéro du cas", "note obtenue", "jetons lus"),
    ("Anbieterkürzel", "Fallnummer", "Treffer", "Eingabezeichen"),
    ("proveedor de ia", "nº de caso", "acierto", "fichas"),
    ("模型代号", "题目编号", "得分情况", "输入长度"),
    ("エンジン", "設問", "合否", "入力数"),
    ("двигатель", "номер дела", "балл", "знаки"),
]


def parse_map(text: str | None, models: str | None = None) -> dict[str, str]:
    return mapping.parse_map(text, ROLES, models)


def write(path: Path, names: tuple[str, ...], sign: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=sign)
        writer.writerow([*names, "extra"])
        for q in range(30):
            for k, arm in enumerate(("x1", "x2", "x3")):
                writer.writerow([arm, f"c{q}", int((q + k) % 4 > 0), 20 + q, q % 2])
    return path


@pytest.mark.parametrize(
    ("names", "sign"), [(names, ",\t"[k % 2]) for k, names in enumerate(NAMES)]
)
def test_columns_in_any_language_are_read_as_they_are_named(
    tmp_path: Path, names: tuple[str, ...], sign: str
) -> None:
    path = write(tmp_path / ("t.tsv" if sign == "\t" else "t.csv"), names, sign)
    roles = ("arm", "question", "score", "prompt_tokens")
    said = ",".join(f"{role}={name}" for role, name in zip(roles, names, strict=True))
    table = read_results(path, parse_map(said)).table
    assert table.num_rows == 90
    assert table.column("arm").unique().to_pylist() == ["x1", "x2", "x3"]
    assert sum(table.column("score").to_pylist()) == sum(
        (q + k) % 4 > 0 for q in range(30) for k in range(3)
    )
    assert table.column("prompt_tokens").to_pylist()[:4] == [20.0, 20.0, 20.0, 21.0]
    page = audit_path(path, parse_map(said))
    assert page.looked_at["answers"] == 90
    # What is printed can be pasted.
    [line] = [note for note in page.notes if note.startswith("read as --map ")]
    assert said in line


def test_paths_constants_and_expressions(tmp_path: Path) -> None:
    path = tmp_path / "nested.jsonl"
    rows = [
        {
            "meta": {"case": f"q{n}", "usage": {"in": 9}},
            "out": {"points": n % 2},
            "took_ms": 1500,
        }
        for n in range(12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = (
        "arm==gpt-4o,question={{ _row['meta.case'] | upper }},score=out.points,"
        "prompt_tokens=meta.usage.in,latency=took_ms"
    )
    row = read_results(path, parse_map(said)).table.to_pylist()[3]
    assert (row["arm"], row["question"], row["score"]) == ("gpt-4o", "Q3", 1.0)
    assert (row["prompt_tokens"], row["latency_s"]) == (9.0, 1.5)


def test_a_wide_table_with_any_names_of_models(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    lines = [f"c{n},{n % 2},1,{(n + 1) % 3 > 0:d},0.0{n % 5 + 1},remark" for n in range(20)]
    path.write_text("\n".join(["case,zig,zag,zug,zig_cost,remark", *lines]) + "\n")
    table = read_results(path, parse_map("question=case", "zig,zag,zug")).table
    accuracy = {
        row["arm"]: row["score_mean"]
        for row in table.group_by("arm").aggregate([("score", "mean")]).to_pylist()
    }
    assert accuracy == {"zig": 0.5, "zag": 1.0, "zug": 14 / 20}
    known = table.column("cost_usd").is_valid().to_pylist()
    assert sum(known) == 20


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("who=arm", "each once, with a column; found 'who=arm'"),
        ("arm=a,arm=b", "each once, with a column; found 'arm=b'"),
        ("arm", "each once, with a column; found 'arm'"),
    ],
)
def test_what_is_no_mapping_is_refused_with_the_roles(said: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        parse_map(said)
    assert "score" in str(caught.value.next_step)


@pytest.mark.parametrize(
    ("role", "values", "words", "step"),
    [
        ("score", ("sehr gut", "mies"), "'note' says 'mies', 'sehr gut'", "_row['note'] == 'mies'"),
        ("cost", ("about 3", "cheap"), "'note' says 'about 3', 'cheap'", "cost={{ … _row['note']"),
        ("latency", ("fast", "slow"), "'note' says 'fast', 'slow'", "latency={{"),
    ],
)
def test_a_column_without_what_a_person_says_it_holds_is_refused(
    tmp_path: Path, role: str, values: tuple[str, str], words: str, step: str
) -> None:
    """Beside answers it passed as a column without scores, and the file as clean."""
    path = tmp_path / "t.csv"
    lines = [f"{'ab'[n % 2]},q{n // 2},text {n},{values[n % 2]}" for n in range(20)]
    path.write_text("\n".join(["model,id,output,note", *lines]) + "\n")
    with pytest.raises(BadInput, match=re.escape(words)) as caught:
        read_results(path, parse_map(f"{role}=note"))
    assert step in str(caught.value.next_step)


@pytest.mark.parametrize("first", ["", "sep=;\n"])
@pytest.mark.parametrize(
    "header",
    ["Modell;Frage;Antwort;Bewertung", "模型;问题;回答;正确", "модель;вопрос;ответ;правильно"],
)
def test_names_of_columns_in_other_languages(tmp_path: Path, header: str, first: str) -> None:
    path = tmp_path / "t.csv"
    lines = [f"m{n % 2};Aufgabe {n // 2};Antwort {n};{n % 3 > 0:d}" for n in range(24)]
    path.write_text("\n".join([first + header, *lines]) + "\n")
    result = read_results(path)
    arm, question, text, score = header.split(";")
    assert result.columns == {"arm": arm, "question": question, "text": text, "score": score}
    assert result.table.column("score").to_pylist() == [float(n % 3 > 0) for n in range(24)]
    path.write_text("\n".join([first + header, *lines, "m0;1;2;1;too many"]) + "\n")
    with pytest.raises(SourceError, match="has another number of fields") as caught:
        read_results(path)
    assert str(caught.value.where).endswith(f":{26 + bool(first)}")


WIDE = ["question_id,gpt-4o,llama-3-8b", *(f"q{n},{n % 2},{(n + 1) % 3 > 0:d}" for n in range(40))]
LONG = [
    "model,subject,question_id,correct",
    *(f"m{m},{'ab'[n % 2]},q{n},{(n // 2 + m) % 2}" for n in range(40) for m in range(2)),
]


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        (WIDE, ["Average,0.5,0.675"]),
        (WIDE, ["Total,20,27"]),
        (LONG, ["m0,,TOTAL,20", "m1,,TOTAL,20"]),
        (LONG, ["m0,a,mean,0.5", "m1,a,mean,50", "m0,b,mean,0.5", "m1,b,mean,50"]),
        (WIDE, ["Ø,0.5,0.675", "n,40,40"]),
        (WIDE, ["Anzahl richtig,20,27"]),
        (WIDE, ["# of all,20,27"]),
    ],
)
def test_rows_that_sum_up_the_others_are_no_questions(
    tmp_path: Path, lines: list[str], rows: list[str]
) -> None:
    """A total counted as one more question, and made points of percent of all the others."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    without = read_results(path).table.drop_columns("at")
    path.write_text("\n".join([*lines, *rows]))
    result = read_results(path)
    assert result.table.drop_columns("at") == without
    said = [note for note in result.notes if note.kind == "left_out"]
    assert [("means or sums of the others" in note.says) for note in said] == [True]


def test_one_row_decides_no_scale(tmp_path: Path) -> None:
    """Numbers beyond 1 beside scores of 0 and 1 made percents of all of them."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(WIDE))
    without = read_results(path).table.drop_columns("at")
    path.write_text("\n".join([*WIDE, "seconds,85,97"]))
    result = read_results(path)
    assert result.table.drop_columns("at") == without
    assert any("numbers beyond 1 beside scores of 0 to 1" in said for said in result.questions)
    # Of one arm alone it is a score that cannot be; the others stay what they are.
    path.write_text("\n".join([*WIDE, "seconds,85,1", "rows,0,1", "hours,1,1"]))
    result = read_results(path)
    assert {*result.table["score"].to_pylist()} == {0.0, 1.0, 85.0}
    assert [note.kind for note in result.notes if "85" in note.says] == ["value"]


@pytest.mark.parametrize(
    "words", [("ja", "nein"), ("WAHR", "FALSCH"), ("oui", "non"), ("да", "нет")]
)
def test_yes_and_no_in_other_languages(tmp_path: Path, words: tuple[str, str]) -> None:
    path = tmp_path / "t.csv"
    rows = [f"q{n},{words[n % 2]},{words[n % 3 > 0]}" for n in range(12)] + ["q12,k.A.,NA"]
    path.write_text("\n".join(["question_id,gpt-4o,llama-3-8b", *rows]))
    scores = read_results(path).table.to_pandas().groupby("arm").score.mean()
    assert {*scores} == {1 / 2, 1 / 3}


def test_rows_without_a_name_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([*WIDE, ",,", ",20,27"]))
    result = read_results(path)
    assert len(result.table) == 80
    assert any("rows name no question" in note.says for note in result.notes)


def test_columns_of_means_are_no_models(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    head, *rows = WIDE
    path.write_text("\n".join([f"{head},Mean", *(f"{row},0.5" for row in rows)]))
    assert {*read_results(path).table["arm"].to_pylist()} == {*head.split(",")[1:]}


def test_rows_that_are_only_named_like_a_sum_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([*WIDE, "Average,0.9,0.2"]))
    result = read_results(path)
    assert len(result.table) == 82
    assert any("are they questions, or" in said for said in result.questions)


def test_a_task_that_is_named_sum_is_a_question(tmp_path: Path) -> None:
    """Its verdict may well be the sum, or the mean, of the others."""
    path = tmp_path / "t.csv"
    path.write_text("question_id,gpt-4o,llama-3-8b\nmax,1,0\nmin,0,0\nsum,1,0\n")
    result = read_results(path)
    assert result.table.column("score").to_pylist() == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert any("are they questions, or" in said for said in result.questions)


def test_words_for_right_and_wrong_in_other_languages(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pairs = ("richtig", "falsch"), ("vrai", "faux"), ("правильно", "неверно"), ("正确", "错误")
    lines = [f"m{k},q{n},{word}" for k, pair in enumerate(pairs) for n, word in enumerate(pair)]
    path.write_text("\n".join(["model,id,score", *lines]) + "\n")
    assert read_results(path).table.column("score").to_pylist() == [1.0, 0.0] * 4


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", ("moteur", "cas", "points", "jetons"))
    with pytest.raises(SourceError, match="there is no column 'moteurs'") as caught:
        read_results(path, parse_map("arm=moteurs"))
    assert "moteur" in str(caught.value.where)
    assert "--map arm=COLUMN" in str(caught.value.next_step)
    with pytest.raises(SourceError, match="there is no column 'zig'"):
        read_results(path, parse_map(None, "zig,zug"))


def test_a_model_whose_name_ends_in_a_sign(tmp_path: Path) -> None:
    """The column was looked for as words: a name with a sign at its end was not found."""
    path = tmp_path / "wide.csv"
    lines = [f"c{n},{n % 2},{(n + 1) % 2}" for n in range(20)]
    path.write_text("\n".join(["case,gpt (new),模型(一)", *lines]) + "\n")
    table = read_results(path, parse_map("question=case", "gpt (new),模型(一)")).table
    assert table.column("arm").unique().to_pylist() == ["gpt (new)", "模型(一)"]


def test_init_refuses_a_mapping_beside_options_for_questions(tmp_path: Path, call: Call) -> None:
    path = write(tmp_path / "t.csv", ("moteur", "cas", "points", "jetons"))
    words = ("init", tmp_path / "mine.yaml", "--from", path, "--map", "arm=moteur")
    done = call(*words, "--scorer", "numeric")
    assert done.returncode == 2
    assert "leave out the one or the other" in done.stderr


def test_the_refusal_of_a_wide_table_prints_what_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    lines = [f"c{n},{n % 2},{(n + 1) % 2},{n}" for n in range(20)]
    path.write_text("\n".join(["case,who,zig,n", *lines]) + "\n")
    with pytest.raises(SourceError) as caught:
        read_results(path, parse_map("arm=case"))
    assert "--models who,zig" in str(caught.value.next_step)


@pytest.mark.parametrize(
    ("column", "kind"),
    [("cost_eur", "no US dollars"), ("Kosten (€)", "no US dollars"), ("usage.price_jpy", "no US"),
     ("cost_per_1k", "a price"), ("cost_musd", "milli-, micro- or million")],
)  # fmt: skip
def test_money_in_another_unit_is_no_cost(tmp_path: Path, column: str, kind: str) -> None:
    with pytest.raises(BadInput, match=f"expected a column of USD, found .*{kind}"):
        parse_map(f"arm=model,cost={column}")
    # A recording's mapping and fields are read alike; the same column in an expression is USD.
    entry = {"path": "a.csv", "fields": {"query": "q", "model": "m", "cost_usd": column}}
    with pytest.raises(BadInput, match="expected a column of USD"):
        mapping.with_fields(Recorded.model_validate(entry))
    assert parse_map("cost={{ cost_eur * 1.08 }}") == {"cost": "{{ cost_eur * 1.08 }}"}
    # Unnamed it is not read, and this is said.
    names = ("model", "question_id", "correct", column)
    result = read_results(write(tmp_path / "t.csv", names))
    assert "cost" not in result.table.column_names
    assert any(repr(column) in note and "not read" in note for note in map(str, result.notes))


@pytest.mark.parametrize("column", ["cost_cents", "cost_micro_usd", "total_cost", "spend"])
def test_money_in_a_known_unit_is_a_cost(column: str) -> None:
    assert parse_map(f"cost={column}") == {"cost": column}


def test_init_and_audit_take_the_same_words(tmp_path: Path, call: Call) -> None:
    path = write(tmp_path / "t.csv", ("moteur", "cas", "points", "jetons"))
    said = "arm=moteur,question=cas,score=points,prompt_tokens=jetons"
    done = call("init", tmp_path / "mine.yaml", "--from", path, "--map", said)
    assert "3 models" in done.stdout, done.stderr
    done = call("audit", path, "--map", said)
    assert f"read as --map {said}" in done.stdout, done.stderr
