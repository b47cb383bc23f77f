"""How responses end: the one list of statuses, what each means for a label, and others' words.

`contracts.yaml` describes each. A status never says whether a text is right; it says what a label
is where no scorer could read an answer.
"""

from __future__ import annotations

import re

from routeyard.schemas.tables import CONTRACTS

#: Every status, as `responses.status` lists them.
STATUSES = tuple(CONTRACTS["responses"]["status"].values)
#: Nothing was answered: no verdict is filed, and the label is null.
ANSWERLESS = ("error", "timeout", "unanswered")
#: The model replied and gave no answer to read: incorrect, and reported by status.
NO_CREDIT = ("truncated", "refused", "empty")

#: Status → words that servers, harnesses and files use for it, besides its name.
_WORDS = {
    "ok": "stop stopped success successful succeeded completed complete done finished eos end_turn "
    "stop_sequence tool_calls function_call answered passed",
    "truncated": "length max_tokens max_output_tokens max_length model_length token_limit "
    "incomplete cut_off context_length",
    "refused": "content_filter safety refusal recitation prohibited_content blocked filtered "
    "blocklist spii",
    "empty": "no_content no_output blank",
    "error": "errored failed failure fail exception crash crashed api_error server_error "
    "harness_error invalid_request_error invalidrequesterror runtimeerror",
    "timeout": "timed_out time_out timeouterror timeout_error deadline_exceeded readtimeout",
    "unanswered": "not_answered not_attempted missing skipped",
    "ungraded": "not_graded unscored not_scored pending",
}
_STATUS_OF = {word: status for status, words in _WORDS.items() for word in (status, *words.split())}


def status_of(word: object) -> str | None:
    """The status that a word of a server, a harness or a file means; None where it is not known.

    Case, spaces and hyphens do not count, nor does an enumeration's name before a dot
    (`FinishReason.MAX_TOKENS`).
    """
    if word is None:
        return None
    plain = re.sub(r"[\s-]+", "_", str(word).strip().lower())
    return _STATUS_OF.get(plain.rpartition(".")[2])


def response_status(status: str, text: str | None, error_class: str | None = None) -> str:
    """The status of a response by what its call came to.

    A reply of blanks alone is `empty`, an error whose class means a time limit is `timeout`.
    Ledgers of every version hold `ok` and `error` for the two.

    Args:
        status: `ok`, `truncated`, `refused` or `error`.
    """
    if status == "ok" and text is not None and not text.strip():
        return "empty"
    return "timeout" if status == "error" and status_of(error_class) == "timeout" else status
