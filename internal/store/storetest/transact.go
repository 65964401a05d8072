package storetest

import (
	"errors"
	"fmt"
	"strings"

	"weir/internal/failtest"
	"weir/internal/store"
)

// transact sends a transaction again for as long as it meets others.
func (f *fixture) transact(ws ...store.Write) error {
	for {
		err := f.Transact(f.ctx(), ws)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func check(r store.Ref, c store.Cond) store.Write { return store.Write{Ref: r, Check: true, If: c} }

var transactCases = []testCase{
	{"does everything", func(f *fixture) {
		f.do(put("a", "gone"), put("a", "n", "n", 1), put("a", "checked", "ok", true))
		one := store.Ref{Table: single, Key: key("x", nil)}
		err := f.transact(put("a", "new", "v", 1), store.Write{Ref: ref("a", "gone"), Delete: true}, update(ref("a", "n"), add("n", 1)),
			check(ref("a", "checked"), all(test("ok", store.Eq, true))), update(one, set("s", "t")))
		failtest.On(f, err)
		f.is(ref("a", "new"), item("PK", "a", "SK", "new", "v", 1))
		f.is(ref("a", "gone"), nil)
		f.is(ref("a", "n"), item("PK", "a", "SK", "n", "n", 2))
		f.is(ref("a", "checked"), item("PK", "a", "SK", "checked", "ok", true))
		f.is(one, item("PK", "x", "s", "t"))
	}},
	{"or nothing, when a condition fails", func(f *fixture) {
		f.do(put("a", "n", "n", 1))
		failing := []store.Write{
			check(ref("a", "none"), all(exists("PK"))),
			{Ref: ref("a", "n"), Delete: true, If: all(test("n", store.Eq, 2))},
			{Ref: ref("a", "z"), Put: put("a", "z").Put, If: all(exists("PK"))},
		}
		for i, bad := range failing {
			ws := []store.Write{put("a", "1"), put("a", "2"), put("b", "3")}
			for at := range len(ws) + 1 {
				all := append(append(append([]store.Write{}, ws[:at]...), bad), ws[at:]...)
				if err := f.transact(all...); !isCondition(err) {
					f.Errorf("case %d at %d: %v", i, at, err)
				}
			}
		}
		for _, r := range []store.Ref{ref("a", "1"), ref("a", "2"), ref("b", "3"), ref("a", "z"), ref("a", "none")} {
			f.is(r, nil)
		}
		f.is(ref("a", "n"), item("PK", "a", "SK", "n", "n", 1))
	}},
	{"holds rows of 4 MB", func(f *fixture) {
		large := func(i int) store.Write { return put("a", fmt.Sprint(i), "v", long(store.MaxItemBytes-1000)) }
		var ws []store.Write
		for i := range 10 {
			ws = append(ws, large(i))
		}
		if err := f.transact(ws...); err != nil {
			f.Error(err)
		}
		for i := range 11 {
			ws = append(ws[:i:i], put("b", fmt.Sprint(i), "v", long(store.MaxItemBytes-1000)))
		}
		if err := f.transact(ws...); !errors.Is(err, store.ErrRefused) {
			f.Errorf("more than 4 MB: %v", err)
		}
		f.is(ref("b", "0"), nil)
	}},
	{"or nothing, when a write is refused", func(f *fixture) {
		for _, c := range refusals {
			if c.write.Check {
				continue
			}
			if err := f.transact(put("t", "1"), c.write, put("t", "2")); !errors.Is(err, store.ErrRefused) {
				f.Errorf("%s: %v", c.name, err)
			}
		}
		f.is(ref("t", "1"), nil)
		f.is(ref("t", "2"), nil)
		f.is(ref("a", "b"), nil)
	}},
	{"says what failed", func(f *fixture) {
		err := f.transact(put("a", "1"), check(ref("who", "is-it"), all(exists("PK"))))
		if err == nil || !strings.Contains(err.Error(), "is-it") || !strings.Contains(err.Error(), rows) {
			f.Errorf("error %v", err)
		}
	}},
	{"refuses a key twice", func(f *fixture) {
		for _, second := range []store.Write{put("a", "1"), {Ref: ref("a", "1"), Delete: true}, check(ref("a", "1"), all(absent("PK")))} {
			if err := f.transact(put("a", "1"), put("a", "2"), second); !errors.Is(err, store.ErrRefused) {
				f.Errorf("error %v", err)
			}
		}
		f.is(ref("a", "1"), nil)
	}},
	{"takes the same key in two tables", func(f *fixture) {
		r := store.Ref{Table: single, Key: key("a", nil)}
		if err := f.transact(put("a", "b"), store.Write{Ref: r, Put: item("PK", "a")}); err != nil {
			f.Error(err)
		}
		f.is(r, item("PK", "a"))
	}},
	{"takes up to its limit", func(f *fixture) {
		var ws []store.Write
		for i := range store.MaxTransact {
			ws = append(ws, put("a", fmt.Sprint(i), "n", i))
		}
		failtest.On(f, f.transact(ws...))
		for i := range ws {
			f.is(ws[i].Ref, ws[i].Put)
			ws[i] = update(ws[i].Ref, add("n", 1))
		}
		ws = append(ws, put("a", "one more"))
		if err := f.transact(ws...); !errors.Is(err, store.ErrRefused) {
			f.Errorf("error %v", err)
		}
		f.is(ref("a", "7"), item("PK", "a", "SK", "7", "n", 7))
	}},
	{"of an unknown table", func(f *fixture) {
		err := f.transact(put("a", "1"), store.Write{Ref: store.Ref{Table: "storetest-none", Key: key("a", nil)}, Delete: true})
		if !errors.Is(err, store.ErrNoTable) {
			f.Errorf("error %v", err)
		}
		f.is(ref("a", "1"), nil)
	}},
	{"moves indexes and streams with its rows", func(f *fixture) {
		f.do(put("a", "1", "kind", "k", "at", "1"))
		failtest.On(f, f.transact(update(ref("a", "1"), set("at", "3")), put("a", "2", "kind", "k", "at", "2")))
		f.finds(store.Query{Table: rows, Index: byKind, Partition: val("k")}, "2", "1")
		if err := f.transact(put("a", "9", "kind", "k", "at", "0"), check(ref("a", "none"), all(exists("PK")))); !isCondition(err) {
			f.Fatal(err)
		}
		f.do(put("a", "9", "last", true))
		f.finds(store.Query{Table: rows, Index: byKind, Partition: val("k")}, "2", "1")
		got := f.records(4)
		f.same("last", got[len(got)-1].New, item("PK", "a", "SK", "9", "last", true))
	}},
	{"keeps what it moves whole among others", func(f *fixture) {
		const accounts, workers, moves = 6, 6, 15
		for i := range accounts {
			f.do(put("bank", fmt.Sprint(i), "n", 100))
		}
		parallel(f, workers, func(w int) error {
			for i := range moves {
				from, to := (w+i)%accounts, (w+3*i+1)%accounts
				if from == to {
					continue
				}
				a, b := ref("bank", fmt.Sprint(from)), ref("bank", fmt.Sprint(to))
				take := update(a, add("n", -7))
				take.If = all(exists("PK"))
				if err := f.transact(update(b, add("n", 7)), take); err != nil {
					return err
				}
			}
			return nil
		})
		sum := 0
		for _, it := range f.pages(store.Query{Table: rows, Partition: val("bank")}) {
			n, _ := it.Get("n").Int64()
			sum += int(n)
		}
		if sum != 100*accounts {
			f.Errorf("sum %d", sum)
		}
	}},
}
