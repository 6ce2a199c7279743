# SPDX-License-Identifier: Apache-2.0
"""The one-file web view: what is put into it. The page's own program is in the folder `viewer` of the sources."""
