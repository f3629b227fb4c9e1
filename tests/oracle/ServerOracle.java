import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/** A scenario a line (stdin, the format of tests/data/parity) through Kafka's server-side assignors; a result a line. */
public class ServerOracle {
    /** The topics there are: what the coordinator's metadata image would answer. */
    private record Facts(Map<String, Uuid> ids, Map<Uuid, String> names, Map<Uuid, Integer> counts)
        implements SubscribedTopicDescriber, TopicIds.TopicResolver {
        public int numPartitions(Uuid id) { return counts.getOrDefault(id, -1); }
        public Set<String> racksForPartition(Uuid id, int partition) { return Set.of(); }
        public CoordinatorMetadataImage image() { return CoordinatorMetadataImage.EMPTY; }
        public String name(Uuid id) { return names.get(id); }
        public Uuid id(String name) { return ids.get(name); }
        public void clear() { }
    }

    public static void main(String[] args) throws Exception {
        JsonLines.answer(ServerOracle::answer);
    }

    private static ObjectNode answer(JsonNode scenario) {
        if (scenario.get("assignor").asText().equals("server-sticky"))
            return tasks(scenario);
        Facts facts = facts(scenario.get("topics"));
        Map<String, Uuid> known = new HashMap<>(facts.ids);  // those that are gone are still held
        scenario.path("deleted").fields().forEachRemaining(e -> known.put(e.getKey(), Uuid.fromString(e.getValue().asText())));
        Map<String, JsonNode> members = new LinkedHashMap<>();
        scenario.get("members").forEach(member -> members.put(member.get("id").asText(), member));
        boolean homogeneous = homogeneous(scenario, members.values());
        ObjectNode result = JsonLines.JSON.createObjectNode();
        result.set("id", scenario.get("id"));
        try {
            GroupSpec group = group(scenario, members, known, facts, homogeneous);
            write(assignor(scenario).assign(group, facts), members.keySet(), known, result);
        } catch (RuntimeException failure) {
            result.put("error", failure.getClass().getSimpleName() + ": " + failure.getMessage());
        }
        result.put("path", homogeneous ? "homogeneous" : "heterogeneous");
        return result;
    }

    private static Facts facts(JsonNode topics) {
        Facts facts = new Facts(new HashMap<>(), new HashMap<>(), new HashMap<>());
        topics.fields().forEachRemaining(topic -> {
            Uuid id = Uuid.fromString(topic.getValue().get("id").asText());
            facts.ids.put(topic.getKey(), id);
            facts.names.put(id, topic.getKey());
            facts.counts.put(id, topic.getValue().get("partitions").asInt());
        });
        return facts;
    }

    private static PartitionAssignor assignor(JsonNode scenario) {
        return switch (scenario.get("assignor").asText()) {
            case "server-range" -> new RangeAssignor();
            case "server-simple" -> new SimpleAssignor();
            default -> new UniformAssignor();
        };
    }

    private static void write(GroupAssignment given, Collection<String> members, Map<String, Uuid> known, ObjectNode result) {
        Map<Uuid, String> names = new HashMap<>();
        known.forEach((name, id) -> names.put(id, name));
        ObjectNode order = result.putObject("order");
        for (String member : members) {
            ArrayNode topics = order.putArray(member);
            MemberAssignment mine = given.members().get(member);
            if (mine == null)
                continue;
            mine.partitions().forEach((id, partitions) -> {
                if (partitions.isEmpty())  // "simple" keeps a topic that it took the last partition of
                    return;
                ArrayNode numbers = topics.addArray().add(names.get(id)).addArray();
                partitions.forEach(numbers::add);
            });
        }
    }

    private static boolean homogeneous(JsonNode scenario, Collection<JsonNode> members) {
        if (scenario.hasNonNull("subscription_type"))
            return scenario.get("subscription_type").asText().equals("homogeneous");
        Map<String, Integer> subscribers = new HashMap<>();
        for (JsonNode member : members)
            topics(member).forEach(topic -> subscribers.merge(topic, 1, Integer::sum));
        return subscribers.values().stream().allMatch(count -> count == members.size());
    }

    /** As the coordinator makes it from a record's list: the set's capacity, and so its order, depends on how. */
    private static Set<String> topics(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        return new HashSet<>(topics);
    }

    /** The members walk from the group's own map into a HashMap; the one that joins is not in the former yet. */
    private static <T> Map<String, T> walk(JsonNode scenario, Map<String, JsonNode> members, Function<JsonNode, T> read) {
        TimelineHashMap<String, Integer> group = new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
        String joining = scenario.path("joining").textValue();
        if (scenario.hasNonNull("history")) {
            for (JsonNode change : scenario.get("history"))
                if (change.get(1).asInt() >= 0)
                    group.put(change.get(0).asText(), 1);
                else
                    group.remove(change.get(0).asText());
        } else {
            members.keySet().stream().filter(member -> !member.equals(joining)).forEach(member -> group.put(member, 1));
        }
        Map<String, T> specs = new HashMap<>();
        group.forEach((member, one) -> specs.put(member, read.apply(members.get(member))));
        if (joining != null)
            specs.put(joining, read.apply(members.get(joining)));
        if (specs.size() != members.size())
            throw new IllegalArgumentException("the history does not lead to the members");
        return specs;
    }

    private static GroupSpec group(
        JsonNode scenario, Map<String, JsonNode> members, Map<String, Uuid> known, Facts facts, boolean homogeneous
    ) {
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Map<String, MemberSubscriptionAndAssignmentImpl> specs =
            walk(scenario, members, member -> member(member, known, facts, owners));
        SubscriptionType type = homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(Collections.unmodifiableMap(specs), type, owners);
    }

    private static MemberSubscriptionAndAssignmentImpl member(
        JsonNode member, Map<String, Uuid> known, Facts facts, Map<Uuid, Map<Integer, String>> owners
    ) {
        Map<Uuid, List<Integer>> held = new LinkedHashMap<>();
        for (JsonNode pair : member.get("assigned")) {
            Uuid id = known.get(pair.get(0).asText());
            held.computeIfAbsent(id, x -> new ArrayList<>()).add(pair.get(1).asInt());
            owners.computeIfAbsent(id, x -> new HashMap<>()).put(pair.get(1).asInt(), member.get("id").asText());
        }
        var target = new ConsumerGroupTargetAssignmentMemberValue();
        held.forEach((id, partitions) -> target.topicPartitions().add(
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(id).setPartitions(partitions)));
        Optional<String> instance = Optional.ofNullable(member.path("instance_id").textValue());
        TopicIds topics = new TopicIds(topics(member), facts);
        return new MemberSubscriptionAndAssignmentImpl(Optional.empty(), instance, topics, Assignment.fromRecord(target));
    }

    /** A Streams group: what each member gets, active tasks and standby tasks, each list sorted. */
    private static ObjectNode tasks(JsonNode scenario) {
        Map<String, JsonNode> members = new LinkedHashMap<>();
        scenario.get("members").forEach(member -> members.put(member.get("id").asText(), member));
        var specs = walk(scenario, members, ServerOracle::taskMember);
        var replicas = Map.of("num.standby.replicas", Integer.toString(scenario.path("standby_replicas").asInt(0)));
        var group = new org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl(
            specs, AssignmentConfigsImpl.fromMap(replicas));
        ObjectNode result = JsonLines.JSON.createObjectNode();
        result.set("id", scenario.get("id"));
        try {
            var given = new StickyTaskAssignor().assign(group, new Topology(scenario.get("subtopologies")));
            ObjectNode active = result.putObject("active");
            ObjectNode standby = result.putObject("standby");
            for (String member : members.keySet()) {
                write(given.members().get(member).activeTasks(), active.putArray(member));
                write(given.members().get(member).standbyTasks(), standby.putArray(member));
            }
        } catch (RuntimeException failure) {
            result.put("error", failure.getClass().getSimpleName() + ": " + failure.getMessage());
        }
        return result;
    }

    private record Topology(JsonNode facts) implements TopologyDescriber {
        public List<String> subtopologies() {
            List<String> names = new ArrayList<>();
            facts.fieldNames().forEachRemaining(names::add);
            Collections.sort(names);
            return names;
        }
        public int maxNumInputPartitions(String name) { return facts.get(name).get("tasks").asInt(); }
        public boolean isStateful(String name) { return facts.get(name).path("stateful").asBoolean(); }
    }

    private static MemberMetadataAndStateImpl taskMember(JsonNode member) {
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        member.path("offsets").forEach(each -> offsets
            .computeIfAbsent(each.get(0).asText(), x -> new HashMap<>()).put(each.get(1).asInt(), each.get(2).asLong()));
        return new MemberMetadataAndStateImpl(
            Optional.empty(), Optional.empty(), member.get("process_id").asText(), Map.of(),
            taskSets(member.path("active")), taskSets(member.path("standby")), Map.of(), offsets, Map.of());
    }

    private static Map<String, Set<Integer>> taskSets(JsonNode tasks) {
        Map<String, Set<Integer>> sets = new HashMap<>();
        tasks.forEach(each -> sets.computeIfAbsent(each.get(0).asText(), x -> new HashSet<>()).add(each.get(1).asInt()));
        return sets;
    }

    private static void write(Map<String, Set<Integer>> tasks, ArrayNode out) {
        new TreeMap<>(tasks).forEach((subtopology, numbers) ->
            numbers.stream().sorted().forEach(number -> out.addArray().add(subtopology).add(number)));
    }
}
