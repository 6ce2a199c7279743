# SPDX-License-Identifier: Apache-2.0
"""Spack recipe: copy it to `packages/ibprof/package.py` of a repository of packages, then `spack install ibprof`.

`git` names the checkout, or the address that a site takes it from.
"""

from spack.package import *


class Ibprof(PythonPackage):
    """Which network links an MPI job loads, who loads them, and what should be changed."""

    git = "file:///opt/src/ibprof"

    license("Apache-2.0")

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0")

    variant("lab", default=False, description="pictures, GraphML and the laboratory: delays, inference, simulation")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("py-cffi@1.15:", type=("build", "run"))
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("py-pyyaml@6:", type="run")
    depends_on("py-rich@13:", type="run")
    depends_on("py-matplotlib@3.6:", type="run", when="+lab")
    depends_on("py-netcdf4@1.6:", type="run", when="+lab")
    depends_on("py-networkx@3:", type="run", when="+lab")
    depends_on("py-numexpr@2.8.5:", type="run", when="+lab")
    depends_on("py-scikit-learn@1.2:", type="run", when="+lab")
    depends_on("py-scipy@1.10:", type="run", when="+lab")
    depends_on("py-threadpoolctl@3:", type="run", when="+lab")
