# SPDX-License-Identifier: Apache-2.0
"""The store of a site (Parquet files with summaries of jobs, one per day), and questions about all its jobs."""

from ibprof.errors import MissingToolError

try:
    import duckdb  # noqa: F401
    import pyarrow  # noqa: F401
except ImportError:
    raise MissingToolError("the site's store needs DuckDB and pyarrow: pip install 'ibprof[site]'") from None
