package storetest

import (
	"errors"
	"fmt"
	"testing"

	"weir/internal/failtest"
	"weir/internal/store"
)

// Loss is what becomes of requests of which the driver learns nothing.
type Loss uint8

// The losses. A driver cannot tell them apart.
const (
	Happened Loss = iota // the request has happened, and its answer is lost
	Never                // the request is lost
)

// losses are what each test meets, one run for each.
var losses = map[string][]Loss{
	"happened": {Happened}, "did not": {Never},
	"happened, and again": {Happened, Happened}, "did not, then happened": {Never, Happened},
}

// RunUnknown runs what the contract says of unknown outcomes, for a store whose requests can
// be lost. open is as in Run, and is called by several tests at once; lose loses the next
// requests of the store.
func RunUnknown(t *testing.T, open func(t *testing.T, tables []store.Table) (s store.Store, lose func(...Loss))) {
	for _, c := range unknownCases {
		for name, losses := range losses {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s, lose := open(t, Tables())
				c.run(&unknown{fixture{T: t, Store: s}, func() { lose(losses...) }})
			})
		}
	}
}

// unknown is a fixture whose next requests can be lost.
type unknown struct {
	fixture
	lose func()
}

var unknownCases = []struct {
	name string
	run  func(f *unknown)
}{
	{"a repeatable write is settled alone", testSettledAlone},
	{"a repeatable write that another one follows", testOvertaken},
	{"a write that must not happen twice", testOnce},
	{"a transaction with its own condition", testTransactOnce},
	{"a transaction without a condition", testTransactAdds},
	{"a transaction whose condition fails", testTransactFails},
	{"writes without a condition", testPlain},
	{"reads", testReads},
}

// step is an addition that happens once: to a row of the version before.
func step(r store.Ref, version int) store.Write {
	w := update(r, add("sum", 10), set("version", version))
	w.If, w.Return = store.Cond{{absent("version"), test("version", store.Lt, version)}}, true
	return w
}

func repeatable(w store.Write) store.Write {
	w.Repeatable = true
	return w
}

// testSettledAlone: of a call with a lost write, each write happens once, none fails, and
// the row says whose version it has.
func testSettledAlone(f *unknown) {
	var ws []store.Write
	for i := range 20 {
		ws = append(ws, repeatable(step(ref("a", fmt.Sprint(i)), 1)))
	}
	f.lose()
	for i, o := range f.try(ws...) {
		if o.Err != nil && !errors.Is(o.Err, store.ErrCondition) {
			f.Errorf("write %d: %v", i, o.Err)
		}
		if n := o.Row.Get("version").Text(); n != "1" {
			f.Errorf("write %d is settled by version %q", i, n)
		}
		f.is(ws[i].Ref, item("PK", "a", "SK", fmt.Sprint(i), "sum", 10, "version", 1))
	}
}

// testOvertaken: the order of a key's writes holds, whichever of them is sent again.
func testOvertaken(f *unknown) {
	r := ref("a", "n")
	f.lose()
	for i, o := range f.try(repeatable(step(r, 1)), repeatable(step(r, 2)), repeatable(step(r, 3))) {
		if o.Err != nil && !errors.Is(o.Err, store.ErrCondition) {
			f.Errorf("write %d: %v", i, o.Err)
		}
	}
	f.is(r, item("PK", "a", "SK", "n", "sum", 30, "version", 3))
}

// testOnce: without leave to repeat it, the caller is told that the outcome is unknown, and
// never that a condition failed.
func testOnce(f *unknown) {
	r := ref("a", "n")
	for n, w := range []store.Write{step(r, 1), update(r, add("sum", 10))} {
		before, _ := f.row(r).Get("sum").Int64()
		f.lose()
		out, err := f.Write(f.ctx(), []store.Write{w})
		if err == nil || isCondition(err) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrConflict) || isCondition(out[0].Err) {
			f.Errorf("write %d: %v, %v", n, err, out)
		}
		f.settle()
		if after, _ := f.row(r).Get("sum").Int64(); after != before && after != before+10 {
			f.Errorf("write %d: %d, then %d", n, before, after)
		}
	}
}

// settle uses up the losses that are left.
func (f *unknown) settle() { f.do(put("settle", "1"), put("settle", "2"), put("settle", "3")) }

// testTransactOnce: the transaction whose answer was lost makes its own condition false.
// Sent again, it is told apart from one whose condition another writer made false.
func testTransactOnce(f *unknown) {
	r, one := ref("a", "n"), store.Ref{Table: single, Key: key("x", nil)}
	for version := 1; version <= 3; version++ {
		f.lose()
		if err := f.transact(step(r, version), update(one, add("n", 1))); err != nil {
			f.Fatalf("transaction %d: %v", version, err)
		}
		f.is(r, item("PK", "a", "SK", "n", "sum", 10*version, "version", version))
		f.is(one, item("PK", "x", "n", version))
	}
}

func testTransactAdds(f *unknown) {
	r := ref("a", "n")
	for n := 1; n <= 3; n++ {
		f.lose()
		failtest.On(f, f.transact(update(r, add("sum", 1)), put("a", fmt.Sprint(n))))
		f.is(r, item("PK", "a", "SK", "n", "sum", n))
	}
}

func testTransactFails(f *unknown) {
	r := ref("a", "n")
	f.do(step(r, 5))
	f.lose()
	if err := f.transact(step(r, 5), put("a", "other")); !isCondition(err) {
		f.Errorf("%v", err)
	}
	f.is(r, item("PK", "a", "SK", "n", "sum", 10, "version", 5))
	f.is(ref("a", "other"), nil)
}

func testPlain(f *unknown) {
	f.do(put("a", "gone"))
	f.lose()
	f.do(put("a", "1", "v", 1), put("a", "2", "v", 2), update(ref("a", "3"), set("v", 3)), store.Write{Ref: ref("a", "gone"), Delete: true})
	for i := 1; i <= 3; i++ {
		f.is(ref("a", fmt.Sprint(i)), item("PK", "a", "SK", fmt.Sprint(i), "v", i))
	}
	f.is(ref("a", "gone"), nil)
}

func testReads(f *unknown) {
	f.do(put("a", "1", "v", 1))
	f.lose()
	f.is(ref("a", "1"), item("PK", "a", "SK", "1", "v", 1))
	f.settle()
	f.lose()
	if rows := f.pages(store.Query{Table: rows, Partition: val("a")}); len(rows) != 1 {
		f.Errorf("%d rows", len(rows))
	}
}
