#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Six broadcasts between two ranks with two rails each, with UCX splitting each message and with one rail alone; leaves
# rails-2.ibprof and rails-1.ibprof, which know by region what each rail carried. Wants hosts with two rails of RoCE or
# InfiniBand; the guest of the tests has them:
#
#     python tests/vm/guest.py --folder out -- bash examples/rails/measured.sh $(ibprof lib) $PWD/bcast
#     ibprof matrix out/rails-2.ibprof --by port --region 'bcast 1'
set -eu
library=$1 bcast=$2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_WARN_UNUSED_ENV_VARS=n
export UCX_IB_GID_INDEX=1 UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_TLS=rc_verbs,ud_verbs,self
here=$PWD
cd /tmp # where memory can be mapped and shared
for rails in 2 1; do
    UCX_MAX_RNDV_RAILS=$rails IBPROF_OUTPUT=/tmp/rails-$rails.ibprof mpirun --oversubscribe --bind-to none --mca pml ucx --mca osc ucx \
        -x LD_PRELOAD="$library" -x UCX_NET_DEVICES=rail0a:1,rail1a:1 -n 1 "$bcast" 5000000 : \
        -x LD_PRELOAD="$library" -x UCX_NET_DEVICES=rail0b:1,rail1b:1 -n 1 "$bcast" 5000000
    cp -r /tmp/rails-$rails.ibprof "$here"
done
