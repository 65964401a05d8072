package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
	searchembedded "weir/internal/search/embedded"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
	"weir/internal/verify"
)

// harness is a world of one model: a store, an index, and a stream whose records
// are delivered as a script says, not as a reader would.
type harness struct {
	t       testing.TB
	model   *model.Model
	store   *embedded.Store
	index   *searchembedded.Index
	faults  *faulty
	clock   time.Time
	records []delivery
	sleeper map[string]*sleeper
}

// delivery is a record of some table's stream; the scripts count them from 1.
type delivery struct {
	table *model.Table
	shard string
	rec   events.Record
}

func newHarness(t testing.TB, m *model.Model) *harness {
	h := &harness{t: t, model: m, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), sleeper: map[string]*sleeper{}}
	tables := []store.Table{book.Table()}
	for _, mt := range m.Tables {
		st := mt.Table
		st.Stream = true
		tables = append(tables, st)
	}
	var err error
	h.store, err = embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: h.now, Shards: 1})
	must(t, err)
	var schemas []search.Schema
	for _, s := range m.Searches {
		schemas = append(schemas, search.Schema{Name: projections.IndexName(m, s)})
	}
	if len(schemas) > 0 {
		h.index, err = searchembedded.Open("", schemas, searchembedded.Options{InMemory: true, Now: h.now})
		must(t, err)
	}
	h.faults = &faulty{Store: h.store}
	return h
}

func (h *harness) now() time.Time { return h.clock }

func (h *harness) close() {
	for _, s := range h.sleeper {
		s.wake()
	}
	if h.index != nil {
		h.index.Close()
	}
	h.store.Close()
}

func (h *harness) runner(s store.Store) *runner.Runner {
	r := &runner.Runner{Model: h.model, Store: s, Now: h.now}
	if h.index != nil {
		r.Index = h.index
	}
	return r
}

// pull takes what is new in the streams into records.
func (h *harness) pull() int {
	before := len(h.records)
	for _, t := range h.model.Tables {
		shards, err := h.store.Shards(context.Background(), t.Name)
		must(h.t, err)
		for _, s := range shards {
			var last events.Position
			for _, d := range h.records {
				if d.table == t && d.shard == s.ID {
					last = d.rec.Position
				}
			}
			page, err := h.store.Read(context.Background(), t.Name, s.ID, last, 100000)
			must(h.t, err)
			for _, rec := range page.Records {
				h.records = append(h.records, delivery{t, s.ID, rec})
			}
		}
	}
	sort.SliceStable(h.records[before:], func(i, j int) bool {
		return h.records[before+i].rec.Position.Compare(h.records[before+j].rec.Position) < 0
	})
	return len(h.records) - before
}

// deliver applies records as batches: runs of one table in one lane.
func (h *harness) deliver(s store.Store, which []int, lane string) (runner.Counts, error) {
	var n runner.Counts
	r := h.runner(s)
	for len(which) > 0 {
		d := h.records[which[0]-1]
		b := runner.Batch{Lane: lane}
		if lane == "" {
			b.Lane = runner.Lane(d.table.Name, d.shard)
		}
		for len(which) > 0 && h.records[which[0]-1].table == d.table {
			c, ok := projections.NewChange(d.table, &h.records[which[0]-1].rec)
			if !ok {
				return n, errors.New("a record without its table's key")
			}
			b.Changes = append(b.Changes, c)
			which = which[1:]
		}
		m, err := r.Rows(context.Background(), b)
		if err != nil {
			return n, err
		}
		n.Add(m)
		if h.index != nil {
			if _, err := r.Documents(context.Background(), b); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// settle delivers from the record given on, and then everything that comes of it,
// until nothing is new.
func (h *harness) settle(from int) error {
	for h.pull(); from <= len(h.records); h.pull() {
		var which []int
		for ; from <= len(h.records); from++ {
			which = append(which, from)
		}
		if _, err := h.deliver(h.store, which, ""); err != nil {
			return err
		}
	}
	for {
		left, err := h.runner(h.store).Jobs(context.Background())
		if err != nil || !left {
			return err
		}
	}
}

// audit recomputes everything from the core rows and prints what differs.
func (h *harness) audit() string {
	var out []string
	v := verify.Verify{Model: h.model, Store: h.store}
	if h.index != nil {
		v.Index = h.index
	}
	err := v.Run(context.Background(), func(d verify.Difference) {
		out = append(out, fmt.Sprintf("%s of %s: is %s, should be %s", d.Derivation, d.Row, d.Have, d.Want))
	})
	if err != nil {
		return err.Error()
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// write does what an application would: one line each of
//
//	put TABLE {row} | set TABLE {key} {attributes} | delete TABLE {key}
//
// keep-derived makes a put carry over what stands on the row, as a stale copy.
func (h *harness) write(line string) error {
	op, rest, _ := strings.Cut(line, " ")
	name, rest, _ := strings.Cut(rest, " ")
	t := h.model.Table(name)
	if t == nil {
		return fmt.Errorf("no table %q", name)
	}
	dec := json.NewDecoder(strings.NewReader(rest))
	dec.UseNumber()
	var items []value.Item
	for dec.More() {
		var x map[string]any
		if err := dec.Decode(&x); err != nil {
			return err
		}
		items = append(items, itemOf(x))
	}
	key, ok := t.KeyOf(items[0])
	if !ok {
		return fmt.Errorf("no key of %s in %s", name, rest)
	}
	w := store.Write{Ref: store.Ref{Table: name, Key: key}}
	switch op {
	case "put":
		w.Put = items[0]
	case "delete":
		w.Delete = true
	case "set":
		for _, a := range items[1] {
			op := store.Op{Kind: store.Set, Attr: a.Name, Value: a.Value}
			if a.Value.Kind() == value.Null {
				op = store.Op{Kind: store.Remove, Attr: a.Name}
			}
			w.Ops = append(w.Ops, op)
		}
	default:
		return fmt.Errorf("unknown write %q", op)
	}
	out, err := h.store.Write(context.Background(), []store.Write{w})
	if err == nil {
		err = out[0].Err
	}
	h.clock = h.clock.Add(time.Second)
	return err
}

func itemOf(x map[string]any) value.Item {
	var attrs []value.Attr
	for name, v := range x {
		attrs = append(attrs, value.Attr{Name: name, Value: valueOf(v)})
	}
	return value.NewItem(attrs...)
}

func valueOf(x any) value.Value {
	switch x := x.(type) {
	case nil:
		return value.OfNull()
	case bool:
		return value.OfBool(x)
	case json.Number:
		return value.MustNumber(x.String())
	case string:
		return value.OfString(x)
	case []any:
		var vs []value.Value
		for _, e := range x {
			vs = append(vs, valueOf(e))
		}
		return value.OfList(vs...)
	case map[string]any:
		return value.OfMap(itemOf(x))
	}
	panic(fmt.Sprintf("%T in JSON", x))
}

// rows prints a table's rows in key order, without bookkeeping, one a line.
func (h *harness) rows(table, prefix string) string {
	var out []string
	page, err := h.store.Query(context.Background(), store.Query{Table: table})
	must(h.t, err)
	for _, row := range page.Rows {
		line := string(value.AppendPlainItem(nil, row.Filter(func(n string) bool { return !book.IsOurs(n) })))
		if prefix == "" || strings.Contains(line, prefix) {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// faulty is a store that breaks at a chosen write: before it happens, or after,
// with its answer lost. It can also go to sleep there.
type faulty struct {
	store.Store
	mu    sync.Mutex
	calls int
	at    int // the call that breaks, from 1; 0 for none
	after bool
	sleep *sleeper
}

var errBroken = errors.New("the connection broke")

func (f *faulty) breaks() (now, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.calls == f.at, f.after
}

func (f *faulty) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	now, after := f.breaks()
	if now && f.sleep != nil {
		f.sleep.nap()
		now = false
	}
	if now && !after {
		return nil, errBroken
	}
	out, err := f.Store.Write(ctx, ws)
	if now {
		return nil, errBroken
	}
	return out, err
}

func (f *faulty) Transact(ctx context.Context, ws []store.Write) error {
	now, after := f.breaks()
	if now && !after {
		return errBroken
	}
	err := f.Store.Transact(ctx, ws)
	if now {
		return errBroken
	}
	return err
}

// sleeper stops a worker in the middle of its work and lets it go on later.
type sleeper struct {
	asleep, awake, over chan struct{}
	once                sync.Once
}

func newSleeper() *sleeper {
	return &sleeper{asleep: make(chan struct{}), awake: make(chan struct{}), over: make(chan struct{})}
}

func (s *sleeper) nap() {
	close(s.asleep)
	<-s.awake
}

func (s *sleeper) wake() { s.once.Do(func() { close(s.awake) }) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loadText compiles a model that a test holds as text.
func loadText(t testing.TB, text string) (*model.Model, error) {
	path := filepath.Join(t.TempDir(), "model.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return model.Load(path)
}

// ranges reads "1..4 2 3": record numbers in the order of delivery.
func ranges(words []string, last int) ([]int, error) {
	var out []int
	for _, w := range words {
		a, b, ok := strings.Cut(w, "..")
		if !ok {
			b = a
		}
		if b == "" || b == "last" {
			b = strconv.Itoa(last)
		}
		from, err := strconv.Atoi(a)
		to, err2 := strconv.Atoi(b)
		if err != nil || err2 != nil || from < 1 || to > last {
			return nil, fmt.Errorf("%q is not a range of the %d records", w, last)
		}
		for i := from; i <= to; i++ {
			out = append(out, i)
		}
	}
	return out, nil
}
