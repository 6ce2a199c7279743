# SPDX-License-Identifier: Apache-2.0
"""Paths of the checkout, derived from the path of this file: the package is always installed editable."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"
