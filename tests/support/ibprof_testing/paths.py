# SPDX-License-Identifier: Apache-2.0
"""Paths of the checkout. The package is always installed editable, so they follow from the path of this file."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"
