// Times one of Kafka's own assignors on the groups that benchmarks/assignors/groups.py wrote; compiled and started by
// benchmarks/assignors/peers.py. Prints the CRC-32 of the answer, then the CPU nanoseconds of each counted round.
//
// java AssignorBench <folder> <assignor> <warm-up seconds> <rounds>

import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

public final class AssignorBench {
    private static final int GENERATION = 7;

    /** One group as Kafka's leader holds it before it asks the assignor. */
    private record Group(
            List<String> members, List<String> topics, Map<String, List<PartitionInfo>> partitions,
            Map<String, Subscription> subscriptions) {}

    private static final class Arrays {
        final int[] memberStart, topicStart, partitions, subscription, subscriptionStart, subscribed;
        final int[] claimStart, claimTopic, claimPartition;
        final List<String> members, topics;

        Arrays(Path folder) throws IOException {
            members = Files.readAllLines(folder.resolve("members.txt"));
            topics = Files.readAllLines(folder.resolve("topics.txt"));
            ByteBuffer in = ByteBuffer.wrap(Files.readAllBytes(folder.resolve("arrays.bin")));
            memberStart = next(in);
            topicStart = next(in);
            partitions = next(in);
            subscription = next(in);
            subscriptionStart = next(in);
            subscribed = next(in);
            claimStart = next(in);
            claimTopic = next(in);
            claimPartition = next(in);
        }

        private static int[] next(ByteBuffer in) {
            int[] values = new int[in.getInt()];
            for (int at = 0; at < values.length; at++) {
                values[at] = in.getInt();
            }
            return values;
        }
    }

    public static void main(String[] arguments) throws IOException {
        List<Group> groups = groups(new Arrays(Path.of(arguments[0])));
        String assignor = arguments[1];
        double warmUp = Double.parseDouble(arguments[2]);
        int rounds = Integer.parseInt(arguments[3]);
        System.out.println(Long.toUnsignedString(digest(groups, assignor)));
        long began = cpu();
        do {
            round(groups, assignor);
        } while (cpu() - began < warmUp * 1e9);
        for (int at = 0; at < rounds; at++) {
            System.gc();
            System.out.println(round(groups, assignor));
        }
    }

    /** CPU nanoseconds of this thread and of the (serial) collector while all groups are assigned. */
    private static long round(List<Group> groups, String assignor) {
        long before = cpu();
        int members = 0;
        for (Group group : groups) {
            members += assign(group, assignor).size();
        }
        long spent = cpu() - before;
        if (members == 0) {
            throw new IllegalStateException("no member was assigned anything");
        }
        return spent;
    }

    private static long cpu() {
        long collected = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collected += collector.getCollectionTime();
        }
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + collected * 1_000_000;
    }

    private static Map<String, List<TopicPartition>> assign(Group group, String name) {
        return assignor(name).assignPartitions(group.partitions, group.subscriptions);
    }

    private static AbstractPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static List<Group> groups(Arrays arrays) {
        List<Group> groups = new ArrayList<>();
        for (int at = 0; at + 1 < arrays.memberStart.length; at++) {
            groups.add(group(arrays, at));
        }
        return groups;
    }

    /** Each member's strings are its own, as the leader decodes them from each member's bytes. */
    private static Group group(Arrays a, int at) {
        int firstTopic = a.topicStart[at];
        List<String> topics = a.topics.subList(firstTopic, a.topicStart[at + 1]);
        List<String> members = a.members.subList(a.memberStart[at], a.memberStart[at + 1]);
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (int m = a.memberStart[at]; m < a.memberStart[at + 1]; m++) {
            List<String> own = topics.stream().map(String::new).toList();
            List<String> list = list(a, a.subscription[m], own);
            List<TopicPartition> claims = new ArrayList<>();
            for (int c = a.claimStart[m]; c < a.claimStart[m + 1]; c++) {
                claims.add(new TopicPartition(own.get(a.claimTopic[c]), a.claimPartition[c]));
            }
            subscriptions.put(
                    a.members.get(m), new Subscription(list, null, claims, GENERATION, Optional.empty()));
        }
        Map<String, Integer> counts = new HashMap<>();
        for (int t = 0; t < topics.size(); t++) {
            counts.put(topics.get(t), a.partitions[firstTopic + t]);
        }
        return new Group(members, topics, partitions(counts, subscriptions), subscriptions);
    }

    private static List<String> list(Arrays a, int subscription, List<String> topics) {
        List<String> list = new ArrayList<>();
        for (int at = a.subscriptionStart[subscription]; at < a.subscriptionStart[subscription + 1]; at++) {
            list.add(topics.get(a.subscribed[at]));
        }
        return list;
    }

    /** As the leader builds it: all subscribed topics in a hash set, those with metadata in a hash map. */
    private static Map<String, List<PartitionInfo>> partitions(
            Map<String, Integer> counts, Map<String, Subscription> subscriptions) {
        Set<String> subscribed = new HashSet<>();
        subscriptions.values().forEach(each -> subscribed.addAll(each.topics()));
        Map<String, List<PartitionInfo>> partitions = new HashMap<>();
        for (String topic : subscribed) {
            List<PartitionInfo> each = new ArrayList<>();
            for (int number = 0; number < counts.get(topic); number++) {
                each.add(new PartitionInfo(topic, number, Node.noNode(), new Node[0], new Node[0]));
            }
            partitions.put(topic, each);
        }
        return partitions;
    }

    private static long digest(List<Group> groups, String assignor) {
        CRC32 crc = new CRC32();
        for (Group group : groups) {
            Map<String, Integer> local = new HashMap<>();
            group.topics.forEach(topic -> local.put(topic, local.size()));
            Map<String, List<TopicPartition>> assigned = assign(group, assignor);
            for (String member : group.members) {
                List<TopicPartition> own = assigned.get(member);
                ByteBuffer out = ByteBuffer.allocate(4 + 8 * own.size()).putInt(own.size());
                own.forEach(each -> out.putInt(local.get(each.topic())).putInt(each.partition()));
                crc.update(out.array());
            }
        }
        return crc.getValue();
    }
}
