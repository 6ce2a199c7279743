# SPDX-License-Identifier: Apache-2.0
"""The one-file web view: its data and its HTML. The page's program is in the source folder `viewer`."""
