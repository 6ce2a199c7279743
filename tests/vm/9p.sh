# SPDX-License-Identifier: Apache-2.0
# The command of the guest: an MPI program records to a 9P mount, with each kind of cache that the client has.
#
#     9p.sh LIBRARY RANKS MPIRUN PROGRAM CACHE...
#
# Writes CACHE.{out,err,status}, and the recording to share/CACHE.ibprof; node/CACHE lists the files left on the node.
set -eu
library=$1 ranks=$2 mpirun=$3 program=$4
shift 4
left=$PWD

own=$(mktemp -d) # the machine's /tmp is seen here, with any name in it
mkdir -p /mnt/share "$own/node" node
for cache in "$@"; do
    mount -t 9p -o "rw,trans=virtio,version=9p2000.L,msize=512000,cache=$cache" share /mnt/share
    status=0
    (cd "$own" && "$mpirun" -n "$ranks" env LD_PRELOAD="$library" TMPDIR="$own/node" IBPROF_OUTPUT="/mnt/share/$cache.ibprof" \
        "$program" end) >"$left/$cache.out" 2>"$left/$cache.err" || status=$?
    echo $status >"$left/$cache.status"
    ls "$own"/node/ibprof-* >"$left/node/$cache" 2>&1 || true
    umount /mnt/share
done
