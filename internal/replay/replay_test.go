package replay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/replay"
	"weir/internal/store"
	"weir/internal/value"
)

// life is a row that comes, changes, goes, and comes and goes again.
func life() []events.Entry {
	return []events.Entry{
		album(1, ``, `{"title":"one"}`),
		album(2, `{"title":"one"}`, `{"title":"two","note":"n"}`),
		album(3, `{"title":"two","note":"n"}`, ``),
		album(4, ``, `{"title":"four"}`),
		album(5, `{"title":"four"}`, ``),
		album(6, ``, `{"title":"six"}`),
		album(7, `{"title":"six"}`, `{"title":"seven"}`),
	}
}

// lives is the life of two rows at a time, of which one is gone at the end.
func lives() (out []events.Entry) {
	other := item(`{"PK":"ALBUM#b","SK":"METADATA"}`)
	for i, e := range life() {
		out = append(out, e)
		if i < 5 {
			e.Record.Keys = other
			for _, image := range []*value.Item{&e.Record.Old, &e.Record.New} {
				if *image != nil {
					*image = image.With(other...)
				}
			}
			out = append(out, e)
		}
	}
	return out
}

// onePass replays the recording record by record.
func onePass(t *testing.T, entries []events.Entry) string {
	w := newWorld(t)
	if s := w.replay(entries, 1); s.Applied != len(entries) || len(w.gaps) > 0 {
		t.Fatalf("one pass: %+v, gaps %q", s, w.gaps)
	}
	return w.history()
}

// TestOnePass: however a recording is cut into batches, comes again or overlaps,
// each of its records happens once, in its row's order.
func TestOnePass(t *testing.T) {
	all := lives()
	want := onePass(t, all)
	for size := range len(all) + 1 {
		w := newWorld(t)
		for from := range len(all) {
			w.replay(all[:len(all)-from], size) // shorter and shorter: all but the first were seen
			w.replay(all[from:], size)
		}
		same(t, fmt.Sprintf("the history in batches of %d", size), w.history(), want)
		if len(w.gaps) > 0 {
			t.Errorf("batches of %d: gaps %q", size, w.gaps)
		}
	}
}

// TestKilled breaks a replay at each single write, in each way. Done again, from
// the batch that broke or from the beginning, it is as if nothing had happened.
func TestKilled(t *testing.T) {
	all := lives()
	want := onePass(t, all)
	for _, size := range []int{0, 2, 3, 5} {
		for at := 1; ; at++ {
			broke := false
			for how := range hows {
				w := newWorld(t)
				b := &breaking{Store: w.store, at: at, how: how}
				if err := batches(w.over(b), all, size); errors.Is(err, errBroken) {
					broke = true
				} else if err != nil {
					t.Fatal(err)
				}
				w.replay(all, []int{size, 1}[at%2])
				same(t, fmt.Sprintf("broken at write %d, way %d, batches of %d, the history", at, how, size), w.history(), want)
				if t.Failed() {
					return
				}
			}
			if !broke {
				break
			}
		}
	}
}

// TestRemovalKilled breaks a replay at each write of a removal that no recorded change made, because a full export lacks the row or the change
// follows from another row. Done again, the row goes, and its own removal adds nothing to a history.
func TestRemovalKilled(t *testing.T) {
	kept := parse(t, strings.Replace(shopModel, "derive:", "  Log: {where: {type: Log}, key: {PK: \"LOG#{id}\", SK: \"{at}\"}}\n"+
		"derive:\n  Log: {row: Album, keep: [remove], set: {id: id, at: $position}}", 1))
	full := &events.Export{Name: "full", Full: true, From: album(90, ``, ``).Record.Time, To: album(90, ``, ``).Record.Time}
	for name, remove := range map[string]func(w *world, r *replay.Replay) error{
		"lacking": func(w *world, r *replay.Replay) error {
			return r.RemoveLacking(t.Context(), map[*model.Table]*events.Export{w.model.Tables[0]: full})
		},
		"behind a gap": func(_ *world, r *replay.Replay) error {
			return batches(r, []events.Entry{album(80, `{"title":"other"}`, ``)}, 0)
		},
	} {
		for n := range 4 * hows {
			w := worldOf(t, kept)
			w.replay([]events.Entry{album(1, ``, `{"title":"one"}`)}, 0)
			if err := remove(w, w.over(&breaking{Store: w.store, at: 1 + n/hows, how: n % hows})); err != nil && !errors.Is(err, errBroken) {
				t.Fatalf("%s: %v", name, err)
			}
			failtest.On(t, remove(w, w.over(w.store)))
			is := w.get("ALBUM#a", "METADATA") == nil
			for _, r := range w.stream() {
				is = is && (r.Event() != "REMOVE" || owntable.IsSilent(r.Old, r.New))
			}
			if !is {
				t.Errorf("%s, broken at write %d, way %d: the row is %s, and the history %s", name, 1+n/hows, n%hows, w.row("ALBUM#a", "METADATA"), w.history())
			}
		}
	}
}

// TestMeanwhile lets another replay of the same recording go ahead between what a
// batch read and what it writes.
func TestMeanwhile(t *testing.T) {
	all := life()
	want := onePass(t, all)
	for from := range all {
		for to := from + 1; to <= len(all); to++ {
			for other := from + 1; other <= len(all); other++ {
				if all[from].Record.Old == nil && all[other-1].Record.New == nil {
					continue // it came and went: see Replay
				}
				w := newWorld(t)
				w.replay(all[:from], 0)
				s := &meanwhile{w.store, func() { w.replay(all[from:other], 0) }}
				failtest.On(t, batches(w.over(s), all[from:to], 0))
				w.replay(all, 0)
				same(t, fmt.Sprintf("records %d to %d, meanwhile up to %d: the history", from+1, to, other), w.history(), want)
			}
		}
	}
}

// TestWrittenMeanwhile: what an application does to a row between the two is not
// undone by halves.
func TestWrittenMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.app(store.Write{Ref: ref("ALBUM#a", "METADATA"), Put: item(`{"PK":"ALBUM#a","SK":"METADATA","type":"Album","title":"mine","note":"n"}`)})
	s := &meanwhile{w.store, func() { w.app(store.Write{Ref: ref("ALBUM#a", "METADATA"), Delete: true}) }}
	failtest.On(t, batches(w.over(s), []events.Entry{album(2, `{"title":"mine","note":"n"}`, `{"title":"two","note":"n"}`)}, 0))
	same(t, "a row that was removed", w.row("ALBUM#a", "METADATA"),
		`{"PK":"ALBUM#a","SK":"METADATA","note":"n","photos":0,"title":"two","type":"Album","weir":0}`)

	w = newWorld(t)
	w.replay(life()[:1], 0)
	s = &meanwhile{w.store, func() { w.app(store.Write{Ref: ref("ALBUM#a", "METADATA"), Delete: true}) }}
	failtest.On(t, batches(w.over(s), life()[1:3], 0))
	if n := strings.Count(w.history(), "\n"); n != 4 {
		t.Errorf("come, removed by the application, changed and removed by the recording: the history is\n%s", w.history())
	}

	w = newWorld(t)
	w.app(store.Write{Ref: ref("ALBUM#a", "METADATA"), Put: item(`{"PK":"ALBUM#a","SK":"METADATA","type":"Album","title":"one"}`)})
	s = &meanwhile{w.store, func() {
		w.replay([]events.Entry{album(2, `{"title":"one"}`, `{"title":"two"}`), album(3, `{"title":"two"}`, `{"title":"three"}`)}, 0)
	}}
	failtest.On(t, batches(w.over(s), []events.Entry{album(2, `{"title":"one"}`, `{"title":"two"}`)}, 0))
	same(t, "a row that another replay was the first to write", w.row("ALBUM#a", "METADATA"),
		`{"PK":"ALBUM#a","SK":"METADATA","photos":0,"title":"three","type":"Album","weir":0}`)

	w = newWorld(t)
	s = &meanwhile{w.store, func() {
		w.app(store.Write{Ref: ref("ALBUM#a", "METADATA"), Put: item(`{"PK":"ALBUM#a","SK":"METADATA","weir":9,"photos":3,"type":"Album","title":"mine"}`)})
	}}
	failtest.On(t, batches(w.over(s), life()[:1], 0))
	same(t, "a row that came", w.row("ALBUM#a", "METADATA"),
		`{"PK":"ALBUM#a","SK":"METADATA","photos":3,"title":"one","type":"Album","weir":9}`)
}

// TestNeverQuiet: a row that another program writes all the time makes the replay fail.
func TestNeverQuiet(t *testing.T) {
	w := newWorld(t)
	var s *meanwhile
	n := 0
	s = &meanwhile{Store: w.store}
	var again func()
	again = func() {
		n++
		w.app(store.Write{Ref: ref("ALBUM#a", "METADATA"), Delete: n%2 == 0, Put: map[bool]value.Item{true: item(`{"PK":"ALBUM#a","SK":"METADATA"}`)}[n%2 == 1]})
		s.before = again
	}
	s.before = again
	err := batches(w.over(s), life()[:1], 0)
	if err == nil || !strings.Contains(err.Error(), "let one replay at a time write a table") {
		t.Fatalf("the error is %v", err)
	}
}

// TestCalls: only a removal is waited for before its row goes on.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	s := &breaking{Store: w.store}
	all := append(life(), album(8, `{"title":"seven"}`, `{"title":"eight"}`), album(9, `{"title":"eight"}`, `{"title":"nine"}`))
	failtest.On(t, batches(w.over(s), all, 0))
	if s.sent != 7 { // writes, mark and removal, twice; then the rest
		t.Errorf("%d calls", s.sent)
	}
}

// TestRefused: a record that the table refuses is kept, once; what follows for its
// row happens as if the record were missing, however it is cut into batches.
func TestRefused(t *testing.T) {
	all := []events.Entry{
		album(1, ``, `{"mood":7}`), // the key of an index, which must be a string
		album(2, `{"mood":7}`, `{"mood":"glad"}`),
		album(3, `{"mood":"glad"}`, ``),
		album(4, ``, `{"title":"four"}`),
		album(5, `{"title":"lost"}`, `{"mood":5}`),
		album(6, `{"mood":5}`, `{"title":"six"}`),
		album(7, `{"title":"six"}`, ``),
		album(8, ``, `{"mood":8}`),
		album(9, `{"mood":8}`, ``),
	}
	const gaps = "6 ALBUM#a: the old image is not the last one seen: a change is missing\n" +
		"9 ALBUM#a: a change of a row that was removed: its insertion is missing"
	want := ""
	for size := 1; size <= len(all); size++ {
		w := newWorld(t)
		if s := w.replay(all, size); s.Applied != 5 || s.Dead != 3 {
			t.Errorf("batches of %d: %+v", size, s)
		}
		if size == 1 {
			want = w.history()
		}
		same(t, fmt.Sprintf("the history in batches of %d", size), w.history(), want)
		same(t, fmt.Sprintf("what is missing in batches of %d", size), strings.Join(w.gaps, "\n"), gaps)
		w.replay(all, 0)
		same(t, "the history after the second time", w.history(), want)
		n := 0
		failtest.On(t, w.over(w.store).Runner.EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
			if d.Kind == deadletter.Record {
				n++
			}
			return nil
		}))
		if n != 3 {
			t.Errorf("%d records are kept", n)
		}
	}
}

// TestBehindRefused: an older record that comes behind one that the table refuses is written,
// however they are cut into batches.
func TestBehindRefused(t *testing.T) {
	all := []events.Entry{album(5, `{"title":"four"}`, `{"title":"`+strings.Repeat("x", 410<<10)+`"}`), album(2, ``, `{"title":"two"}`), album(3, `{"title":"two"}`, `{"title":"three"}`)}
	for size := 1; size <= len(all); size++ {
		w := newWorld(t)
		if s := w.replay(all, size); s != (replay.Summary{Applied: 2, Dead: 1}) {
			t.Errorf("batches of %d: %+v", size, s)
		}
		same(t, fmt.Sprintf("the row in batches of %d", size), w.row("ALBUM#a", "METADATA"), `{"PK":"ALBUM#a","SK":"METADATA","photos":0,"title":"three","type":"Album","weir":0}`)
	}
}

// TestManyRefused: a batch may have more records of one row that the table refuses than there are
// rounds.
func TestManyRefused(t *testing.T) {
	var all []events.Entry
	for i := range 50 {
		all = append(all, album(1+i, ``, fmt.Sprintf(`{"mood":%d}`, i)))
	}
	w := newWorld(t)
	if s := w.replay(append(all, album(60, ``, `{"title":"last"}`)), 0); s != (replay.Summary{Applied: 1, Dead: 50}) {
		t.Errorf("%+v", s)
	}
	same(t, "the row", w.row("ALBUM#a", "METADATA"), `{"PK":"ALBUM#a","SK":"METADATA","photos":0,"title":"last","type":"Album","weir":0}`)
}

// TestDerived: what another projector derived is no part of a recording, and what
// this store derived stays.
func TestDerived(t *testing.T) {
	w := newWorld(t)
	w.replay([]events.Entry{album(1, ``, `{"title":"one","open":true,"photos":5,"weir":99,"weir.seen":"x","weir.own":"y"}`)}, 0)
	same(t, "a recorded album", w.row("ALBUM#a", "METADATA"),
		`{"PK":"ALBUM#a","SK":"METADATA","open":"true","photos":0,"title":"one","type":"Album","weir":0}`)

	w.app(store.Write{Ref: ref("ALBUM#a", "METADATA"), Ops: []store.Op{
		{Kind: store.Set, Attr: "photos", Value: value.OfInt(2)}, {Kind: store.Set, Attr: "weir", Value: value.OfInt(7)},
	}})
	asked := &breaking{Store: w.store}
	shown := w.over(asked)
	failtest.On(t, batches(shown, []events.Entry{
		album(2, `{"title":"one","open":true,"photos":5,"weir":99}`, `{"title":"one","open":true,"photos":6,"weir":100}`),
	}, 0))
	if asked.calls != 0 || shown.Summary.Skipped != 1 {
		t.Errorf("a change of what is derived: %d writes, %+v", asked.calls, shown.Summary)
	}
	s := w.replay([]events.Entry{
		album(2, `{"title":"one","open":true,"photos":5,"weir":99}`, `{"title":"one","open":true,"photos":6,"weir":100}`),
		album(3, `{"title":"one","open":true,"photos":6,"weir":100}`, `{"title":"three","photos":6,"weir":100}`),
	}, 0)
	same(t, "an album that was counted", w.row("ALBUM#a", "METADATA"),
		`{"PK":"ALBUM#a","SK":"METADATA","photos":2,"title":"three","type":"Album","weir":7}`)
	if s.Applied != 1 || s.Skipped != 1 || s.Gaps != 0 {
		t.Errorf("a change of what is derived, and one of a title: %+v", s)
	}

	card := album(4, ``, `{"title":"one"}`)
	card.Record.Keys = item(`{"PK":"CARDS","SK":"a"}`)
	card.Record.New = item(`{"PK":"CARDS","SK":"a","type":"Card","title":"one"}`)
	gone := card
	gone.Record.Old, gone.Record.New, gone.Record.Position = card.Record.New, nil, events.PositionOf(5)
	w.app(store.Write{Ref: ref("CARDS", "b"), Put: item(`{"PK":"CARDS","SK":"b","type":"Card","title":"mine"}`)})
	gone.Record.Keys = item(`{"PK":"CARDS","SK":"b"}`)
	failtest.On(t, batches(w.over(asked), []events.Entry{card, gone}, 0))
	if asked.calls != 0 {
		t.Errorf("rows that only weir makes: %d writes", asked.calls)
	}
	same(t, "a row that only weir makes", w.row("CARDS", "a")+w.row("CARDS", "b"), `nothing{"PK":"CARDS","SK":"b","title":"mine","type":"Card"}`)

	other := gone
	other.Record.Old, other.Record.Position = item(`{"PK":"CARDS","SK":"b"}`), events.PositionOf(6)
	w.replay([]events.Entry{other}, 0)
	same(t, "where a row stood that was not weir's", w.row("CARDS", "b"), `{"PK":"CARDS","SK":"b","title":"mine","type":"Card"}`)

	plain := album(6, ``, ``)
	plain.Record.Keys = item(`{"PK":"X","SK":"x"}`)
	plain.Record.New = item(`{"PK":"X","SK":"x","weir":3,"weir.seen":"z","photos":8}`)
	w.replay([]events.Entry{plain}, 0)
	same(t, "a row of no entity", w.row("X", "x"), `{"PK":"X","SK":"x","photos":8}`)
}

// TestTimes: where a form has no positions, times say what comes after what, by
// the second; within one, the record whose old image stands comes next. Rows of an
// export have neither, and only fill what no change was written to.
func TestTimes(t *testing.T) {
	at := func(e events.Entry, ms int) events.Entry {
		e.Record.Position, e.Record.Time = events.Position{}, time.Date(2025, 1, 1, 0, 0, 0, ms*1e6, time.UTC)
		return e
	}
	position := func(e events.Entry, n, ms int) events.Entry {
		e = at(e, ms)
		e.Record.Position = events.PositionOf(uint64(n))
		return e
	}
	timeless := func(e events.Entry) events.Entry {
		e.Record.Time = time.Time{}
		return e
	}
	const one, two, three = `{"title":"one"}`, `{"title":"two"}`, `{"title":"three"}`
	for name, c := range map[string]struct {
		entries []events.Entry
		title   string
	}{
		"later":                           {[]events.Entry{at(album(0, ``, one), 1000), at(album(0, ``, two), 2000)}, "two"},
		"earlier":                         {[]events.Entry{at(album(0, ``, one), 2000), at(album(0, ``, two), 1000)}, "one"},
		"the same moment, next":           {[]events.Entry{at(album(0, ``, one), 1000), at(album(0, one, two), 1000)}, "two"},
		"the same moment, not next":       {[]events.Entry{at(album(0, ``, one), 1000), at(album(0, three, two), 1000)}, "two"},
		"the same moment, rows only":      {[]events.Entry{at(album(0, ``, one), 1000), at(album(0, ``, two), 1000)}, "two"},
		"a row after a change":            {[]events.Entry{at(album(0, ``, one), 1000), {Record: row(two)}}, "one"},
		"a row, and a change":             {[]events.Entry{{Record: row(two)}, at(album(0, ``, one), 1000)}, "one"},
		"positions decide, not times":     {[]events.Entry{position(album(0, ``, one), 2, 1000), position(album(0, one, two), 1, 9000)}, "one"},
		"the next position, earlier":      {[]events.Entry{position(album(0, ``, one), 1, 9000), position(album(0, one, two), 2, 1000)}, "two"},
		"a position in the same second":   {[]events.Entry{at(album(0, ``, one), 1900), position(album(0, one, two), 1, 1000)}, "two"},
		"not the next in the same second": {[]events.Entry{at(album(0, ``, one), 1100), position(album(0, three, two), 1, 1900)}, "two"},
		"a position in the next second":   {[]events.Entry{at(album(0, ``, one), 1900), position(album(0, three, two), 1, 2000)}, "two"},
		"changed and changed back, and the first of it late": {[]events.Entry{
			position(album(0, ``, one), 1, 1000), position(album(0, two, one), 3, 3000), position(album(0, one, two), 2, 2000)}, "one"},
		"a row, and another":         {[]events.Entry{{Record: row(two)}, {Record: row(one)}}, "two"},
		"a row, and its change":      {[]events.Entry{{Record: row(one)}, timeless(album(1, one, two))}, "two"},
		"earlier in the same second": {[]events.Entry{at(album(0, ``, one), 1900), at(album(0, one, two), 1100)}, "one"},
		"gone in the same second":    {[]events.Entry{position(album(0, ``, one), 1, 1000), position(album(0, one, ``), 2, 1000), at(album(0, ``, two), 1500)}, "two"},
		"gone later, without a position": {[]events.Entry{
			position(album(0, ``, one), 1, 1000), position(album(0, one, ``), 2, 2000), position(album(0, ``, one), 3, 3000),
			at(album(0, one, ``), 9000), at(album(0, ``, two), 5000)}, ""},
	} {
		w := newWorld(t)
		w.replay(c.entries, 0)
		if have := w.get("ALBUM#a", "METADATA").Get("title").Text(); have != c.title {
			t.Errorf("%s: the title is %s", name, have)
		}
		for size := range 2 {
			before := w.history()
			w.replay(c.entries, size)
			same(t, name+", once more: the history", w.history(), before)
		}
	}
}

// row is a row of an export.
func row(image string) events.Record {
	r := album(0, ``, image).Record
	r.Position, r.Time, r.Export = events.Position{}, time.Time{}, true
	return r
}

// TestGaps: an old image that is not what the store last saw is said, once, with its
// place.
func TestGaps(t *testing.T) {
	w := newWorld(t)
	all := []events.Entry{
		album(1, `{"title":"zero"}`, `{"title":"one"}`), // the recording begins here
		album(3, `{"title":"two"}`, `{"title":"three"}`),
		album(5, ``, `{"title":"five"}`),
		album(6, `{"title":"five"}`, ``),
		album(8, `{"title":"seven"}`, `{"title":"eight"}`),
	}
	if s := w.replay(all, 0); s.Gaps != 3 {
		t.Errorf("%+v", s)
	}
	if s := w.replay(all, 0); s.Gaps != 0 {
		t.Errorf("the second time: %+v", s)
	}
	same(t, "what is said", strings.Join(w.gaps, "\n"), strings.Join([]string{
		"3 ALBUM#a: the old image is not the last one seen: a change is missing",
		"5 ALBUM#a: an insert of a row that was there: its removal is missing",
		"8 ALBUM#a: a change of a row that was removed: its insertion is missing",
	}, "\n"))
}

// TestManyGaps: gaps of more rows than a batch are all said, until what was missing comes.
func TestManyGaps(t *testing.T) {
	w := newWorld(t)
	const rows = 600
	var early, missing []events.Entry
	for i := range rows {
		for n, titles := range [][2]string{{"zero", "one"}, {"one", "two"}, {"two", "three"}} {
			e := album(3*i+n+1, `{"title":"`+titles[0]+`"}`, `{"title":"`+titles[1]+`"}`)
			e.Record.Keys = item(fmt.Sprintf(`{"PK":"ALBUM#%d","SK":"METADATA"}`, i))
			e.Record.Old, e.Record.New = e.Record.Old.With(e.Record.Keys...), e.Record.New.With(e.Record.Keys...)
			if n == 1 {
				missing = append(missing, e)
			} else {
				early = append(early, e)
			}
		}
	}
	w.replay(early, 100)
	for _, left := range []int{rows, rows / 2, 0} {
		if left < rows {
			w.replay(missing[left:left+rows/2], 100)
		}
		said := map[string]bool{}
		failtest.On(t, w.over(w.store).Gaps(t.Context(), func(d deadletter.Letter) { said[d.Row.Key.Partition.Text()] = true }))
		if len(said) != left {
			t.Errorf("%d gaps, want %d", len(said), left)
		}
	}
}

// TestHistory: the store's own stream has each change with the time and the place at
// which it was first written.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	w.replay(life()[:4], 1)
	const (
		key = `{"PK":"ALBUM#a","SK":"METADATA"`
		one = key + `,"photos":0,"title":"one","type":"Album","weir":0}`
		two = key + `,"note":"n","photos":0,"title":"two","type":"Album","weir":0}`
	)
	same(t, "the history", w.history(), key+"} 2025-01-01 00:00:01@1 nothing -> "+one+"\n"+
		key+"} 2025-01-01 00:00:02@2 "+one+" -> "+two+"\n"+
		key+"} 2025-01-01 00:00:03@3 "+two+" -> nothing\n"+
		key+"} 2025-01-01 00:00:04@4 nothing -> "+strings.Replace(one, "one", "four", 1)+"\n")
}

// TestOrder: changes of followers and of what followers are sent stay in order, even if
// one of them is a removal. Writes that may happen in any order are sent together.
func TestOrder(t *testing.T) {
	m, err := model.Load("watchlists")
	failtest.On(t, err)
	w := worldOf(t, m)
	const (
		saved = `{"PK":"USER#a","SK":"SAVED#WATCHLIST#w","entityType":"USER_SAVED_WATCHLIST","savedAt":"2026-01-01T00:00:00Z"}`
		added = `{"PK":"WATCHLIST#w","SK":"ITEM#MOVIE#%d","entityType":"WATCHLIST_ITEM","contentType":"MOVIE","contentId":"%[1]d","addedAt":"2026-01-02T00:00:00Z"}`
	)
	w.replay([]events.Entry{record(1, "", saved)}, 0)
	s := &breaking{Store: w.store}
	batch := []events.Entry{record(2, saved, "")}
	for i := 3; i < 6; i++ {
		batch = append(batch, record(i, "", fmt.Sprintf(added, i)))
	}
	failtest.On(t, batches(w.over(s), batch, 0))
	if s.sent != 3 { // the mark, the removal, and all that comes after it
		t.Errorf("%d calls", s.sent)
	}
	if r := w.stream()[1]; r.New != nil {
		t.Errorf("%s %s comes before the removal", r.Event(), plain(r.Keys))
	}
}

// TestSteps: what steps show over what the application wrote is no part of a
// recording, and stays where this store shows it.
func TestSteps(t *testing.T) {
	m, err := model.Load("movienight")
	failtest.On(t, err)
	w := worldOf(t, m)
	of := func(n int, old, new string) events.Entry {
		e := record(n, old, new)
		e.Record.Table = "Rounds"
		return e
	}
	round := store.Ref{Table: "Rounds", Key: store.Key{Partition: value.OfString("r")}}
	const (
		voting   = `{"round_id":"r","group_id":"g","status":"voting"}`
		longer   = `{"round_id":"r","group_id":"g","status":"voting","started_by":"a"}`
		expired  = `{"round_id":"r","group_id":"g","status":"expired","started_by":"a"}`
		selected = `{"round_id":"r","group_id":"g","status":"selected","selected_at":"T","weir":9,"` + owntable.Own +
			`":{"status":{"own":"voting","shown":"selected"},"selected_at":{"shown":"T"}}}`
	)
	w.replay([]events.Entry{of(1, "", selected)}, 0)
	same(t, "a round that another projector moved", plain(unmarked(w.at(round))),
		`{"group_id":"g","round_id":"r","status":"voting","weir":0}`)

	w.app(store.Write{Ref: round, Ops: []store.Op{
		{Kind: store.Set, Attr: "status", Value: value.OfString("selected")},
		{Kind: store.Set, Attr: "weir", Value: value.OfInt(7)},
		{Kind: store.Set, Attr: owntable.Own, Value: value.OfMap(item(`{"status":{"own":"voting","shown":"selected"}}`))},
	}})
	w.replay([]events.Entry{of(2, voting, longer)}, 0)
	same(t, "a round that this store has moved", plain(unmarked(w.at(round))),
		`{"group_id":"g","round_id":"r","started_by":"a","status":"selected","weir":7,"weir.own":{"status":{"own":"voting","shown":"selected"}}}`)

	// The round moves on between what the replay reads and what it writes.
	s := &meanwhile{w.store, func() {
		w.app(store.Write{Ref: round, Ops: []store.Op{
			{Kind: store.Set, Attr: "selected_at", Value: value.OfString("T")},
			{Kind: store.Set, Attr: "weir", Value: value.OfInt(8)},
			{Kind: store.Set, Attr: owntable.Own, Value: value.OfMap(item(`{"status":{"own":"voting","shown":"selected"},"selected_at":{"shown":"T"}}`))},
		}})
	}}
	failtest.On(t, batches(w.over(s), []events.Entry{of(3, longer, expired)}, 0))
	same(t, "a round of which the application changed what is under that", plain(unmarked(w.at(round))),
		`{"group_id":"g","round_id":"r","selected_at":"T","started_by":"a","status":"expired","weir":8,"weir.own":{"selected_at":{"shown":"T"}}}`)
	if len(w.gaps) > 0 {
		t.Errorf("gaps %q", w.gaps)
	}
}

// record is a record of a stream, at its place n, with its images as JSON, "" where
// there is none.
func record(n int, old, new string) events.Entry {
	e := events.Entry{Record: events.Record{Position: events.PositionOf(uint64(n)), Time: time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)}}
	if old != "" {
		e.Record.Old = item(old)
	}
	if new != "" {
		e.Record.New = item(new)
	}
	return e
}

// TestMovedRow: a migration that moved a row is in no recording. What the recording says next of the row follows from it.
func TestMovedRow(t *testing.T) {
	for moved, gaps := range map[string]int{`,"weir.moved":"from ALBUM#old"`: 0, ``: 1} {
		w := newWorld(t)
		w.app(store.Write{Ref: ref("ALBUM#a", "METADATA"), Put: item(`{"PK":"ALBUM#a","SK":"METADATA","type":"Album","title":"one","year":1` + moved + `}`)})
		if s := w.replay([]events.Entry{album(5, `{"title":"one"}`, `{"title":"two"}`)}, 1); s.Gaps != gaps || s.Applied != 1 {
			t.Errorf("%q: %+v", moved, s)
		}
	}
}
