package traces_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"weir/internal/measures"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/traces"
	"weir/internal/value"
)

// world is a model over a store, all of it traced into memory.
type world struct {
	*system.System
	spans *tracetest.InMemoryExporter
	with  *traces.Tracing
}

// open opens the system over a store that open makes.
func open(t *testing.T, store func(tables []store.Table, told store.Observer) store.Store) *world {
	t.Helper()
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	names, err := stage.New(stage.Stage{}, tables)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{spans: tracetest.NewInMemoryExporter()}
	w.with = traces.New(sdk.NewTracerProvider(sdk.WithSyncer(w.spans)))
	db := store(tables, w.with.Observer(names))
	systemtest.Made(t, db, m)
	if w.System, err = system.Over(t.Context(), db, t.TempDir(), []*model.Model{m}, system.Options{InMemory: true, Tracer: w.with}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); w.with.Close() })
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Reach(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func openEmbedded(t *testing.T) *world {
	return open(t, func(tables []store.Table, told store.Observer) store.Store {
		db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Observe: told})
		if err != nil {
			t.Fatal(err)
		}
		return db
	})
}

// put writes rows of the application.
func (w *world) put(t *testing.T, rows ...value.Item) {
	t.Helper()
	for _, row := range rows {
		key, _ := w.Models[0].Model.Tables[0].KeyOf(row)
		out, err := w.Store.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Put: row}})
		if err = errors.Join(err, out[0].Err); err != nil {
			t.Fatal(err)
		}
	}
}

// catchUp applies all that is in the streams, and returns the spans that ended meanwhile.
func (w *world) catchUp(t *testing.T) tracetest.SpanStubs {
	t.Helper()
	w.spans.Reset()
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: w.Models[0].Runner, Prompt: true}
	if err := f.CatchUp(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	return w.spans.GetSpans()
}

func rowOf(attrs ...string) (out value.Item) {
	for i := 0; i < len(attrs); i += 2 {
		out = out.With(value.Attr{Name: attrs[i], Value: value.OfString(attrs[i+1])})
	}
	return out
}

// of returns the attribute of a span as text, "" for none.
func of(s *tracetest.SpanStub, name string) string {
	for _, a := range s.Attributes {
		if a.Key == attribute.Key("weir."+name) {
			return a.Value.String()
		}
	}
	return ""
}

// below returns what is below a span, by name.
func below(all tracetest.SpanStubs, parent *tracetest.SpanStub, name string) (out []*tracetest.SpanStub) {
	for i := range all {
		s := &all[i]
		if s.Name == name && s.Parent.SpanID() == parent.SpanContext.SpanID() && s.SpanContext.TraceID() == parent.SpanContext.TraceID() {
			out = append(out, s)
		}
	}
	return out
}

// TestSpans: a batch is a trace. Below it is a span for each row that it writes, and below that each write, of the
// ledger and of the row; the spans lie within those above them, and every span of the store is in a batch.
func TestSpans(t *testing.T) { testSpans(t, openEmbedded(t)) }

// TestSpansOnDynamoDB is TestSpans where each write is a request of its own.
func TestSpansOnDynamoDB(t *testing.T) {
	config := dynamodbtest.Config(t)
	testSpans(t, open(t, func(tables []store.Table, told store.Observer) store.Store {
		return dynamodbtest.Open(t, config, tables, dynamodb.Options{Observe: told})
	}))
}

func testSpans(t *testing.T, w *world) {
	w.put(t,
		rowOf("PK", "ALBUM#sea", "SK", "METADATA", "EntityType", "Album", "id", "sea", "title", "The sea", "isPublic", "true", "createdAt", "2026-01-31T12:00:00Z"),
		rowOf("PK", "ALBUM#sea", "SK", "MEDIA#1", "EntityType", "AlbumMedia", "albumId", "sea", "mediaId", "1", "addedAt", "2026-01-31T12:00:00Z"),
	)
	all := w.catchUp(t)
	ids, times := map[string]*tracetest.SpanStub{}, 0
	for i := range all {
		ids[all[i].SpanContext.SpanID().String()] = &all[i]
	}
	var target *tracetest.SpanStub
	for i := range all {
		s := &all[i]
		if s.Name == runner.SpanBatch {
			if s.Parent.IsValid() {
				t.Errorf("a batch is below another span: %+v", s)
			}
			times++
			for _, of := range below(all, s, "target") {
				if strings.HasSuffix(attributeOf(of), "|ALBUM#sea|METADATA") {
					target = of
				}
			}
			continue
		}
		p := ids[s.Parent.SpanID().String()]
		if !s.Parent.IsValid() && s.Name == runner.SpanIndex {
			continue // it is behind the batches
		}
		if p == nil {
			t.Errorf("%s is in no span", s.Name)
		} else if s.StartTime.Before(p.StartTime) || s.EndTime.After(p.EndTime) {
			t.Errorf("%s is not within %s", s.Name, p.Name)
		}
	}
	if times == 0 || target == nil {
		t.Fatalf("%d batches, and the album's span is %v", times, target)
	}
	wrote := map[string]int{}
	for _, s := range below(all, target, "write") {
		wrote[of(s, "table")+" "+of(s, "row")+" "+of(s, "outcome")]++
	}
	if wrote["weir ledger done"] == 0 || wrote["gallery  done"] == 0 {
		t.Errorf("the album's writes are %v; they should be of its ledger and of itself", wrote)
	}
	var applied int64
	for i := range all {
		for _, e := range all[i].Events {
			for _, a := range e.Attributes {
				if e.Name == "applied" && a.Key == "weir.applied" {
					applied += a.Value.AsInt64()
				}
			}
		}
	}
	if applied == 0 {
		t.Error("no batch says how many records it applied")
	}
	if !slices.ContainsFunc(all, func(s tracetest.SpanStub) bool { return s.Name == runner.SpanIndex }) {
		t.Error("the documents have no span")
	}
	w.spans.Reset()
	if _, err := w.Store.Get(t.Context(), []store.Ref{owntable.Ledger("gallery", store.Ref{Table: "gallery"})}); err != nil || len(w.spans.GetSpans()) > 0 {
		t.Errorf("a read outside a batch has a span, or fails: %v", err)
	}
}

func attributeOf(s *tracetest.SpanStub) string { return of(s, "target") }

// TestRoom: a batch has at most so many spans below it, and says how many it left out.
func TestRoom(t *testing.T) {
	w := openEmbedded(t)
	ctx, end := w.with.Begin(t.Context(), runner.Span{Name: runner.SpanBatch})
	var ws []store.Write
	for i := range 700 {
		key := store.Key{Partition: value.OfString(fmt.Sprint("ALBUM#", i)), Sort: value.OfString("METADATA")}
		ws = append(ws, store.Write{Ref: store.Ref{Table: "gallery", Key: key}, Delete: true})
	}
	if _, err := w.Store.Write(ctx, ws); err != nil {
		t.Fatal(err)
	}
	end(nil)
	all := w.spans.GetSpans()
	last := &all[len(all)-1]
	// 500 rows with one write each fill it; of the other 200 neither is there.
	if len(all) != 1001 || of(last, "spans_left_out") != "200" || of(last, "targets") != "500" {
		t.Errorf("%d spans, %s left out, %s targets", len(all), of(last, "spans_left_out"), of(last, "targets"))
	}
}

// TestFailure: the error of a batch is the batch's own, and the line of the log that has it names the trace; a
// condition that does not hold is no failure.
func TestFailure(t *testing.T) {
	w := openEmbedded(t)
	broken := errors.New("the disk is full")
	ctx, end := w.with.Begin(t.Context(), runner.Span{Name: runner.SpanBatch})
	inner, endInner := w.with.Begin(ctx, runner.Span{Name: runner.SpanIndex})
	key := store.Key{Partition: value.OfString("ALBUM#1"), Sort: value.OfString("METADATA")}
	_, err := w.Store.Write(inner, []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Delete: true, If: store.Cond{{{Attr: "PK", Is: store.Exists}}}}})
	if err != nil {
		t.Fatal(err)
	}
	failed := end(fmt.Errorf("applying: %w", endInner(broken)))
	all := w.spans.GetSpans()
	batch := &all[len(all)-1]
	if !errors.Is(failed, broken) || failed.Error() != "applying: the disk is full" || batch.Status.Code != codes.Error {
		t.Errorf("%v, %+v", failed, batch.Status)
	}
	var out bytes.Buffer
	measures.JSON(&out, slog.LevelInfo).Warn("applying", "model", "gallery", "error", failed)
	if want := `"trace_id":"` + batch.SpanContext.TraceID().String() + `"`; !strings.Contains(out.String(), want) {
		t.Errorf("%s has no %s", out.String(), want)
	}
	for i := range all {
		if all[i].Name == "write" && (of(&all[i], "outcome") != "condition" || all[i].Status.Code == codes.Error) {
			t.Errorf("the write is %q, %+v", of(&all[i], "outcome"), all[i].Status)
		}
	}
}

// TestOpen: without the flag, or where the environment says so, there is no tracing; what weir cannot do is refused.
func TestOpen(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, c := range []struct {
		mode  traces.Mode
		env   string
		wants string // of the error; "off", "on"
	}{
		{"", "", "off"},
		{traces.Off, "", "off"},
		{traces.OTLP, "", "on"},
		{traces.OTLP, "OTEL_SDK_DISABLED=true", "off"},
		{traces.OTLP, "OTEL_TRACES_EXPORTER=none", "off"},
		{traces.OTLP, "OTEL_TRACES_EXPORTER=zipkin", `OTEL_TRACES_EXPORTER is "zipkin"`},
		{traces.OTLP, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"`},
		{traces.OTLP, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", "on"},
		{traces.OTLP, "OTEL_RESOURCE_ATTRIBUTES=nothing", "OTEL_RESOURCE_ATTRIBUTES"},
		{"jaeger", "", `the mode is "jaeger"`},
	} {
		t.Run(string(c.mode)+" "+c.env, func(t *testing.T) {
			if name, is, ok := strings.Cut(c.env, "="); ok {
				t.Setenv(name, is)
			}
			with, err := traces.Open(t.Context(), c.mode, "weir", "1", log)
			switch {
			case c.wants == "off" || c.wants == "on":
				if err != nil || (with != nil) != (c.wants == "on") {
					t.Errorf("%v, %v", with, err)
				}
			case !errors.Is(err, traces.ErrConfig) || !strings.Contains(err.Error(), c.wants):
				t.Errorf("%v", err)
			}
			if (with == nil) != (with.Observer(stage.Names{}) == nil) {
				t.Error("a store observes without tracing, or does not with it")
			}
			with.Close()
		})
	}
}

// TestCollectorDown: a collector that does not answer delays a flush by no more than it is given, and is logged once.
func TestCollectorDown(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	var out bytes.Buffer
	with, err := traces.Open(t.Context(), traces.OTLP, "weir", "1", measures.JSON(&out, slog.LevelInfo))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, end := with.Begin(context.Background(), runner.Span{Name: runner.SpanBatch})
		end(nil)
		start := time.Now()
		with.Flush(t.Context(), 100*time.Millisecond)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	if n := strings.Count(out.String(), `"event":"traces.failed"`); n != 1 {
		t.Errorf("%d lines: %s", n, out.String())
	}
}
