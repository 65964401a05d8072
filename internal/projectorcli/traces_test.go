package projectorcli

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"weir/internal/soaktest"
)

// spans collects what programs send by OTLP over HTTP.
type spans struct {
	t *testing.T

	mu    sync.Mutex
	named map[string]string // by span id, the name, with the group of a batch
	above map[string]string // by span id, that above it
	asked int
	by    string // the service that the last ones are of
}

// listen starts a collector, and says where it is in the environment.
func listen(t *testing.T) *spans {
	t.Helper()
	s := &spans{t: t, named: map[string]string{}, above: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "tenant=weir")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	return s
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in collector.ExportTraceServiceRequest
	body, err := gzip.NewReader(r.Body)
	if err == nil {
		var b []byte
		if b, err = io.ReadAll(body); err == nil {
			err = proto.Unmarshal(b, &in)
		}
	}
	if err != nil || r.Method != "POST" || r.URL.Path != "/v1/traces" || r.Header.Get("Tenant") != "weir" {
		s.t.Errorf("%s %s, %v: %v", r.Method, r.URL, r.Header, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	for _, of := range in.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				s.by = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				s.named[string(span.SpanId)], s.above[string(span.SpanId)] = span.Name, string(span.ParentSpanId)
			}
		}
	}
	out, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(out)
}

// paths counts the ways from a span without one above it down to each span.
func (s *spans) paths() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for id := range s.named {
		var way []string
		for at := id; s.named[at] != ""; at = s.above[at] {
			way = append([]string{s.named[at]}, way...)
		}
		out[strings.Join(way, " > ")]++
	}
	return out
}

// service is the service that the last spans are of, and how many requests there were.
func (s *spans) service() (by string, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by, s.asked
}

// await waits until a way was received.
func (s *spans) await(path string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if s.paths()[path] > 0 {
			return
		}
	}
	s.t.Fatalf("no %s among %v", path, s.paths())
}

// TestTraces: with --traces, run and build send each batch, with the rows and the writes below it, and a function does
// so before it answers. Without, they send nothing.
func TestTraces(t *testing.T) {
	soaktest.Calm(t)
	t.Run("run", func(t *testing.T) {
		s, dir := listen(t), galleryRows(t)
		serve(t, nil, exitInterrupted, "run", "gallery", "--data", dir, "--addr", "127.0.0.1:0", "--traces", "otlp")
		s.await("batch > target > write")
		if by, _ := s.service(); by != "weir" {
			t.Errorf("the service is %q", by)
		}
	})
	t.Run("build", func(t *testing.T) {
		s, dir := listen(t), galleryRows(t)
		command(t, "build", "gallery", "--data", dir, "--again", "--traces", "otlp")
		s.await("batch > target > write") // all of it was sent when the command ended
	})
	t.Run("function", func(t *testing.T) {
		s, dir := listen(t), galleryRows(t)
		records := aShard(t, dir)
		t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "60000") // only what is flushed comes
		f := startFunction(t, "WEIR_DATA="+dir, "WEIR_TRACES=otlp", "OTEL_SERVICE_NAME=albums")
		answerTo(t, f, payload(t, windowed("shardId-1", records, nil)))
		if by, _ := s.service(); s.paths()["batch > target > write"] == 0 || by != "albums" {
			t.Errorf("the function answers before it has sent %v of %q", s.paths(), by)
		}
	})
	t.Run("off", func(t *testing.T) {
		s, dir := listen(t), galleryRows(t)
		command(t, "build", "gallery", "--data", dir, "--again")
		if _, asked := s.service(); asked > 0 {
			t.Errorf("without --traces it sends %v", s.paths())
		}
	})
}

// TestTracesRefused: a mistake in the environment is one of usage, before anything is opened.
func TestTracesRefused(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	var out buffer
	if code := run(t.Context(), []string{"build", "gallery", "--data", t.TempDir(), "--traces", "otlp"}, strings.NewReader(""), &out, &out); code != exitUsage ||
		!strings.Contains(out.text(), "OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\"") {
		t.Errorf("exit %d: %s", code, out.text())
	}
	f := newFunction(t, "WEIR_TRACES=otlp", "WEIR_DATA="+t.TempDir())
	f.Start()
	select {
	case <-f.Done:
	case <-time.After(time.Minute):
		t.Fatal("the function goes on")
	}
	if !strings.Contains(f.Stderr.String(), "WEIR_TRACES: traces: OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Errorf("%s", f.Stderr.String())
	}
}
