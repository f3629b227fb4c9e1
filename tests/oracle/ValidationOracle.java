import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.internals.ConsumerCoordinator;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.helpers.NOPLogger;

/**
 * What a leader's validation says of a custom cooperative assignor's answer: {"owned": {member: [[topic, partition]]},
 * "assigned": {..}} a line (stdin), {"valid": true or false} a line.
 */
public class ValidationOracle {
    public static void main(String[] args) throws Exception {
        ConsumerCoordinator coordinator = coordinator();
        Method validate = ConsumerCoordinator.class.getDeclaredMethod("validateCooperativeAssignment", Map.class, Map.class);
        validate.setAccessible(true);
        JsonLines.answer(asked -> {
            ObjectNode result = JsonLines.JSON.createObjectNode();
            result.set("id", asked.get("id"));
            result.put("valid", valid(validate, coordinator, asked));
            return result;
        });
    }

    /** One that was never connected: the method needs its logger and nothing else. */
    private static ConsumerCoordinator coordinator() throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field instance = unsafe.getDeclaredField("theUnsafe");
        instance.setAccessible(true);
        Object made = unsafe.getMethod("allocateInstance", Class.class).invoke(instance.get(null), ConsumerCoordinator.class);
        for (Class<?> kind = ConsumerCoordinator.class; kind != Object.class; kind = kind.getSuperclass())
            for (Field field : kind.getDeclaredFields())
                if (field.getName().equals("log")) {
                    field.setAccessible(true);
                    field.set(made, NOPLogger.NOP_LOGGER);
                }
        return (ConsumerCoordinator) made;
    }

    private static boolean valid(Method validate, ConsumerCoordinator coordinator, JsonNode asked) throws Exception {
        Map<String, Assignment> assigned = new HashMap<>();
        lists(asked.get("assigned")).forEach((member, partitions) -> assigned.put(member, new Assignment(partitions)));
        try {
            validate.invoke(coordinator, lists(asked.get("owned")), assigned);
            return true;
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof IllegalStateException)
                return false;
            throw thrown;
        }
    }

    private static Map<String, List<TopicPartition>> lists(JsonNode told) {
        Map<String, List<TopicPartition>> lists = new HashMap<>();
        told.fields().forEachRemaining(member -> {
            List<TopicPartition> partitions = new ArrayList<>();
            member.getValue().forEach(pair -> partitions.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
            lists.put(member.getKey(), partitions);
        });
        return lists;
    }
}
