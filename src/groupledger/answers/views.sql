-- What counts in a ledger, a view for each table. Written by `python -m groupledger.tables.views`; the rule in words is
-- in docs/guides/use/sql.md. Tables stand behind FROM and JOIN alone, under their own names.

-- Attempts: `planned` before any row is written, `committed` once, last and by compare-and-set.
CREATE VIEW current_runs AS
SELECT t.run_id, t.attempt_id, t.kind, t.status, t.sequence, t.guards, t.inputs, t.input_digest, t.config_digest, t.code_digest, t.counts_in, t.counts_out, t.result_digest, t.verdict, t.schema_version, t.started_at, t.finished_at, t.removed FROM runs t WHERE t.status = 'committed';

-- Offsets of a group that a later attempt folded again: earlier facts of them do not count.
CREATE VIEW current_refolds AS
SELECT t.cluster_id, t.group_id, t.log_partition, t.from_offset, t.offset AS to_offset, r.sequence FROM group_heads t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE t.refolded;

-- Records of __consumer_offsets as read, once for each position and content.
CREATE VIEW current_log_records AS
SELECT t.cluster_id, t.log_partition, t.offset, t.timestamp, t.group_id, t.key, t.value, t.leader_epoch, t.attempt_id FROM log_records t JOIN current_runs r ON r.attempt_id = t.attempt_id;

-- Changes of topics: created, partitions added, deleted. A name used again after a deletion has another topic_id.
CREATE VIEW current_topic_snapshots AS
SELECT t.cluster_id, t.topic_id, t.topic, t.partition_count, t.racks, t.valid_from, t.attempt_id FROM topic_snapshots t JOIN current_runs r ON r.attempt_id = t.attempt_id;

-- The members of each group snapshot: what they said, and what the coordinator recorded for them.
CREATE VIEW current_member_snapshots AS
SELECT t.snapshot_id, t.cluster_id, t.group_id, t.offset, t.member_order, t.member_id, t.group_instance_id, t.client_id, t.host, t.rack_id, t.subscription_version, t.topics, t.claimed, t.claimed_generation, t.subscription_generation, t.user_data, t.recorded, t.target, t.pending_revocation, t.member_epoch, t.previous_member_epoch, t.member_state, t.subscribed_regex, t.tasks, t.attempt_id FROM member_snapshots t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE NOT EXISTS (SELECT 1 FROM current_refolds m WHERE m.cluster_id = t.cluster_id AND m.group_id = t.group_id AND r.sequence < m.sequence AND t.snapshot_id LIKE 'log/%' AND (m.from_offset < 0 OR (t.offset > m.from_offset AND t.offset <= m.to_offset)));

-- The folded state of each group an ingest touched, from which the next ingest goes on.
CREATE VIEW current_group_heads AS
SELECT t.cluster_id, t.group_id, t.log_partition, t.from_offset, t.offset, t.incarnation, t.refolded, t.state, t.attempt_id FROM group_heads t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE NOT EXISTS (SELECT 1 FROM current_refolds m WHERE m.cluster_id = t.cluster_id AND m.group_id = t.group_id AND r.sequence < m.sequence AND t.log_partition IS NOT NULL AND (m.from_offset < 0 OR (t.log_partition = m.log_partition AND t.offset > m.from_offset AND t.offset <= m.to_offset)));

-- Gaps of the history: generations or epochs the log does not hold. A gap is normal, and no proof of loss.
CREATE VIEW current_coverage AS
SELECT t.cluster_id, t.group_id, t.incarnation, t.kind, t.from_value, t.to_value, t.reason, t.offset, t.snapshot_id, t.attempt_id FROM coverage t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE NOT EXISTS (SELECT 1 FROM current_refolds m WHERE m.cluster_id = t.cluster_id AND m.group_id = t.group_id AND r.sequence < m.sequence AND t.snapshot_id LIKE 'log/%' AND (m.from_offset < 0 OR (t.offset > m.from_offset AND t.offset <= m.to_offset)));

-- Partitions that changed hands, as the coordinator recorded it. Answers who was assigned a partition at a time.
CREATE VIEW current_ownership_changes AS
SELECT t.cluster_id, t.topic_id, t.topic, t.partition, t.group_id, t.incarnation, t.from_member_id, t.to_member_id, t.at, t.log_partition, t.offset, t.snapshot_id, t.held_since, t.attempt_id FROM ownership_changes t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE t.log_partition IS NOT NULL AND NOT EXISTS (SELECT 1 FROM current_refolds m WHERE m.cluster_id = t.cluster_id AND m.group_id = t.group_id AND r.sequence < m.sequence AND t.log_partition IS NOT NULL AND (m.from_offset < 0 OR (t.log_partition = m.log_partition AND t.offset > m.from_offset AND t.offset <= m.to_offset)))
UNION ALL
SELECT t.cluster_id, t.topic_id, t.topic, t.partition, t.group_id, t.incarnation, t.from_member_id, t.to_member_id, t.at, t.log_partition, t.offset, t.snapshot_id, t.held_since, t.attempt_id FROM (SELECT t.cluster_id, t.topic_id, t.topic, t.partition, t.group_id, t.incarnation, t.from_member_id, t.to_member_id, t.at, t.log_partition, t.offset, t.snapshot_id, t.held_since, t.attempt_id, rank() OVER (PARTITION BY t.cluster_id, t.group_id ORDER BY r.sequence DESC) AS newest FROM ownership_changes t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE t.log_partition IS NULL) t WHERE t.newest = 1;

-- State of a group at a position: every generation, rewrite, and fold of a group that its coordinator assigns.
CREATE VIEW current_group_snapshots AS
SELECT t.snapshot_id, t.cluster_id, t.source, t.log_partition, t.offset, t.group_id, t.group_type, t.protocol_type, t.incarnation, t.snapshot_kind, t.generation, t.group_epoch, t.target_epoch, t.assignor, t.leader, t.state, t.complete, t.shared_topics, t.subscribed_topics, t.members, t.previous_snapshot_id, t.first_snapshot_id, t.observed_at, t.attempt_id FROM group_snapshots t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE t.source = 'log' AND NOT EXISTS (SELECT 1 FROM current_refolds m WHERE m.cluster_id = t.cluster_id AND m.group_id = t.group_id AND r.sequence < m.sequence AND t.log_partition IS NOT NULL AND (m.from_offset < 0 OR (t.log_partition = m.log_partition AND t.offset > m.from_offset AND t.offset <= m.to_offset)))
UNION ALL
SELECT t.snapshot_id, t.cluster_id, t.source, t.log_partition, t.offset, t.group_id, t.group_type, t.protocol_type, t.incarnation, t.snapshot_kind, t.generation, t.group_epoch, t.target_epoch, t.assignor, t.leader, t.state, t.complete, t.shared_topics, t.subscribed_topics, t.members, coalesce(t.previous_snapshot_id, lag(t.snapshot_id) OVER (PARTITION BY t.cluster_id, t.group_id, t.incarnation ORDER BY t.offset, t.snapshot_id)) AS previous_snapshot_id, t.first_snapshot_id, t.observed_at, t.attempt_id FROM group_snapshots t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE NOT t.source = 'log';

-- The attempt that counts for each scenario and each snapshot that counts.
CREATE VIEW latest_results AS
SELECT DISTINCT t.cluster_id, t.group_id, t.snapshot_id, t.scenario, t.attempt_id FROM (SELECT t.scenario, t.snapshot_id, t.cluster_id, t.group_id, t.round, t.group_type, t.generation, t.assignor, t.protocol, t.outcome, t.verdict, t.members, t.partitions, t.kept, t.added, t.revoked, t.lost, t.unassigned, t.moves, t.least_moves, t.load_min, t.load_max, t.follow_up, t.unassigned_partitions, t.code, t.message, t.least_moves_certainty, t.fewest_rounds, t.attributed_to, t.attribution, t.attempt_id, rank() OVER (PARTITION BY t.cluster_id, t.group_id, t.snapshot_id, t.scenario ORDER BY r.sequence DESC) AS newest FROM rebalances t JOIN current_runs r ON r.attempt_id = t.attempt_id) t WHERE t.newest = 1 AND EXISTS (SELECT 1 FROM current_group_snapshots s WHERE s.cluster_id = t.cluster_id AND s.group_id = t.group_id AND s.snapshot_id = t.snapshot_id);

-- One row for each computed rebalance of a group: outcome, moves, balance, and the verdict against the record.
CREATE VIEW current_rebalances AS
SELECT t.scenario, t.snapshot_id, t.cluster_id, t.group_id, t.round, t.group_type, t.generation, t.assignor, t.protocol, t.outcome, t.verdict, t.members, t.partitions, t.kept, t.added, t.revoked, t.lost, t.unassigned, t.moves, t.least_moves, t.load_min, t.load_max, t.follow_up, t.unassigned_partitions, t.code, t.message, t.least_moves_certainty, t.fewest_rounds, t.attributed_to, t.attribution, t.attempt_id, s.observed_at, s.state, s.snapshot_kind FROM rebalances t JOIN latest_results l ON l.cluster_id = t.cluster_id AND l.group_id = t.group_id AND l.snapshot_id = t.snapshot_id AND l.scenario = t.scenario AND l.attempt_id = t.attempt_id LEFT JOIN current_group_snapshots s ON s.cluster_id = t.cluster_id AND s.group_id = t.group_id AND s.snapshot_id = t.snapshot_id;

-- For each member of a computed rebalance: what it held, its target, and what this round gives and takes.
CREATE VIEW current_assignments AS
SELECT t.scenario, t.snapshot_id, t.cluster_id, t.group_id, t.round, t.member_order, t.member_id, t.held, t.target, t.assigned, t.added, t.revoked, t.awaiting, t.lost, t.attempt_id, s.observed_at, s.state, s.snapshot_kind FROM assignments t JOIN latest_results l ON l.cluster_id = t.cluster_id AND l.group_id = t.group_id AND l.snapshot_id = t.snapshot_id AND l.scenario = t.scenario AND l.attempt_id = t.attempt_id LEFT JOIN current_group_snapshots s ON s.cluster_id = t.cluster_id AND s.group_id = t.group_id AND s.snapshot_id = t.snapshot_id;

-- Rejected input, with the reason and the bytes or the row: nothing is lost.
CREATE VIEW current_quarantine AS
SELECT t.stage, t.source, t.cluster_id, t.log_partition, t.offset, t.group_id, t.snapshot_id, t.code, t.message, t.key, t.value, t.row, t.attempt_id FROM quarantine t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE t.stage <> 'assign' AND NOT EXISTS (SELECT 1 FROM current_refolds m WHERE m.cluster_id = t.cluster_id AND m.group_id = t.group_id AND r.sequence < m.sequence AND t.log_partition IS NOT NULL AND t.stage = 'fold' AND (m.from_offset < 0 OR (t.log_partition = m.log_partition AND t.offset > m.from_offset AND t.offset <= m.to_offset)))
UNION ALL
SELECT t.stage, t.source, t.cluster_id, t.log_partition, t.offset, t.group_id, t.snapshot_id, t.code, t.message, t.key, t.value, t.row, t.attempt_id FROM quarantine t WHERE t.stage = 'assign' AND EXISTS (SELECT 1 FROM latest_results l WHERE l.cluster_id = t.cluster_id AND l.group_id = t.group_id AND l.snapshot_id = t.snapshot_id AND l.attempt_id = t.attempt_id);

-- Findings: what a person should look at, with the evidence.
CREATE VIEW current_violations AS
SELECT t.code, t.severity, t.scenario, t.cluster_id, t.group_id, t.snapshot_id, t.member_id, t.topic, t.partition, t.evidence, t.log_partition, t.offset, t.attempt_id FROM violations t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE t.scenario IS NULL AND NOT EXISTS (SELECT 1 FROM current_refolds m WHERE m.cluster_id = t.cluster_id AND m.group_id = t.group_id AND r.sequence < m.sequence AND t.log_partition IS NOT NULL AND (m.from_offset < 0 OR (t.log_partition = m.log_partition AND t.offset > m.from_offset AND t.offset <= m.to_offset)))
UNION ALL
SELECT t.code, t.severity, t.scenario, t.cluster_id, t.group_id, t.snapshot_id, t.member_id, t.topic, t.partition, t.evidence, t.log_partition, t.offset, t.attempt_id FROM violations t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE t.scenario IS NOT NULL AND EXISTS (SELECT 1 FROM current_group_snapshots s WHERE s.cluster_id = t.cluster_id AND s.group_id = t.group_id AND s.snapshot_id = t.snapshot_id) AND NOT EXISTS (SELECT 1 FROM rebalances n JOIN current_runs q ON q.attempt_id = n.attempt_id WHERE n.cluster_id = t.cluster_id AND n.group_id = t.group_id AND n.snapshot_id = t.snapshot_id AND n.scenario = t.scenario AND q.sequence > r.sequence);

-- Calls that a rebalance made into members of classic groups, in KIP-429's order, as far as the log tells.
CREATE VIEW current_callbacks AS
SELECT t.snapshot_id, t.cluster_id, t.group_id, t.generation, t.observed_at, t.call_order, t.member_id, t.client_id, t.callback, t.partitions, t.topics, t.certainty, t.attempt_id FROM callbacks t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE r.sequence = (SELECT max(x.sequence) FROM current_runs x WHERE x.kind = 'callbacks');

-- Client metrics of KIP-429 by window, for each member and for the group; a window without calls has none.
CREATE VIEW current_metrics AS
SELECT t.cluster_id, t.group_id, t.member_id, t.window_start, t.window_end, t.metric, t.metric_value, t.reason, t.attempt_id FROM metrics t JOIN current_runs r ON r.attempt_id = t.attempt_id WHERE r.sequence = (SELECT max(x.sequence) FROM current_runs x WHERE x.kind = 'callbacks');

-- Topics that a snapshot's members subscribe to, deleted at its time or in no listing at all.
CREATE VIEW topics_not_listed AS
SELECT t.cluster_id, t.group_id, t.incarnation, t.offset, t.snapshot_id, t.generation, t.group_epoch, t.topic FROM (SELECT t.cluster_id, t.group_id, t.incarnation, t.offset, t.snapshot_id, t.generation, t.group_epoch, t.topic, l.partition_count, l.valid_from, row_number() OVER (PARTITION BY t.cluster_id, t.group_id, t.snapshot_id, t.topic ORDER BY l.valid_from DESC NULLS LAST, CASE WHEN l.partition_count IS NULL THEN 0 ELSE 1 END DESC, coalesce(l.topic_id, '') DESC, coalesce(l.partition_count, 0) DESC) AS newest FROM (SELECT t.cluster_id, t.group_id, t.incarnation, t.offset, t.snapshot_id, t.generation, t.group_epoch, t.observed_at, unnest(coalesce(t.shared_topics, t.subscribed_topics)) AS topic FROM current_group_snapshots t) t LEFT JOIN current_topic_snapshots l ON l.cluster_id = t.cluster_id AND l.topic = t.topic AND l.valid_from <= t.observed_at WHERE t.topic IS NOT NULL) t LEFT JOIN (SELECT DISTINCT l.cluster_id, l.topic FROM current_topic_snapshots l WHERE l.partition_count IS NOT NULL) f ON f.cluster_id = t.cluster_id AND f.topic = t.topic WHERE t.newest = 1 AND t.partition_count IS NULL AND (t.valid_from IS NOT NULL OR f.topic IS NULL);
