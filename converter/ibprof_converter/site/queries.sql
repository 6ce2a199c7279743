-- SPDX-License-Identifier: Apache-2.0
-- Statements of site_queries.py, by name. {named FLOWS: COLUMNS} adds the nodes' names to flows by fabric and link;
-- {links of JOBS} is a row for each link of some jobs, with these names. {ports} has each port once, as $fabric names it.

-- named
SELECT d.rail, d.guid, d.port, d.gbps, coalesce(nullif(d.name, ''), d.guid) || ' port ' || d.port AS sender,
    coalesce(nullif(d.peer, ''), d.peer_guid) AS receiver, COLUMNS
FROM FLOWS JOIN directions d USING (fabric, link)

-- ports
SELECT DISTINCT ON (rail, guid, port) rail, guid, port, gbps, coalesce(nullif(name, ''), guid) || ' port ' || port AS sender,
    coalesce(nullif(peer, ''), peer_guid) AS receiver
FROM directions ORDER BY rail, guid, port, fabric <> $fabric, fabric

-- running
SELECT key, job, task, step, user, fabric, links, link_bytes, began, ended,
    greatest(date_diff('microsecond', began, ended) / 1e6, 1e-6) AS lasted_s, bin_s, bin_bytes
FROM jobs

-- loads
SELECT key, job, user, began, ended, fabric, unnest(links) AS link, unnest(link_bytes) AS bytes FROM jobs

-- lates
SELECT key, job, user, began, late.rank AS rank, late.host AS host, late.wait_s AS wait_s, late.share AS share
FROM (SELECT key, job, user, began, unnest(late) AS late FROM jobs)

-- program_lines
SELECT key, job, user, began, line.operation AS operation, line.site AS site, line.calls AS calls,
    line.time_s AS time_s, line.wait_s AS wait_s, line.transfer_s AS transfer_s, line.bytes AS bytes
FROM (SELECT key, job, user, began, unnest(lines) AS line FROM jobs)

-- day_links
SELECT fabric, link, sum(bytes)::DECIMAL(38, 0) AS bytes, count(*) AS jobs
FROM (SELECT fabric, unnest(links) AS link, unnest(link_bytes) AS bytes FROM read_parquet($file))
GROUP BY ALL ORDER BY fabric, link

-- day_hosts
WITH ran AS (SELECT host, count(*) AS jobs
             FROM (SELECT DISTINCT key, unnest(hosts) AS host FROM read_parquet($file)) GROUP BY host),
    late AS (SELECT host, count(DISTINCT key) AS late_jobs, sum(wait_s) AS wait_s
             FROM (SELECT key, unnest(late, recursive := true) FROM read_parquet($file)) GROUP BY host)
SELECT host, jobs, coalesce(late_jobs, 0) AS late_jobs, coalesce(wait_s, 0) AS wait_s
FROM ran LEFT JOIN late USING (host) ORDER BY host

-- list_jobs
SELECT key, job, task, step, name, user, partition, began, ended, finished, nodes, ranks, mpi_s, wait_s,
    transfer_s, bytes, verdict, cause
FROM jobs WHERE began >= $first AND began < $after AND ($user IS NULL OR user = $user)
ORDER BY began DESC, key LIMIT $top

-- load_at
WITH at_work AS (
    SELECT key, job, user, fabric, links, link_bytes,
        CASE WHEN bin_s > 0 AND list_sum(bin_bytes) > 0
            AND date_diff('microsecond', began, $at) / 1e6 < bin_s * len(bin_bytes)
        THEN bin_bytes[1 + floor(date_diff('microsecond', began, $at) / 1e6 / bin_s)::INT]
            / list_sum(bin_bytes) / bin_s
        ELSE 1 / lasted_s END AS per_s
    FROM running WHERE began <= $at AND ended > $at),
flows AS (SELECT key, job, user, fabric, unnest(links) AS link, unnest(link_bytes) * per_s AS bytes_per_s
    FROM at_work),
named AS ({named flows: key, job, user, bytes_per_s}),
ranked AS (SELECT *, sum(bytes_per_s) OVER (PARTITION BY rail, guid, port) AS total_per_s FROM named
    WHERE bytes_per_s > 0
        AND ($link IS NULL OR contains(sender, $link) OR contains(receiver, $link))),
chosen AS (SELECT *, dense_rank() OVER (ORDER BY total_per_s DESC, rail, guid, port) AS place FROM ranked)
SELECT sender, receiver, gbps, total_per_s, 8e-9 * total_per_s / gbps AS used, job, user, key, bytes_per_s
FROM chosen WHERE place <= $top ORDER BY place, bytes_per_s DESC, key

-- shared_with
WITH mine AS (SELECT * FROM running WHERE began >= $first AND began <= $last AND list_contains($keys, key)),
others AS (SELECT * FROM running r
    WHERE began < $until AND ended > $first AND NOT list_contains($keys, key)
        AND EXISTS (SELECT 1 FROM mine m WHERE r.began < m.ended AND r.ended > m.began)),
-- (materialised, or DuckDB joins the links of all jobs at the same time before it compares their ports)
my_links AS MATERIALIZED ({links of mine}), their_links AS MATERIALIZED ({links of others}),
shared AS (
    SELECT m.key AS of, t.key, t.job, t.user, greatest(m.began, t.began) AS since,
        least(m.ended, t.ended) AS until, m.sender, m.receiver, m.bytes AS own, t.bytes
    FROM my_links m JOIN their_links t USING (rail, guid, port)
    WHERE t.began < m.ended AND t.ended > m.began)
SELECT job, user, key, of, since, until, count(*) AS links, sum(bytes) AS bytes,
    sum(own) AS own_bytes, arg_max(sender, least(own, bytes)) AS most_shared
FROM shared GROUP BY ALL ORDER BY bytes DESC, key LIMIT $top

-- find_job
-- `job IN` is for the files' statistics: groups of rows without such a job are not read.
SELECT list(key) AS keys, min(began) AS first, max(began) AS last, max(ended) AS until
FROM (SELECT key, began, ended FROM jobs WHERE key = $job
      UNION ALL
      SELECT key, began, ended FROM jobs WHERE job IN ($job, $of_task, $of_step)
          AND (job = $job OR job || '_' || task = $job OR job || '.' || step = $job)
      UNION ALL  -- all tasks of an array
      SELECT key, began, ended FROM jobs WHERE job > $job || '_' AND job < $job || '_:')

-- find_bins
SELECT key, began, bin_s, bin_bytes, bin_mpi_s FROM jobs
WHERE began < $until AND ended >= $first AND bin_s > 0 AND len(bin_bytes) > 0 AND list_contains($keys, key)

-- average_day
WITH named AS ({named day_links: bytes, jobs}), ports AS ({ports}),
sums AS (SELECT rail, guid, port, sum(bytes) / $days AS bytes_a_day, sum(jobs) / $days AS jobs_a_day
    FROM named GROUP BY rail, guid, port)
SELECT sender, receiver, gbps, bytes_a_day, jobs_a_day, 8e-9 * bytes_a_day / 86400 / gbps AS used
FROM sums JOIN ports USING (rail, guid, port) ORDER BY bytes_a_day DESC, rail, guid, port LIMIT $top

-- find_gains
SELECT job, user, key, name, began, nodes, run_s, placement_gain_s AS gain_s,
    placement_gain_s / run_s AS share, nodes * placement_gain_s / 3600 AS node_hours
FROM jobs WHERE placement_gain_s > 0 AND began >= $first AND began < $after
ORDER BY node_hours DESC, key LIMIT $top

-- explain_counters
WITH there AS (
    SELECT fabric, links, link_bytes,
        date_diff('microsecond', greatest(began, $first), least(ended, $until)) / 1e6 / lasted_s AS part
    FROM running WHERE began < $until AND ended > $first),
sent AS (SELECT fabric, unnest(links) AS link, unnest(link_bytes) * part AS bytes FROM there),
named AS ({named sent: bytes}),
sums AS (SELECT guid, port, sum(bytes) AS bytes FROM named GROUP BY ALL), ports AS ({ports})
SELECT guid, port, sender, receiver, coalesce(bytes, 0) AS explained
FROM ports LEFT JOIN sums USING (guid, port)

-- measure_jobs
WITH there AS (SELECT * FROM jobs WHERE began < $until AND ended > $first),
ranked AS (
    SELECT *, row_number() OVER (ORDER BY nodes * date_diff('microsecond', began, ended) DESC, key) AS place FROM there)
SELECT job AS job_id, step, user, partition, name, verdict, cause, nodes, run_s, mpi_s, wait_s, transfer_s, bytes,
    line_rate_s, nodes * placement_gain_s AS gain_node_s
FROM ranked WHERE place <= $jobs ORDER BY place

-- measure_links
WITH there AS (
    SELECT key, job, user, fabric, links, link_bytes,
        date_diff('microsecond', greatest(began, $first), least(ended, $until)) / 1e6 / lasted_s AS part
    FROM running WHERE began < $until AND ended > $first),
sent AS (SELECT job, user, fabric, unnest(links) AS link, unnest(link_bytes) * part AS bytes FROM there),
named AS ({named sent: job, user, bytes}),
ports AS ({ports}),
of_jobs AS (SELECT rail, guid, port, job, user, sum(bytes) / $seconds AS per_s
    FROM named GROUP BY rail, guid, port, job, user),
ranked AS (SELECT *, sum(per_s) OVER link AS total, row_number() OVER (link ORDER BY per_s DESC, job) AS place
    FROM of_jobs WINDOW link AS (PARTITION BY rail, guid, port)),
chosen AS (SELECT *, dense_rank() OVER (ORDER BY total DESC, rail, guid, port) AS link_place FROM ranked)
SELECT rail, sender, receiver, CASE WHEN place <= $jobs THEN job ELSE $other END AS job_id,
    CASE WHEN place <= $jobs THEN user ELSE $other END AS user, sum(per_s) AS per_s
FROM chosen JOIN ports USING (rail, guid, port) WHERE link_place <= $links GROUP BY ALL ORDER BY max(link_place), min(place), per_s DESC

-- no_directions
SELECT ''::VARCHAR AS fabric, 0 AS link, 0 AS rail, '' AS guid, 0 AS port, '' AS name, '' AS peer_guid,
    0 AS peer_port, '' AS peer, 0.0::DOUBLE AS gbps, false AS between_switches WHERE false
