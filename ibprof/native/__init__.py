# SPDX-License-Identifier: Apache-2.0
"""The parts of ibprof that are not Python: libraries, headers, and what the headers define."""
