// Package storetest is the store's contract as a test suite. Each sentence of package
// store is a test here, and each driver must pass Run.
//
// The suite knows no driver. Shard ids and positions are opaque. Index reads and
// streams may lag: the suite polls, and never sleeps otherwise. Nothing depends on a
// clock.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/store"
	"weir/internal/value"
)

// Run runs the suite. open must return a store in which the given tables exist and are
// empty, and must close it when its test ends; the suite may have closed it already.
func Run(t *testing.T, open func(t *testing.T, tables []store.Table) store.Store) {
	for _, g := range []struct {
		name  string
		cases []testCase
	}{
		{"Get", getCases},
		{"Values", valueCases},
		{"Conditions", conditionCases},
		{"Updates", updateCases},
		{"Refusals", refusalCases},
		{"Write", writeCases},
		{"Ledger", ledgerCases},
		{"Transact", transactCases},
		{"Limits", limitCases},
		{"Keys", keyCases},
		{"Query", queryCases},
		{"Pages", pageCases},
		{"Indexes", indexCases},
		{"Stream", streamCases},
		{"Follow", followCases},
		{"Sweep", sweepCases},
		{"Model", modelCases},
		{"Races", raceCases},
		{"Life", lifeCases},
	} {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					c.run(&fixture{T: t, Store: open(t, Tables())})
				})
			}
		})
	}
}

type testCase struct {
	name string
	run  func(f *fixture)
}

// The tables of the suite, and their indexes.
const (
	rows    = "storetest-rows"    // PK, SK strings; indexes; a stream; a TTL
	single  = "storetest-single"  // PK string
	numbers = "storetest-numbers" // PK, SK numbers
	blobs   = "storetest-blobs"   // PK, SK binary

	byKind   = "by-kind"   // kind, at: strings
	byScore  = "by-score"  // kind string, score number
	keysOnly = "keys-only" // owner string
	bySize   = "by-size"   // PK, size number; local

	ttl = "expires" // of rows
)

func attr(name string, kind store.KeyType) store.KeyAttr {
	return store.KeyAttr{Name: name, Type: kind}
}

func schema(partition, sort store.KeyAttr) store.KeySchema {
	return store.KeySchema{Partition: partition, Sort: sort}
}

// Tables returns the tables that the suite needs.
func Tables() []store.Table {
	pk := attr("PK", value.String)
	return []store.Table{
		{Name: rows, Key: schema(pk, attr("SK", value.String)), Stream: true, TTL: ttl, Indexes: []store.Index{
			{Name: byKind, Key: schema(attr("kind", value.String), attr("at", value.String))},
			{Name: byScore, Key: schema(attr("kind", value.String), attr("score", value.Number))},
			{Name: keysOnly, Key: schema(attr("owner", value.String), store.KeyAttr{}), KeysOnly: true},
			{Name: bySize, Key: schema(pk, attr("size", value.Number)), Local: true},
		}},
		{Name: single, Key: schema(pk, store.KeyAttr{})},
		{Name: numbers, Key: schema(attr("PK", value.Number), attr("SK", value.Number))},
		{Name: blobs, Key: schema(attr("PK", value.Binary), attr("SK", value.Binary))},
	}
}

// fixture is a test and its store.
type fixture struct {
	*testing.T
	store.Store
}

func (f *fixture) ctx() context.Context { return f.Context() }

// val converts Go's strings, ints, bools and nil to values.
func val(x any) value.Value {
	switch x := x.(type) {
	case nil:
		return value.OfNull()
	case string:
		return value.OfString(x)
	case int:
		return value.OfInt(int64(x))
	case bool:
		return value.OfBool(x)
	case value.Value:
		return x
	}
	panic(fmt.Sprintf("storetest: no value for %T", x))
}

// item makes an item from alternating names and values.
func item(pairs ...any) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i].(string), Value: val(pairs[i+1])})
	}
	return value.NewItem(attrs...)
}

func key(pk, sk any) store.Key {
	k := store.Key{Partition: val(pk)}
	if sk != nil {
		k.Sort = val(sk)
	}
	return k
}

// ref is a row of the table rows.
func ref(pk, sk string) store.Ref { return store.Ref{Table: rows, Key: key(pk, sk)} }

// put is an unconditional put into the table rows.
func put(pk, sk string, pairs ...any) store.Write {
	return store.Write{Ref: ref(pk, sk), Put: item(append([]any{"PK", pk, "SK", sk}, pairs...)...)}
}

func set(name string, v any) store.Op { return store.Op{Kind: store.Set, Attr: name, Value: val(v)} }
func add(name string, v any) store.Op { return store.Op{Kind: store.Add, Attr: name, Value: val(v)} }
func remove(name string) store.Op     { return store.Op{Kind: store.Remove, Attr: name} }

func update(r store.Ref, ops ...store.Op) store.Write { return store.Write{Ref: r, Ops: ops} }

func exists(name string) store.Test { return store.Test{Attr: name, Is: store.Exists} }
func absent(name string) store.Test { return store.Test{Attr: name, Is: store.Absent} }

func test(name string, is store.Comparison, v any) store.Test {
	return store.Test{Attr: name, Is: is, Value: val(v)}
}

// all is a condition that requires every test to hold.
func all(tests ...store.Test) store.Cond {
	var c store.Cond
	for _, t := range tests {
		c = append(c, []store.Test{t})
	}
	return c
}

// try writes and returns the outcomes.
func (f *fixture) try(ws ...store.Write) []store.Outcome {
	f.Helper()
	out, err := f.Write(f.ctx(), ws)
	if err != nil {
		f.Fatalf("Write: %v", err)
	}
	if len(out) != len(ws) {
		f.Fatalf("Write of %d answers %d outcomes", len(ws), len(out))
	}
	return out
}

// do executes writes that must succeed.
func (f *fixture) do(ws ...store.Write) {
	f.Helper()
	for i, o := range f.try(ws...) {
		if o.Err != nil {
			f.Fatalf("write %d: %v", i, o.Err)
		}
	}
}

// fails executes a write that must fail with the given error.
func (f *fixture) fails(w store.Write, want error) {
	f.Helper()
	if err := f.try(w)[0].Err; !errors.Is(err, want) {
		f.Errorf("write of %v: error %v, want %v", w.Ref, err, want)
	}
}

func (f *fixture) row(r store.Ref) value.Item {
	f.Helper()
	got, err := f.Get(f.ctx(), []store.Ref{r})
	if err != nil || len(got) != 1 {
		f.Fatalf("Get %v: %d rows, %v", r, len(got), err)
	}
	return got[0]
}

// is checks a row; nil means that there is no row.
func (f *fixture) is(r store.Ref, want value.Item) {
	f.Helper()
	f.same(r.String(), f.row(r), want)
}

func (f *fixture) same(what string, got, want value.Item) {
	f.Helper()
	if !value.EqualItems(got, want) {
		f.Errorf("%s: got %.300s, want %.300s", what, text(got), text(want))
	}
}

func text(it value.Item) string {
	if it == nil {
		return "nothing"
	}
	return string(value.AppendTypedItem(nil, it))
}

// page reads one page.
func (f *fixture) page(q store.Query) store.Page {
	f.Helper()
	p, err := f.Query(f.ctx(), q)
	if err != nil {
		f.Fatalf("Query %+v: %v", q, err)
	}
	return p
}

// pages reads all pages, and checks each against the query's limits.
func (f *fixture) pages(q store.Query) (out []value.Item) {
	f.Helper()
	for n := 0; ; n++ {
		p := f.page(q)
		if q.Limit > 0 && len(p.Rows) > q.Limit {
			f.Fatalf("a page of %d rows, the limit is %d", len(p.Rows), q.Limit)
		}
		out = append(out, p.Rows...)
		if p.Next == nil {
			return out
		}
		if n > 10000 {
			f.Fatal("a query does not end")
		}
		q.After = p.Next
	}
}

// patience is the maximum time for something that may lag.
const patience = 20 * time.Second

// eventually polls until check returns "".
func (f *fixture) eventually(what string, check func() string) {
	f.Helper()
	deadline := time.Now().Add(patience)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("%s: after %v still: %s", what, patience, complaint)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// finds polls until a query returns rows with the given sort keys, in this order.
func (f *fixture) finds(q store.Query, want ...string) {
	f.Helper()
	f.eventually(fmt.Sprintf("%s %s", q.Table, q.Index), func() string {
		return cmp.Diff(append([]string{}, want...), append([]string{}, names(f.pages(q))...))
	})
}

// names returns the rows' sort keys.
func names(its []value.Item) (out []string) {
	for _, it := range its {
		out = append(out, it.Get("SK").Text())
	}
	return out
}
