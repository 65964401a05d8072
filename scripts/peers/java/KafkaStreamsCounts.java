import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/** Counts a gallery's recording with Kafka Streams, exactly once, beside a broker of its own. */
public class KafkaStreamsCounts {
  static final int PARTITIONS = 2;
  static final ObjectMapper mapper = new ObjectMapper();
  static final AtomicLong produced = new AtomicLong(), read = new AtomicLong(), stepped = new AtomicLong(), counted = new AtomicLong();

  public static void main(String[] args) throws Exception {
    Path recording = Path.of(args[0]), dir = Path.of(args[1]);
    int port = Integer.parseInt(args[2]);
    String address = "127.0.0.1:" + port;
    Process broker = startBroker(dir, port);
    try {
      try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
        admin.createTopics(List.of(new NewTopic("records", PARTITIONS, (short) 1))).all().get();
      }
      produce(recording, address);
      try (KafkaStreams streams = new KafkaStreams(topology(), config(dir, address))) {
        streams.start();
        awaitEnd();
        print(streams, dir.resolve("derived"));
      }
    } finally {
      broker.destroy();
      broker.waitFor();
    }
  }

  /** Starts a broker that is its own controller, in a process with the class path of this one. */
  static Process startBroker(Path dir, int port) throws Exception {
    Path config = dir.resolve("broker.properties");
    Files.writeString(config, String.join("\n",
        "process.roles=broker,controller", "node.id=1",
        "controller.quorum.voters=1@127.0.0.1:" + (port + 1), "controller.listener.names=CONTROLLER",
        "listeners=PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + (port + 1),
        "advertised.listeners=PLAINTEXT://127.0.0.1:" + port, "log.dirs=" + dir.resolve("broker"),
        "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
        "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=1",
        "group.initial.rebalance.delay.ms=0"));
    Process format = java(dir, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", config.toString()).start();
    if (format.waitFor() != 0) {
      throw new IllegalStateException("the broker's storage could not be formatted: see " + dir.resolve("broker.log"));
    }
    return java(dir, "kafka.Kafka", config.toString()).start();
  }

  static ProcessBuilder java(Path dir, String main, String... args) {
    List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-Xmx1g",
        "-cp", System.getProperty("java.class.path"), main));
    command.addAll(List.of(args));
    File log = dir.resolve("broker.log").toFile();
    return new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log));
  }

  /** Writes the recording's records to the topic, by their keys, as a connector would. */
  static void produce(Path recording, String address) throws Exception {
    Properties p = new Properties();
    p.put("bootstrap.servers", address);
    p.put("linger.ms", "20");
    p.put("batch.size", "262144");
    p.put("compression.type", "lz4");
    try (var producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
        BufferedReader in = Files.newBufferedReader(recording)) {
      for (String line; (line = in.readLine()) != null; ) {
        for (JsonNode record : mapper.readTree(line).path("Records")) {
          JsonNode keys = record.path("dynamodb").path("Keys");
          producer.send(new ProducerRecord<>("records", text(keys, "PK") + " " + text(keys, "SK"), record.toString()));
          produced.incrementAndGet();
        }
      }
    }
  }

  static Properties config(Path dir, String address) {
    Properties p = new Properties();
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, "gallery");
    p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, address);
    p.put(StreamsConfig.STATE_DIR_CONFIG, dir.resolve("state").toString());
    p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    p.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, PARTITIONS);
    p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1000);
    p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 64 << 20);
    p.put("auto.offset.reset", "earliest");
    return p;
  }

  static org.apache.kafka.streams.Topology topology() {
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream("records", Consumed.with(Serdes.String(), Serdes.String()))
        .flatMap((key, record) -> steps(record))
        .groupByKey(Grouped.with("steps", Serdes.String(), Serdes.Integer()))
        .aggregate(() -> 0L, (key, by, sum) -> { counted.incrementAndGet(); return sum + by; },
            Materialized.<String, Long, org.apache.kafka.streams.state.KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("sums")
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()));
    return builder.build();
  }

  /** What a record adds, by target and value; the value "" says that the target exists. */
  static List<KeyValue<String, Integer>> steps(String record) {
    try {
      JsonNode change = mapper.readTree(record).path("dynamodb");
      List<KeyValue<String, Integer>> out = new ArrayList<>();
      step(change.path("OldImage"), -1, out);
      step(change.path("NewImage"), 1, out);
      stepped.addAndGet(out.size());
      read.incrementAndGet();
      return out;
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  static void step(JsonNode image, int by, List<KeyValue<String, Integer>> out) {
    switch (text(image, "EntityType")) {
      case "Album", "Media" -> out.add(KeyValue.pair(text(image, "PK") + " ", by));
      case "AlbumMedia" -> out.add(KeyValue.pair("ALBUM#" + text(image, "albumId") + " mediaCount", by));
      case "UserInteraction" -> out.add(KeyValue.pair("MEDIA#" + text(image, "mediaId") + " " + text(image, "interactionType") + "Count", by));
      default -> { }
    }
  }

  static String text(JsonNode image, String name) {
    return image.path(name).path("S").asText();
  }

  /** Waits until all that was produced has been counted; closing commits it. */
  static void awaitEnd() throws InterruptedException {
    while (read.get() < produced.get() || counted.get() < stepped.get()) {
      Thread.sleep(50);
    }
  }

  static void print(KafkaStreams streams, Path to) throws Exception {
    ReadOnlyKeyValueStore<String, Long> sums =
        streams.store(StoreQueryParameters.fromNameAndType("sums", QueryableStoreTypes.<String, Long>keyValueStore()));
    TreeMap<String, Long> all = new TreeMap<>();
    try (var it = sums.all()) {
      it.forEachRemaining(e -> all.put(e.key, e.value));
    }
    try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(to))) {
      all.forEach((key, n) -> {
        String target = key.substring(0, key.indexOf(' ') + 1);
        if (!key.equals(target) && n != 0 && all.getOrDefault(target, 0L) > 0) {
          out.println(key + " " + n);
        }
      });
    }
  }
}
