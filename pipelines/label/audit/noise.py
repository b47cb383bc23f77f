"""How far doubtful labels could move a model's accuracy."""

from __future__ import annotations

import pyarrow as pa

from routeyard.pipelines.label.audit.questions import answer, query_ids


def intervals(labels: pa.Table, suspects: pa.Table | None = None) -> pa.Table:
    """Accuracy of each model with the interval that its doubtful labels leave open.

    A label is doubtful when it is contested, undecided, or rests on a suspect
    reference. The lower end counts every doubtful label as wrong, the upper end as
    right (worst-case bounds, Manski 1989): no assumption about the doubtful ones is
    made, and sampling error is not in it. Labels that a person decided are certain
    unless people were split.

    Args:
        labels: LABELS contract.
        suspects: `query_id` of questions whose reference is in doubt.

    Returns:
        model_id, n (labels of responses that exist), undecided, unreadable, doubtful,
        accuracy (over decided labels), accuracy_readable (over decided labels that
        are not `unreadable`), low, high (over n); sorted by model_id. Accuracies are
        null where nothing was decided.
    """
    return answer("intervals", labels=labels, suspects=query_ids(suspects))
