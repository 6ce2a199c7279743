-- SPDX-License-Identifier: Apache-2.0
-- Rows and questions of benchmarks/site.py in SQLite.

-- schema
CREATE TABLE jobs (id INTEGER PRIMARY KEY, key TEXT UNIQUE, job TEXT, user TEXT, began REAL, ended REAL, nodes INTEGER,
    run_s REAL, gain_s REAL, fabric TEXT);
CREATE TABLE links (id INTEGER, link INTEGER, bytes INTEGER, PRIMARY KEY (id, link)) WITHOUT ROWID;
CREATE TABLE hosts (id INTEGER, host TEXT, late INTEGER, PRIMARY KEY (id, host)) WITHOUT ROWID;
CREATE INDEX began ON jobs (began);

-- load
SELECT link, sum(bytes / (ended - began)) AS total FROM jobs JOIN links USING (id)
    WHERE began BETWEEN :least AND :at AND ended > :at GROUP BY link ORDER BY total DESC LIMIT :top

-- shared
SELECT o.key, count(*), sum(l.bytes) AS total FROM jobs j
    JOIN jobs o ON o.began BETWEEN j.began - 21600 AND j.ended AND o.began < j.ended AND o.ended > j.began
        AND o.id != j.id
    JOIN links l ON l.id = o.id JOIN links m ON m.id = j.id AND m.link = l.link
    WHERE j.job = :job GROUP BY o.id ORDER BY total DESC, o.key LIMIT :top

-- average
SELECT link, sum(bytes) AS total FROM links GROUP BY link ORDER BY total DESC LIMIT :top

-- gains
SELECT key, nodes * gain_s / 3600 AS hours FROM jobs WHERE gain_s > 0
    ORDER BY hours DESC, key LIMIT :top

-- slow_hosts
SELECT host, count(*), sum(late) FROM hosts GROUP BY host

-- jobs
SELECT key FROM jobs WHERE user = 'user7' ORDER BY began DESC, key LIMIT :top
