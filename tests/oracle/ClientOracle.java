import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** A scenario a line (stdin, the format of tests/data/parity) through Kafka's client assignors; a result a line. */
public class ClientOracle {
    public static void main(String[] args) throws Exception {
        JsonLines.answer(ClientOracle::answer);
    }

    private static ObjectNode answer(JsonNode scenario) {
        ObjectNode result = JsonLines.JSON.createObjectNode();
        result.set("id", scenario.get("id"));
        ConsumerPartitionAssignor assignor = assignor(scenario.get("assignor").asText());
        try {
            var given = assignor.assign(cluster(scenario), new GroupSubscription(subscriptions(scenario)));
            ObjectNode lists = JsonLines.JSON.createObjectNode();
            given.groupAssignment().forEach((member, mine) -> {
                ArrayNode pairs = lists.putArray(member);
                mine.partitions().forEach(each -> pairs.addArray().add(each.topic()).add(each.partition()));
            });
            result.set("assignment", lists);
            if (assignor instanceof AbstractStickyAssignor sticky)
                describe(sticky, result);
        } catch (RuntimeException failure) {
            result.put("error", failure.getClass().getSimpleName() + ": " + failure.getMessage());
        }
        return result;
    }

    private static void describe(AbstractStickyAssignor sticky, ObjectNode result) {
        Map<TopicPartition, String> moving = sticky.partitionsTransferringOwnership();
        result.put("path", moving == null ? "general" : "constrained");
        if (moving == null) {
            result.putNull("transferring");
            result.put("is_sticky", sticky.isSticky());  // the constrained algorithm notes no movements: it would throw
        } else {
            ArrayNode rows = result.putArray("transferring");
            moving.forEach((each, to) -> rows.addArray().add(each.topic()).add(each.partition()).add(to));
        }
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException("no client assignor is called " + name);
        };
    }

    private static Cluster cluster(JsonNode scenario) {
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Node> nodes = new HashMap<>();
        scenario.get("topics").fields().forEachRemaining(topic -> {
            for (int number = 0; number < topic.getValue().asInt(); number++) {
                Node[] replicas = replicas(scenario.path("racks").path(topic.getKey()).path(number), nodes);
                Node leader = replicas.length > 0 ? replicas[0] : null;
                partitions.add(new PartitionInfo(topic.getKey(), number, leader, replicas, replicas));
            }
        });
        return new Cluster("oracle", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static Node[] replicas(JsonNode racks, Map<String, Node> nodes) {
        List<Node> replicas = new ArrayList<>();
        for (JsonNode rack : racks) {
            String name = rack.isNull() ? null : rack.asText();
            replicas.add(nodes.computeIfAbsent(String.valueOf(rack), x -> new Node(nodes.size(), "localhost", 9092, name)));
        }
        return replicas.toArray(Node[]::new);
    }

    private static Map<String, Subscription> subscriptions(JsonNode scenario) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        boolean sticky = scenario.get("assignor").asText().equals("sticky");
        for (JsonNode member : scenario.get("members"))
            subscriptions.put(member.get("id").asText(), subscription(member, sticky));
        return subscriptions;
    }

    private static Subscription subscription(JsonNode member, boolean sticky) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.path("owned").forEach(pair -> owned.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
        int generation = member.path("generation").asInt(-1);
        ByteBuffer data = null;
        if (member.hasNonNull("user_data"))
            data = ByteBuffer.wrap(Base64.getDecoder().decode(member.get("user_data").asText()));
        else if (sticky)
            data = written(owned, generation, topics);
        Optional<String> rack = Optional.ofNullable(member.path("rack").textValue());
        var subscription = new Subscription(topics, data, sticky ? List.of() : owned, generation, rack);
        subscription.setGroupInstanceId(Optional.ofNullable(member.path("instance_id").textValue()));
        return subscription;
    }

    /** What a member's own StickyAssignor puts into its user data after it was given these partitions. */
    private static ByteBuffer written(List<TopicPartition> owned, int generation, List<String> topics) {
        StickyAssignor member = new StickyAssignor();
        member.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("g", generation, "m", Optional.empty()));
        return member.subscriptionUserData(new HashSet<>(topics));
    }
}
