/* SPDX-License-Identifier: Apache-2.0
 * Copyright The ibprof developers
 *
 * Read the links of `ibdiagnet.lst` and `opensm-subnet.lst`. A node description may contain field separators, so each
 * possible end of the description is tried. For an invalid line, the reader reports the first attempt's mismatch.
 */
#include "digits.h"
#include "ibprof_kernels/text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A description has at most 64 bytes. LONGEST_NAME is larger than 64, because escaped characters need several bytes.
 * LONGEST_NAME also limits the time to read a malicious line. */
enum { DESCRIPTION_BYTES = 64, LONGEST_NAME = 256, UNPRINTED_LANES = 2, SPEED_BYTES = 8 };

struct end {
    uint64_t system_guid, node_guid, port_guid, ports, lid, port;
    const uint8_t *name;
    size_t name_bytes;
    uint8_t kind;
};

struct line {
    const uint8_t *stop;
    struct end end[2];
    uint64_t lanes, speed;
    double gbps;
    bool active;
    /* Number of descriptions that were followed by a valid field, so that their end is certain. */
    int ends;
    /* The first invalid field. */
    const uint8_t *mismatch;
    const char *expected;
};

/* Skip a word. Inline, so that a comparison with a constant word needs only a few instructions. */
static inline __attribute__((always_inline)) bool skip(const struct line *line, const uint8_t **at, const char *word)
{
    size_t bytes = strlen(word);
    if ((size_t)(line->stop - *at) < bytes || memcmp(*at, word, bytes)) return false;
    *at += bytes;
    return true;
}

static bool read_hex(const struct line *line, const uint8_t **at, int least, int most, uint64_t *number)
{
    const uint8_t *begin = *at, *digit = begin;
    const uint8_t *stop = line->stop - begin < most ? line->stop : begin + most;
    uint64_t sum = 0;
    for (; digit < stop && digit_value[*digit]; digit++) sum = sum << 4 | (digit_value[*digit] - 1u);
    *number = sum;
    *at = digit;
    return digit - begin >= least;
}

/* Read a decimal number with a maximum number of digits before and after the point. */
static bool read_decimal(const struct line *line, const uint8_t **at, int most, int most_behind, double *number)
{
    double sum = 0, unit = 1;
    const uint8_t *begin = *at;
    for (; *at < line->stop && *at - begin < most && **at >= '0' && **at <= '9'; ++*at) sum = sum * 10 + (**at - '0');
    if (*at == begin) return false;
    if (line->stop - *at > 1 && **at == '.' && (*at)[1] >= '0' && (*at)[1] <= '9')
        for (++*at; *at < line->stop && most_behind-- && **at >= '0' && **at <= '9'; ++*at, unit *= 10)
            sum = sum * 10 + (**at - '0');
    /* `sum` and `unit` are integers below 2^53, so only the quotient is rounded. */
    *number = sum / unit;
    return true;
}

static bool read_kind(const struct line *line, const uint8_t **at, uint8_t *kind)
{
    if (skip(line, at, "CA"))
        *kind = IBP_NODE_CA;
    else if (skip(line, at, "SW"))
        *kind = IBP_NODE_SWITCH;
    else if (skip(line, at, "RTR") || skip(line, at, "RT") || skip(line, at, "Rt"))
        *kind = IBP_NODE_ROUTER;
    else
        return false;
    skip(line, at, "-SM");
    return skip(line, at, " ");
}

static bool read_lid(const struct line *line, const uint8_t **at, uint64_t *lid)
{
    *lid = 0;
    return skip(line, at, " ") || skip(line, at, "0 ") || (read_hex(line, at, 4, 4, lid) && skip(line, at, " "));
}

static bool read_lanes(const struct line *line, const uint8_t **at, uint64_t *lanes)
{
    static const struct {
        const char *text;
        uint64_t lanes;
    } widths[] = {{"?x", 0}, {"?", 0}, {"1x", 1}, {"2x", 2}, {"4x", 4}, {"8x", 8}, {"12x", 12}};

    /* default if no width matches, because ibdiagnet 1.5.7 prints no width for links with 2 lanes */
    *lanes = UNPRINTED_LANES;
    if (!skip(line, at, " PHY=")) return false;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (skip(line, at, widths[i].text)) {
            *lanes = widths[i].lanes;
            break;
        }
    return true;
}

static bool read_state(const struct line *line, const uint8_t **at, bool *active)
{
    if (!skip(line, at, " LOG=") || line->stop - *at < 3) return false;
    for (int i = 0; i < 3; i++)
        if ((*at)[i] < 'A' || (*at)[i] > 'Z') return false;
    *active = !memcmp(*at, "ACT", 3);
    *at += 3;
    return true;
}

static bool read_speed(const struct line *line, const uint8_t **at, uint64_t *speed)
{
    double number;
    if (!skip(line, at, " SPD=")) return false;
    const uint8_t *begin = *at;
    if (!read_decimal(line, at, 4, 3, &number) && !skip(line, at, "FDR10") && !skip(line, at, "EDR20") &&
        !skip(line, at, "?"))
        return false;
    *speed = 0;
    memcpy(speed, begin, (size_t)(*at - begin));
    return true;
}

/* Read the measured rate that ibprof may have added at the end of a line. */
static void read_rate(const struct line *line, const uint8_t **at, double *gbps)
{
    const uint8_t *behind = *at;
    if (!skip(line, &behind, " GBPS=") || !read_decimal(line, &behind, 6, 9, gbps))
        *gbps = NAN;
    else
        *at = behind;
}

static bool is_blank(const uint8_t *at, const uint8_t *stop)
{
    while (at < stop && (*at == ' ' || (*at >= '\t' && *at <= '\r'))) at++;
    return at == stop;
}

static bool mismatch(struct line *line, const uint8_t *at, const char *expected)
{
    if (!line->mismatch) {
        line->mismatch = at;
        line->expected = expected;
    }
    return false;
}

/* Read a field at `at`. If the field is invalid, return from the enclosing function. */
#define READ(expected, condition)                                                                                      \
    do {                                                                                                               \
        const uint8_t *field = at;                                                                                     \
        if (!(condition)) return mismatch(line, field, expected);                                                      \
    } while (0)

static bool read_rates(struct line *line, const uint8_t *at)
{
    READ("PHY=, a width", read_lanes(line, &at, &line->lanes));
    line->ends = 2;
    READ("LOG=, a state", read_state(line, &at, &line->active));
    READ("SPD=, a speed", read_speed(line, &at, &line->speed));
    read_rate(line, &at, &line->gbps);
    READ("the end of the line", is_blank(at, line->stop));
    return true;
}

static bool read_end(struct line *line, const uint8_t *at, int number);

/* Read the fields after the description of a node. */
static bool read_address(struct line *line, const uint8_t *at, int number)
{
    struct end *end = &line->end[number];

    READ("a LID, 4 hex digits or none", read_lid(line, &at, &end->lid));
    READ("PN:, 2 hex digits", skip(line, &at, "PN:") && read_hex(line, &at, 1, 2, &end->port) && skip(line, &at, " }"));
    if (number) return read_rates(line, at);
    READ("a second end", skip(line, &at, " "));
    return read_end(line, at, 1);
}

static bool read_end(struct line *line, const uint8_t *at, int number)
{
    struct end *end = &line->end[number];
    uint64_t unused;

#define NUMBER(name, least, most, to)                                                                                  \
    (skip(line, &at, name) && read_hex(line, &at, least, most, to) && skip(line, &at, " "))
    READ("an end, `{`", skip(line, &at, "{ "));
    READ("type CA, SW or Rt", read_kind(line, &at, &end->kind));
    line->ends = number;
    READ("Ports:, 2 hex digits", NUMBER("Ports:", 1, 2, &end->ports));
    READ("SystemGUID:, 16 hex digits", NUMBER("SystemGUID:", 16, 16, &end->system_guid));
    READ("NodeGUID:, 16 hex digits", NUMBER("NodeGUID:", 16, 16, &end->node_guid));
    READ("PortGUID:, 16 hex digits", NUMBER("PortGUID:", 16, 16, &end->port_guid));
    /* In lists that scripts generate from UFM's links, unknown numbers are a single 0. */
    READ("VenID:, up to 8 hex digits", NUMBER("VenID:", 1, 8, &unused));
    READ("DevID:, up to 8 hex digits", NUMBER("DevID:", 1, 8, &unused));
    READ("Rev:, up to 8 hex digits", NUMBER("Rev:", 1, 8, &unused));
#undef NUMBER
    const uint8_t *field = at;
    bool has_end = false;
    if (skip(line, &at, "{"))
        for (end->name = at; at <= line->stop && at - end->name <= LONGEST_NAME; at++) {
            const uint8_t *behind = at;
            if (!skip(line, &behind, "} LID:")) continue;
            /* The text is longer than a description, and already contained a possible end of a description. So the file
             * lacks a line break. */
            if (has_end && at - end->name > DESCRIPTION_BYTES) break;
            has_end = true;
            end->name_bytes = (size_t)(at - end->name);
            if (read_address(line, behind, number)) return true;
            if (line->ends > number) break;
        }
    /* Some `.lst` files have no node descriptions. */
    at = field;
    end->name = at;
    if (skip(line, &at, "LID:") && read_address(line, at, number)) return true;
    return mismatch(line, field, "{description} LID:");
}
#undef READ

/* Return the index of a name in `names`. A repeated name has the index of its first occurrence. */
static int32_t number_name(const uint8_t *text, struct ibp_lst *lst, const struct end *end)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < end->name_bytes; i++) hash = (hash ^ end->name[i]) * 1099511628211u;
    for (uint64_t i = hash ^ hash >> 32;; i++) {
        uint32_t *slot = &lst->slot[i & (lst->slots - 1)];
        if (!*slot) {
            uint64_t begin = (uint64_t)(end->name - text);
            lst->names[lst->name_count++] = (struct ibp_span){begin, begin + end->name_bytes};
            *slot = (uint32_t)lst->name_count;
        }
        const struct ibp_span *known = &lst->names[*slot - 1];
        if (known->end - known->begin == end->name_bytes && !memcmp(text + known->begin, end->name, end->name_bytes))
            return (int32_t)(*slot - 1);
    }
}

static void keep(const uint8_t *text, struct ibp_lst *lst, const struct line *line)
{
    uint64_t link = lst->links++;

    for (uint64_t i = 0; i < 2; i++) {
        const struct end *end = &line->end[i];
        uint64_t to = 2 * link + i;
        lst->system_guid[to] = end->system_guid;
        lst->node_guid[to] = end->node_guid;
        lst->port_guid[to] = end->port_guid;
        lst->name[to] = number_name(text, lst, end);
        lst->lid[to] = (uint16_t)end->lid;
        lst->kind[to] = end->kind;
        lst->ports[to] = (uint8_t)end->ports;
        lst->port[to] = (uint8_t)end->port;
    }
    lst->line[link] = lst->lines;
    lst->speed[link] = line->speed;
    lst->gbps[link] = line->gbps;
    lst->lanes[link] = (uint8_t)line->lanes;
    lst->active[link] = line->active;
}

int ibp_read_lst(const uint8_t *text, uint64_t size, struct ibp_lst *lst)
{
    while (lst->at < size) {
        const uint8_t *begin = text + lst->at;
        const uint8_t *stop = memchr(begin, '\n', size - lst->at);
        if (!stop) stop = text + size;
        lst->at = (uint64_t)(stop - text) + 1;
        lst->lines++;
        if (*begin == '#' || is_blank(begin, stop)) continue;
        struct line line = {.stop = stop};
        if (read_end(&line, begin, 0)) {
            keep(text, lst, &line);
            continue;
        }
        lst->begin = (uint64_t)(begin - text);
        lst->end = (uint64_t)(stop - text);
        lst->mismatch = (uint64_t)(line.mismatch - text);
        lst->expected = line.expected;
        return 1;
    }
    return 0;
}
