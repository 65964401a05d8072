package status

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/budget"
	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/deploy"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	db "weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

const shop = `model: shop
tables:
  Shop: {key: [PK, SK]}
entities:
  Customer: {where: {kind: customer}, key: {PK: "C#{id}", SK: METADATA}, attributes: {name: string}}
  Order: {where: {kind: order}, key: {PK: "C#{customer}", SK: "ORDER#{id}"}, attributes: {total: number}}
derive:
  Customer.orderCount: {count: Order, to: {id: customer}}
`

// clocked is a system on a clock that the test sets.
type clocked struct {
	*testing.T
	*system.System
	at time.Time
}

func openClocked(t *testing.T, text string) *clocked {
	t.Helper()
	m, err := model.Parse("shop.yaml", []byte(text))
	failtest.On(t, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	c := &clocked{T: t, at: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)}
	now := func() time.Time { return c.at }
	opened, err := db.Open("store", tables, db.Options{FS: vfs.NewMem(), Now: now, Shards: 2})
	failtest.On(t, err)
	if c.System, err = system.Over(t.Context(), opened, "", []*model.Model{m}, system.Options{Now: now, NoSearch: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// orders puts orders of a customer of its own each, some in each shard.
func (c *clocked) orders(from, to int) {
	c.Helper()
	for nr := from; nr < to; nr++ {
		key := store.Key{Partition: value.OfString(fmt.Sprint("C#", nr)), Sort: value.OfString("ORDER#1")}
		out, err := c.Store.Write(c.Context(), []store.Write{{
			Ref: store.Ref{Table: "Shop", Key: key},
			Put: value.NewItem(runner.Attr("PK", key.Partition), runner.Attr("SK", key.Sort), runner.Attr("kind", value.OfString("order")), runner.Attr("total", value.OfInt(1))),
		}})
		if err != nil || out[0].Err != nil {
			c.Fatal(err, out)
		}
	}
}

// kept is a source that keeps what is applied.
type kept struct{ store.Store }

func (kept) Trim(context.Context, string, string, events.Position) error { return nil }

func (c *clocked) apply() {
	c.Helper()
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: c.Models[0].Runner, Source: kept{c.Store}}
	failtest.On(c, f.CatchUp(c.Context(), done))
}

// built returns what status says of the builds.
func (c *clocked) built() string {
	c.Helper()
	all, err := builtOf(c.Context(), c.Models[0])
	failtest.On(c, err)
	var out []string
	for _, b := range all {
		out = append(out, b.sayProgress())
	}
	return strings.Join(out, "\n")
}

// TestStatusOfAHandOver: status says how a build counts, from its audit until its marks are
// gone.
func TestStatusOfAHandOver(t *testing.T) {
	c := openClocked(t, shop)
	c.orders(0, 20)
	c.apply()
	b := c.Models[0].Builder()
	b.Again = true
	step := func(after time.Duration, do func() error, want string) {
		t.Helper()
		c.at = c.at.Add(after)
		failtest.On(t, do())
		if is := c.built(); is != want {
			t.Errorf("status says\n\t%s, want\n\t%s", is, want)
		}
	}
	run := func() error { _, err := b.Run(t.Context()); return err }
	handOver := func() error { return b.HandOver(t.Context()) }
	step(0, run, "build of Customer: live since 2026-11-23 09:00:00 UTC, generation 4, not yet audited: projector build MODEL audits it from 2026-11-24 09:15:00 UTC")
	b.Again = false
	step(catalog.AuditAfter, run, "build of Customer: verified, generation 4, counts by marks until 2026-11-24 10:15:00 UTC")
	step(time.Hour, handOver, "build of Customer: verified, generation 4, goes over from marks to positions since 2026-11-24 10:15:00 UTC; 2 shards have applied no later record yet")
	step(time.Minute, func() error {
		c.orders(20, 21)
		c.apply()
		return handOver()
	}, "build of Customer: verified, generation 4, goes over from marks to positions since 2026-11-24 10:15:00 UTC; 1 shard has applied no later record yet")
	step(0, func() error {
		c.orders(21, 40)
		c.apply()
		return handOver()
	}, "build of Customer: verified, generation 4, counts by positions since 2026-11-24 10:16:00 UTC; its marks are removed from 2026-11-24 11:16:00 UTC")
	step(build.InUse, run, "build of Customer: verified, generation 4, counts by positions since 2026-11-24 10:16:00 UTC")
}

// TestStatusOfAPausedBuild: status says since when no program works on a build that could go on, and
// gives no time left then.
func TestStatusOfAPausedBuild(t *testing.T) {
	c := openClocked(t, shop)
	c.orders(0, 20)
	c.apply()
	b := c.Models[0].Builder()
	b.Again = true
	if _, err := b.Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	const building = "build of Customer: building since 2026-11-23 09:00:00 UTC, generation 4, 0 rows read, 0/s"
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, building}, {time.Minute, building + ", paused: no program works on it since 2026-11-23 09:00:00 UTC"}} {
		c.at = c.at.Add(step.after)
		if is := c.built(); is != step.want {
			t.Errorf("status says\n\t%s, want\n\t%s", is, step.want)
		}
	}
}

// TestStatusOfWhatABuildUses: status has the units that builders used, whoever of them it was: those of one that
// stopped, and of the next, in all states.
func TestStatusOfWhatABuildUses(t *testing.T) {
	c := openClocked(t, shop)
	c.orders(0, 300)
	c.apply()
	var done build.Progress
	run := func(ctx context.Context, again bool) {
		t.Helper()
		b := c.Models[0].Builder()
		b.Again, b.Segments = again, 2
		if again { // it stops when it has read all rows, and the first segment is saved
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			b.Report = func(p build.Progress) {
				if p.Puts > 0 {
					cancel()
				}
			}
		}
		if _, err := b.Run(ctx); (err != nil) != again {
			t.Fatal(err)
		}
		failtest.On(t, b.Release(t.Context()))
		done.Units, done.Reads = done.Units+b.Done().Units, done.Reads+b.Done().Reads
	}
	used := func() *Cost {
		t.Helper()
		all, err := builtOf(t.Context(), c.Models[0])
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if all[0].Used != nil && !strings.HasSuffix(all[0].text(), "; used "+all[0].Used.text()) {
			t.Error(all[0].text())
		}
		return all[0].Used
	}
	run(t.Context(), true)
	stopped := used()
	run(t.Context(), false)
	live := used()
	c.at = c.at.Add(catalog.AuditAfter)
	run(t.Context(), false)
	is := used()
	// What follows the last row of a segment is told by the next one that is saved.
	if about := func(is, of int64) bool { return is <= of && is >= of*9/10 }; !about(is.WriteUnits, done.Units) || !about(is.ReadUnits, done.Reads) {
		t.Errorf("builders used %d and %d units, status says %+v", done.Units, done.Reads, is)
	}
	if live == nil || stopped != nil && live.WriteUnits <= stopped.WriteUnits || is.WriteUnits <= live.WriteUnits || is.Dollars != (build.Progress{Units: is.WriteUnits, Reads: is.ReadUnits}).Price() {
		t.Errorf("first %+v, then %+v, then %+v", stopped, live, is)
	}
}

// TestStatusOfAProcess: what a process has used, by table and purpose, with its price.
func TestStatusOfAProcess(t *testing.T) {
	at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	if p := ProcessOf(at, nil); p != nil {
		t.Error(p)
	}
	p := ProcessOf(at, []budget.Use{{Table: "Shop", By: map[budget.Purpose]budget.Units{budget.Other: {Read: 8e6}, budget.Rows: {Write: 2e6, Read: 1e6}}}})
	want := Process{Since: at, Tables: []Spent{{"Shop", "other", 0, 8e6, 8 * deploy.ReadPrice}, {"Shop", "rows", 2e6, 1e6, 2*deploy.WritePrice + deploy.ReadPrice}}}
	if p == nil || !reflect.DeepEqual(*p, want) {
		t.Errorf("%+v, want %+v", p, want)
	}
}

// TestStatusOfMissingTargets: status counts rows whose target does not exist, and not those whose target
// lies behind the rows that it looks at.
func TestStatusOfMissingTargets(t *testing.T) {
	c := openClocked(t, strings.Replace(shop, `PK: "C#{id}"`, `PK: "Z#{id}"`, 1))
	failtest.On(t, c.Start(t.Context()))
	c.orders(0, 10_003)
	key := store.Key{Partition: value.OfString("Z#7"), Sort: value.OfString("METADATA")}
	customer := store.Write{Ref: store.Ref{Table: "Shop", Key: key}, Put: value.NewItem(runner.Attr("PK", key.Partition), runner.Attr("SK", key.Sort), runner.Attr("kind", value.OfString("customer")))}
	if out, err := c.Store.Write(t.Context(), []store.Write{customer}); err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	st, err := Of(t.Context(), c.System, c.Models[0])
	failtest.On(t, err)
	var text strings.Builder
	if st.Write(&text); !strings.Contains(text.String(), "Customer.orderCount: 9999 rows count for 9999 targets that do not exist (yet), among the first rows of each table") {
		t.Errorf("%+v\n%s", st.Missing, text.String())
	}
}

// gone is a store that says of a table which is not there what DynamoDB says.
type gone struct{ store.Store }

func (gone) Identity(context.Context, string) (store.Identity, error) { return store.Identity{}, nil }

// TestStatusWithoutATable: a model whose table is not there has a status, which says what is missing.
func TestStatusWithoutATable(t *testing.T) {
	c := openClocked(t, shop)
	m, err := model.Parse("shop.yaml", []byte(strings.ReplaceAll(shop, "Shop", "Store")))
	failtest.On(t, err)
	s, err := system.Over(t.Context(), gone{c.Store}, "", []*model.Model{m}, system.Options{Now: func() time.Time { return c.at }, NoSearch: true})
	failtest.On(t, err)
	if st, err := Of(t.Context(), s, s.Models[0]); err != nil || !strings.Contains(st.Refused, "there is no table Store") {
		t.Errorf("%q %v", st.Refused, err)
	}
}
