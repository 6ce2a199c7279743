# SPDX-License-Identifier: Apache-2.0
"""Results of a study in a notebook."""

from __future__ import annotations

import json

from ibprof.text.notebook_html import render_html, render_table
from ibprof_converter.reports.result_html import join_parts, render_head, render_sentences
from ibprof_lab.simulation.study.study_results import StudyResults


@render_html.register
def render_study(results: StudyResults) -> str:
    """Return a study's results as HTML: slow-downs, and what limits them."""
    rows = ((name, json.dumps(value)) for name, value in results.conclusions.items())
    unsettled = (f"{count} simulations without a settled mean: {why}" for why, count in results.count_unsettled())
    return join_parts([
        render_head(f"{len(results.rows)} simulations"),
        render_table(("", "value"), rows),
        *render_sentences("not settled", unsettled),
        *render_sentences("note", results.notes),
    ])  # fmt: skip
