# SPDX-License-Identifier: Apache-2.0
"""ibprof_converter: turns profiles and fabrics into link loads, pictures and reports."""
