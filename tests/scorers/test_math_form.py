r"""The outer form of an answer, and the answer that a sentence states.

A form is written as `kind name[parts]`: `ordered (][scalar 1, scalar 2]` is `(1,2]`.
"""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers.math import Form, form_of, stated_value


def written(form: Form) -> str:
    inside = f"[{', '.join(map(written, form.parts))}]" if form.parts else f" {form.text}"
    return f"{form.kind}{' ' + form.name if form.name else ''}{inside}"


PAIR = "[scalar 1, scalar 2]"
FORMS = {
    r"\boxed{5}": "scalar 5",
    r"\boxed{5}+\boxed{6}": r"scalar \boxed{5}+\boxed{6}",  # no box around all of it
    "{5}": "scalar 5",
    "{5}+{6}": "scalar {5}+{6}",
    r"\{1,2\}": f"set{PAIR}",
    "no real solutions": "set no real solutions",
    r"\text{Friday}": "text friday",
    "Friday": "text friday",
    r"\text{(B)}": "scalar B",
    r"(1,2)\cup(1,2]": f"union[ordered (){PAIR}, ordered (]{PAIR}]",
    r"x\in[1,2]": f"ordered []{PAIR}",
    "1 and 2": f"list{PAIR}",
    "1; 2": f"list{PAIR}",
    r"1 \text{ or } 2": f"list{PAIR}",
    "1,234": "scalar 1,234",
    "1,234,567 cm": "scalar 1,234,567",
    "0,123": "list[scalar 0, scalar 123]",  # a leading zero opens no group
    r"2\pm3": "list[scalar 2+3, scalar 2-3]",
    r"\pm 2": "list[scalar 2, scalar - 2]",
    r"x=\pm 2": "list[equation x[scalar 2], equation x[scalar - 2]]",
    r"x = 1\pm 2": "list[equation x[scalar 1+ 2], equation x[scalar 1- 2]]",
    "1<x<2": f"ordered (){PAIR}",
    r"1\le x<2": f"ordered [){PAIR}",
    r"2\ge x>1": f"ordered (]{PAIR}",
    r"2>x\ge 1": f"ordered [){PAIR}",
    "1<x>2": "relation 1<x>2",
    "x>3": r"ordered ()[scalar 3, scalar \infty]",
    r"3\le x": r"ordered [)[scalar 3, scalar \infty]",
    r"3\ge x": r"ordered (][scalar -\infty, scalar 3]",
    "3<4": "relation 3<4",
    "x<y<z<w": "relation x<y<z<w",
    r"x\neq5": r"relation x\neq 5",
    "x=5": "equation x[scalar 5]",
    "5=x": "equation x[scalar 5]",
    "A B=5": "relation A B=5",
    r"\angle A=5": r"equation \angleA[scalar 5]",
    "(p, q)=(1,2)": f"named p,q{PAIR}",
    "(p,q)=3": "relation (p,q)=3",
    "7=11a+c": "relation 7=11a+c",
    "3+4=7": "scalar 7",
    "a=b=7": "equation a[scalar 7]",
    "a+b=3+4=7": "scalar 7",
    "[3]": "scalar [3]",
    "(3)": "scalar 3",
    "(1,2]": f"ordered (]{PAIR}",
    r"\{x\mid x>1\}": r"relation \{x\mid x>1\}",
    "1:2": f"ratio{PAIR}",
    "(1:2)": f"ratio{PAIR}",
    ":2": "scalar :2",
    r"5\text{ cm}^2": "scalar 5",
    "answer: 5": "scalar 5",
    r"\begin{pmatrix}1\\2\end{pmatrix}": f"matrix 1x1{PAIR}",
    r"\begin{pmatrix}1&2\end{pmatrix}": f"matrix 2{PAIR}",
    r"\begin{vmatrix}1&2\end{vmatrix}": f"matrix det2{PAIR}",
    r"|\begin{matrix}1&2\end{matrix}|": f"matrix det2{PAIR}",
    r"\begin{array}{cc}1 \cr 2\end{array}": f"matrix 1x1{PAIR}",
}


@pytest.mark.parametrize("text", FORMS)
def test_form(text: str) -> None:
    assert written(form_of(text)) == FORMS[text]


def test_an_interval_keeps_the_relation_it_was_read_from_and_deep_brackets_are_left() -> None:
    assert form_of("1<x<2").source == "1<x<2"
    assert form_of("(1,2)").source == ""
    deep = form_of("((((((1,2),3),4),5),6),7)")
    while deep.parts:
        deep = deep.parts[0]
    assert deep == Form("scalar", "(1,2)")


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("The largest $n$ is 34.", "34"),
        ("The solutions are $2$ and $3$.", "2, 3"),
        ("The solutions are $2$ and then $3$.", "2"),
        ("so the answer is $5$ for all $x>0$", "5"),
        ("not 5/6 but 1/10", "1/10"),
        ("35%, as there are 7 of 20", "35%"),
        ("It is 5 cm which is long", "5 cm"),
        ("$x$ is $5$ cm", r"5 \text{ cm }"),
        ("$x$ is $5$%", r"5 \text{ % }"),
        ("it is 5 or $x$", "5 or  x"),  # the number counts as well as the formula
        ("The value of 3 + 4 is 7. Then 8.", "7"),
        ("We get 5, obtain 6", "6"),
        ("sin x", "sin x"),
        (r"\[5\]", "5"),
        ("She has that many", ""),
        ('"5"', "5"),
        ("the sum is: 12;", "12"),
        ("$7$ because $2$ is prime", "7"),
    ],
)
def test_what_a_sentence_states(sentence: str, answer: str) -> None:
    assert stated_value(sentence) == answer
