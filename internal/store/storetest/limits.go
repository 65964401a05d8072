package storetest

import (
	"errors"
	"fmt"

	"weir/internal/store"
	"weir/internal/value"
)

// limitCases hold each of DynamoDB's limits on both sides: what is exactly as large is taken, and
// one byte or one write more is refused and changes nothing.
var limitCases = []testCase{
	{"of an update's expression, 4,096 bytes", func(f *fixture) {
		f.expression(func(n int) store.Write { return updateOf(f, n) })
	}},
	{"of a condition's expression, 4,096 bytes", func(f *fixture) {
		f.expression(func(n int) store.Write { return conditionOf(f, n) })
	}},
	{"of a row, 400 KB", func(f *fixture) {
		exact := sized("a", "exact", store.MaxItemBytes)
		f.do(exact)
		f.is(exact.Ref, exact.Put)
		f.fails(sized("a", "more", store.MaxItemBytes+1), store.ErrRefused)
		f.is(ref("a", "more"), nil)
		if err := f.transact(put("a", "beside"), sized("a", "more", store.MaxItemBytes+1)); !errors.Is(err, store.ErrRefused) {
			f.Errorf("a row of one byte more in a transaction: %v", err)
		}
		f.is(ref("a", "beside"), nil)
		short := sized("a", "grows", store.MaxItemBytes-2)
		f.do(short)
		f.do(update(short.Ref, set("w", "x")))
		f.fails(update(short.Ref, set("w", "xy")), store.ErrRefused)
	}},
	{"of a transaction, 100 writes", func(f *fixture) {
		var ws []store.Write
		for i := range store.MaxTransact + 1 {
			ws = append(ws, put("a", fmt.Sprint(i)))
		}
		if err := f.transact(ws...); !errors.Is(err, store.ErrRefused) {
			f.Errorf("101 writes: %v", err)
		}
		f.is(ref("a", "0"), nil)
		ws[store.MaxTransact-1] = check(ref("a", "none"), all(absent("PK")))
		if err := f.transact(ws...); !errors.Is(err, store.ErrRefused) {
			f.Errorf("100 writes and a check: %v", err)
		}
		if err := f.transact(ws[:store.MaxTransact]...); err != nil {
			f.Errorf("99 writes and a check: %v", err)
		}
	}},
	{"of a transaction, 4 MB", func(f *fixture) {
		if err := f.transact(ofBytes("a", store.MaxTransactBytes)...); err != nil {
			f.Errorf("exactly 4 MB: %v", err)
		}
		if err := f.transact(ofBytes("b", store.MaxTransactBytes+1)...); !errors.Is(err, store.ErrRefused) {
			f.Errorf("4 MB and a byte: %v", err)
		}
		f.is(ref("b", "0"), nil)
	}},
}

// expression does a write whose expression has as many bytes as it may, and one with a byte more.
func (f *fixture) expression(of func(bytes int) store.Write) {
	f.Helper()
	f.do(put("a", "b", "v", 1))
	f.do(of(store.MaxExpressionBytes))
	f.fails(of(store.MaxExpressionBytes+1), store.ErrRefused)
	if err := f.transact(put("a", "beside"), of(store.MaxExpressionBytes+1)); !errors.Is(err, store.ErrRefused) {
		f.Errorf("an expression of one byte more in a transaction: %v", err)
	}
	f.is(ref("a", "beside"), nil)
}

// updateOf is an update of a/b whose expression has so many bytes.
func updateOf(f *fixture, bytes int) store.Write {
	f.Helper()
	for sets := range 10 {
		for removes := 845; removes > 800; removes-- {
			w := update(ref("a", "b"), append(manyOps(store.Set, sets), otherRemoves(removes)...)...)
			if is, _ := w.Expressions(); is.Bytes == bytes {
				return w
			}
		}
	}
	f.Fatalf("no update has an expression of %d bytes", bytes)
	return store.Write{}
}

// otherRemoves are removals of attributes that manyOps does not name.
func otherRemoves(n int) (ops []store.Op) {
	for i := range n {
		ops = append(ops, store.Op{Kind: store.Remove, Attr: fmt.Sprintf("other-%d", i)})
	}
	return ops
}

// conditionOf is an update of a/b under a condition, which holds, whose expression has so many bytes.
func conditionOf(f *fixture, bytes int) store.Write {
	f.Helper()
	for equal := range 40 {
		for absences := 125; absences > 80; absences-- {
			w := update(ref("a", "b"), set("v", 1))
			for i := range absences {
				w.If = append(w.If, []store.Test{{Attr: fmt.Sprintf("other-%d", i), Is: store.Absent}})
			}
			for range equal {
				w.If = append(w.If, []store.Test{{Attr: "v", Is: store.Eq, Value: value.OfInt(1)}})
			}
			if _, is := w.Expressions(); is.Bytes == bytes && is.Operators <= store.MaxOperators {
				return w
			}
		}
	}
	f.Fatalf("no condition has an expression of %d bytes", bytes)
	return store.Write{}
}

// sized is a put of a row with so many bytes.
func sized(pk, sk string, bytes int) store.Write {
	w := put(pk, sk, "v", "")
	w.Put = w.Put.With(value.Attr{Name: "v", Value: val(long(bytes - w.Put.Size()))})
	return w
}

// ofBytes are puts of rows that have so many bytes together.
func ofBytes(pk string, bytes int) (ws []store.Write) {
	for i := 0; bytes > 0; i++ {
		n := min(bytes, store.MaxItemBytes)
		ws, bytes = append(ws, sized(pk, fmt.Sprint(i), n)), bytes-n
	}
	return ws
}
