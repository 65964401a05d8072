package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/document"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/search"
	searchembedded "weir/internal/search/embedded"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// harness is a world of one model: a store, an index, and a stream whose records
// are delivered as a script says, not as a reader would.
type harness struct {
	t       testing.TB
	model   *model.Model
	store   *embedded.Store
	index   *searchembedded.Index
	mood    *moody // when set, stands before the index
	clock   time.Time
	records []delivery
	sleeper map[string]*sleeper
	done    map[int]bool // records that were delivered
}

// delivery is a record of some table's stream; the scripts count them from 1.
type delivery struct {
	table *model.Table
	shard string
	rec   events.Record
}

func newHarness(t testing.TB, m *model.Model) *harness {
	h := &harness{t: t, model: m, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), sleeper: map[string]*sleeper{}, done: map[int]bool{}}
	tables := []store.Table{owntable.Table()}
	for _, mt := range m.AllTables() {
		st := mt.Table
		st.Stream = true
		tables = append(tables, st)
	}
	var err error
	h.store, err = embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: h.now, Shards: 1})
	failtest.On(t, err)
	var schemas []search.Schema
	for _, s := range m.Searches {
		schemas = append(schemas, search.Schema{Name: document.IndexName(m, s)})
	}
	if len(schemas) > 0 {
		h.index, err = searchembedded.Open("", schemas, searchembedded.Options{InMemory: true, Now: h.now})
		failtest.On(t, err)
	}
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

// runner is a worker whose writes go through the breaker; nil breaks nothing.
func (h *harness) runner(b *breaker) *runner.Runner {
	r := &runner.Runner{Kinds: kinds.All(), Model: h.model, Store: h.store, Now: h.now}
	if b != nil {
		r.Store = &faultyStore{h.store, b}
	}
	r.Mover = &ingest.Mover{Model: h.model, Store: r.Store, Now: h.now}
	switch {
	case h.index == nil:
	case h.mood != nil:
		r.Index = h.mood
	case b != nil:
		r.Index = &faultyIndex{h.index, b}
	default:
		r.Index = h.index
	}
	return r
}

// pull takes what is new in the streams into records.
func (h *harness) pull() int {
	before := len(h.records)
	for _, t := range h.model.AllTables() {
		shards, err := h.store.Shards(context.Background(), t.Name)
		failtest.On(h.t, err)
		for _, s := range shards {
			var last events.Position
			for _, d := range h.records {
				if d.table == t && d.shard == s.ID {
					last = d.rec.Position
				}
			}
			page, err := h.store.Read(context.Background(), t.Name, s.ID, last, 100000)
			failtest.On(h.t, err)
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

// deliver applies records as batches: runs of one table's shard. One that is not
// broken off is counted as delivered.
func (h *harness) deliver(b *breaker, which []int) (n runner.Result, err error) {
	r := h.runner(b)
	for len(which) > 0 {
		d := h.records[which[0]-1]
		batch, rest := runner.Batch{ShardKey: owntable.ShardKey(d.table.Name, d.shard)}, which
		for len(rest) > 0 && h.records[rest[0]-1].table == d.table && h.records[rest[0]-1].shard == d.shard {
			c, ok := projections.NewChange(d.table, &h.records[rest[0]-1].rec)
			if !ok {
				return n, errors.New("a record without its table's key")
			}
			batch.Changes = append(batch.Changes, c)
			rest = rest[1:]
		}
		m, err := r.ApplyRows(context.Background(), batch)
		if err != nil {
			return n, err
		}
		n.Add(m)
		if err := h.knows(m.By); err != nil {
			return n, err
		}
		if h.index != nil {
			docs, pending, err := document.WriteDocuments(context.Background(), r, []runner.Batch{batch}, context.Background())
			if err == nil && pending > 0 {
				err = fmt.Errorf("%d documents are pending: %w", pending, errBroken) // they are written below when the batch comes again
			}
			if err == nil {
				_, err = document.CatchUp(context.Background(), r)
			}
			if err == nil {
				err = h.knows(docs[0].By)
			}
			if err != nil {
				return n, err
			}
		}
		for ; len(which) > len(rest); which = which[1:] {
			h.done[which[0]] = true
		}
	}
	return n, nil
}

// knows says whether results name derivations of the model alone, and no record twice.
func (h *harness) knows(by map[string]runner.Counts) error {
	names := map[string]bool{}
	for _, d := range h.model.Derivations() {
		names[d.Name] = true
	}
	for name, n := range by {
		if !names[name] && !strings.HasSuffix(name, " followed") { // of a value that no row can follow
			return fmt.Errorf("results name %q, which is no derivation: %+v", name, n)
		}
		if n.Applied < 0 || n.Dead < 0 || n.Skipped != 0 {
			return fmt.Errorf("results of %s are %+v", name, n)
		}
	}
	return nil
}

// batch is one record alone.
func (h *harness) batch(n int) runner.Batch {
	d := h.records[n-1]
	c, ok := projections.NewChange(d.table, &d.rec)
	if !ok {
		h.t.Fatal("a record without its table's key")
	}
	return runner.Batch{ShardKey: owntable.ShardKey(d.table.Name, d.shard), Changes: []projections.Change{c}}
}

// settle delivers from the record given on, and then everything that comes of it,
// until nothing is new.
func (h *harness) settle(from int) error {
	for h.pull(); from <= len(h.records); h.pull() {
		var which []int
		for ; from <= len(h.records); from++ {
			which = append(which, from)
		}
		if _, err := h.deliver(nil, which); err != nil {
			return err
		}
		if err := h.jobs(nil); err != nil {
			return err
		}
	}
	return nil
}

// jobs works until no long list is left.
func (h *harness) jobs(b *breaker) error {
	jobs := &runner.Jobs{Runner: h.runner(b)}
	for {
		left, err := jobs.RunStep(context.Background())
		if err != nil || !left {
			return err
		}
	}
}

var atRecord = regexp.MustCompile(`\$at\((\d+)\)`)

// write does what an application would: one line each of
//
//	put TABLE {row} | create TABLE {row} (where there is none) | set TABLE {key} {attributes} | delete TABLE {key}
//	for 1..N LINE     the line N times, $i in it being 1 to N
//	ledger TABLE {key} {attributes}      somebody writes into the ledger of a target
//	followed=FIELD TABLE {key} {attributes} sets attributes of the row of the own table that has a followed value
//	back N            the row of record N as that record left it, bookkeeping and all
//
// A null in set takes the attribute away; {"$noise": N} is a string of N letters
// that no packer makes shorter than three quarters, {"$position": "N"} the position N
// as a row carries it. $at(N) is the position of record
// N, as history shows it.
func (h *harness) write(line string) error {
	line = atRecord.ReplaceAllStringFunc(line, func(s string) string {
		n, _ := strconv.Atoi(atRecord.FindStringSubmatch(s)[1])
		return fmt.Sprintf("%040s", h.records[n-1].rec.Position)
	})
	if rest, ok := strings.CutPrefix(line, "for 1.."); ok {
		count, line, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(count)
		for i := 1; err == nil && i <= n; i++ {
			err = h.write(strings.ReplaceAll(line, "$i", strconv.Itoa(i)))
		}
		return err
	}
	op, rest, _ := strings.Cut(line, " ")
	if n, err := strconv.Atoi(rest); op == "back" && err == nil {
		r := &h.records[n-1].rec
		return h.writeRow(h.model.Table(r.Table), "put", []value.Item{r.New})
	}
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
	return h.writeRow(t, op, items)
}

func (h *harness) writeRow(t *model.Table, op string, items []value.Item) error {
	key, ok := t.KeyOf(items[0])
	if !ok {
		return fmt.Errorf("no key of %s in %v", t.Name, items[0])
	}
	w := store.Write{Ref: store.Ref{Table: t.Name, Key: key}}
	if op == "ledger" {
		w.Ref, op = owntable.Ledger(h.model.Name, w.Ref), "set"
	}
	if field, ok := strings.CutPrefix(op, "followed="); ok {
		w.Ref, op = owntable.Followed(h.model.Name, field, w.Ref), "set"
	}
	switch op {
	case "put":
		w.Put = items[0]
	case "create":
		w.Put, w.If = items[0], store.Cond{{{Attr: t.Key.Partition.Name, Is: store.Absent}}}
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
		if n, ok := x["$noise"].(json.Number); ok {
			size, _ := strconv.Atoi(n.String())
			return value.OfString(noise(size))
		}
		if p, ok := x["$position"].(string); ok {
			at, err := events.ParsePosition(p)
			if err != nil {
				panic(err)
			}
			return at.Value()
		}
		return value.OfMap(itemOf(x))
	}
	panic(fmt.Sprintf("%T in JSON", x))
}

// loadText compiles a model that a test holds as text.
func loadText(t testing.TB, text string) (*model.Model, error) {
	path := filepath.Join(t.TempDir(), "model.yaml")
	failtest.On(t, os.WriteFile(path, []byte(text), 0o600))
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

func noise(size int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, size)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[r.IntN(64)]
	}
	return string(b)
}
