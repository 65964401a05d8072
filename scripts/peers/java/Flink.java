import java.io.File;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Counts a gallery's recording with the DataStream API: state in RocksDB, a checkpoint every five seconds, exactly once. */
public class Flink {
  public static void main(String[] args) throws Exception {
    String recording = args[0], dir = args[1];
    Configuration conf = new Configuration();
    conf.set(StateBackendOptions.STATE_BACKEND, "rocksdb");
    conf.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
    conf.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, new File(dir, "checkpoints").toURI().toString());
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
    env.setParallelism(2);
    env.enableCheckpointing(Duration.ofSeconds(5).toMillis());
    FileSource<String> source = FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(recording)).build();
    env.fromSource(source, WatermarkStrategy.noWatermarks(), "recording").setParallelism(1)
        .flatMap(new Steps())
        .keyBy(t -> t.f0)
        .process(new Count())
        .sinkTo(FileSink.forRowFormat(new Path(new File(dir, "derived").toURI()), new SimpleStringEncoder<String>()).build());
    env.execute("gallery");
  }

  /** What each record adds: the target, the value's name, one more or one less. The value "" says that the target exists. */
  static class Steps extends RichFlatMapFunction<String, Tuple3<String, String, Integer>> {
    private transient ObjectMapper mapper;

    @Override
    public void open(OpenContext context) {
      mapper = new ObjectMapper();
    }

    @Override
    public void flatMap(String line, Collector<Tuple3<String, String, Integer>> out) throws Exception {
      for (JsonNode record : mapper.readTree(line).path("Records")) {
        step(record.path("dynamodb").path("OldImage"), -1, out);
        step(record.path("dynamodb").path("NewImage"), 1, out);
      }
    }

    private static void step(JsonNode image, int by, Collector<Tuple3<String, String, Integer>> out) {
      if (image.isMissingNode()) {
        return;
      }
      switch (text(image, "EntityType")) {
        case "Album", "Media" -> out.collect(Tuple3.of(text(image, "PK"), "", by));
        case "AlbumMedia" -> out.collect(Tuple3.of("ALBUM#" + text(image, "albumId"), "mediaCount", by));
        case "UserInteraction" -> out.collect(Tuple3.of("MEDIA#" + text(image, "mediaId"), text(image, "interactionType") + "Count", by));
        default -> { }
      }
    }

    private static String text(JsonNode image, String name) {
      return image.path(name).path("S").asText();
    }
  }

  /** Adds up the steps of a target, and prints the sums when the input has ended. */
  static class Count extends KeyedProcessFunction<String, Tuple3<String, String, Integer>, String> {
    private transient MapState<String, Long> sums;

    @Override
    public void open(OpenContext context) {
      sums = getRuntimeContext().getMapState(new MapStateDescriptor<>("sums", Types.STRING, Types.LONG));
    }

    @Override
    public void processElement(Tuple3<String, String, Integer> step, Context context, Collector<String> out) throws Exception {
      Long sum = sums.get(step.f1);
      if (sum == null) {
        context.timerService().registerEventTimeTimer(Long.MAX_VALUE);
      }
      sums.put(step.f1, (sum == null ? 0 : sum) + step.f2);
    }

    @Override
    public void onTimer(long at, OnTimerContext context, Collector<String> out) throws Exception {
      Long rows = sums.get("");
      if (rows == null || rows == 0) {
        return;
      }
      for (var e : sums.entries()) {
        if (!e.getKey().isEmpty() && e.getValue() != 0) {
          out.collect(context.getCurrentKey() + " " + e.getKey() + " " + e.getValue());
        }
      }
    }
  }
}
