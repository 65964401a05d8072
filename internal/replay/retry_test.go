package replay_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/replay"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/value"
)

// TestRetry: what could not be used is kept once, whole, until a replay with another
// model can use it.
func TestRetry(t *testing.T) {
	w := newWorld(t)
	right, wrong := w.model, parse(t, `
model: shop
tables: {shop: {key: [id]}}
entities:
  Album: {where: {type: Album}, key: {id: "{id}"}}
`)
	bad := events.Entry{Bad: &events.Bad{Err: errors.New("no JSON"), Raw: []byte(`{"Keys":`)}}
	bad.Line = 2
	w.model = wrong
	for range 2 {
		if s := w.replay([]events.Entry{life()[0], bad}, 0); s != (replay.Summary{Dead: 2}) {
			t.Fatalf("%+v", s)
		}
	}
	kept := w.kept()
	if len(kept) != 2 {
		t.Fatalf("%d are kept", len(kept))
	}
	other := life()[1]
	other.Line = 3
	failtest.On(t, w.over(w.store).Batch(t.Context(), []events.Entry{other}, "shop"))
	if n := len(w.kept()); n != 3 || !slices.ContainsFunc(w.kept(), func(d deadletter.Letter) bool { return d.Record.Get("table").Text() == "shop" }) {
		t.Errorf("the table of the file is not kept: %+v", w.kept())
	}
	for _, d := range kept {
		if err := w.over(w.store).Retry(t.Context(), &d); !errors.Is(err, deadletter.ErrNoRetry) {
			t.Errorf("a retry of %s with the same model: %v", d.Source, err)
		}
	}
	w.model = right
	for _, d := range kept {
		r := w.over(w.store)
		err := r.Retry(t.Context(), &d)
		if d.Raw == "" && (err != nil || r.Summary != replay.Summary{Applied: 1}) || d.Raw != "" && !errors.Is(err, deadletter.ErrNoRetry) {
			t.Errorf("a retry of %s: %v, %+v", d.Source, err, r.Summary)
		}
	}
	same(t, "the album", w.row("ALBUM#a", "METADATA"), `{"PK":"ALBUM#a","SK":"METADATA","photos":0,"title":"one","type":"Album","weir":0}`)
	if kept = w.kept(); len(kept) != 2 || !slices.ContainsFunc(kept, func(d deadletter.Letter) bool { return d.Raw == `{"Keys":` }) {
		t.Errorf("%+v is still kept", kept)
	}
}

// kept is all that is kept, with its records.
func (w *world) kept() (out []deadletter.Letter) {
	w.t.Helper()
	run := w.over(w.store).Runner
	var ids []string
	failtest.On(w.t, run.EachDeadLetter(w.t.Context(), func(d deadletter.Letter) error { ids = append(ids, d.ID); return nil }))
	for _, id := range ids {
		d, err := run.DeadByID(w.t.Context(), id)
		failtest.On(w.t, err)
		out = append(out, d)
	}
	return out
}

// TestRetryUnderOtherNames: a letter that knows the model's table is of that table,
// whatever table has the name in its bytes today. One that does not know it is read by
// the names of today.
func TestRetryUnderOtherNames(t *testing.T) {
	const record = `{"eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/TABLE/stream/x","eventName":"INSERT","dynamodb":{"SequenceNumber":"101","Keys":{"id":{"S":"ID"}},"NewImage":{"id":{"S":"ID"},"name":{"S":"n"}}}}`
	m := parse(t, `
model: two
tables: {AAA: {key: [id]}, BBB: {key: [id]}}
entities:
  One: {table: AAA, key: {id: "{id}"}, attributes: {name: string}}
  Other: {table: BBB, key: {id: "{id}"}, attributes: {name: string}}
`)
	w := worldOf(t, m)
	names, err := stage.New(stage.Stage{Tables: []stage.Pair{{Logical: "AAA", Real: "aaa-new"}, {Logical: "BBB", Real: "aaa-old"}}}, []store.Table{{Name: "AAA"}, {Name: "BBB"}})
	failtest.On(t, err)
	for line, c := range []struct{ known, in, id, goes string }{{"AAA", "aaa-old", "a", "AAA"}, {"", "aaa-new", "b", "AAA"}, {"", "aaa-old", "c", "BBB"}, {"BBB", "gone", "d", "BBB"}, {"", "AAA", "e", ""}} {
		raw := strings.NewReplacer("TABLE", c.in, "ID", c.id).Replace(record)
		e := events.Entry{Record: events.Record{Table: c.known}, Bad: &events.Bad{Err: errors.New("not read then"), Raw: []byte(raw)}}
		e.Line = int64(line) + 1
		failtest.On(t, w.over(w.store).Batch(t.Context(), []events.Entry{e}, ""))
		kept := w.kept()
		if len(kept) != 1 {
			t.Fatalf("%d are kept", len(kept))
		}
		r := w.over(w.store)
		r.Names = names
		err := r.Retry(t.Context(), &kept[0])
		if (err == nil) != (c.goes != "") || err != nil && !errors.Is(err, stage.ErrMap) {
			t.Errorf("%+v: %v", c, err)
		}
		for _, table := range []string{"AAA", "BBB"} {
			if is := w.at(store.Ref{Table: table, Key: store.Key{Partition: value.OfString(c.id)}}) != nil; is != (table == c.goes) {
				t.Errorf("%+v: in %s %v", c, table, is)
			}
		}
	}
}
