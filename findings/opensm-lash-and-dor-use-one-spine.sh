#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: lash finds shortest paths on any topology, and so does dor on a topology that is no mesh. On a fat tree, both spread the
#   destinations over the spines, as minhop does.
# Seen: both send all traffic of a leaf to one spine: lash over one of the two cables to this spine, dor over both cables. The other
#   spine is idle.
# Version: OpenSM 3.3.23 (Debian 12), on ibsim 0.10.
# Matters: "topology-agnostic" means that an engine avoids deadlocks on any topology; it does not mean that the engine spreads load.
. "$(dirname "$0")/lib.sh"
. "$findings/subnet.sh"

write_fat_tree >fabric.net
route -R minhop
expect 'uplinks, minhop' "$(ports_used)" '11 x1, 12 x1, 13 x1, 14 x1'
route -R lash
expect 'uplinks, lash' "$engine: $(ports_used)" 'lash: 11 x4'
route -R dor
expect 'uplinks, dor' "$engine: $(ports_used)" 'dor: 11 x2, 12 x2'
