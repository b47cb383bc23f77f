"""Hand-written cases of `numeric`: reference ¦ output ¦ verdict ¦ the trap.

`=` correct, `!` incorrect, `?` abstain. `⏎` is a line break. A short output
without a mark is tried as `Answer: …`.
"""

# ruff: noqa: E501
from __future__ import annotations

_TABLE = r"""
18 ¦ 18 ¦ = ¦ the number
18 ¦ 18. ¦ = ¦ a closing full stop
18 ¦ 18.0 ¦ = ¦ a decimal point
18 ¦ 18.00 ¦ = ¦ cents
18 ¦ +18 ¦ = ¦ a plus sign
18 ¦ 018 ¦ = ¦ a leading zero
18 ¦ **18** ¦ = ¦ bold
18 ¦ `18` ¦ = ¦ code
18 ¦ "18" ¦ = ¦ quotes
18 ¦ $18$ ¦ = ¦ a formula
18 ¦ \(18\) ¦ = ¦ a LaTeX formula
18 ¦ \boxed{18} ¦ = ¦ a box
18 ¦ \boxed{\$18} ¦ = ¦ a currency in a box
18 ¦ \boxed{18\text{ eggs}} ¦ = ¦ a unit in a box
18 ¦ \text{18} ¦ = ¦ text in LaTeX
18 ¦ １８ ¦ = ¦ full-width digits
18 ¦ ١٨ ¦ = ¦ Arabic digits
18 ¦ 1.8e1 ¦ = ¦ e-notation
18 ¦ 1.8 × 10^1 ¦ = ¦ scientific notation
18 ¦ 36/2 ¦ = ¦ a fraction
18 ¦ eighteen ¦ = ¦ a word
18 ¦ about 18 ¦ = ¦ a hedge
18 ¦ ~18 ¦ = ¦ a tilde
18 ¦ ≈ 18 ¦ = ¦ an approximate sign
18 ¦ 18 eggs ¦ = ¦ a unit
18 ¦ 18 eggs per day ¦ = ¦ a rate
18 ¦ 19 ¦ ! ¦ another number
18 ¦ -18 ¦ ! ¦ the sign
18 ¦ 18.4 ¦ ! ¦ a fraction of one
18 ¦ 1.8 ¦ ! ¦ the point
18 ¦ 180 ¦ ! ¦ a zero more
18 ¦ 81 ¦ ! ¦ digits exchanged
18 ¦ 118 ¦ ! ¦ a digit before
29 ¦ $29.00 ¦ = ¦ was read as 00
29 ¦ 29.00$ ¦ = ¦ the currency behind
29 ¦ US$29 ¦ = ¦ a longer currency sign
29 ¦ USD 29 ¦ = ¦ a currency code
29 ¦ €29 ¦ = ¦ another currency sign
29 ¦ 29 dollars ¦ = ¦ a currency in words
29 ¦ $0.29 ¦ ! ¦ cents as dollars
9 ¦ $9.00 ¦ = ¦ was rejected for 9
5 ¦ 0.5 ¦ ! ¦ was accepted for 5
-5 ¦ -$5 ¦ = ¦ sign before the currency
-5 ¦ $-5 ¦ = ¦ sign behind the currency
-5 ¦ −5 ¦ = ¦ a typographic minus
-5 ¦ minus 5 ¦ = ¦ the sign in words
-5 ¦ negative five ¦ = ¦ sign and number in words
-5 ¦ 5 ¦ ! ¦ the sign dropped
5 ¦ x-5 ¦ = ¦ a hyphen is no sign
5 ¦ 10-5 = 5 ¦ = ¦ a subtraction is no sign
-5 ¦ 5-10 = -5 ¦ = ¦ a negative result
1000 ¦ 1,000 ¦ = ¦ a thousands separator
1000 ¦ 1 000 ¦ = ¦ a space as separator
1000 ¦ 1'000 ¦ = ¦ an apostrophe as separator
1000 ¦ 1_000 ¦ = ¦ an underscore as separator
1000 ¦ 1{,}000 ¦ = ¦ a LaTeX separator
1000 ¦ 1\,000 ¦ = ¦ a thin space
1000 ¦ 1.000 ¦ ! ¦ a point is no separator
1000 ¦ 1k ¦ = ¦ kilo
1000 ¦ 1 thousand ¦ = ¦ a magnitude word
1000 ¦ one thousand ¦ = ¦ all words
1000 ¦ 10^3 ¦ = ¦ a power
1000 ¦ 10³ ¦ = ¦ a superscript
103 ¦ 10³ ¦ ! ¦ compatibility folding reads 103
1234567 ¦ 1,234,567 ¦ = ¦ two separators
1234567 ¦ 12,34,567 ¦ = ¦ Indian grouping
1234.56 ¦ 1.234,56 ¦ = ¦ European grouping
1234567 ¦ 1,234,56 ¦ ! ¦ a broken group
0.111 ¦ 0,111 ¦ ! ¦ no decimal comma
111 ¦ 0,111 ¦ ! ¦ no group after a leading zero
3000000 ¦ 3 million ¦ = ¦ a magnitude
3000000 ¦ $3M ¦ = ¦ a magnitude letter behind money
1500000 ¦ 1.5 million dollars ¦ = ¦ a decimal magnitude
3 ¦ 3M ¦ ? ¦ M without money is a unit or millions
3000000 ¦ 3M ¦ = ¦ M that only millions explain
2500000000 ¦ 2.5 billion ¦ = ¦ billions
0.5 ¦ 1/2 ¦ = ¦ a fraction
0.5 ¦ \frac{1}{2} ¦ = ¦ a LaTeX fraction
0.5 ¦ \frac12 ¦ = ¦ digits as arguments
0.5 ¦ ½ ¦ = ¦ a vulgar fraction
0.5 ¦ one half ¦ = ¦ a fraction in words
0.5 ¦ .5 ¦ = ¦ no leading zero
2.5 ¦ 2½ ¦ = ¦ compatibility folding reads 21/2
2.5 ¦ 2 1/2 ¦ = ¦ a mixed number
2.5 ¦ 2\frac{1}{2} ¦ = ¦ a LaTeX mixed number
2.5 ¦ two and a half ¦ = ¦ a mixed number in words
10.5 ¦ 2½ ¦ ! ¦ 21/2
0.75 ¦ three quarters ¦ = ¦ quarters
-0.5 ¦ -1/2 ¦ = ¦ a negative fraction
-0.5 ¦ -\frac{1}{2} ¦ = ¦ a negative LaTeX fraction
0.5 ¦ 2/1 ¦ ! ¦ turned over
1/3 ¦ 0.333 ¦ = ¦ three digits of a repeating fraction
1/3 ¦ 0.33 ¦ ! ¦ two digits are too few
2/3 ¦ 0.6667 ¦ = ¦ rounded up
2/3 ¦ 0.6668 ¦ ! ¦ neither rounded nor cut
0.333 ¦ 1/3 ¦ = ¦ the other direction
3 ¦ 1/0 ¦ ! ¦ a division by zero
50 ¦ 50% ¦ = ¦ a percent sign
50% ¦ 50 ¦ = ¦ a missing percent sign
50% ¦ 0.5 ¦ = ¦ the value of a percentage
0.5 ¦ 50% ¦ = ¦ a percentage of a value
0.5 ¦ 0.5% ¦ ! ¦ half a percent
0.005 ¦ 0.5% ¦ = ¦ half a percent, as value
50 ¦ 50 percent ¦ = ¦ the word
50 ¦ 50\% ¦ = ¦ LaTeX
50 ¦ 0.5 ¦ ! ¦ nobody said percent
100 ¦ 1e2 ¦ = ¦ e-notation
100 ¦ 1E+2 ¦ = ¦ capital and sign
0.01 ¦ 1e-2 ¦ = ¦ a negative exponent
0.01 ¦ 1×10⁻² ¦ = ¦ superscript exponent
300000 ¦ 3\times10^{5} ¦ = ¦ LaTeX
300000 ¦ 3\cdot 10^5 ¦ = ¦ another dot
300000 ¦ 3x10^5 ¦ = ¦ the letter x as times
300000 ¦ 3×10^6 ¦ ! ¦ the exponent
1 ¦ 10^999999999 ¦ ! ¦ never computed
14 ¦ 6 + 8 = 14 ¦ = ¦ the value of an expression
6 ¦ 6 + 8 = 14 ¦ ! ¦ its first number
8 ¦ 6 + 8 = 14 ¦ ! ¦ its second number
694 ¦ 3*68 + 2*80 + 6*55 = 204 + 160 + 330 = 694 ¦ = ¦ a chain of equations
45 ¦ 27 + 18 ¦ ! ¦ not worked out
27 ¦ 27 + 18 ¦ ! ¦ the first number of what is not worked out
210000 ¦ $150,000 + $60,000 = $210,000 ¦ = ¦ money in an equation
32 ¦ (12 + 43 + 15 + 4 + 22) / 3 = 96 / 3 = 32 ¦ = ¦ brackets and fractions
15 ¦ x = 15 ¦ = ¦ a named value
15 ¦ x = y = 15 ¦ = ¦ two names
15 ¦ x ≈ 15 ¦ = ¦ approximately equal
88 ¦ 66 (red) + 22 (blue) = <<66+22=88>>88 messages ¦ = ¦ calculator marks
2 ¦ 2:00 pm ¦ = ¦ a time on the hour
2 ¦ 2 pm ¦ = ¦ a short time
2 ¦ 2:10 pm ¦ ! ¦ another time
2:30 ¦ 2:30 ¦ = ¦ a time
2:30 ¦ 3:20 ¦ ! ¦ another time
230 ¦ 2:30 ¦ ! ¦ a time is no number
2:30 pm ¦ 2:30 am ¦ ! ¦ morning and afternoon
21 ¦ twenty-one ¦ = ¦ a hyphenated word
21 ¦ twenty one ¦ = ¦ two words
105 ¦ one hundred and five ¦ = ¦ with and
342 ¦ three hundred forty-two ¦ = ¦ three words
2000 ¦ two thousand ¦ = ¦ a scale
12 ¦ a dozen ¦ = ¦ a dozen
0 ¦ zero ¦ = ¦ nothing
1 ¦ one ¦ = ¦ a pronoun, alone an answer
1 ¦ one apple ¦ = ¦ at the beginning an answer
7 ¦ seventy ¦ ! ¦ a prefix of a word
84 ¦ 84 sofas and 88 chairs ¦ ! ¦ two numbers
5 ¦ 5 or 6 ¦ ? ¦ two alternatives
5 ¦ 5-10 ¦ ! ¦ a range
10 ¦ 5 to 10 ¦ ! ¦ a range in words
5 ¦ between 5 and 10 ¦ ! ¦ a range between
5 ¦ cannot be determined ¦ ? ¦ declines
5 ¦ unknown ¦ ? ¦ knows none
5 ¦ I do not know ¦ ? ¦ no number
5 ¦ unknown, perhaps 5 ¦ = ¦ a guess is an answer
600 ¦ After 2 years, Katina will have $600 remaining. ¦ = ¦ a circumstance first
10 ¦ You can run 10 cycles with the new box for $1. ¦ = ¦ a circumstance last
34 ¦ Tim saves $34 per month by cancelling his $60 package. ¦ = ¦ two amounts of money
160 ¦ The total cost of both cars is $160. The blue car costs $100 and the red car $60. ¦ = ¦ the sentence that concludes
80 ¦ 1.5x = 120, so x = 120 / 1.5 = 80. Therefore, the dress was 80 cm. ¦ = ¦ a derivation
7 ¦ 7 hours (420 minutes) ¦ = ¦ the same in brackets
75 ¦ It is 75 ml weaker when it is cooled by 65 degrees and she adds 15 ml. ¦ = ¦ a clause that runs on
420 ¦ 7 hours (420 minutes) ¦ ! ¦ only an explanation
18 ¦ {"reasoning": "16 - 3 - 4 = 9", "answer": "18"} ¦ = ¦ a JSON field
18 ¦ {"answer": 18} ¦ = ¦ a JSON number
18 ¦ {'answer': '18'} ¦ = ¦ Python quotes
18 ¦ {"answer": "\"18\""} ¦ = ¦ quotes in quotes
18 ¦ {"answer": "\\boxed{18}"} ¦ = ¦ a box in a field
18 ¦ ```json⏎{"answer": "$18"}⏎``` ¦ = ¦ a code block
18 ¦ {"answer": "9"}⏎I made a mistake.⏎{"answer": "18"} ¦ = ¦ a corrected field
9 ¦ {"answer": "9"}⏎I made a mistake.⏎{"answer": "18"} ¦ ! ¦ the answer corrected away
18 ¦ {"reasoning": "The answer is 9 so far", "answer": "18"} ¦ = ¦ a statement in the reasoning
18 ¦ 16 - 7 = 9⏎#### 18 ¦ = ¦ the mark of GSM8K
18 ¦ #### $18.00 ¦ = ¦ a mark and a currency
18 ¦ So she makes 18.⏎A: 18 ¦ = ¦ the mark of the verifiers
18 ¦ The answer is 18. ¦ = ¦ a statement
18 ¦ The final answer is: $\boxed{18}$ ¦ = ¦ a box in a statement
18 ¦ The answer is not 9. The answer is 18. ¦ = ¦ a denied answer
18 ¦ Answer:⏎18 ¦ = ¦ the next line
18 ¦ **Answer:** 18 eggs ¦ = ¦ a bold label
18 ¦ **Final Answer**: 18 ¦ = ¦ the colon behind
18 ¦ The answer is 18.⏎⏎Question: What is 2+3?⏎Answer: 5 ¦ = ¦ a run-on generation
5 ¦ The answer is 18.⏎⏎Question: What is 2+3?⏎Answer: 5 ¦ ! ¦ the answer of the next question
31 ¦ {"answer": "31"}⏎If it was meant in cents, the answer would be 3100. ¦ = ¦ a hypothetical answer
18 ¦ She sells 9 eggs at $2.⏎So she makes $18 every day. ¦ = ¦ a concluding sentence
3 ¦ 21 days / 7 days per week = 3 weeks.⏎The 42 kg bag of rice will last for 3 weeks. ¦ = ¦ a definite number is no result
109 ¦ Age in 10 years = 99 + 10 = 109.⏎Allen will be 109 years old 10 years from now. ¦ = ¦ of two numbers the one just computed is the result
2 ¦ 720 / 360 = 2 days.⏎So, 720 grams of cat food will last for 2 days. ¦ = ¦ the result follows a word of circumstance
35 ¦ 77 - 42 = 35 answers⏎Audrey needs 35 questions right to move on to the 7th grade. ¦ = ¦ an ordinal stands last
88 ¦ The total is 66 (to Ms. Thompson) + 22 (to Mr. Yu) = <<66+22=88>>88 messages. ¦ = ¦ a title does not end a sentence
18 ¦ {"reasoning": "She sells 18 ¦ ? ¦ cut off in the reasoning
5 ¦ ⏎ ¦ ? ¦ an empty output
18 ¦ 答案：18 ¦ = ¦ a Chinese label
# 18 ¦ 18 ¦ = ¦ a reference with its mark
#### 18 ¦ 18 ¦ = ¦ a reference with four marks
9*2=18⏎#### 18 ¦ 18 ¦ = ¦ a reference that is a solution
1,000 ¦ 1000 ¦ = ¦ a separator in the reference
"""


def cases() -> list[tuple[str, str, str, str]]:
    """(reference, output, outcome, trap)."""
    outcomes = {"=": "correct", "!": "incorrect", "?": "abstain"}
    made = []
    for line in _TABLE.strip().splitlines():
        reference, output, sign, trap = line.replace("⏎", "\n").split(" ¦ ")
        bare = not any(mark in output for mark in ("\n", "nswer", "####", "boxed", "答案"))
        cut = output.startswith('{"reasoning": "She')
        made.append(
            (reference, f"Answer: {output}" if bare and not cut else output, outcomes[sign], trap)
        )
    return made
