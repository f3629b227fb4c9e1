import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One member of a group over Kafka's own client; speaks as client.py does.
 *
 * <p>Arguments: the topics separated by commas, or none to join when told to subscribe; how many milliseconds the
 * listener takes over what is revoked; then the configuration as name=value.
 */
public final class LiveClient implements ConsumerRebalanceListener {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final long revokingMs;

    private LiveClient(Properties config, long revokingMs) {
        consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        this.revokingMs = revokingMs;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Properties config = new Properties();
        for (String argument : Arrays.asList(arguments).subList(2, arguments.length)) {
            int at = argument.indexOf('=');
            config.put(argument.substring(0, at), argument.substring(at + 1));
        }
        LinkedBlockingQueue<String> orders = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(orders));
        reader.setDaemon(true);
        reader.start();
        new LiveClient(config, Long.parseLong(arguments[1])).run(arguments[0], orders);
    }

    private static void read(LinkedBlockingQueue<String> orders) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            orders.add(lines.nextLine());
        }
        orders.add("close");
    }

    private void run(String topics, LinkedBlockingQueue<String> orders) throws InterruptedException {
        boolean polls = !topics.isEmpty();
        if (polls) {
            subscribe(Arrays.asList(topics.split(",")));
        }
        say("{\"call\": \"ready\"}");
        String order = null;
        while (!"close".equals(order)) {
            if (polls) {
                consumer.poll(Duration.ofMillis(100));
            }
            order = polls ? orders.poll() : orders.take();
            if (order == null) {
                continue;
            }
            polls = !order.equals("hang");
            if (order.startsWith("subscribe ")) {
                List<String> words = Arrays.asList(order.split(" "));
                subscribe(words.subList(1, words.size()));
            }
        }
        consumer.close();
    }

    /** To topics, or to the one regular expression that the coordinator is to resolve: it begins with ^. */
    private void subscribe(List<String> topics) {
        if (topics.get(0).startsWith("^")) {
            consumer.subscribe(new SubscriptionPattern(topics.get(0)), this);
        } else {
            consumer.subscribe(topics, this);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tell("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        tell("revoked", partitions);
        try {
            Thread.sleep(revokingMs);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
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
        String head = "{\"call\": \"" + call + "\", \"ms\": " + System.currentTimeMillis() + ", \"member_id\": \"" + id;
        say(head + "\", \"partitions\": " + listed + "}");
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
