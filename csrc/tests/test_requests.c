/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 */
#include "check.h"
#include "counting/requests.h"

static char address[100000];

static void remember(char *at, enum ibp_request_role role, uint64_t bytes)
{
    ibp_request_remember(&(struct ibp_request){.address = at, .role = (uint8_t)role, .bytes = bytes});
}

static uint64_t visited, visited_bytes;

static void visit(const struct ibp_request *request)
{
    visited++;
    visited_bytes += request->bytes;
}

int main(void)
{
    ibp_requests_visit(visit);
    CHECK(!visited);
    CHECK(!ibp_request_find(address));
    ibp_request_forget(address); /* has no effect */
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < sizeof address; i++) remember(address + i, IBP_REQUEST_SEND, i);
        for (uint64_t i = 0; i < sizeof address; i++) CHECK(ibp_request_find(address + i)->bytes == i);
        for (uint64_t i = 0; i < sizeof address; i += 2) ibp_request_forget(address + i);
        for (uint64_t i = 0; i < sizeof address; i++) CHECK(!ibp_request_find(address + i) == !(i % 2));
    }
    ibp_requests_visit(visit); /* the sum of odd numbers up to N is (N / 2)^2 */
    CHECK(visited == sizeof address / 2 && visited_bytes == sizeof address / 2 * (sizeof address / 2));
    remember(address + 1, IBP_REQUEST_RECEIVE, 0); /* another request at the same address */
    CHECK(ibp_request_find(address + 1)->role == IBP_REQUEST_RECEIVE);
    remember(NULL, IBP_REQUEST_SEND, 1);
    return 0;
}
