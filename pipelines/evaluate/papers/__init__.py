"""What one paper measures of its own routers and no metric asks of every router.

`spectrum` is CSCR's, `judged` the confidence-driven router's.
"""

from __future__ import annotations
