#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: with LMC 1, a host has two LIDs, and OpenSM still spreads the hosts' first LIDs over all parallel cables.
# Seen: sssp, dfsssp and nue assign the two LIDs of a host to two parallel cables in turn. With two cables between each pair of
#   switches, all first LIDs use the first cable. MPI libraries use the first LID by default, so half of the cables carry nothing.
#   minhop and updn spread the first LIDs over all cables. With LMC 0, all five engines do.
# Version: OpenSM 3.3.23 (Debian 12), on ibsim 0.10.
# Matters: a fabric loses half of its uplinks if an administrator sets LMC 1 for multipath. Only the tables show the loss.
. "$(dirname "$0")/lib.sh"
. "$findings/subnet.sh"

write_fat_tree >fabric.net
for engine in minhop updn sssp dfsssp nue; do
    route -R $engine
    expect "uplinks of first LIDs, $engine, LMC 0" "$(ports_used)" '11 x1, 12 x1, 13 x1, 14 x1'
done
for engine in minhop updn; do
    route -R $engine -l 1
    expect "uplinks of first LIDs, $engine, LMC 1" "$(ports_used)" '11 x1, 12 x1, 13 x1, 14 x1'
done
for engine in sssp dfsssp nue; do
    route -R $engine -l 1
    expect "uplinks of first LIDs, $engine, LMC 1" "$(ports_used)" '11 x2, 13 x2'
done
