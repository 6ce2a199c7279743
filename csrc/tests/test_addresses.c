/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Peers by address. Each address has one number and one record, which shows its owner.
 */
#include "check.h"
#include "counting/addresses.h"
#include "recording/recording.h"
#include "recording_reader.h"

#include "ibprof_recording.h"

#include <stdint.h>
#include <string.h>

static void test_numbers_by_key(void)
{
    enum { KEYS = 5000 };
    struct ibp_peers peers = {0};

    CHECK(!ibp_peer_find(&peers, 1) && !ibp_peer_enter(&peers, 0));
    for (uint64_t key = 1; key <= KEYS; key++) {
        struct ibp_peer *peer = ibp_peer_enter(&peers, key << 12); /* like pointers */

        CHECK(peer && peer->key == key << 12 && !peer->number);
        peer->number = (uint32_t)key;
    }
    for (uint64_t key = 1; key <= KEYS; key++) CHECK(ibp_peer_enter(&peers, key << 12)->number == key);
    CHECK(!ibp_peer_find(&peers, 77));
    ibp_peers_clear(&peers);
    CHECK(!ibp_peer_find(&peers, 1 << 12) && ibp_peer_enter(&peers, 1 << 12)->number == 0);
}

static const struct ibp_address *record_of(uint32_t number)
{
    CHECK(number != IBP_PEER_UNKNOWN && number & IBP_PEER_ADDRESS);
    return reader_record(IBP_SEGMENT_ADDRESSES, (int)(number & ~IBP_PEER_ADDRESS));
}

static void test_own_and_others(void)
{
    const char *folder = make_test_folder();
    char why[256] = "", first[400], second[400];
    const uint64_t own = 11, peer = 22;
    uint32_t number, one, other;

    number = ibp_address_of_own(&own, sizeof own);
    CHECK(ibp_address_of_own(&own, sizeof own) == number && ibp_address_is_own(number));
    CHECK(ibp_address_of_peer(&peer, sizeof peer) == IBP_PEER_UNKNOWN); /* nothing is recorded yet */
    CHECK(ibp_recording_open(folder, why, sizeof why));
    ibp_addresses_record();
    reader_open(folder);
    CHECK(reader_count(IBP_SEGMENT_ADDRESSES) == 1 && record_of(number)->own);
    CHECK(!memcmp(record_of(number)->address, &own, sizeof own));
    CHECK(ibp_address_of_peer(&own, sizeof own) == number); /* this process as a peer */

    one = ibp_address_of_peer(&peer, sizeof peer);
    CHECK(one != number && ibp_address_of_peer(&peer, sizeof peer) == one && !ibp_address_is_own(one));
    CHECK(!record_of(one)->own && record_of(one)->bytes == sizeof peer);
    CHECK(!ibp_address_is_own(IBP_PEER_UNKNOWN) && !ibp_address_is_own(0)); /* 0 is a rank */

    /* Two addresses differ only after the part that fits into a record. */
    memset(first, 'x', sizeof first);
    memset(second, 'x', sizeof second);
    second[sizeof second - 1] = 'y';
    one = ibp_address_of_peer(first, sizeof first);
    other = ibp_address_of_peer(second, sizeof second);
    CHECK(one != other && ibp_address_of_peer(first, sizeof first) == one);
    CHECK(record_of(one)->bytes == sizeof first);
    CHECK(memcmp(record_of(one)->address, record_of(other)->address, sizeof record_of(one)->address));
    CHECK(reader_count(IBP_SEGMENT_ADDRESSES) == 4);
}

int main(void)
{
    test_numbers_by_key();
    test_own_and_others();
    return 0;
}
