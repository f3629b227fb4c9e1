import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Base64;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor.MemberData;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;

/** A subscription's bytes a line (stdin); what Kafka's sticky assignors take the member to own, and since when, a line. */
public class MemberDataOracle {
    public static void main(String[] args) throws Exception {
        JsonLines.answer(MemberDataOracle::answer);
    }

    private static ObjectNode answer(JsonNode asked) throws ReflectiveOperationException {
        ObjectNode result = JsonLines.JSON.createObjectNode();
        byte[] bytes = Base64.getDecoder().decode(asked.get("subscription").asText());
        try {
            Subscription subscription = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(bytes));
            MemberData taken = taken(asked.get("assignor").asText(), subscription);
            ArrayNode pairs = result.putArray("partitions");
            taken.partitions.forEach(each -> pairs.addArray().add(each.topic()).add(each.partition()));
            result.put("generation", taken.generation.orElse(null));
        } catch (RuntimeException failure) {
            result.put("error", failure.getClass().getSimpleName());
        }
        return result;
    }

    /** The method is protected: an assignor asks it of itself for each member, once. */
    private static MemberData taken(String assignor, Subscription subscription) throws ReflectiveOperationException {
        AbstractStickyAssignor asked = assignor.equals("sticky") ? new StickyAssignor() : new CooperativeStickyAssignor();
        Method method = asked.getClass().getDeclaredMethod("memberData", Subscription.class);
        method.setAccessible(true);
        try {
            return (MemberData) method.invoke(asked, subscription);
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof RuntimeException failure)
                throw failure;
            throw thrown;
        }
    }
}
