package lambda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
)

// FuzzPayload: each record of an invocation is applied or kept, once, and the order
// stays; what is delivered again begins with the record that its portion names; and an
// event that cannot be used is refused as a whole, in one of two ways.
func FuzzPayload(f *testing.F) {
	record := func(n, keys string) string {
		return `{"eventName":"INSERT","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/1","dynamodb":{"Keys":` + keys + `,"NewImage":{"PK":{"S":"ALBUM#a"},"SK":{"S":"METADATA"}},"SequenceNumber":"` + n + `"}}`
	}
	good := `{"PK":{"S":"ALBUM#a"},"SK":{"S":"METADATA"}}`
	for _, s := range []string{
		`{"Records":[` + record("1", good) + `,` + record("2", `{"id":{"S":"x"}}`) + `,{"eventName":"INSERT"}]}`,
		`{"Records":[],"shardId":"shardId-1","state":{"weir":"5"},"isFinalInvokeForWindow":true}`,
		`{"Records":[` + strings.Repeat(record("7", good)+",", 300) + record("8", good) + `],"shardId":"s","state":{}}`,
		`{"Records":[` + strings.Replace(record("1", good), "gallery", "other", 1) + `,` + record("2", good) + `]}`,
		`{"Records":[{"kinesis":{"data":"e30="}}]}`, `{"Item":{"PK":{"S":"a"}}}`, `{}`, ``, `[]`, `{"Records":[null]}`,
	} {
		f.Add([]byte(s))
	}
	m, err := model.Load("gallery")
	failtest.On(f, err)
	f.Fuzz(func(t *testing.T, payload []byte) {
		ev, err := events.DecodeLambda(payload)
		if err != nil {
			return // events has its own target
		}
		w, err := splitEvent(m, &ev, 250)
		if err != nil {
			if !errors.Is(err, ErrEvent) {
				t.Fatal(err)
			}
			return
		}
		checkPortions(t, payload, &ev, &w)
	})
}

func checkPortions(t *testing.T, payload []byte, ev *events.Lambda, w *work) {
	at, records := 0, 0
	for i := range w.portions {
		p := &w.portions[i]
		if p.from != at {
			t.Fatalf("portion %d begins with entry %d, not %d", i, p.from, at)
		}
		id := identifierOf(payload, ev.Entries[at:])
		if i > 0 && id == "" {
			t.Fatalf("portion %d cannot be asked for again", i)
		}
		if n, err := events.ParsePosition(id); id != "" && err != nil || slices.ContainsFunc(ev.Entries[at:], func(e events.Entry) bool {
			return !e.Record.Position.IsZero() && e.Record.Position.Compare(n) < 0
		}) {
			t.Fatalf("portion %d is asked for by %q, its first record is %v", i, id, ev.Entries[at].Record.Position)
		}
		bad, good := p.bad, p.changes
		for n := len(bad) + len(good); n > 0; n-- {
			e := &ev.Entries[at]
			switch {
			case len(bad) > 0 && bad[0].Location == e.Location:
				if bad[0].Bad == nil {
					t.Fatalf("entry %d is kept without a reason", at)
				}
				bad = bad[1:]
			case len(good) > 0 && e.Bad == nil && good[0].Position == e.Record.Position:
				good = good[1:]
			default:
				t.Fatalf("entry %d is neither applied nor kept, or out of order", at)
			}
			if !e.Record.Position.IsZero() {
				records++
			}
			at++
		}
	}
	of := 0
	for i := range w.portions {
		of += w.portions[i].records
	}
	if records != len(w.records) || records != of {
		t.Fatalf("%d records, of which portions have %d and the event %d", records, of, len(w.records))
	}
	if at != len(ev.Entries) {
		t.Fatalf("%d of %d records are applied or kept", at, len(ev.Entries))
	}
}
