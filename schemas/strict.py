"""The strict base of every recipe part: unknown keys are refused with a suggestion."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
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

_CONSTANT = "is a constant now and no key: leave it out"
_THRESHOLD = f"{_CONSTANT}; a false finding can be waived under 'release.waivers'"
_METERING = (
    "constant_count", "min_answers", "token_slack", "latency_z", "latency_outliers",
    "latency_floor_s", "latency_min_outliers", "canary_drift",
)  # fmt: skip
#: Keys that parts of a recipe no longer have → the sentence for those who write them.
REMOVED = {("Metering", key): _THRESHOLD for key in _METERING} | {
    ("Retry", "longest_retry_after_s"): f"{_CONSTANT} (600 s)",
    ("Wire", "connect_s"): f"{_CONSTANT} (10 s); 'collect.deadline_s' bounds the whole call",
    ("BatchSettings", "completion_window"): f"{_CONSTANT} (24h)",
    ("Embed", "batch_size"): f"{_CONSTANT} (8)",
    ("HiddenStates", "max_length"): "is no key: prompts are cut at the model's positions only",
    ("Verifier", "top_p"): "is no key (0.7): write 'parameters: {top_p: …}' for another value",
}


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
