-- Version 1 of the record. Every row of the tables in the first part is a
-- record: numbered with all others in one sequence, and never changed. Times
-- are microseconds since 1970, UTC. An absent value is NULL.

CREATE TABLE decisions (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  session TEXT, agent TEXT, user TEXT, model TEXT, cwd TEXT,
  pid INTEGER, uid INTEGER,
  stage TEXT NOT NULL, tool TEXT, call_id TEXT,
  digest TEXT,              -- SHA-256 of what was judged last, before masking
  action TEXT NOT NULL,     -- what the agent was answered; allow or deny at approve_tool
  reason TEXT, decided_by TEXT, permission TEXT,
  approved INTEGER, approval_reason TEXT, approved_by TEXT,
  trail TEXT,               -- JSON: every hook's turn with its duration
  degraded TEXT, warnings TEXT, changed TEXT, -- JSON
  value_before TEXT, value_after TEXT,        -- JSON: what changed, when the config wants it
  params TEXT,              -- JSON: what the stage was asked with, masked
  params_bytes INTEGER,     -- length of the params when something was left out
  masked INTEGER,           -- 1: something in the params was masked
  generation INTEGER, duration_us INTEGER,
  dry_run INTEGER,
  undelivered INTEGER,      -- 1: the agent got no answer
  unrecorded INTEGER,       -- 1: the answer became a no because the record failed
  error TEXT,
  tool_status TEXT, tool_ms INTEGER, preview TEXT
);
CREATE INDEX decisions_session ON decisions (session) WHERE session IS NOT NULL;
CREATE INDEX decisions_time ON decisions (time);

-- What turned out about a decision after it was recorded.
CREATE TABLE amendments (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  decision INTEGER, what TEXT NOT NULL, reason TEXT,
  session TEXT, stage TEXT, call_id TEXT, pid INTEGER
);
CREATE INDEX amendments_decision ON amendments (decision);

-- Two rows per ticket: requested, answered. The last answer counts: a yes whose
-- record came too late is followed by the no that was given instead.
CREATE TABLE approvals (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  ticket TEXT NOT NULL, what TEXT NOT NULL,
  digest TEXT, tool TEXT, arguments TEXT,
  session TEXT, agent TEXT, user TEXT, task TEXT, node TEXT, pid INTEGER, uid INTEGER,
  opened INTEGER, expires INTEGER, timeout_ms INTEGER,
  approved INTEGER, outcome TEXT, reason TEXT, answered_by TEXT, answered_pid INTEGER, answered_uid INTEGER, rule TEXT
);
CREATE INDEX approvals_ticket ON approvals (ticket);

-- Rules that people gave with an approval. The last row of a rule counts.
CREATE TABLE approval_rules (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  rule TEXT NOT NULL, what TEXT NOT NULL, -- created, kept (by retention), revoked
  scope TEXT, session TEXT, digest TEXT, tool TEXT, arguments TEXT,
  created INTEGER, created_by TEXT, reason TEXT
);
CREATE INDEX approval_rules_rule ON approval_rules (rule);

CREATE TABLE session_events (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  session TEXT NOT NULL, what TEXT NOT NULL, -- start, stop, cancel, resume
  agent TEXT, user TEXT, model TEXT, cwd TEXT, pid INTEGER, uid INTEGER,
  duration_us INTEGER, counts TEXT, reason TEXT, caused_by TEXT
);
CREATE INDEX session_events_session ON session_events (session);

CREATE TABLE hook_failures (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  hook TEXT NOT NULL, stage TEXT, outcome TEXT NOT NULL, detail TEXT,
  decision INTEGER,         -- the call in which it failed; NULL outside of one
  session TEXT, agent TEXT
);

CREATE TABLE config_changes (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  generation INTEGER, path TEXT, sha256 TEXT, old_sha256 TEXT,
  what TEXT, warnings TEXT, caused_by TEXT, error TEXT
);

CREATE TABLE security_events (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  what TEXT NOT NULL, severity TEXT,
  session TEXT, agent TEXT, user TEXT, pid INTEGER, uid INTEGER, tool TEXT,
  message TEXT, detail TEXT
);

-- Tool runs that agents tell of in events, beside those that the decisions hold.
CREATE TABLE tool_runs (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  session TEXT, agent TEXT, tool TEXT NOT NULL, call_id TEXT,
  status TEXT NOT NULL, duration_ms INTEGER, preview TEXT
);

-- What is not in the record, and why.
CREATE TABLE gaps (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  what TEXT NOT NULL,
  from_time INTEGER, to_time INTEGER,
  missed TEXT, total INTEGER, -- JSON: counts per table; their sum, NULL when unknown
  at_most_ms INTEGER,
  reason TEXT
);

-- Where the chain begins when what was before it is no longer in this file.
CREATE TABLE anchors (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, hash BLOB NOT NULL,
  kept_from INTEGER NOT NULL, prev_hash BLOB NOT NULL, deleted INTEGER, reason TEXT
);
CREATE INDEX anchors_kept_from ON anchors (kept_from);

-- From here on: no records, but what is derived from them.

CREATE TABLE chain_head (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL);

CREATE TABLE sessions (
  session TEXT PRIMARY KEY, agent TEXT, user TEXT, model TEXT, cwd TEXT,
  first_seen INTEGER, last_seen INTEGER,
  calls INTEGER NOT NULL, denied INTEGER NOT NULL, asked INTEGER NOT NULL, degraded INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_last_seen ON sessions (last_seen);
CREATE TABLE sessions_upto (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, opened INTEGER);
INSERT INTO sessions_upto VALUES (1, 0, NULL);

CREATE VIEW agent_audit_log AS
  SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1e6, 'unixepoch') AS time, session, agent,
         tool, tool_status AS status, tool_ms AS duration_ms, preview AS output_preview
    FROM decisions WHERE tool_status IS NOT NULL AND dry_run IS NULL
  UNION ALL
  SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1e6, 'unixepoch'), session, agent,
         tool, status, duration_ms, preview
    FROM tool_runs AS t
   WHERE NOT EXISTS (SELECT 1 FROM decisions AS d
                      WHERE d.session = t.session AND d.call_id = t.call_id AND d.stage = 'after_tool')
  UNION ALL
  SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1e6, 'unixepoch'), session, agent,
         'SESSION_STOP', coalesce(reason, 'ok'), duration_us / 1000, counts
    FROM session_events WHERE what = 'stop';

CREATE VIEW approval_tickets AS
  SELECT q.ticket, q.digest, q.tool, q.arguments, q.session, q.agent, q.user, q.task, q.node, q.pid, q.uid,
         q.opened, q.expires, q.timeout_ms, a.time AS answered, a.approved, a.outcome, a.reason,
         a.answered_by, a.answered_pid, a.answered_uid, a.rule, q.seq
    FROM approvals AS q
    LEFT JOIN approvals AS a
      ON a.seq = (SELECT max(l.seq) FROM approvals AS l WHERE l.ticket = q.ticket AND l.what = 'answered')
   WHERE q.what = 'requested';

CREATE VIEW active_approval_rules AS
  SELECT r.* FROM approval_rules AS r
   WHERE r.what <> 'revoked'
     AND r.seq = (SELECT max(seq) FROM approval_rules AS l WHERE l.rule = r.rule);
