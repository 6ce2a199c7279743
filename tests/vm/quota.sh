# SPDX-License-Identifier: Apache-2.0
# What is run in the guest: MPI programs of a user with a quota on an ext4 file system that has plenty of room.
#
#     quota.sh LIBRARY RANKS MODES (NAME MPIRUN PROGRAM)...
#
# Each runs twice and leaves NAME-HOW.{out,err,status} and its recording. HOW is `before`: the user has all that is allowed
# already; or `meanwhile`: what is left does for a part of the recording.
set -eu
library=$1 ranks=$2 modes=$3
shift 3
left=$PWD/left
user=nobody

mkdir "$left" /tmp/disk
truncate --size 64M /tmp/image
mkfs.ext4 -q -O quota /tmp/image
mount -o loop,usrquota /tmp/image /tmp/disk
mkdir -m 1777 /tmp/disk/theirs /tmp/user # the latter for what launchers write
install -m 755 "$library" /tmp/libibprof.so

as_user() {
    setpriv --reuid=$user --regid=nogroup --clear-groups env HOME=/tmp/user TMPDIR=/tmp/user "$@"
}

fill() { # FILE: until no more is allowed
    as_user dd if=/dev/zero of="$1" bs=1k count=32k 2>&1 | grep -q 'Disk quota exceeded'
}

run() { # NAME HOW MPIRUN PROGRAM
    status=0
    # shellcheck disable=SC2086  # modes are words
    (cd /tmp/user && as_user "$3" -n "$ranks" env LD_PRELOAD=/tmp/libibprof.so IBPROF_OUTPUT="/tmp/disk/theirs/$1-$2.ibprof" \
        "$4" $modes) >"$left/$1-$2.out" 2>"$left/$1-$2.err" || status=$?
    echo $status >"$left/$1-$2.status"
}

setquota -u $user 0 300 0 0 /tmp/disk # KiB
while [ $# -gt 0 ]; do
    name=$1 mpirun=$2
    install -m 755 "$3" /tmp/user/program
    shift 3
    run "$name" meanwhile "$mpirun" /tmp/user/program
    cp -r "/tmp/disk/theirs/$name-meanwhile.ibprof" "$left"
    rm -r "/tmp/disk/theirs/$name-meanwhile.ibprof"
    fill /tmp/disk/theirs/more
    run "$name" before "$mpirun" /tmp/user/program
    rm -rf /tmp/disk/theirs/*
done
df --output=avail -k /tmp/disk | tail -n 1 >"$left/room"
