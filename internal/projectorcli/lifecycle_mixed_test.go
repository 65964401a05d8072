package projectorcli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/cli"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// What is here has two of something on the same rows: copies of a directory, models, programs,
// definitions, clocks.

// opened is a program with a model that the test steps, by a clock of its own.
type opened struct {
	*life
	*system.System
	ahead time.Duration
}

func (l *life) open(m string, o system.Options) *opened {
	l.Helper()
	is := &opened{life: l}
	o.Now, o.NoSearch, o.Writes = func() time.Time { return time.Now().Add(is.ahead) }, l.db != nil, true
	s, err := cli.Open(l.Context(), l.at, []string{m}, o)
	failtest.On(l, err)
	is.System = s
	return is
}

// with opens a program, hands it its store as the application's, and closes it.
func (l *life) with(m string, do func(*opened)) {
	l.Helper()
	is := l.open(m, system.Options{})
	l.to = is.Store
	do(is)
	l.to = nil
	failtest.On(l, is.Close())
}

// applies applies what is in the stream.
func (o *opened) applies() error {
	f, done := reader.Follower{Runner: o.Models[0].Runner}, make(chan struct{})
	close(done)
	return errors.Join(o.Start(o.life.Context()), o.Fill(o.life.Context(), nil), f.CatchUp(o.life.Context(), done))
}

func (o *opened) ok(err error) {
	o.Helper()
	failtest.On(o, err)
}

// builds builds until nothing is to be done, and returns the states.
func (o *opened) builds(b *build.Builder) []build.Status {
	o.Helper()
	is, err := b.Run(o.life.Context())
	o.ok(err)
	return is
}

// counted counts the rows in the store, and compares what rows show with it, without weir's
// model.
func (l *life) counted(shows ...string) {
	l.Helper()
	orders, total := 0, 0
	var shown []value.Item
	l.store(func(db store.Store) {
		for r, err := range store.EachRow(l.Context(), db, store.Query{Table: "Shop"}) {
			failtest.On(l, err)
			switch r.Get("kind").Text() {
			case "order":
				n, _ := strconv.Atoi(r.Get("total").Text())
				orders, total = orders+1, total+n
			case "customer", "size":
				shown = append(shown, r)
			}
		}
	})
	for _, name := range shows {
		want := orders
		if name == "total" {
			want = total
		}
		at := slices.IndexFunc(shown, func(r value.Item) bool { return r.Has(name) })
		if at < 0 || shown[at].Get(name).Text() != strconv.Itoa(want) {
			l.Errorf("the rows show %v, and the orders say that %s is %d", shown, name, want)
		}
	}
}

// twoVersions has the catalog written by a newer weir, while this one runs where two processes can. It
// ends, and so leaves its shards to the newer one.
func (l *life) twoVersions() {
	m := l.begun()
	newer := store.Write{Ops: []store.Op{store.Assign("f", value.OfInt(owntable.CatalogFormat+1))}}
	if l.db == nil {
		l.catalogRow(newer)
		l.refused(m, "a newer weir wrote it")
		return
	}
	ended, said := make(chan int, 1), &buffer{}
	go func() {
		ended <- run(l.Context(), slices.Concat([]string{"run", m, "--addr", "127.0.0.1:0"}, l.flags), strings.NewReader(""), io.Discard, said)
	}()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(said.text(), "reading a shard") && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	l.catalogRow(newer)
	l.write(2)
	select {
	case code := <-ended:
		if code != exitUsage || !strings.Contains(said.text(), "a newer weir wrote it") || !strings.Contains(said.text(), "replace this program") {
			l.Errorf("exit code %d: %s", code, said.text())
		}
	case <-time.After(time.Minute):
		l.Errorf("it goes on: %s", said.text())
	}
}

// copied has the directory copied file by file, in any order, while an application writes and a
// program applies. A copy is whole, or refused. A copy of a directory at rest is a deployment of
// its own.
func (l *life) copied() {
	m := l.begun()
	s, err := cli.Open(l.Context(), l.at, []string{m}, system.Options{Writes: true})
	failtest.On(l, err)
	failtest.On(l, s.Start(l.Context()))
	done, stop := make(chan struct{}), make(chan struct{})
	var all, reading sync.WaitGroup
	reading.Go(func() {
		f := reader.Follower{Runner: s.Models[0].Runner, Prompt: true}
		if err := f.CatchUp(context.Background(), done); err != nil {
			l.Error(err)
		}
	})
	l.to = s.Store
	all.Go(func() {
		for !isDone(stop) {
			l.write(3)
		}
	})
	var copies []string
	for range 8 {
		dir := filepath.Join(l.TempDir(), "copy")
		l.copyDir(dir)
		copies = append(copies, dir)
	}
	close(stop)
	all.Wait()
	close(done)
	reading.Wait()
	l.to = nil
	failtest.On(l, s.Close())
	l.runs(m, map[string]int{"orders": len(l.orders)})
	l.exact(m)
	whole := 0
	for _, dir := range copies {
		c := l.at2(dir)
		var said bytes.Buffer
		switch code := run(l.Context(), slices.Concat([]string{"verify", m}, c.flags), strings.NewReader(""), &said, &said); {
		case code == exitGood:
			whole++
			c.counted("orders")
		case !strings.Contains(said.String(), "put back a copy of the directory"):
			l.Errorf("a copy: exit code %d: %s", code, &said)
		}
	}
	l.Logf("%d of %d copies are whole; the others are refused", whole, len(copies))
	dir := filepath.Join(l.TempDir(), "copy")
	l.copyDir(dir)
	c := l.at2(dir)
	c.orders = maps.Clone(l.orders)
	c.write(5)
	l.write(2)
	for _, of := range []*life{&c, l} {
		of.runs(m, map[string]int{"orders": len(of.orders)})
		of.exact(m)
		of.counted("orders")
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// at2 is the same deployment in another directory.
func (l *life) at2(dir string) life {
	c := *l
	c.at = system.Place{Data: dir}
	c.flags = []string{"--data", dir}
	return c
}

// copyDir copies the files of the data directory one after the other, in any order.
func (l *life) copyDir(to string) {
	l.Helper()
	var paths []string
	err := filepath.WalkDir(l.at.Data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return nil // what is gone by now is not copied
	})
	failtest.On(l, err)
	rand.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths {
		name, err := filepath.Rel(l.at.Data, path)
		failtest.On(l, err)
		from, err := os.Open(path)
		if err != nil {
			continue
		}
		failtest.On(l, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755))
		file, err := os.Create(filepath.Join(to, name))
		if err == nil {
			_, err = io.Copy(file, from)
			err = errors.Join(err, file.Close(), from.Close())
		}
		failtest.On(l, err)
	}
}

// clockMoved has the clock of the machine moved by days, either way, while a build runs.
func (l *life) clockMoved() {
	m := l.model(lifeModel + lifeCount)
	l.deploys(m)
	l.write(6)
	both := l.model(lifeModel + lifeCount + lifeSum)
	l.runs(m, map[string]int{"orders": 6})
	l.with(both, func(o *opened) {
		b := o.Models[0].Builder()
		for i, by := range []time.Duration{0, 3 * 24 * time.Hour, -3 * 24 * time.Hour, 40 * 24 * time.Hour, -40 * 24 * time.Hour, 0} {
			o.ahead = by
			_, err := b.Announce(l.Context())
			if errors.Is(err, catalog.ErrRefused) {
				if !strings.Contains(err.Error(), "projector build") {
					l.Errorf("clock by %s: %v", by, err)
				}
				continue
			}
			o.ok(err)
			l.write(2)
			if err := o.applies(); err != nil && !strings.Contains(err.Error(), "projector build") {
				l.Errorf("clock by %s: %v", by, err)
			}
			if i == 2 || i == 4 {
				_, err := b.Run(l.Context())
				if err != nil && !strings.Contains(err.Error(), "--again") {
					l.Errorf("clock by %s: %v", by, err)
				}
			}
			l.write(1)
		}
	})
	l.runs(both, map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	l.write(2)
	l.runs(both, map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	l.exact(both)
	l.counted("orders", "total")
}

// expiring has TTL delete orders while a build reads them, and before and after that.
func (l *life) expiring() {
	m := l.model(strings.Replace(lifeModel, "key: [PK, SK]}", "key: [PK, SK], ttl: gone}", 1) + lifeCount + lifeSum)
	l.deploys(m)
	l.write(9)
	gone := func(id string) { // as TTL deletes a row: its record says who did it
		l.Helper()
		delete(l.orders, id)
		l.store(func(db store.Store) {
			w := store.Write{Ref: store.Ref{Table: "Shop", Key: customer("ORDER#" + id)}, Ops: []store.Op{store.Assign("gone", value.OfInt(time.Now().Add(-time.Hour).Unix()))}}
			if l.db != nil { // DynamoDB Local does not do it in time
				w.Ops, w.Delete = nil, true
			}
			out, err := db.Write(l.Context(), []store.Write{w})
			if err != nil || out[0].Err != nil {
				l.Fatal(err, out)
			}
		})
	}
	gone("001")
	l.with(m, func(o *opened) {
		b := o.Models[0].Builder()
		b.Again, b.Asked = true, time.Now()
		_, err := b.Announce(l.Context())
		o.ok(err)
		gone("002")
		sweep := func() {
			_, err := o.Sweep(l.Context())
			o.ok(err)
		}
		sweep()
		o.ok(o.applies())
		gone("003")
		b.Report = func(p build.Progress) {
			if p.Puts > 0 && l.orders["004"] > 0 {
				gone("004")
			}
		}
		o.builds(b)
		gone("005")
		sweep()
		o.ok(o.applies())
		sweep()
		o.ok(o.applies())
	})
	l.runs(m, map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	l.exact(m)
	l.counted("orders", "total")
}

// keyChanged has the key of the rows that are counted, and then of those that show it, made
// otherwise by the model.
func (l *life) keyChanged() {
	l.begun()
	for old, new := range map[string]string{`SK: "ORDER#{id}"`: `SK: "O#{id}"`, `PK: "C#{id}"`: `PK: "K#{id}"`} {
		m := l.model(strings.ReplaceAll(lifeModel, old, new) + lifeCount)
		l.refused(m, "the values of Customer.orders are of another definition", "projector build "+m+" "+strings.Join(l.flags, " ")+" derives it")
	}
	m := l.model(strings.Replace(lifeModel, `SK: "ORDER#{id}"`, `SK: "O#{id}"`, 1) + lifeCount)
	l.runs(m, map[string]int{"orders": 0})
	l.write(3) // by the old key: no orders
	l.store(func(db store.Store) {
		for id := range 4 {
			w := store.Write{Ref: store.Ref{Table: "Shop", Key: customer("O#" + strconv.Itoa(id))}}
			for name, v := range map[string]string{"kind": "order", "customer": "1", "id": strconv.Itoa(id)} {
				w.Ops = append(w.Ops, store.Assign(name, value.OfString(v)))
			}
			out, err := db.Write(l.Context(), []store.Write{w})
			if err != nil || out[0].Err != nil {
				l.Fatal(err, out)
			}
		}
	})
	l.runs(m, map[string]int{"orders": 4}, "--build=never")
	l.exact(m)
}

// pruned removes what a build has replaced while a program with the older model runs. It has
// received a batch before the build was announced, and goes on with it afterwards.
func (l *life) pruned() {
	older := l.begun()
	newer := l.model(lifeModel + lifeLarge + lifeSum)
	l.with(older, func(o *opened) {
		o.ok(o.applies())
		l.write(4)
		asleep := &asleep{Store: o.Store, wakes: make(chan struct{}), sleeps: make(chan struct{})}
		r := *o.Models[0].Runner
		r.Store = asleep
		ended := make(chan error, 1)
		go func() {
			f, done := reader.Follower{Runner: &r}, make(chan struct{})
			close(done)
			ended <- f.CatchUp(l.Context(), done)
		}()
		<-asleep.sleeps
		next, err := model.Load(newer)
		o.ok(err)
		ahead := time.Duration(0)
		now := func() time.Time { return time.Now().Add(ahead) }
		n := &runner.Runner{Kinds: kinds.All(), Model: next, Store: o.Store, Now: now, Catalog: catalog.New(next, o.Store, now, catalog.Options{})}
		b := (&system.Part{Model: next, Runner: n}).Builder()
		o.builds(b)
		ahead = 2 * time.Hour
		_, removed, err := b.Prune(l.Context())
		o.ok(err)
		if removed == 0 {
			l.Error("nothing is removed")
		}
		close(asleep.wakes)
		if err := <-ended; err != nil && !errors.Is(err, catalog.ErrRefused) {
			l.Log(err)
		}
		l.write(2)
		if err := o.applies(); !errors.Is(err, catalog.ErrRefused) || !strings.Contains(err.Error(), "projector build") {
			l.Errorf("the next batch of the older program: %v", err)
		}
	})
	l.refused(older, "Customer.orders are of another definition")
	l.runs(newer, map[string]int{"orders": l.want()["large"], "total": l.want()["total"]})
	l.write(2)
	l.runs(newer, map[string]int{"orders": l.want()["large"], "total": l.want()["total"]}, "--build=never")
	l.exact(newer)
	l.counted("total")
}

// asleep is a store whose first write of a ledger waits.
type asleep struct {
	store.Store
	once          sync.Once
	sleeps, wakes chan struct{}
}

func (a *asleep) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if slices.ContainsFunc(ws, func(w store.Write) bool {
		return w.Ref.Table == owntable.TableName && strings.HasPrefix(w.Ref.Key.Partition.Text(), "ledger|")
	}) {
		a.once.Do(func() { close(a.sleeps); <-a.wakes })
	}
	return a.Store.Write(ctx, ws)
}

// changedTwice changes a definition again while its build runs: announced, and half shown.
func (l *life) changedTwice() {
	l.begun()
	second := l.model(lifeModel + lifeLarge)
	third := l.model(lifeModel + strings.Replace(lifeLarge, "large", "small", 1) + lifeSum)
	l.with(second, func(o *opened) {
		_, err := o.Models[0].Builder().Announce(l.Context())
		o.ok(err)
		l.write(2)
		o.ok(o.applies())
	})
	l.refused(third, "Customer.orders is being built by another definition", "--abort")
	l.ends(exitUsage, []string{"run", third, "--addr", "127.0.0.1:0"}, "--abort")
	l.ends(exitUsage, []string{"build", third}, "--abort")
	l.ends(exitGood, []string{"build", third, "--abort"})
	small := func() int { return len(l.orders) - l.want()["large"] }
	l.runs(third, map[string]int{"orders": small(), "total": l.want()["total"]})
	l.exact(third)

	l.with(second, func(o *opened) {
		ctx, kill := context.WithCancel(l.Context())
		b := o.Models[0].Builder()
		_, err := b.Retire(ctx, false)
		o.ok(err)
		b.Report = func(p build.Progress) {
			if p.Targets > 0 {
				kill()
			}
		}
		_, _ = b.Run(ctx)
		l.write(2)
		o.ok(o.applies())
	})
	l.refused(third, "Customer.orders are of another definition", "projector build")
	l.ends(exitGood, []string{"build", third}, "Customer: live")
	l.write(2)
	l.runs(third, map[string]int{"orders": small(), "total": l.want()["total"]}, "--build=never")
	l.exact(third)
	l.counted("total")
}

// otherModel has a second model derive from a table of the first, beside it and after it, and the first one again after that.
func (l *life) otherModel() {
	m := l.begun()
	l.runs(m, map[string]int{"orders": len(l.orders)})
	text := strings.Replace(lifeModel, "model: shop", "model: stats", 1)
	none := func(text string) string {
		without, _, _ := strings.Cut(text, "derive:")
		return l.model(strings.NewReplacer("search:\n  customers: {of: Customer, text: [name]}\n", "", "  find: {search: customers}\n", "").Replace(without)) // needs no index
	}
	stats := l.model(text + lifeSum)
	says := []string{"belongs to model shop, which derives Customer.orders, and this is model stats", "Put both into one model file.", "take all of derive out of its file, and build it: projector build FILE"}
	l.refused(stats, says...)
	l.ends(exitUsage, []string{"build", stats}, says...)
	l.ends(exitUsage, []string{"run", stats, "--addr", "127.0.0.1:0"}, says...)
	l.ends(exitCheck, []string{"status", stats}, says...)
	l.write(2)
	l.runs(m, map[string]int{"orders": len(l.orders)}, "--build=never")
	l.exact(m)

	l.ends(exitGood, []string{"build", none(lifeModel)}, "retired, since the model no longer has it: Customer.orders")
	other := *l
	other.serves = "stats"
	other.runs(stats, map[string]int{"total": l.want()["total"]})
	l.exact(stats)
	l.counted("total")
	l.refused(m, "belongs to model stats, which derives Customer.total, and this is model shop")

	l.write(2)
	l.with(stats, func(o *opened) { o.ok(o.applies()) }) // to the end of the streams
	l.ends(exitGood, []string{"build", none(text)}, "retired, since the model no longer has it: Customer.total")
	l.refused(m, "projector build "+m)
	l.runs(m, map[string]int{"orders": len(l.orders)})
	l.write(2)
	l.runs(m, map[string]int{"orders": len(l.orders)}, "--build=never")
	l.exact(m)
	l.counted("orders")
}

// removedValues removes what rows show of a derivation that is retired, an hour after nothing derives
// it any more.
func (l *life) removedValues() {
	l.begun()
	both := l.model(lifeModel + lifeCount + lifeSum)
	l.runs(both, map[string]int{"total": l.want()["total"]})
	m := l.model(lifeModel + lifeCount)
	prune := []string{"build", m, "--prune"}
	l.ends(exitUsage, prune, "Customer.total is live, and the model does not have it", "projector build "+m)
	l.ends(exitGood, []string{"build", m}, "Customer.total")
	was := l.want()["total"]
	l.ends(exitGood, prune, "Customer.total: stays: a program may still apply it, until")
	earlier := time.Now().Add(-2 * build.InUse)
	l.with(m, func(o *opened) {
		_, err := o.Models[0].Runner.Catalog.Change(l.Context(), func(is owntable.CatalogRow) (owntable.CatalogRow, error) {
			next := is.Clone()
			d := next.Derivations["Customer.total"]
			d.Since = earlier
			next.Derivations["Customer.total"] = d
			return next, nil
		})
		o.ok(err)
	})
	l.ends(exitGood, append(prune, "--dry-run"), "Customer.total: would be removed from 1 rows, such as Shop ", "1 rows would change, ")
	l.write(2)
	l.runs(m, map[string]int{"orders": len(l.orders), "total": was})
	l.ends(exitUsage, append(prune, "Customer.nothing"), "Customer.nothing was never derived here")
	l.ends(exitGood, append(prune, "Customer.orders"), "Customer.orders: stays: it is live since")
	l.ends(exitGood, prune, "Customer.total: removed from 1 rows")
	l.write(2)
	l.runs(m, map[string]int{"orders": len(l.orders)})
	l.exact(m)
	l.counted("orders")
	l.store(func(db store.Store) {
		page, err := db.Query(l.Context(), store.Query{Table: "Shop"})
		if err != nil || slices.ContainsFunc(page.Rows, func(row value.Item) bool { return row.Get("kind").Text() == "customer" && row.Has("total") }) {
			l.Error(page.Rows, err)
		}
	})
	l.ends(exitGood, prune)
}
