"""Which points of a scatter get a label, and on which side, so that no two overlap."""

from __future__ import annotations

from collections.abc import Sequence

Box = tuple[float, float, float, float]
#: Pixels: the mean width of a character at 12 px, the height of a line, and the sign.
_WIDE, _HIGH, _SIGN = 6.8, 13.0, 6.0
#: (anchor, dx, dy) in the order in which they are tried.
SIDES = (("left", 8.0, 0.0), ("right", -8.0, 0.0), ("left", 7.0, -12.0), ("left", 7.0, 12.0),
         ("right", -7.0, -12.0), ("right", -7.0, 12.0), ("center", 0.0, -14.0),
         ("center", 0.0, 14.0))  # fmt: skip


def place(
    points: Sequence[tuple[float, float, str]],
    width: float,
    height: float,
    *,
    blocked: Sequence[Box] = (),
) -> list[tuple[str, float, float] | None]:
    """For each (x, y, label) in pixels: (anchor, dx, dy), or None where there is no room.

    Earlier points choose first, so give the ones that matter most first. A label stays
    inside the frame and touches no sign, no other label and nothing `blocked`.
    """
    signs = [(x - _SIGN, y - _SIGN, x + _SIGN, y + _SIGN) for x, y, _ in points]
    taken: list[Box] = []
    found: list[tuple[str, float, float] | None] = []
    for k, (x, y, label) in enumerate(points):
        others = [box for j, box in enumerate(signs) if j != k]
        chosen = None
        for anchor, dx, dy in SIDES:
            box = _box(x + dx, y + dy, label, anchor)
            inside = box[0] >= 0 and box[2] <= width and box[1] >= -8 and box[3] <= height + 8
            if inside and not any(_touch(box, other) for other in (*taken, *others, *blocked)):
                taken.append(box)
                chosen = (anchor, dx, dy)
                break
        found.append(chosen)
    return found


def _box(x: float, y: float, label: str, anchor: str) -> Box:
    wide = _WIDE * len(label)
    left = x - {"left": 0.0, "center": wide / 2, "right": wide}[anchor]
    return (left, y - _HIGH / 2, left + wide, y + _HIGH / 2)


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
