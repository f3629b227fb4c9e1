import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * One member of a share or Streams group, until a line comes on stdin or stdin ends.
 *
 * <p>Arguments: share or streams; the topics separated by commas; the configuration as name=value.
 */
public final class GroupMember {
    private GroupMember() {}

    public static void main(String[] arguments) throws Exception {
        Properties config = new Properties();
        for (String argument : Arrays.asList(arguments).subList(2, arguments.length)) {
            int at = argument.indexOf('=');
            config.put(argument.substring(0, at), argument.substring(at + 1));
        }
        List<String> topics = Arrays.asList(arguments[1].split(","));
        Thread closing = new Thread(() -> new Scanner(System.in).hasNextLine());
        closing.setDaemon(true);
        closing.start();
        if (arguments[0].equals("share")) {
            share(config, topics, closing);
        } else {
            stream(config, topics, closing);
        }
    }

    private static void share(Properties config, List<String> topics, Thread closing) {
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(topics);
            while (closing.isAlive()) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }

    /** Counts the first topic by another key (a repartition topic and a state between two subtopologies), and merges the others. */
    private static void stream(Properties config, List<String> topics, Thread closing) throws InterruptedException {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<byte[], byte[]> bytes = Consumed.with(Serdes.ByteArray(), Serdes.ByteArray());
        builder.stream(topics.get(0), bytes)
                .groupBy((key, value) -> value, Grouped.with("by-value", Serdes.ByteArray(), Serdes.ByteArray()))
                .count(Materialized.<byte[], Long>as(Stores.inMemoryKeyValueStore("counts")).withKeySerde(Serdes.ByteArray()));
        builder.stream(topics.subList(1, topics.size()), bytes).foreach((key, value) -> {});
        try (KafkaStreams streams = new KafkaStreams(builder.build(), config)) {
            streams.start();
            closing.join();
        }
    }
}
