"""The strict base of every recipe part: unknown keys are refused with a suggestion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from routeyard.schemas.errors import did_you_mean
from routeyard.schemas.text import visible

#: Bytes of a name: with what is put before and behind it, it still names a file.
LONGEST_NAME = 200


def _one_line(name: str) -> str:
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > LONGEST_NAME:
        raise ValueError(f"this name is {size} bytes long; a name has at most {LONGEST_NAME}")
    if not name.strip() or name != visible(name) or any(sign in name for sign in "\n\t"):
        raise ValueError("a name is one line of signs that can be seen")
    return name


#: A name that can be shown and be part of a file's name.
Name = Annotated[str, AfterValidator(_one_line)]
Share = Annotated[float, Field(ge=0, le=1)]

_CONSTANT = "is a constant now and no key: leave it out"
_THRESHOLD = f"{_CONSTANT}; a false finding can be waived under 'release.waivers'"
_METERING = (
    "constant_count", "min_answers", "token_slack", "latency_z", "latency_outliers",
    "latency_floor_s", "latency_min_outliers", "canary_drift", "usage_missing", "price_unknown",
    "tokens_per_word",
)  # fmt: skip
_PARAMETER = "is no key: write 'parameters: {{{}: …}}' for another value than {}"
_INCOMPLETE = "is no key: write 'incomplete: remove' to list rows without either in removals"
#: Keys that parts of a recipe no longer have → the sentence for those who write them.
REMOVED = {("Metering", key): _THRESHOLD for key in _METERING} | {
    ("Retry", "longest_wait_s"): f"{_CONSTANT} (60 s)",
    ("Retry", "longest_retry_after_s"): f"{_CONSTANT} (600 s)",
    ("Collect", "wire"): f"{_CONSTANT} (10 s to connect, 120 s of silence in the middle of an "
    "answer); 'deadline_s' bounds the whole call",
    ("Collect", "batch"): f"{_CONSTANT} (5,000 requests in a file, looked at every 30 s, 24 h)",
    ("Collect", "reask"): "is no key: give 'routeyard build' the option --reask",
    ("Collect", "reask_truncated"): "is no key: give 'routeyard build' --reask-truncated",
    ("Unanswered", "after"): f"{_CONSTANT} (6); 'routeyard build --reask unanswered' asks again",
    ("Informative", "rounds"): f"{_CONSTANT} (16)",
    ("Informative", "growth"): f"{_CONSTANT} (1.3)",
    ("Informative", "seed"): f"{_CONSTANT} (0)",
    ("Canary", "max_tokens"): f"{_CONSTANT} (64)",
    ("Search", "longest"): f"{_CONSTANT} (1,200 characters)",
    ("Embed", "batch_size"): f"{_CONSTANT} (8)",
    ("HiddenStates", "batch_size"): f"{_CONSTANT} (8)",
    ("HiddenStates", "max_length"): "is no key: prompts are cut at the model's positions only",
    ("Verifier", "top_p"): _PARAMETER.format("top_p", 0.7),
    ("Verifier", "temperature"): _PARAMETER.format("temperature", 0.1),
    ("Judge", "temperature"): _PARAMETER.format("temperature", 0),
    ("Judge", "seed"): _PARAMETER.format("seed", 0),
    ("Label", "trust"): "is no key: write it under 'default', which policies of tasks follow",
    ("Model", "price_changed"): "is no key: keep 'price_date' up to date",
    ("Release", "datasheet"): "is no key: write it into 'description' or 'known_issues'",
    ("Source", "kind"): "is no key: 'path' names local files, 'hub_id' a dataset of the hub",
    ("Source", "missing_question"): _INCOMPLETE,
    ("Source", "missing_reference"): _INCOMPLETE,
}


def once(names: Iterable[str], twice: str) -> None:
    """Refuse a name that is there twice; `twice` says so, with `{}` for the name.

    Raises:
        ValueError: a name is.
    """
    counts = Counter(names)
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        raise ValueError(twice.format(repr(repeated[0])))


class Strict(BaseModel):
    """A frozen model that refuses keys it does not know, and says its other faults as well."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        # An infinite budget would be no limit.
        allow_inf_nan=False,
        # A value in the wrong place may be a key.
        hide_input_in_errors=True,
        # The text below a key is its description.
        use_attribute_docstrings=True,
    )

    def but(self, **changes: Any) -> Self:
        """The same with other values of these keys, which are not checked again."""
        return self.model_copy(update=changes)

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        unknown = [k for k in data if k not in cls.model_fields] if isinstance(data, dict) else []
        if not unknown:
            return handler(data)
        faults = [_fault((str(key),), _not_a_key(cls, str(key))) for key in unknown]
        try:
            handler({key: value for key, value in data.items() if key in cls.model_fields})
        except ValidationError as error:
            faults += [
                InitErrorDetails(
                    type=PydanticCustomError(
                        one["type"],
                        "{text}",
                        {**one.get("ctx", {}), "text": one["msg"]},
                    ),
                    loc=one["loc"],
                    input=one.get("input"),
                )
                for one in error.errors(include_url=False)
            ]
        raise ValidationError.from_exception_data(cls.__name__, faults)


def _not_a_key(part: type[Strict], key: str) -> str:
    if said := REMOVED.get((part.__name__, key)):
        return f"{key!r} {said}"
    return f"unknown key {key!r}; {did_you_mean(key, part.model_fields)}"


def _fault(place: tuple[str, ...], text: str) -> InitErrorDetails:
    known = PydanticCustomError("unknown_key", "{text}", {"text": text})
    return InitErrorDetails(type=known, loc=place, input=None)
