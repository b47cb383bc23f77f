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
        faults = [
            _fault(
                (str(key),), f"unknown key {str(key)!r}; {did_you_mean(str(key), cls.model_fields)}"
            )
            for key in unknown
        ]
        try:
            handler({key: value for key, value in data.items() if key in cls.model_fields})
        except ValidationError as error:
            faults += [
                InitErrorDetails(
                    type=PydanticCustomError(
                        item["type"],
                        "{text}",
                        {**item.get("ctx", {}), "text": item["msg"]},
                    ),
                    loc=item["loc"],
                    input=item.get("input"),
                )
                for item in error.errors(include_url=False)
            ]
        raise ValidationError.from_exception_data(cls.__name__, faults)


def _fault(place: tuple[str, ...], text: str) -> InitErrorDetails:
    known = PydanticCustomError("unknown_key", "{text}", {"text": text})
    return InitErrorDetails(type=known, loc=place, input=None)
