"""Mutants of protocol and listeners that are no other program, each with the reason."""

from __future__ import annotations

from tests.mutants.keys import Key


def _never(path: str, *lines: str) -> dict[Key, str]:
    """Return mutants that leave out the raise of what our own code never does."""
    return {Key(path, line, line, "pass"): "what our own code never does" for line in lines}


PROTOCOL: dict[Key, str] = {
    Key(
        "protocol/timed/timed_group.py", "self._noted += 1", "1", "2"
    ): "numbers that are only compared, and rise as before",
    Key(
        "protocol/simulated_group.py", "if overlap >= 0:", ">=", ">"
    ): "spans that touch hold the same records as one span or as two",
    Key(
        "protocol/consumer_group/coordinated_group.py",
        "seated: bool = False  # when the call began that it is in",
        "False",
        "True",
    ): "set when a call begins, and read when it returns",
    Key(
        "protocol/simulated_group.py", "self.changes += 1", "1", "2"
    ): "a number that is only asked whether it is still the same",
    Key(
        "protocol/simulated_group.py", "changes: int = 0  # of who consumes what", "0", "1"
    ): "a number that is only asked whether it is still the same",
    Key(
        "protocol/simulated_group.py", "def begin_step(self, *, answering: bool = False) -> None:", "False", "True"
    ): "a step of one process, in which nobody else takes what it gives up",
    Key(
        "protocol/leader.py", "known = batch.topic_partitions != NONE", "!=", "=="
    ): "whether a partition exists and is wanted is not asked here: the slots of lists are only compared",
    Key(
        "protocol/timed/coordination.py", "empty, group.empty = group.empty, False", "False", "True"
    ): "set again when the rebalance is over, and read only when one begins",
    Key(
        "protocol/timed/timed_play.py", "rounds, moments = len(group.rounds), 0", "0", "1"
    ): "a limit of our own to steps without a round, which is reached one step earlier",
    Key(
        "protocol/timed/timed_group.py",
        "starting: bool = False  # waits for group.initial.rebalance.delay.ms",
        "False",
        "True",
    ): "set when a rebalance begins, and read only in one",
    Key(
        "protocol/consumer_group/coordinated_group.py", "since_ms: int = 0", "0", "1"
    ): "set when a call begins, and read only in one",
    Key(
        "protocol/rounds.py", "round: int = 0  # in play; 0: none", "0", "1"
    ): "before the first round nobody has anything to be called about",
    Key(
        "protocol/consumer_group/consumer_events.py", "MOST_STEPS = 20_000", "20_000", "20001"
    ): "a limit of our own to steps without rest, which is reached one step later",
    Key(
        "protocol/consumer_group/coordinated_group.py", "rebalance_timeout_ms: int = 0", "0", "1"
    ): "a default that is never used: whoever makes a client gives its time",
    Key(
        "protocol/leader.py", "group = _group(question, remembered=False)", "False", "True"
    ): "generations of members, which no range or roundrobin of another library reads",
    Key(
        "protocol/consumer_group/consumer_coordinator.py",
        "copied = replace(member, member_id=request.member_id, process=request.process, epoch=0, previous_epoch=0)",
        "0",
        "1",
    ): "neither 0 nor 1 is the epoch of a group that somebody has joined, and the member is told another one at once",
    Key(
        "protocol/timed/coordination.py", "process.heartbeat_due = None", "process.heartbeat_due = None", "pass"
    ): "whoever sent a heartbeat of which something comes joins again, or fell out, and either forgets it",
    Key(
        "protocol/consumer_group/consumer_events.py",
        "play.ownership.begin_step()",
        "play.ownership.begin_step()",
        "pass",
    ): "whoever takes or stops in an event begins a step of its own, and what is deleted is told of no more",
    Key(
        "protocol/consumer_group/coordinated_group.py", "return self.times.processing_ms if owned else 0", "0", "1"
    ): "one that owns nothing polls in each millisecond, and there is no time between two of them",
    Key(
        "protocol/classic_group.py",
        "self._wanted = (self.coordinator, seats, self.topics), wanted",
        "self._wanted = (self.coordinator, seats, self.topics), wanted",
        "pass",
    ): "a memo, which is filled anew each time",
    Key(
        "protocol/timed/timed_play.py", "group.all_read_on()", "group.all_read_on()", "pass"
    ): "what was read of a topic that is gone is counted nowhere, and everything else is read later",
    Key(
        "listener/timed.py", "self.spent_ms = 0  # in the last call", "self.spent_ms = 0", "pass"
    ): "set at the beginning of each call, and read only after one",
    Key("protocol/consumer_group/consumer_coordinator.py", "found.pop(old, None)", "found.pop(old, None)", "pass"): (
        "of a member id that is never given again, nobody asks"
    ),
    Key(
        "protocol/consumer_group/coordinated_group.py", "next_send_ms: int = 0", "0", "1"
    ): "set when a heartbeat is planned, before which it has no member id, without which it is not read",
    Key(
        "protocol/consumer_group/consumer_coordinator.py",
        "answers_all = turn.request.epoch == 0 or self._says_all(turn.request)",
        "0",
        "1",
    ): "who joins says everything, and in epoch 1 nothing is assigned to anybody",
    Key(
        "protocol/rolling_migration.py",
        "return len({Protocol.COOPERATIVE in SUPPORTED.get(each, ()) for each in self.assignors}) > 1",
        "in",
        "not in",
    ): "whether both kinds are there is the same of a property and of its opposite",
    Key("listener/rehearsal.py", "back: bool = False", "False", "True"): "of a commit of nobody, which nobody follows",
    Key("listener/rehearsal.py", "left: bool = False", "False", "True"): "of a commit of nobody, which nobody follows",
    Key(
        "listener/hosted.py",
        "for topic in [topic for topic, count in self.topics.items() if topics.get(topic, 0) < count]:",
        "<",
        "<=",
    ): "of a topic that keeps its partitions nothing is deleted",
    Key(
        "protocol/consumer_group/consumer_events.py", "steps = 0", "0", "1"
    ): "a limit of our own to steps without rest, which is reached one step earlier",
    Key(
        "protocol/simulated_group.py", "poll_started_ms: int = 0", "0", "1"
    ): "set when a poll begins, and read only while one goes on",
    Key(
        "protocol/timed/timed_group.py", "heartbeats_since_ms: int = 0", "0", "1"
    ): "set when JoinGroup is answered, before which no heartbeat is sent",
    Key("listener/timed.py", "ended = True", "True", "False"): "the thread has ended, and hears no more",
    Key("listener/hosted.py", "del timeout", "del timeout", "pass"): "an argument that is not used",
    Key(
        "protocol/simulated_group.py", "if last_ms > self.polled_ms:", ">", ">="
    ): "what was read at that poll is read at the same moment once more: nothing",
    Key(
        "protocol/consumer_group/topics_and_targets.py", "self.created += 1", "1", "2"
    ): "a number that is only asked whether it has grown",
    Key(
        "listener/hosted.py", "del topics  # the calls contain the subscribed topics", "del topics", "pass"
    ): "an argument that is not used",
    Key(
        "listener/hosted.py", "topics[topic] = max(topics.get(topic, 0), number + 1)", "0", "1"
    ): "a partition that there is has a number from 0, so its topic has one partition at the least",
    Key(
        "protocol/classic_group.py", "self.changes += 1", "1", "2"
    ): "a number that is only asked whether it is still the same",
    Key(
        "protocol/consumer_group/coordinated_group.py", "process.wakes += 1", "1", "2"
    ): "a number that is only asked whether it is still the same",
    Key(
        "protocol/consumer_group/coordinated_group.py", "process.wakes += 1", "+=", "-="
    ): "a number that is only asked whether it is still the same",
    Key(
        "protocol/rounds.py",
        "joining = tuple(each.name for each in self.processes.values() if each.must_rejoin)",
        "each.must_rejoin",
        "(not each.must_rejoin)",
    ): "compared with itself alone: those who do not join tell as much as those who do",
    Key("listener/rehearsal.py", "del process  # a new process has a new member id", "del process", "pass"): (
        "an argument that is not used"
    ),
    Key("listener/kafka_python.py", "del timeout  # kafka-python has no timeout here", "del timeout", "pass"): (
        "an argument that is not used"
    ),
    Key("listener/rehearsal.py", "for place, _, each in sorted(found, key=lambda row: row[:2]):", "2", "3"): (
        "no two commits of a group have one place in the log, so that a third field never decides"
    ),
    Key(
        "protocol/consumer_group/exchange.py",
        "first_ms = min([*(each.at_ms for each in play.queue[:1]), *([] if over is None else over[:1])], "
        "default=timer_ms)",
        "1",
        "2",
    ): "no later entry of the queue is due before the first",
    Key("protocol/consumer_group/consumer_state.py", "epoch: int = 0", "0", "1"): "a default that every caller sets",
    Key(
        "protocol/classic_group.py", "self.changes += 1", "+=", "-="
    ): "a number that is only asked whether it is still the same",
    Key(
        "protocol/timed/timed_group.py", "self._seen = changes, wanted", "self._seen = changes, wanted", "pass"
    ): "what was seen is seen again, with the same result",
    Key(
        "protocol/timed/timed_play.py", "process.held = ()", "process.held = ()", "pass"
    ): "set anew at each stop, and read after one alone",
    Key(
        "protocol/simulated_group.py", "put_off_ms: int = 0", "0", "1"
    ): "a poll put off to 1 ms is read with the first poll, which comes before anything is owned",
    Key(
        "protocol/topic_patterns.py", "before, last = min(before, MOST_WAYS + 1), min(last, MOST_WAYS + 1)", "1", "2"
    ): "a bound of numbers that are too large already",
    Key(
        "protocol/simulator.py",
        "group.orphaned_consumer_members = {}",
        "group.orphaned_consumer_members = {}",
        "pass",
    ): "those who are left there are dead, or replaced before they are looked at",
    Key(
        "protocol/consumer_group/exchange.py", "if client is None or client.assigned is None:", "or", "and"
    ): "neither is None where there is something to reconcile",
    Key(
        "protocol/topic_patterns.py",
        'return min(int(digits.lstrip("0")[:4] or "0"), LONGEST_NAME)',
        "4",
        "5",
    ): "more than the longest name either way",
    Key(
        "protocol/timed/timed_play.py", "break", "break", "continue"
    ): "the loop ends at its next turn, for the failure",
    Key("protocol/simulated_group.py", "number: int = 1", "1", "2"): "a default that every caller sets",
    Key(
        "listener/confluent.py", "del timeout  # librdkafka has no timeout of its own here", "del timeout", "pass"
    ): "an argument that is not used",
    Key(
        "protocol/consumer_group/coordinated_group.py",
        "owned = self.client.owns if self.client is not None else self.consumer and self.consumer.owned",
        "and",
        "or",
    ): "a classic process without partitions reads nothing, and its polls are counted anew once it has some",
    Key(
        "protocol/consumer_group/exchange.py",
        "if group.make_topics(play.clock_ms):",
        "group.make_topics(play.clock_ms)",
        "(not group.make_topics(play.clock_ms))",
    ): "a Streams group has no records, and nobody asks for its topics before the next heartbeat, which takes them too",
    Key(
        "protocol/timed/timed_play.py",
        "coordination.stop_heartbeats(process)",
        "coordination.stop_heartbeats(process)",
        "pass",
    ): "whoever is told something joins, which stops them; else the one that was due is told nothing either",
    Key(
        "protocol/consumer_group/consumer_coordinator.py",
        "return 0 if self.resolved_ms is None else self.resolved_ms + LEAST_REFRESH_MS",
        "0",
        "1",
    ): "where nothing was resolved, every expression is new, and that is due at once",
    Key("listener/rehearsal.py", "group.pass_time(records, 0, running)", "0", "1"): (
        "the time of records that nobody looks for by time: the history is over"
    ),
    Key(
        "protocol/timed/timed_play.py",
        "rounds, moments = len(group.rounds), moments + 1 if rounds == len(group.rounds) else 0",
        "0",
        "1",
    ): "a limit of our own to steps without a round, which is reached one step earlier",
    Key(
        "protocol/timed/timed_group.py", "newcomers: bool = False", "False", "True"
    ): "set when an empty group begins to wait, and read only then",
    Key(
        "protocol/consumer_group/consumer_events.py", "if steps > MOST_STEPS and play.times is not None:", ">", ">="
    ): "a limit of our own to steps without rest, which is reached one step earlier",
    Key("listener/rehearsal.py", "self._spent_ms: int = 0", "0", "1"): "set again before each call",
    Key(
        "protocol/timed/timed_group.py", "completing: bool = False  # COMPLETING_REBALANCE", "False", "True"
    ): "set when the first member joins, before which nobody asks",
    Key(
        "protocol/timed/timed_group.py",
        "if self._seen is None or self._seen[0] != changes or self._seen[1] is not wanted:",
        "0",
        "1",
    ): "what was seen is seen again, with the same result",
    Key(
        "protocol/metrics.py",
        "if row.started_ms is not None and row.ended_ms is not None:  # a clock ran",
        "and",
        "or",
    ): "a row has both or neither",
    Key(
        "protocol/consumer_group/exchange.py",
        "process.giving = process.client.owns",
        "process.giving = process.client.owns",
        "pass",
    ): "what it owns after the call is forgotten in the same step",
    Key(
        "protocol/simulated_group.py", "self.changes += 1", "+=", "-="
    ): "a number that is only asked whether it is still the same",
    Key("protocol/timed/timed_group.py", "prepared_ms: int = 0", "0", "1"): "set when a rebalance is prepared",
    Key("protocol/rolling_migration.py", "share = -(-len(left) // max(len(members), 1))", "1", "2"): (
        "one member alone gets what is beyond its share, too"
    ),
    Key("protocol/rolling_migration.py", "static = client.group_instance_id is not None", "is not", "is"): (
        "only compared with itself: static and dynamic members are told apart as well"
    ),
    Key("listener/rehearsal.py", "del partition, at_ms", "del partition, at_ms", "pass"): "arguments that are not used",
    Key("protocol/consumer_group/exchange.py", "return False", "False", "True"): (
        "whoever goes on with a process looks itself whether it is in a call, or waits"
    ),
    Key("protocol/consumer_group/consumer_events.py", "play.all_read_on()", "play.all_read_on()", "pass"): (
        "what was read of a topic that is gone is counted nowhere"
    ),
    Key("protocol/simulator.py", "play.all_read_on()", "play.all_read_on()", "pass"): (
        "who goes on as a classic member reads on from its positions, before it gives up anything"
    ),
    Key(
        "protocol/simulated_group.py", "self.step += 1", "1", "2"
    ): "numbers that are only compared, and rise as before",
    Key(
        "protocol/consumer_group/consumer_state.py", "rebalance_timeout_ms: int = 0", "0", "1"
    ): "set with the heartbeat that a member joins with",
    Key(
        "protocol/script.py",
        "found = repartition_counts(topology, {topic: 1 for each in topology.values() for topic in "
        "each.source_topics})",
        "1",
        "2",
    ): "only asked which topics are found, not how many partitions they have",
    Key("protocol/consumer_group/coordinated_group.py", "must_rejoin: bool = False", "False", "True"): (
        "set with each JoinGroup, and read after one alone"
    ),
    Key("protocol/simulated_group.py", "commits_next_ms: int = 0", "0", "1"): "set when the process begins",
    Key(
        "protocol/timed/timed_play.py",
        "rebalancing = group.preparing or group.completing or group.agenda.next_ms() is not None",
        "or",
        "and",
    ): "what is prepared or completed has its time-out on the agenda",
    Key(
        "protocol/consumer_group/consumer_state.py",
        "number = max((known[topic] for topic in each.read if topic in known), default=0)",
        "0",
        "1",
    ): "a subtopology without a topic to read is refused, and so is one of a repartition topic that nobody writes",
    Key("listener/timed.py", "raise", "raise", "pass"): "a generator that is closed may end as well",
    Key("protocol/timed/timed_group.py", "round: int = 0  # that it was answered in last", "0", "1"): (
        "set when JoinGroup is answered, before which no call is of a round"
    ),
    Key(
        "listener/confluent.py",
        "self._forget_sought(names_of(partitions))",
        "self._forget_sought(names_of(partitions))",
        "pass",
    ): ("forgotten when it is assigned again, before which nobody may ask for its position"),
    **_never(
        "protocol/consumer_group/coordinated_group.py",
        'raise AssertionError(f"{self.name} is no classic member; expected one")',
    ),
    **_never(
        "protocol/consumer_group/exchange.py",
        'raise AssertionError(f"{process.name} returns from no call; expected one under way")',
    ),
    **_never(
        "protocol/consumer_group/exchange.py",
        'raise AssertionError(f"{process.name} sent JoinGroup; expected an answer")',
    ),
    **_never(
        "protocol/consumer_group/exchange.py",
        'raise AssertionError(f"{process.name} was answered a heartbeat that it cannot have sent")',
    ),
    **_never(
        "protocol/consumer_group/streams_group.py",
        'raise TypeError("a Streams group without a topology; expected StreamsGroupSettings")',
    ),
    **_never(
        "protocol/classic_group.py",
        'raise AssertionError("members met without a common assignor; expected the last one to have been refused")',
    ),
}
