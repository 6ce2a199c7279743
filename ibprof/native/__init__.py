# SPDX-License-Identifier: Apache-2.0
"""Native parts of ibprof: libraries, headers, and the definitions in the headers."""
