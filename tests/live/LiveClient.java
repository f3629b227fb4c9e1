import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One member of a group over Kafka's own client; speaks as client.py does.
 *
 * <p>Arguments: the topics separated by commas, then the configuration as name=value.
 */
public final class LiveClient implements ConsumerRebalanceListener {
    private final KafkaConsumer<byte[], byte[]> consumer;

    private LiveClient(Properties config) {
        consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public static void main(String[] arguments) {
        Properties config = new Properties();
        for (String argument : Arrays.asList(arguments).subList(1, arguments.length)) {
            int at = argument.indexOf('=');
            config.put(argument.substring(0, at), argument.substring(at + 1));
        }
        ConcurrentLinkedQueue<String> orders = new ConcurrentLinkedQueue<>();
        Thread reader = new Thread(() -> read(orders));
        reader.setDaemon(true);
        reader.start();
        new LiveClient(config).run(Arrays.asList(arguments[0].split(",")), orders);
    }

    private static void read(ConcurrentLinkedQueue<String> orders) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            orders.add(lines.nextLine());
        }
        orders.add("close");
    }

    private void run(List<String> topics, ConcurrentLinkedQueue<String> orders) {
        consumer.subscribe(topics, this);
        String order = null;
        while (!"close".equals(order)) {
            consumer.poll(Duration.ofMillis(100));
            order = orders.poll();
            if (order != null && order.startsWith("subscribe ")) {
                List<String> words = Arrays.asList(order.split(" "));
                consumer.subscribe(words.subList(1, words.size()), this);
            }
        }
        consumer.close();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tell("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        tell("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        tell("lost", partitions);
    }

    private void tell(String call, Collection<TopicPartition> partitions) {
        List<String> listed = new ArrayList<>();
        for (TopicPartition each : partitions) {
            listed.add("[\"" + each.topic() + "\", " + each.partition() + "]");
        }
        String id = consumer.groupMetadata().memberId();
        System.out.println("{\"call\": \"" + call + "\", \"member_id\": \"" + id + "\", \"partitions\": " + listed + "}");
        System.out.flush();
    }
}
