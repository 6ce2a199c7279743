# SPDX-License-Identifier: Apache-2.0
"""Where ranks would load the links between switches least, on a fabric with its real tables."""
