package storetest

import (
	"fmt"

	"weir/internal/store"
	"weir/internal/value"
)

// parallel runs n workers and fails the test with their errors.
func parallel(f *fixture, n int, work func(worker int) error) {
	f.Helper()
	errs := make(chan error, n)
	for w := range n {
		go func() { errs <- work(w) }()
	}
	for range n {
		if err := <-errs; err != nil {
			f.Error(err)
		}
	}
}

var raceCases = []testCase{
	{"one of many makes the row", func(f *fixture) {
		for round := range 10 {
			won := make(chan int, 16)
			parallel(f, 16, func(w int) error {
				p := put("race", fmt.Sprint(round), "winner", w)
				p.If = all(absent("PK"))
				out, err := f.Write(f.ctx(), []store.Write{p})
				switch {
				case err != nil:
					return err
				case out[0].Err == nil:
					won <- w
				case !isCondition(out[0].Err):
					return out[0].Err
				}
				return nil
			})
			close(won)
			if len(won) != 1 {
				f.Fatalf("%d winners", len(won))
			}
			f.is(ref("race", fmt.Sprint(round)), item("PK", "race", "SK", fmt.Sprint(round), "winner", <-won))
		}
	}},
	{"additions are never lost", func(f *fixture) {
		const workers, rounds = 16, 20
		parallel(f, workers, func(w int) error {
			for i := range rounds {
				// Each call has several keys; each worker has its own order.
				var ws []store.Write
				for k := range 4 {
					ws = append(ws, update(ref("count", fmt.Sprint((k+w+i)%4)), add("n", 1), add("sum", w)))
				}
				out, err := f.Write(f.ctx(), ws)
				if err != nil {
					return err
				}
				for _, o := range out {
					if o.Err != nil {
						return o.Err
					}
				}
			}
			return nil
		})
		for k := range 4 {
			f.is(ref("count", fmt.Sprint(k)), item("PK", "count", "SK", fmt.Sprint(k), "n", workers*rounds, "sum", rounds*workers*(workers-1)/2))
		}
	}},
	{"compare and set makes one chain", func(f *fixture) {
		const workers, goal = 8, 100
		r := ref("chain", "x")
		f.do(put("chain", "x", "n", 0))
		var won [workers]int
		parallel(f, workers, func(w int) error {
			for {
				got, err := f.Get(f.ctx(), []store.Ref{r})
				if err != nil {
					return err
				}
				n, _ := got[0].Get("n").Int64()
				if n >= goal {
					return nil
				}
				step := update(r, set("n", int(n)+1))
				step.If = all(test("n", store.Eq, int(n)))
				out, err := f.Write(f.ctx(), []store.Write{step})
				switch {
				case err != nil:
					return err
				case out[0].Err == nil:
					won[w]++
				case !isCondition(out[0].Err):
					return out[0].Err
				}
			}
		})
		sum := 0
		for _, n := range won {
			sum += n
		}
		f.is(r, item("PK", "chain", "SK", "x", "n", goal))
		if sum != goal {
			f.Errorf("%d steps were answered, the row counts %d", sum, goal)
		}
	}},
	{"writes and transactions that cross do not block each other", func(f *fixture) {
		parallel(f, 8, func(w int) error {
			for i := range 15 {
				a, b := ref("cross", fmt.Sprint(i%5)), ref("cross", fmt.Sprint((i+w)%5+5))
				if w%2 == 1 {
					a, b = b, a
				}
				ws := []store.Write{update(a, add("n", 1)), update(b, add("n", 1))}
				if w%4 < 2 {
					if err := f.transact(ws...); err != nil {
						return err
					}
				} else if _, err := f.Write(f.ctx(), ws); err != nil {
					return err
				}
			}
			return nil
		})
		sum := 0
		for _, it := range f.pages(store.Query{Table: rows, Partition: val("cross")}) {
			n, _ := it.Get("n").Int64()
			sum += int(n)
		}
		if sum != 8*15*2 {
			f.Errorf("sum %d", sum)
		}
	}},
	{"who has read a row as a transaction left it reads the others so too", func(f *fixture) {
		const many, times = 20, 40
		count := func(i int) (n int64, err error) {
			got, err := f.Get(f.ctx(), []store.Ref{ref("at-once", fmt.Sprint(i))})
			if err == nil {
				n, _ = got[0].Get("n").Int64()
			}
			return n, err
		}
		parallel(f, 4, func(w int) error {
			if w == 0 {
				for range times {
					var ws []store.Write
					for i := range many {
						ws = append(ws, update(ref("at-once", fmt.Sprint(i)), add("n", 1)))
					}
					if err := f.transact(ws...); err != nil {
						return err
					}
				}
				return nil
			}
			for n := int64(0); n < times; {
				for i := range many {
					before, err := count((i + w*7) % many)
					if err != nil {
						return err
					}
					if n, err = count(i); err != nil {
						return err
					}
					if n < before {
						return fmt.Errorf("row %d counts %d, and another one counted %d before", i, n, before)
					}
				}
			}
			return nil
		})
	}},
	{"a row and its query agree while others write", func(f *fixture) {
		const n = 20
		parallel(f, 4, func(w int) error {
			for i := range n {
				id := fmt.Sprintf("%d-%02d", w, i)
				if _, err := f.Write(f.ctx(), []store.Write{put("agree", id, "v", value.OfString(id))}); err != nil {
					return err
				}
				p, err := f.Query(f.ctx(), store.Query{Table: rows, Partition: val("agree"), Sort: store.Range{Equal: val(id)}})
				if err != nil {
					return err
				}
				if len(p.Rows) != 1 || p.Rows[0].Get("v").Text() != id {
					return fmt.Errorf("%s: the table's query does not find what was written", id)
				}
			}
			return nil
		})
	}},
}
