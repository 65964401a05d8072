package projectorcli

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/lambda/lambdatest"
	"weir/internal/model"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/soaktest"
	"weir/internal/system"
)

// newFunction prepares the program as a function of the gallery.
func newFunction(t *testing.T, env ...string) *lambdatest.Function {
	t.Helper()
	return lambdatest.New(t, "projector", append([]string{"WEIR_MODEL=gallery"}, env...)...)
}

func startFunction(t *testing.T, env ...string) *lambdatest.Function {
	t.Helper()
	f := newFunction(t, env...)
	f.Start()
	return f
}

type lambdaAnswer struct {
	Failures *[]struct {
		Item string `json:"itemIdentifier"`
	} `json:"batchItemFailures"`
	State json.RawMessage `json:"state"`
}

// answerTo has a function handle an event and reads from which record on it was not
// applied. An answer that says nothing is not one. Like Lambda, it delivers an event again
// that failed because a build was shown meanwhile.
func answerTo(t *testing.T, f *lambdatest.Function, payload []byte) lambdaAnswer {
	t.Helper()
	a := f.Invoke(payload, time.Minute)
	again := func() bool { // an event that is not done in time comes again, too
		return strings.Contains(a.Body, runner.ErrSwitched.Error()) || strings.Contains(a.Body, context.DeadlineExceeded.Error())
	}
	for tries := 0; a.Kind == "error" && again() && tries < 5; tries++ {
		a = f.Invoke(payload, time.Minute)
	}
	return readAnswer(t, a)
}

func readAnswer(t *testing.T, r lambdatest.Reply) (got lambdaAnswer) {
	t.Helper()
	if r.Kind != "response" {
		t.Fatalf("%s: %s", r.Kind, r.Body)
	}
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil || got.Failures == nil {
		t.Fatalf("answer %s: %v", r.Body, err)
	}
	return got
}

// galleryRows fills a directory with the core rows of the gallery's recording, from
// which nothing is derived yet.
func galleryRows(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	paths, _ := filepath.Glob("../../testdata/streams/gallery/stream.*")
	s := openGallery(t, dir)
	in, err := events.Open(paths...)
	failtest.On(t, err)
	r := &replay.Replay{Model: s.Models[0].Model, Store: s.Store, Runner: s.Models[0].Runner}
	for batch, err := range in.Batches(t.Context()) {
		failtest.On(t, err)
		failtest.On(t, r.Batch(t.Context(), batch, ""))
	}
	if err := s.Fill(t.Context(), nil); err != nil { // as projector build does
		t.Fatal(err)
	}
	failtest.On(t, s.Close())
	return dir
}

// places are how far the shards of a stream were read.
type places map[string]events.Position

// streamed are the records of the store's own stream from a place on, by shard, as
// Lambda has them. What a function writes is in the stream too.
func streamed(t *testing.T, dir string, after places) (out map[string][]json.RawMessage) {
	t.Helper()
	s := openGallery(t, dir)
	defer s.Close()
	shards, err := s.Store.Shards(t.Context(), "gallery")
	failtest.On(t, err)
	out = map[string][]json.RawMessage{}
	for _, sh := range shards {
		for {
			page, err := s.Store.Read(t.Context(), "gallery", sh.ID, after[sh.ID], 1000)
			failtest.On(t, err)
			if len(page.Records) == 0 {
				break
			}
			for i := range page.Records {
				out[sh.ID] = append(out[sh.ID], lambdatest.Record("gallery", &page.Records[i]))
				after[sh.ID] = page.Records[i].Position
			}
		}
	}
	return out
}

// aShard is the records of the shard that has most.
func aShard(t *testing.T, dir string) (most []json.RawMessage) {
	for _, records := range streamed(t, dir, places{}) {
		if len(records) > len(most) {
			most = records
		}
	}
	return most
}

// delivery hands a function all records there are and all that come of them.
func delivery(t *testing.T, f *lambdatest.Function, dir string, deliver func(shard string, records []json.RawMessage)) {
	t.Helper()
	at := places{}
	for round := 0; ; round++ {
		all := streamed(t, dir, at)
		if len(all) == 0 {
			if round < 2 {
				t.Error("nothing came of the records")
			}
			return
		}
		f.Start()
		for _, shard := range slices.Backward(slices.Sorted(maps.Keys(all))) {
			deliver(shard, all[shard])
		}
		f.Kill()
	}
}

func openGallery(t *testing.T, dir string) *system.System {
	t.Helper()
	m, err := model.Load("gallery")
	failtest.On(t, err)
	s, err := system.Open(context.Background(), dir, []*model.Model{m}, system.Options{})
	failtest.On(t, err)
	return s
}

// verified recounts what the function derived, and counts what it kept.
func verified(t *testing.T, dir string) (kept []deadletter.Letter) {
	t.Helper()
	s := openGallery(t, dir)
	defer s.Close()
	v := scratch.Of(s, s.Models[0])
	n := 0
	err := v.Run(t.Context(), func(d scratch.Difference) {
		if n++; n < 5 {
			t.Error(d)
		}
	})
	if err != nil || n > 0 || v.Checked < 500 {
		t.Errorf("%d of %d values differ, %v", n, v.Checked, err)
	}
	failtest.On(t, s.Models[0].Runner.EachDeadLetter(t.Context(), func(d deadletter.Letter) error { kept = append(kept, d); return nil }))
	return kept
}

func event(records []json.RawMessage) map[string]any { return map[string]any{"Records": records} }

func windowed(shard string, records []json.RawMessage, state json.RawMessage) map[string]any {
	e := event(records)
	e["window"] = map[string]string{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:05:00Z"}
	e["shardId"], e["eventSourceARN"] = shard, "arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/x"
	e["isFinalInvokeForWindow"], e["isWindowTerminatedEarly"] = false, false
	if e["state"] = state; state == nil {
		e["state"] = map[string]any{}
	}
	return e
}

func payload(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	failtest.On(t, err)
	return b
}

// TestLambdaInWindows delivers a recording in windows, part of it again, whole and in
// halves, with the process killed now and then. What is derived is what a recount
// gives.
func TestLambdaInWindows(t *testing.T) {
	soaktest.Calm(t)
	dir := galleryRows(t)
	f := newFunction(t, "WEIR_DATA="+dir)
	r := rand.New(rand.NewPCG(1, 2))
	state := map[string]json.RawMessage{}
	delivery(t, f, dir, func(shard string, records []json.RawMessage) {
		state[shard] = byShard(t, f, r, shard, records, state[shard])
	})
	if kept := verified(t, dir); len(kept) > 0 {
		t.Error(kept)
	}
}

func byShard(t *testing.T, f *lambdatest.Function, r *rand.Rand, shard string, records []json.RawMessage, state json.RawMessage) json.RawMessage {
	for len(records) > 0 {
		part := records[:min(len(records), 1+r.IntN(300))]
		deliver := func(part []json.RawMessage) lambdaAnswer {
			a := answerTo(t, f, payload(t, windowed(shard, part, state)))
			if len(*a.Failures) > 0 {
				t.Fatal(*a.Failures)
			}
			return a
		}
		switch r.IntN(5) {
		case 0: // the answer is lost
			deliver(part)
		case 1: // bisected
			deliver(part[:len(part)/2+1])
		case 2: // it crashes
			f.Kill()
			f.Start()
		}
		state = deliver(part).State
		if records = records[len(part):]; r.IntN(6) == 0 {
			answerTo(t, f, payload(t, windowed(shard, []json.RawMessage{}, state))) // the window's last
			state = nil
		}
	}
	return state
}

// TestLambdaPayloads: whatever comes, nothing is answered as applied that is not,
// and what cannot be used is kept.
func TestLambdaPayloads(t *testing.T) {
	soaktest.Calm(t)
	dir := galleryRows(t)
	records := aShard(t, dir)
	f := startFunction(t, "WEIR_DATA="+dir)
	for _, bad := range []string{``, `{}`, `null`, `[]`, `3`, `"x"`, `not json`, `{"Records":null}`, `{"Records":3}`, `{"hello":"world"}`, `{"Records":[`,
		string(bytes.ReplaceAll(payload(t, event(records[:2])), []byte("table/gallery"), []byte("table/other"))),
	} {
		if a := f.Invoke([]byte(bad), time.Minute); a.Kind != "error" {
			t.Errorf("%.80s: %s %s", bad, a.Kind, a.Body)
		}
	}
	if a := answerTo(t, f, []byte(`{"Records":[]}`)); len(*a.Failures) > 0 {
		t.Error(*a.Failures)
	}
	// Poison in the middle of what is good.
	mixed := slices.Clone(records)
	for i, poison := range []string{`{}`, `null`, `7`, `{"eventName":"INSERT","dynamodb":{"Keys":{"PK":{"X":"y"}}}}`} {
		mixed = slices.Insert(mixed, 3+i*2, json.RawMessage(poison))
	}
	f.Kill()
	delivery(t, f, dir, func(shard string, records []json.RawMessage) {
		if len(records) == len(mixed)-4 {
			records = mixed
		}
		for part := range slices.Chunk(records, 700) {
			for range 2 {
				if a := answerTo(t, f, payload(t, windowed(shard, part, nil))); len(*a.Failures) > 0 {
					t.Error(*a.Failures)
				}
			}
		}
	})
	kept := verified(t, dir)
	for _, d := range kept {
		if d.Kind != deadletter.Record {
			t.Errorf("kept %+v", d)
		}
	}
	if len(kept) != 4 {
		t.Errorf("kept %d", len(kept))
	}
}

// TestLambdaDeadline: an invocation that runs out of time says from where on it is
// to come again, or fails as a whole, and ends.
func TestLambdaDeadline(t *testing.T) {
	soaktest.Calm(t)
	dir := galleryRows(t)
	f := newFunction(t, "WEIR_DATA="+dir)
	late := 0
	delivery(t, f, dir, func(shard string, records []json.RawMessage) {
		answerTo(t, f, payload(t, windowed(shard, records[:1], nil)))
		late += hurried(t, f, shard, records)
	})
	if late == 0 {
		t.Error("it was never late")
	}
	verified(t, dir)
}

// hurried delivers records with too little time, and counts how often it ran out.
func hurried(t *testing.T, f *lambdatest.Function, shard string, records []json.RawMessage) (late int) {
	for limit := 40 * time.Millisecond; len(records) > 0; {
		a := f.Invoke(payload(t, windowed(shard, records, nil)), limit)
		if a.Kind == "error" {
			late++
			limit += 60 * time.Millisecond
			continue
		}
		got := readAnswer(t, a)
		if len(*got.Failures) == 0 {
			break
		}
		late++
		records = again(t, records, got)
	}
	return late
}

// again returns the records that Lambda delivers again after a partial answer: fewer than before.
func again(t *testing.T, records []json.RawMessage, a lambdaAnswer) []json.RawMessage {
	t.Helper()
	item := (*a.Failures)[0].Item
	from := slices.IndexFunc(records, func(r json.RawMessage) bool {
		return bytes.Contains(r, []byte(`"SequenceNumber":"`+item+`"`))
	})
	if from <= 0 {
		t.Fatalf("no record behind the first is %q", item)
	}
	return records[from:]
}

// counts are sums of what a function wrote for CloudWatch.
type counts struct{ Done, Again, OutOfOrder int }

// told reads the metrics in a function's log, each of which must be declared.
func told(t *testing.T, f *lambdatest.Function) (sum counts) {
	t.Helper()
	for line := range strings.Lines(f.Stdout.String()) {
		var m struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name, Unit string }
				}
			} `json:"_aws"`
			Model, Table                                        string
			Applied, Skipped, Dead, Again, Old, OutOfOrder, Age int
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Model != "gallery" || m.Table != "gallery" || m.Age <= 0 {
			t.Fatalf("%s: %v", line, err)
		}
		if c := m.AWS.CloudWatchMetrics; len(c) != 1 || c[0].Namespace != "weir" || len(c[0].Metrics) != 12 || len(c[0].Dimensions) != 1 || len(c[0].Dimensions[0]) != 1 {
			t.Fatal(line)
		}
		sum.Done += m.Applied + m.Skipped + m.Dead
		sum.Again += m.Again
		sum.OutOfOrder += m.OutOfOrder
	}
	return sum
}

// TestLambdaOrder: events that name no shard, or do not continue what was applied of it, are refused, until the
// operator says that what comes out of order was applied before.
func TestLambdaOrder(t *testing.T) {
	soaktest.Calm(t)
	dir := galleryRows(t)
	records := aShard(t, dir)
	shard := func(from, to int, state string) []byte {
		return payload(t, windowed("shardId-00000001", records[from:to], json.RawMessage(state)))
	}
	refused := func(f *lambdatest.Function, payload []byte, want string) {
		t.Helper()
		if a := f.Invoke(payload, time.Minute); a.Kind != "error" || !strings.Contains(a.Body, want) {
			t.Errorf("%s %s, want an error with %q", a.Kind, a.Body, want)
		}
	}
	f := startFunction(t, "WEIR_DATA="+dir)
	refused(f, payload(t, event(records[:5])), "names no shard")
	answerTo(t, f, shard(0, 5, `{}`))
	answerTo(t, f, shard(5, 10, `{}`))
	refused(f, payload(t, event(records[10:12])), "names no shard")
	f.Kill()
	f = startFunction(t, "WEIR_DATA="+dir)
	a := answerTo(t, f, shard(10, 15, `{}`))
	answerTo(t, f, shard(10, 15, string(a.State))) // again
	answerTo(t, f, shard(13, 20, string(a.State))) // from a part on
	var odd, even []json.RawMessage
	for i, r := range records[20:40] {
		if i%2 == 0 {
			even = append(even, r)
		} else {
			odd = append(odd, r)
		}
	}
	// A parallelization factor of 2, at the first events that are side by side.
	answerTo(t, f, payload(t, windowed("shardId-00000001", even, json.RawMessage(`{}`))))
	refused(f, payload(t, windowed("shardId-00000001", odd, json.RawMessage(`{}`))), "parallelization factor")
	f.Kill()
	if got, want := told(t, f), (counts{Done: 5 + 5 + 7 + 10, Again: 10, OutOfOrder: 1}); got != want {
		t.Errorf("metrics %+v, want %+v", got, want)
	}

	for _, env := range [][]string{{"WEIR_MODEL="}, {"WEIR_DRAINED=any"}, {"WEIR_DRAINED=shard"}, {"WEIR_MODEL=nosuchmodel"}, {"WEIR_WRITE_BUDGET=many"}, {"WEIR_WRITE_BUDGET=-1"}, {"WEIR_WRITE_BUDGET=5"}, {"WEIR_QUERIES=1", "WEIR_GROUP=rows"}, {"WEIR_QUERIES=yes"}} {
		f := startFunction(t, append([]string{"WEIR_DATA=" + t.TempDir()}, env...)...)
		if code := f.ExitCode(); code != exitUsage || f.Stderr.Len() == 0 {
			t.Errorf("%v: exit %d: %s", env, code, f.Stderr.String())
		}
	}
}
