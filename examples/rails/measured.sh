#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Six broadcasts over two rails: split by UCX, over one rail alone, and over the rails in turn. Writes split.ibprof,
# first.ibprof and in-turn.ibprof, which contain each rail's bytes by region. Requires a host with two rails of RoCE or
# InfiniBand, and both ports of each link; the tests' guest has them:
#
#     .venv-dev/bin/python -m ibprof_testing.guest --folder out -- \
#         bash $PWD/examples/rails/measured.sh $(ibprof lib) $PWD/bcast
#     ibprof matrix out/split.ibprof --by port --region 'bcast 1'
set -eu
library=$1 bcast=$2 bytes=${3:-5000000}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_WARN_UNUSED_ENV_VARS=n
export UCX_IB_GID_INDEX=1 UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_TLS=rc_verbs,ud_verbs,self
here=$PWD
cd "$(mktemp -d)" # a file system whose files can be mapped and shared

recorded() { # NAME ARGUMENT-OF-MPIRUN...
    name=$1
    shift
    IBPROF_OUTPUT=$PWD/$name.ibprof mpirun --oversubscribe --bind-to none --mca pml ucx --mca osc ucx "$@"
    cp -r "$name.ibprof" "$here"
}
root=(-n 1 -x UCX_NET_DEVICES=rail0a:1,rail1a:1 -x LD_PRELOAD="$library" "$bcast" "$bytes")
both=(-n 1 -x UCX_NET_DEVICES=rail0b:1,rail1b:1 -x LD_PRELOAD="$library" "$bcast" "$bytes")
UCX_MAX_RNDV_RAILS=2 recorded split "${root[@]}" : "${both[@]}"
UCX_MAX_RNDV_RAILS=1 recorded first "${root[@]}" : "${both[@]}"

# No MPI library here alternates between rails. So the root uses both adapters, and each receiver uses one of them. An
# adapter reaches only adapters on its own rail, so the two receivers are connected by shared memory.
export UCX_IB_ROCE_LOCAL_SUBNET=y
alone() { # DEVICE
    other=(-n 1 -x UCX_TLS="$UCX_TLS,sm" -x UCX_NET_DEVICES="$1:1" -x LD_PRELOAD="$library" "$bcast" "$bytes" in-turn)
}
alone rail0b && first=("${other[@]}")
alone rail1b && second=("${other[@]}")
recorded in-turn "${root[@]}" in-turn : "${first[@]}" : "${second[@]}"
