"""Hand-written cases of `math`: reference ¦ answer ¦ same (=) or different (!) ¦ the trap.

Every case is tried in both directions: a comparison that depends on which side
is the reference would mark some wrong answer right.
"""

# ruff: noqa: E501
from __future__ import annotations

_TABLE = r"""
5 ¦ 5 ¦ = ¦ the same text
5 ¦ 5.0 ¦ = ¦ a decimal point
5 ¦ 5. ¦ = ¦ a closing full stop
5 ¦ +5 ¦ = ¦ a plus sign
5 ¦ -5 ¦ ! ¦ the sign
5 ¦ \$5 ¦ = ¦ a dollar sign
5 ¦ 5\text{ cm} ¦ = ¦ a unit only one side names
5 ¦ 5 \text{ dollars} ¦ = ¦ a unit in words
5 ¦ (5) ¦ = ¦ brackets around a number
5 ¦ \left(5\right) ¦ = ¦ sized brackets
5 ¦ {5} ¦ = ¦ a group brace
5 ¦ \boxed{5} ¦ = ¦ a box in a box
5 ¦ \text{5} ¦ = ¦ a number set as text
5 ¦ x=5 ¦ = ¦ a named value against a value
x=5 ¦ y=5 ¦ ! ¦ two names
x=5 ¦ x = 5 ¦ = ¦ spaces
x=5 ¦ x=6 ¦ ! ¦ equal names, other value
f(x)=2x ¦ 2x ¦ = ¦ a named function
5 ¦ 55 ¦ ! ¦ a prefix of the digits
50 ¦ 5 ¦ ! ¦ a dropped zero
10000 ¦ 10{,}000 ¦ = ¦ a LaTeX thousands separator
10000 ¦ 10,000 ¦ = ¦ a thousands separator
10000 ¦ 10\,000 ¦ = ¦ a thin space
10000 ¦ 10\!000 ¦ = ¦ a negative space between digits
900,000,000 ¦ 900000000 ¦ = ¦ two separators
0.111 ¦ 0,111 ¦ ! ¦ a comma is no decimal point in front of three digits
111 ¦ 0,111 ¦ ! ¦ a leading zero opens no group
\frac{1}{2} ¦ 0.5 ¦ = ¦ a fraction and its decimal
\frac{1}{2} ¦ 1/2 ¦ = ¦ a plain fraction
\frac{1}{2} ¦ \dfrac{1}{2} ¦ = ¦ a display fraction
\frac{1}{2} ¦ \tfrac12 ¦ = ¦ a fraction without braces
\frac{1}{2} ¦ \frac12 ¦ = ¦ digits as arguments
\frac{1}{2} ¦ \frac{2}{4} ¦ = ¦ not in lowest terms
\frac{1}{2} ¦ \frac{2}{1} ¦ ! ¦ turned over
\frac{1}{2} ¦ .5 ¦ = ¦ no leading zero
\frac{1}{2} ¦ -\frac{1}{2} ¦ ! ¦ the sign of a fraction
-\frac{1}{2} ¦ \frac{-1}{2} ¦ = ¦ the sign in the numerator
-\frac{1}{2} ¦ \frac{1}{-2} ¦ = ¦ the sign in the denominator
\frac{1}{3} ¦ 0.333 ¦ = ¦ a repeating fraction, three digits
\frac{1}{3} ¦ 0.33 ¦ ! ¦ two digits are too few
\frac{1}{3} ¦ 0.3 ¦ ! ¦ one digit is too few
\frac{2}{3} ¦ 0.667 ¦ = ¦ rounded up
\frac{2}{3} ¦ 0.666 ¦ = ¦ cut off
\frac{2}{3} ¦ 0.668 ¦ ! ¦ neither rounded nor cut
\frac{1}{2} ¦ 0.501 ¦ ! ¦ a terminating fraction is never rounded
2\frac{3}{4} ¦ \frac{11}{4} ¦ = ¦ a mixed number
2\frac{3}{4} ¦ 2.75 ¦ = ¦ a mixed number and its decimal
2\frac{3}{4} ¦ \frac{6}{4} ¦ ! ¦ a mixed number is no product
1\frac{1}{10} ¦ 1.1 ¦ = ¦ tenths
12\frac{3}{5} ¦ 12 \frac{3}{5} ¦ = ¦ a space in a mixed number
12\frac{3}{5} ¦ 63/5 ¦ = ¦ an improper fraction
50\% ¦ 50\% ¦ = ¦ percent on both sides
50\% ¦ 0.5 ¦ = ¦ a percentage and its value
50\% ¦ 50 ¦ = ¦ a missing percent sign above one
0.5 ¦ 0.5\% ¦ ! ¦ half is not half a percent
50\% ¦ 5\% ¦ ! ¦ another percentage
3.5 ¦ 35 ¦ ! ¦ a dropped point
1.50 ¦ 1.5 ¦ = ¦ a trailing zero
1e3 ¦ 1000 ¦ = ¦ e-notation
3\times 10^5 ¦ 300000 ¦ = ¦ scientific notation
3\times 10^5 ¦ 3\cdot 10^{5} ¦ = ¦ another dot
3\times 10^5 ¦ 3\times 10^6 ¦ ! ¦ the exponent
3\times 10^{-5} ¦ 0.00003 ¦ = ¦ a negative exponent
10^5 ¦ 105 ¦ ! ¦ a lost caret
10^5 ¦ 10⁵ ¦ = ¦ a superscript sign
10^5 ¦ 100000 ¦ = ¦ a power and its value
\sqrt{2} ¦ \sqrt2 ¦ = ¦ a root without braces
\sqrt{2} ¦ √2 ¦ = ¦ the root sign
\sqrt{2} ¦ sqrt(2) ¦ = ¦ the root as a function
\sqrt{2} ¦ 2^{1/2} ¦ = ¦ the root as a power
\sqrt{2} ¦ \sqrt{3} ¦ ! ¦ another root
\sqrt{2} ¦ 2 ¦ ! ¦ the root dropped
\sqrt{2} ¦ 1.4142135623731 ¦ ! ¦ an irrational number is no decimal
\sqrt{8} ¦ 2\sqrt{2} ¦ = ¦ a simplified root
4\sqrt{2}+8 ¦ 4√2 + 8 ¦ = ¦ read as 8 by a parser that takes the last number
4\sqrt{2}+8 ¦ 8 ¦ ! ¦ the last number of a sum
4\sqrt{2}+8 ¦ 8+4\sqrt{2} ¦ = ¦ the order of a sum
\sqrt{2}+\sqrt{3} ¦ \sqrt{2}\cdot\sqrt{3} ¦ ! ¦ operators matter
\sqrt{2}+\sqrt{3} ¦ √3+√2 ¦ = ¦ a sum of roots, turned
\sqrt{2}\cdot\sqrt{3} ¦ \sqrt{6} ¦ = ¦ a product of roots
4 ¦ 4\sqrt{2} ¦ ! ¦ a dropped root
\frac{\sqrt{2}}{2} ¦ \frac{1}{\sqrt{2}} ¦ = ¦ a rationalised denominator
7\pi ¦ 7π ¦ = ¦ the sign for pi
7\pi ¦ 7pi ¦ = ¦ pi as a word
7\pi ¦ 7 ¦ ! ¦ pi dropped
7\pi ¦ 21.99 ¦ ! ¦ pi rounded
\pi ¦ 3.14 ¦ ! ¦ pi is not 3.14
\pi ¦ \frac{22}{7} ¦ ! ¦ pi is not 22/7
\frac{1}{2004!} ¦ \frac{1}{2006!} ¦ ! ¦ tiny values that round to zero
\frac{1}{2^{99}} ¦ \frac{1}{2^{98}} ¦ ! ¦ tiny values again
2^{100} ¦ 2^{100}+1 ¦ ! ¦ huge values that differ in the last digit
1-\frac{1}{e} ¦ 1+\frac{1}{e} ¦ ! ¦ the sign in the middle
\frac{2^{2005}+1}{3\cdot 2^{2006}} ¦ \frac{1}{3\cdot 2^{2006}} ¦ ! ¦ a term dropped
\log_2 8 ¦ 3 ¦ = ¦ a logarithm with a value
\binom{5}{2} ¦ 10 ¦ = ¦ a binomial coefficient
5! ¦ 120 ¦ = ¦ a factorial
\sin(30) ¦ \sin(60) ¦ ! ¦ the argument of a function
|{-3}| ¦ 3 ¦ = ¦ an absolute value
x^2+2x+1 ¦ (x+1)^2 ¦ = ¦ a square multiplied out
x^2+2x+1 ¦ (x-1)^2 ¦ ! ¦ the sign in a square
4a-2 ¦ -2+4a ¦ = ¦ the order of terms
4a-2 ¦ 4b-2 ¦ ! ¦ another variable
4a-2 ¦ 4a+2 ¦ ! ¦ the sign of a term
4a-2 ¦ 2(2a-1) ¦ = ¦ a factor taken out
4t ¦ 4 ¦ ! ¦ the variable dropped
4t ¦ t\cdot 4 ¦ = ¦ the order of factors
2x+1 ¦ 2*x+1 ¦ = ¦ a star as product
x^2 ¦ x**2 ¦ = ¦ two stars as power
x^2 ¦ x² ¦ = ¦ a superscript
x^2 ¦ 2x ¦ ! ¦ power and product
x^{10} ¦ x^10 ¦ = ¦ a plain caret takes all digits
x^{10} ¦ x^1 ¦ ! ¦ one of its digits
\frac{x+2}{7} ¦ \frac{x}{7}+\frac{2}{7} ¦ = ¦ a fraction taken apart
\frac{x^2-1}{x-1} ¦ x+1 ¦ = ¦ a cancelled factor
x ¦ X ¦ ! ¦ capital letters are other variables
y=2x+1 ¦ 2x+1 ¦ = ¦ an equation solved for y
y=2x+1 ¦ y=2x-1 ¦ ! ¦ another line
y=2x+1 ¦ y = 1+2x ¦ = ¦ the same line
3x-y+13=0 ¦ 3x+4y+14=0 ¦ ! ¦ both sides read as 0 by a careless parser
3x-y+13=0 ¦ 6x-2y+26=0 ¦ = ¦ the same line times two
2x+4y=3 ¦ 2x+4y=4 ¦ ! ¦ only the right side differs
(1,2) ¦ (1,2) ¦ = ¦ a pair
(1,2) ¦ (2,1) ¦ ! ¦ pairs are ordered
(1,2) ¦ ( 1 , 2 ) ¦ = ¦ spaces in a pair
(1,2) ¦ \left(1,2\right) ¦ = ¦ sized brackets
(1,2) ¦ (1.0,2) ¦ = ¦ decimals in a pair
(1,2) ¦ [1,2] ¦ ! ¦ open and closed ends
(1,2) ¦ (1,2] ¦ ! ¦ one closed end
[1,2) ¦ (1,2] ¦ ! ¦ the ends exchanged
(1,2) ¦ \{1,2\} ¦ ! ¦ an interval or pair is no set
(1,2) ¦ 1,2 ¦ ! ¦ a pair is no list
(1,2) ¦ (1,2,3) ¦ ! ¦ a longer tuple
(0,1) ¦ (0,1.5) ¦ ! ¦ one end differs
(1,\frac{9}{2}) ¦ (1,4.5) ¦ = ¦ a decimal in a pair
(-\infty,2) ¦ x<2 ¦ = ¦ an inequality and its interval
(-\infty,2] ¦ x \le 2 ¦ = ¦ a closed end
(-\infty,2) ¦ x \le 2 ¦ ! ¦ strict and not strict
[2,\infty) ¦ x\geq 2 ¦ = ¦ at least
[2,\infty) ¦ x ≥ 2 ¦ = ¦ the sign for at least
[2,\infty) ¦ 2 \le x ¦ = ¦ the inequality turned
(1,2) ¦ 1<x<2 ¦ = ¦ a double inequality
[1,2) ¦ 1\le x<2 ¦ = ¦ half open
(1,2) ¦ 2>x>1 ¦ = ¦ written downwards
(1,2) ¦ x\in(1,2) ¦ = ¦ membership
x>2 ¦ x<2 ¦ ! ¦ the direction
x>2 ¦ 2 ¦ ! ¦ an inequality is no number
(-\infty,1)\cup(2,\infty) ¦ (2,\infty)\cup(-\infty,1) ¦ = ¦ the order of a union
(-\infty,1)\cup(2,\infty) ¦ (-\infty,1)\cup[2,\infty) ¦ ! ¦ one end of a union
(-\infty,1)\cup(2,\infty) ¦ (-\infty,1) ¦ ! ¦ a part of a union
(-\infty,1)\cup(2,\infty) ¦ (-∞,1)∪(2,∞) ¦ = ¦ signs
\{1,2,3\} ¦ \{3,2,1\} ¦ = ¦ sets are unordered
\{1,2,3\} ¦ \{1,2\} ¦ ! ¦ a missing element
\{1,2,3\} ¦ 6 ¦ ! ¦ a set is not its sum
\{1,2\} ¦ 1,2 ¦ = ¦ a list of solutions
\{1,2\} ¦ 1 \text{ and } 2 ¦ = ¦ a list in words
\{1,2\} ¦ \left\{1,2\right\} ¦ = ¦ sized braces
\{5\} ¦ 5 ¦ ! ¦ a set is not its element
1,2 ¦ 2,1 ¦ = ¦ the order of solutions
1,2 ¦ 1,3 ¦ ! ¦ one solution differs
1,2 ¦ 12 ¦ ! ¦ a comma between solutions
1,2 ¦ 1 ¦ ! ¦ one of two solutions
1 ¦ 1,2 ¦ ! ¦ one solution too many
n=2,3,4 ¦ n=1,2,3 ¦ ! ¦ lists behind one name
19,46,\text{ and }82 ¦ 21, 36, \text{ and } 82 ¦ ! ¦ only the last is the same
\pm 2 ¦ 2 ¦ ! ¦ one of two signs
\pm 2 ¦ 2,-2 ¦ = ¦ both signs
\pm 2 ¦ ±2 ¦ = ¦ the sign for both
\pm 2021 ¦ 2021 ¦ ! ¦ one of two signs, upstream equal
1\pm\sqrt{2} ¦ 1+\sqrt{2},1-\sqrt{2} ¦ = ¦ both roots
1\pm\sqrt{2} ¦ 1+\sqrt{2} ¦ ! ¦ one root
x=\pm 2 ¦ \pm 2 ¦ = ¦ a named pair of signs
\emptyset ¦ \varnothing ¦ = ¦ two signs of the empty set
\emptyset ¦ 0 ¦ ! ¦ the empty set is not zero
\begin{pmatrix}1&2\\3&4\end{pmatrix} ¦ \begin{bmatrix}1&2\\3&4\end{bmatrix} ¦ = ¦ brackets of a matrix
\begin{pmatrix}1&2\\3&4\end{pmatrix} ¦ \begin{pmatrix}1&3\\2&4\end{pmatrix} ¦ ! ¦ transposed
\begin{pmatrix}1&2\\3&4\end{pmatrix} ¦ \begin{pmatrix}1&2\\3&5\end{pmatrix} ¦ ! ¦ one cell differs
\begin{pmatrix}1&2\\3&4\end{pmatrix} ¦ \begin{vmatrix}1&2\\3&4\end{vmatrix} ¦ ! ¦ a matrix is not its determinant
\begin{pmatrix}1\\2\end{pmatrix} ¦ \begin{pmatrix}1&2\end{pmatrix} ¦ ! ¦ column and row
\begin{pmatrix}1\\2\end{pmatrix} ¦ \begin{pmatrix} 1.0 \\ \frac{4}{2} \end{pmatrix} ¦ = ¦ numbers in cells
\text{even} ¦ even ¦ = ¦ a word
\text{even} ¦ odd ¦ ! ¦ another word
\text{even} ¦ \text{Even} ¦ = ¦ capitals of a word
\text{(A)} ¦ \text{A} ¦ = ¦ a letter in brackets
A ¦ \text{A} ¦ = ¦ a letter as text
A ¦ B ¦ ! ¦ another letter
4:30 ¦ 4:30 ¦ = ¦ a time
12:00 ¦ 1:00 ¦ ! ¦ another time, upstream equal
3:2 ¦ 2:3 ¦ ! ¦ a ratio turned
90^\circ ¦ 90 ¦ = ¦ degrees
90^\circ ¦ 90° ¦ = ¦ the sign for degrees
90^\circ ¦ 60^\circ ¦ ! ¦ another angle
1 2 ¦ 3 ¦ ! ¦ a space is no sum
2(3) ¦ 5 ¦ ! ¦ brackets are no sum
2(3) ¦ 6 ¦ = ¦ brackets are a product
12_3 ¦ 12 ¦ ! ¦ a number in base three
\infty ¦ -\infty ¦ ! ¦ the sign of infinity
\infty ¦ ∞ ¦ = ¦ the sign for infinity
i ¦ -i ¦ ! ¦ complex conjugates
3+4i ¦ 4i+3 ¦ = ¦ the order of a complex number
3+4i ¦ 3-4i ¦ ! ¦ the conjugate
1{,}2 ¦ 1.2 ¦ ! ¦ a decimal comma is not assumed
37.50 ¦ 37.5 ¦ = ¦ cents
13.18 ¦ 13.184 ¦ ! ¦ more digits are another number
0.1 ¦ \frac{1}{10} ¦ = ¦ a tenth is exact, not the nearest float
0.3 ¦ \frac{3}{10}+\frac{1}{10^{20}} ¦ ! ¦ a difference below float precision
"""


def cases() -> list[tuple[str, str, bool, str]]:
    """(reference, answer, same, trap)."""
    rows = [line.split(" ¦ ") for line in _TABLE.strip().splitlines()]
    return [(reference, answer, same == "=", trap) for reference, answer, same, trap in rows]
