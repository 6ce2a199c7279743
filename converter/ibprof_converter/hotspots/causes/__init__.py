# SPDX-License-Identifier: Apache-2.0
"""Why a link end is hot: what would have to be otherwise for it to be less so, tried out on the model."""
