import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor.MemberData;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;

/** A subscription's bytes a line (stdin); what Kafka's sticky assignors take the member to own, and since when, a line. */
public class MemberDataOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            out.flush();
        }
    }

    private static ObjectNode answer(JsonNode asked) throws ReflectiveOperationException {
        ObjectNode result = JSON.createObjectNode();
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
