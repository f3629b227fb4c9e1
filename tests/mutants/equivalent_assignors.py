"""Mutants of the assignors that are no other program, each with the reason."""

from __future__ import annotations

from tests.mutants.keys import Key

ROOM = "room of a work array: more of it than is written"

COST = "an estimate of the work, which decides only whether it is compiled"

ASSIGNORS: dict[Key, str] = {
    Key(
        "assignors/server/uniform.py", "held = g.target_start[g.members] - g.target_start[0]", "-", "+"
    ): "room of the log: `with_room` is asked for more than is written",
    Key(
        "assignors/server/uniform.py",
        "pool = np.empty((total + g.target_start[g.members] - g.target_start[0], 2), np.int32)",
        "-",
        "+",
    ): ROOM,
    Key(
        "assignors/balance.py", "while buckets < slots // 4:", "//", "*"
    ): "buckets of a table of our own, which is walked in no order: more of them hold the same",
    Key(
        "assignors/kip615.py", "short += floor - plan.size[member]", "-", "+"
    ): "one pass more, which finds nobody below the floor",
    Key("assignors/group.py", "if len(keys) > FEW:", ">", ">="): "where one way of sorting takes over from the other",
    Key(
        "assignors/balance.py", "mixed = (int(topic) * 1_000_003 + int(source)) * 1_000_003 + int(target)", "*", "+"
    ): "buckets of a table of our own, which is walked in no order: others hold the same",
    Key(
        "assignors/general.py", "negative = phantom_partition(claims, claims.total + at) < 0", "<", "<="
    ): "partition 0 of a topic that has partitions is there, so it is no phantom",
    Key(
        "assignors/balance.py", "if len(h.previous) > 0:", "0", "1"
    ): "where there is one partition, nobody has two more than another: nothing moves either way",
    Key(
        "assignors/balance.py", "previous = h.previous[slot] if len(h.previous) > 0 else NONE", "0", "1"
    ): "where there is one partition, nobody has two more than another: nothing moves either way",
    Key(
        "assignors/librdkafka.py", "if not sizes or max(sizes) - min(sizes) <= 1:", "-", "+"
    ): "a short way out: where no two differ by two, the long way finds nobody to take from",
    Key(
        "rebalance/step.py", "doubtful = shared[slot] & ~found if shared.any() else np.zeros(0, np.bool_)", "&", "|"
    ): "more entries are looked up a second time, to the same end",
    Key(
        "assignors/server/iteration_orders.py",
        "keys[member] = late | (slot << 31) | (g.members - 1 - member)",
        "31",
        "32",
    ): "a wider field of a key: the order is the same",
    Key(
        "assignors/server/uniform.py",
        "log = with_room(log, used, 2 * (plan.owner_start[topic + 1] - plan.owner_start[topic]))",
        "2",
        "3",
    ): ROOM,
    Key(
        "assignors/server/uniform.py", "if used > before or last == -1:", ">", ">="
    ): "one round more in which nothing moves: a topic that is level is left as it is",
    Key(
        "assignors/server/server_group.py",
        "target = np.array([entry for entries in targets for entry in entries], np.int32).reshape(-1, 2)",
        "1",
        "2",
    ): "any negative length stands for the one that is left to numpy",
    Key(
        "assignors/server/uniform.py", "keys[at] = (size[seats[at]] << 31) | seats[at]", "31", "32"
    ): "a wider field of a key: the order is the same, and the seat stands in the lower 31 bits",
    Key(
        "assignors/group.py", "ORDER_NOT_EMULATED = 6", "6", "7"
    ): "a number of our own for a status: nobody has the next one either",
    Key(
        "assignors/balance.py", "buckets = 16", "16", "17"
    ): "buckets of a table of our own, which is walked in no order",
    Key(
        "assignors/server/judgement.py",
        "last: tuple[int, int] = (-1, -1)  # offset and timestamp of the group's last record",
        "-",
        "",
    ): "where no record stands: no first record of a group follows one at offset 1 or 2 of that time",
    Key(
        "assignors/server/uniform.py", "first = np.full(g.topics, -1, np.int64)", "1", "2"
    ): "a mark below every place: all that is asked is whether it is negative",
    Key(
        "assignors/server/uniform.py",
        "log = with_room(log, used, g.target_start[g.members] - g.target_start[0])",
        "-",
        "+",
    ): ROOM,
    Key("assignors/server/uniform.py", "NOBODY = -1", "1", "2"): "a mark for nobody: no member has that number either",
    Key(
        "assignors/group.py", "while to > 0 and keys[to - 1] > value:", ">", ">="
    ): "equal keys are moved past one another, and are equal",
    Key("assignors/group.py", "before = -1", "1", "2"): "a mark for no subscription: none has that number either",
    Key(
        "assignors/server/server_batch.py",
        "return 4 * (wanted + len(batch.target_topic) + len(batch.subscription_topic)) + 8 * len(batch.member_hash)",
        "4",
        "5",
    ): COST,
    Key(
        "assignors/general.py", "negative = phantom_partition(claims, claims.total + at) < 0", "0", "1"
    ): "partition 0 of a topic that has partitions is there, so it is no phantom",
    Key(
        "assignors/kip615.py", "owned[claimant[at]] += 1", "+=", "-="
    ): "who owns as many as the floor has no more to keep, whatever it may",
    Key(
        "assignors/server/orders.py", "if ascending and numbers[count - 1] - numbers[0] == count - 1:", "-", "+"
    ): "a short way that is not taken: numbers in a row are walked in their order by the long one too",
    Key(
        "assignors/balance.py", "mixed = (int(topic) * 1_000_003 + int(source)) * 1_000_003 + int(target)", "+", "-"
    ): "buckets of a table of our own, which is walked in no order: others hold the same",
    Key(
        "assignors/general.py", "dated = False", "False", "True"
    ): "room for previous owners that are nobody: what is not asked for where there is none",
    Key(
        "assignors/librdkafka.py",
        "return not any(most.get(topic, 0) > len(b.held[member])"
        " for member in b.active for topic in b.subscribed[member])",
        "0",
        "1",
    ): "one pass more, in which nothing moves: nobody has anything of that topic",
    Key(
        "assignors/server/uniform.py", "if used > before or last == -1:", "1", "2"
    ): "a mark for no topic yet: none has that number either",
    Key(
        "assignors/server/iteration_orders.py", "both = np.array(walked, np.int32).reshape(-1, 2)", "1", "2"
    ): "any negative length stands for the one that is left to numpy",
    Key(
        "assignors/constrained.py", "racks=len(b.rack_topic_start) > 0,", "0", "1"
    ): "racks are listed by a start for each topic and one more",
    Key(
        "assignors/server/judgement.py",
        "last: tuple[int, int] = (-1, -1)  # offset and timestamp of the group's last record",
        "1",
        "2",
    ): "where no record stands: no first record of a group follows one at offset -2 either",
    Key("assignors/range_.py", "stamp += 1", "1", "2"): "a mark that is new at every step, in larger steps",
    Key(
        "assignors/balance.py", "return (mixed ^ (mixed >> 21)) & (len(mv.bucket) - 1)", "21", "22"
    ): "buckets of a table of our own, which is walked in no order: others hold the same",
    Key(
        "assignors/balance.py", "mates = 0", "0", "1"
    ): "the first partition is below every bucket, and begins to count anew",
    Key(
        "assignors/constrained.py", "FULL = (1 << WORD) - 1", "1", "2"
    ): "a short way that is not taken: the slots of a full word are looked at one by one",
    Key(
        "assignors/balance.py", "return ((score + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)", "+", "-"
    ): "half of 2**32 added or taken away is the same modulo 2**32",
    Key(
        "assignors/server/uniform.py", "if used > before or last == -1:", "-", ""
    ): "rounds more in which nothing moves: a topic that is level is left as it is",
    Key(
        "assignors/server/uniform.py", "if b.end[MOST] <= b.start[MOST] and b.start[MOST] > 0:", ">", ">="
    ): "whatever the level, nobody is left to give",
    Key(
        "assignors/general.py", "initializing = heaviest(h) == 0", "0", "1"
    ): "what moves makes the score smaller, unless 32 bits overflow: nothing is put back either way",
    Key(
        "assignors/server/java_collections.py",
        "return right is NIL or left is NIL or left.below[LEFT] is NIL",
        "or",
        "and",
    ): "in a red-black tree, where the root has one child, that one has none",
    Key(
        "assignors/server/server_range.py", "if subscribers[topic] > 0 and g.partitions[topic] > 0:", ">", ">="
    ): "a share of no partitions is none",
    Key(
        "assignors/kip315.py",
        "stack = np.array([0, (own.high - own.low).max()], np.int64)"
        "  # next to steal from: place in `members`, its count",
        "0",
        "1",
    ): "when the first is robbed all have taken one, so nobody has as many as the most had",
    Key(
        "assignors/constrained.py", "return int(found % d.counts[UNDER]) if d.counts[UNDER] > 0 else 0", "0", "1"
    ): "of one in line the next is that one, by the remainder too",
    Key(
        "assignors/server/uniform.py", "if g.partitions[g.subscription_topic[at]] >= 0:", "0", "1"
    ): "a topic without partitions has none to give",
    Key(
        "assignors/balance.py", "if len(h.previous) == 0 and most <= least // n + 1:", "<=", "<"
    ): "a short way that is not taken: the partitions are looked at one by one, and stay",
    Key("assignors/group.py", "if len(g.exact_orders.subscriptions) > 0:", "0", "1"): "of one topic there is one order",
    Key(
        "assignors/constrained.py", "high = low + (1 if spare > 0 else 0)", "0", "1"
    ): "where nothing is spare nobody may keep one more",
    Key(
        "assignors/server/java_collections.py", "return unsigned - (unsigned >> 31 << 32)", "32", "33"
    ): "half of the hashes sort before the others as negative numbers, or as lower ones",
    Key(
        "assignors/server/java_collections.py", "self.red = False", "False", "True"
    ): "set when it is inserted into a tree",
    Key(
        "assignors/answer.py",
        "cells = 4 * room + 8 * batch.members + len(batch.subscription_topic)",
        "8",
        "9",
    ): COST,
    Key(
        "rebalance/step.py", "last = np.full(len(slots), -1, np.int64)", "1", "2"
    ): "a mark for nobody: no member has that number",
    Key(
        "assignors/balance.py",
        "mixed = (int(topic) * 1_000_003 + int(source)) * 1_000_003 + int(target)",
        "1_000_003",
        "1000004",
    ): "buckets of a table of our own, which is walked in no order: others hold the same",
    Key("assignors/safe.py", "highest = np.full(slot.max(initial=-1) + 1, np.iinfo(np.int64).min)", "-", ""): ROOM,
    Key("assignors/constrained.py", "counts=np.zeros(3, np.int64),", "3", "4"): ROOM,
    Key("assignors/constrained.py", "WORD = 32", "32", "33"): "an int64 holds 33 marks as well as 32",
    Key(
        "assignors/clients/franz_go.py", "for place in reversed(range(len(heap) // 2)):", "//", "*"
    ): "places without any below them are sunk too, and stay",
    Key("assignors/server/uniform.py", "return log, used, OK, -1", "1", "2"): "a mark for no failing position",
    Key(
        "assignors/server/server_range.py", "unsure = False", "False", "True"
    ): "set anew with the first member's topics",
    Key(
        "assignors/balance.py", "while at > 1:", ">", ">="
    ): "place 0, above the winner, is written too and read by none",
    Key(
        "assignors/kip615.py", "owned[claimant[at]] += 1", "1", "2"
    ): "who owns as many as the floor has no more to keep, whatever it may",
    Key(
        "assignors/clients/franz_go.py", "turned = True", "True", "False"
    ): "a ring pays only where a member has fewer of a class than it came with, so that another has what it had",
    Key(
        "assignors/server/java_collections.py", "sibling.below[side].red, sibling.red = False, True", "True", "False"
    ): "it becomes the new sibling's outer child, which is made black at the end of the step",
    Key("assignors/constrained.py", "before = -1", "1", "2"): "a mark below every key",
    Key(
        "assignors/server/iteration_orders.py", "if subscribers[topic] > 0 and g.partitions[topic] >= 0:", ">=", ">"
    ): "the size of a set for partitions of a topic that has none",
    Key(
        "assignors/clients/franz_go.py",
        "rings = Rings(cells, max(kind_of, default=NOBODY) + 1, loads)",
        "1",
        "2",
    ): "one class more, which has no partitions and is on no cycle",
    Key(
        "rebalance/step.py",
        "doubtful = shared[slot] & ~found if shared.any() else np.zeros(0, np.bool_)",
        "0",
        "1",
    ): "nothing doubtful: all that is asked is whether anything is",
    Key(
        "assignors/claims.py", "return -2 - member", "2", "3"
    ): "below the mark for nobody and its own inverse too; all that is asked is who it was",
    Key("assignors/clients/franz_go.py", "return [], 0", "0", "1"): "a generation of no claims",
    Key(
        "assignors/server/tasks.py", "if (self.tasks < 0) is not (self.members < 0):", "<", "<="
    ): "no tasks are 0 for each, whatever the sign, and no members are answered before",
    Key(
        "assignors/server/orders.py",
        "chains = np.zeros(4 * max(count, capacity, TREE_CAPACITY // 2) if count > TREE_CHAIN else 0, np.int32)",
        "2",
        "3",
    ): ROOM,
    Key(
        "assignors/clients/promises.py", "richest[topic] = max(richest.get(topic, 0), len(mine))", "0", "1"
    ): "who has something of a topic has one partition at the least",
    Key(
        "assignors/clients/kip54.py", "break", "break", "continue"
    ): "an even group stays even while nothing moves: the other partitions are skipped one by one",
}
