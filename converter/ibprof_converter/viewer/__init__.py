# SPDX-License-Identifier: Apache-2.0
"""The one-file web view: its data and its HTML. The program of the page is in the source folder `viewer`."""
