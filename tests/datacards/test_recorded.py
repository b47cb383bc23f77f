"""A release of recorded answers does not pass its prompts off as sent."""

from __future__ import annotations

from routeyard.datacards.card import recorded_words

COLLECT = {"provider": "recorded"}


def words(sources: list[dict], **figures: object) -> str:
    recipe = {"collect": COLLECT, "sources": sources}
    return " ".join(recorded_words(recipe, {"collect": figures}))


def test_a_pool_that_was_asked_needs_no_words() -> None:
    assert recorded_words({"collect": {"provider": "openai"}}, {}) == []
    assert recorded_words({}, {}) == []


def test_what_was_sent_is_not_known() -> None:
    said = words([{"name": "sums", "fields": {"question": "q"}}], notes=["r.jsonl: 3 rows …"])
    assert "nothing was sent for this release" in said
    assert "What the models were sent is not known" in said
    assert "`queries.prompt` is what Routeyard would send, no record of what was sent" in said
    assert said.endswith("r.jsonl: 3 rows ….")


def test_a_source_that_states_its_prompt_is_named() -> None:
    stated = {"name": "sums", "fields": {"question": "q", "prompt": "p"}}
    assert "is the text that sums states, no record" in words([stated])
    both = words([stated, {"name": "more", "fields": None}])
    assert "is the text that sums states, else what Routeyard would send" in both


def test_recorded_prompts_are_compared_and_not_kept() -> None:
    said = words([], recorded=[{"prompts": 1200}, {"prompts": 34}])
    assert "states what was sent for 1,234 answers; it was compared" in said


def test_card_and_front_page_say_it(write) -> None:
    recipe = {"collect": COLLECT, "sources": [{"name": "sums", "fields": None}]}
    card = (write(recipe=recipe).path / "README.md").read_text()
    assert "## Where the answers come from" in card
    assert "nothing was sent for this release" in card
    assert (
        "Where the answers come from"
        not in (write(recipe={"version": "2.0.0"}).path / "README.md").read_text()
    )
