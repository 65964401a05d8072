package storetest

import (
	"fmt"
	"math/rand/v2"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// The two statements on which exactly-once bookkeeping rests, as DESIGN.md has them
// under "Exactly once: the ledger".

const micros = 1_700_000_000_000_000

func position(n int) value.Value { return events.PositionOf(uint64(n)).Value() }

// ledgerUpdate is
//
//	UPDATE ledger SET p:L=:last, n=if_not_exists(n,:micros)+:1 ADD a:mediaCount :delta
//	IF (attribute_not_exists(p:L) OR p:L < :first) AND attribute_not_exists(q)
//	RETURN ALL_NEW, on failure ALL_OLD
func ledgerUpdate(first, last, delta int) store.Write {
	return store.Write{
		Ref: store.Ref{Table: single, Key: key("ledger", nil)},
		Ops: []store.Op{
			{Kind: store.Set, Attr: "p:L", Value: position(last)},
			{Kind: store.Add, Attr: "n", Value: val(1), From: val(micros)},
			{Kind: store.Add, Attr: "a:mediaCount", Value: val(delta)},
		},
		If: store.Cond{
			{absent("p:L"), test("p:L", store.Lt, position(first))},
			{absent("q")},
		},
		Return: true,
	}
}

// targetUpdate is
//
//	UPDATE target SET mediaCount=:v, weir=:n
//	IF attribute_exists(PK) AND
//	   (attribute_not_exists(weir) OR weir < :n OR (weir = :n AND mediaCount <> :v))
func targetUpdate(n, v value.Value) store.Write {
	return store.Write{
		Ref: ref("album", "metadata"),
		Ops: []store.Op{set("mediaCount", v), set("weir", n)},
		If: store.Cond{
			{exists("PK")},
			{absent("weir"), test("weir", store.Le, n)},
			{absent("weir"), test("weir", store.Lt, n), test("mediaCount", store.Ne, v)},
		},
	}
}

func ledgerRow(last, n, count int) value.Item {
	return item("PK", "ledger", "p:L", position(last), "n", micros+n, "a:mediaCount", count)
}

var ledgerCases = []testCase{
	{"counts a batch once", func(f *fixture) {
		out := f.try(ledgerUpdate(10, 12, 3))[0]
		if out.Err != nil {
			f.Fatal(out.Err)
		}
		f.same("first batch", out.Row, ledgerRow(12, 1, 3))
		out = f.try(ledgerUpdate(13, 20, -1))[0]
		f.same("second batch", out.Row, ledgerRow(20, 2, 2))
		for _, again := range [][2]int{{13, 20}, {10, 12}, {18, 25}, {20, 30}} {
			out = f.try(ledgerUpdate(again[0], again[1], 100))[0]
			if !isCondition(out.Err) {
				f.Errorf("batch %v: error %v", again, out.Err)
			}
			f.same(fmt.Sprint("ledger after batch ", again), out.Row, ledgerRow(20, 2, 2))
		}
		f.same("next batch", f.try(ledgerUpdate(21, 21, 0))[0].Row, ledgerRow(21, 3, 2))
	}},
	{"counts positions as integers, however long", func(f *fixture) {
		at := func(digits string) value.Value {
			p, err := events.ParsePosition(digits)
			failtest.On(f, err)
			return p.Value()
		}
		step := func(first, last string) error {
			w := ledgerUpdate(0, 0, 1)
			w.Ops[0].Value = at(last)
			w.If[0][1].Value = at(first)
			return f.try(w)[0].Err
		}
		failtest.On(f, step("999999999999999999999", "999999999999999999999"))
		if err := step("1000000000000000000000", "9999999999999999999999999999999999999999"); err != nil {
			f.Errorf("a longer position: %v", err)
		}
		if err := step("9999999999999999999999999999999999999998", "9999999999999999999999999999999999999999"); !isCondition(err) {
			f.Errorf("an older position: %v", err)
		}
	}},
	{"parks", func(f *fixture) {
		f.do(ledgerUpdate(1, 1, 1))
		w := ledgerUpdate(2, 2, 1)
		w.Ops, w.If = []store.Op{add("q", 1)}, nil
		f.do(w)
		out := f.try(ledgerUpdate(2, 2, 1))[0]
		if !isCondition(out.Err) {
			f.Errorf("error %v", out.Err)
		}
		f.same("parked", out.Row, ledgerRow(1, 1, 1).With(value.Attr{Name: "q", Value: val(1)}))
		w.Ops = []store.Op{remove("q")}
		f.do(w, ledgerUpdate(2, 2, 1))
	}},
	{"publishes newer values and heals damaged ones", func(f *fixture) {
		r := ref("album", "metadata")
		n := func(i int) value.Value { return val(micros + i) }
		f.fails(targetUpdate(n(1), val(5)), store.ErrCondition)
		f.is(r, nil)
		f.do(put("album", "metadata", "title", "t"))
		f.do(targetUpdate(n(2), val(5)))
		want := item("PK", "album", "SK", "metadata", "title", "t", "mediaCount", 5, "weir", micros+2)
		f.is(r, want)
		f.fails(targetUpdate(n(2), val(5)), store.ErrCondition)
		f.fails(targetUpdate(n(1), val(4)), store.ErrCondition)
		f.is(r, want)
		f.do(update(r, set("mediaCount", 99))) // overwritten by the application
		f.do(targetUpdate(n(2), val(5)))
		f.is(r, want)
		f.do(put("album", "metadata", "title", "t", "mediaCount", 5)) // deleted and made again
		f.do(targetUpdate(n(2), val(5)))
		f.is(r, want)
	}},
	{"survives redelivery, overlap and races", func(f *fixture) {
		// Three workers deliver the records 1 to 60, each worth 1, in batches of any
		// size, each worker until nothing is left. They drop records that were seen
		// before.
		const total = 60
		parallel(f, 3, func(worker int) error {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for seen := 0; seen < total; {
				first := max(1, seen+1-rng.IntN(4))
				last := min(total, first+rng.IntN(8))
				out, err := f.Write(f.ctx(), []store.Write{ledgerUpdate(first, last, last-first+1)})
				if err != nil {
					return err
				}
				if out[0].Err != nil && !isCondition(out[0].Err) {
					return out[0].Err
				}
				seen = int(events.PositionFrom(out[0].Row.Get("p:L")).Uint64())
			}
			return nil
		})
		// Batches begin at any record. A gap would be an error of the reader, so only
		// batches that follow the last one may count.
		row := f.row(store.Ref{Table: single, Key: key("ledger", nil)})
		if got := row.Get("a:mediaCount"); !value.Equal(got, val(total)) {
			f.Errorf("count %s, want %d", got.Text(), total)
		}
	}},
}
