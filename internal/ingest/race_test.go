package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// writers is the number of writers in a race.
const writers = 64

// race is some writers of one model's tables, each as in a process of its own, with the
// times and results of their commands.
type race struct {
	model *model.Model
	store store.Store

	mu    sync.Mutex
	began time.Time
	ops   []porcupine.Operation
}

// races are what 64 writers race for, each in the tables of a model.
var races = []struct {
	name, model string
	run         func(*testing.T, *race)
}{
	{"one e-mail belongs to one", "gallery", raceForEmail},
	{"one pick a round", "movienight", raceForPick},
	{"one key makes one item", "wardrobe", raceForItem},
	{"one key is done once", "gallery", raceForKey},
	{"each completion is noted once", "viewing", raceForCompletion},
	{"a status only moves on", "movienight", raceForStatus},
}

func TestRaces(t *testing.T) {
	eachRace(t, func(t *testing.T, tables []store.Table) store.Store {
		s, err := embedded.Open(t.TempDir(), tables, embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return slow{s}
	})
}

// slow is a store that delays its effects and answers, so that writers interleave.
type slow struct{ store.Store }

func (s slow) pause() { time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond) }

func (s slow) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	defer s.pause()
	return s.Store.Get(ctx, refs)
}

func (s slow) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	s.pause()
	return s.Store.Write(ctx, ws)
}

func (s slow) Transact(ctx context.Context, ws []store.Write) error {
	s.pause()
	return s.Store.Transact(ctx, ws)
}

func TestRacesOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	eachRace(t, func(t *testing.T, tables []store.Table) store.Store {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	})
}

func eachRace(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	for _, one := range races {
		t.Run(one.name, func(t *testing.T) {
			m, err := model.Load(one.model)
			if err != nil {
				t.Fatal(err)
			}
			tables, err := system.Tables([]*model.Model{m})
			if err != nil {
				t.Fatal(err)
			}
			one.run(t, &race{model: m, store: open(t, tables), began: time.Now()})
		})
	}
}

// all runs the part of every writer at the same time.
func (r *race) all(part func(i int, w *ingest.Writer)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range writers {
		w := &ingest.Writer{Model: r.model, Store: r.store}
		wg.Go(func() {
			<-start
			part(i, w)
		})
	}
	close(start)
	wg.Wait()
}

// do executes a command and records it as an operation on the contested thing. A store that takes long lets others overtake a
// command as often as it tries, and then it is sent again, as its error says.
func (r *race) do(t *testing.T, i int, w *ingest.Writer, c ingest.Command, in any, out func(ingest.Result) any) ingest.Result {
	call := time.Since(r.began).Nanoseconds()
	res := w.Do(t.Context(), []ingest.Command{c})[0]
	for res.Err != nil && strings.Contains(res.Err.Error(), "send the command again") {
		res = w.Do(t.Context(), []ingest.Command{c})[0]
	}
	back := time.Since(r.began).Nanoseconds()
	var refusal *ingest.Refusal
	if res.Err != nil && !errors.As(res.Err, &refusal) {
		t.Errorf("writer %d: %v", i, res.Err)
		return res
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{ClientId: i, Input: in, Call: call, Output: out(res), Return: back})
	return res
}

// check looks for an order of the commands that fits their times and in which every
// result is correct. Commands that changed nothing are inserted a few at a time,
// because there are too many orders of all of them to try.
func (r *race) check(t *testing.T, m porcupine.Model, changed func(out any) bool) {
	t.Helper()
	const few = 4
	var did, saw []porcupine.Operation
	for _, op := range r.ops {
		if changed(op.Output) {
			did = append(did, op)
		} else {
			saw = append(saw, op)
		}
	}
	m.DescribeOperation = func(in, out any) string { return fmt.Sprint(in, " ", out) }
	for some := range slices.Chunk(append(saw, porcupine.Operation{}), few) {
		if some[len(some)-1].Output == nil {
			some = some[:len(some)-1]
		}
		if got := porcupine.CheckOperationsTimeout(m, slices.Concat(did, some), 5*time.Minute); got != porcupine.Ok {
			t.Fatalf("%s: no order explains %d answers", got, len(did)+len(some))
		}
	}
}

func command(op ingest.Op, entity, item string) ingest.Command {
	it, err := ingest.ReadItem([]byte(item))
	if err != nil {
		panic(err)
	}
	return ingest.Command{Op: op, Entity: entity, Item: it}
}

func kind(r ingest.Result) string {
	var refusal *ingest.Refusal
	if errors.As(r.Err, &refusal) {
		return refusal.Kind.String()
	}
	return "ok"
}

// move is a user's change of address; "" is none.
type move struct{ who, from, to string }

// owners is what two addresses belong to.
var owners = porcupine.Model{
	Init: func() any { return [2]string{} },
	Step: func(state, in, out any) (bool, any) {
		s, m := state.([2]string), in.(move)
		at := func(address string) *string { return &s[strings.Index("ab", address)] }
		if out == "taken" {
			return *at(m.to) != "" && *at(m.to) != m.who, state
		}
		if m.to != "" && *at(m.to) != "" {
			return false, state
		}
		if m.from != "" {
			*at(m.from) = ""
		}
		if m.to != "" {
			*at(m.to) = m.who
		}
		return out == "ok", s
	},
}

// raceForEmail: all writers want both of two addresses: to have one, then the other,
// then none.
func raceForEmail(t *testing.T, r *race) {
	won := make([]int, writers)
	r.all(func(i int, w *ingest.Writer) {
		who := fmt.Sprint("u", i)
		do := func(op ingest.Op, item string, m move) bool {
			res := r.do(t, i, w, command(op, "User", item), m, func(r ingest.Result) any { return kind(r) })
			return res.Err == nil
		}
		first, second := "a", "b"
		if i%2 == 1 {
			first, second = second, first
		}
		if !do(ingest.Create, `{"userId":"`+who+`","email":"`+first+`","createdAt":"2025-01-01T00:00:00Z"}`, move{who, "", first}) {
			return
		}
		won[i]++
		has := first
		if do(ingest.Update, `{"userId":"`+who+`","email":"`+second+`"}`, move{who, first, second}) {
			has = second
		}
		do(ingest.Delete, `{"userId":"`+who+`"}`, move{who, has, ""})
	})
	if slices.Max(won) == 0 {
		t.Error("nobody had an address")
	}
	r.check(t, owners, func(out any) bool { return out == "ok" })
	if n := r.count(t, owntable.TableName, owntable.Partition, "claim|"); n != 0 {
		t.Errorf("%d claims are left of users that are gone", n)
	}
}

func raceForPick(t *testing.T, r *race) {
	r.all(func(i int, w *ingest.Writer) {
		pick := fmt.Sprint("p", i)
		c := command(ingest.Create, "Pick", `{"pick_id":"`+pick+`","round_id":"r","group_id":"g","tmdb_movie_id":1,"title":"T","picked_by":"m","picked_at":"2025-01-01T00:00:00Z"}`)
		r.do(t, i, w, c, move{pick, "", "a"}, func(r ingest.Result) any { return kind(r) })
	})
	r.check(t, owners, func(out any) bool { return out == "ok" })
}

// answered is the result of a create with an idempotency key.
type answered struct {
	id    string
	first bool
}

// first models an idempotency key: the first command with the key wins, and all others
// get its result.
var first = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, in, out any) (bool, any) {
		a := out.(answered)
		if state == "" {
			return a.first && a.id != "", a.id
		}
		return !a.first && a.id == state, state
	},
}

// The key stands in a row of the model's own.
func raceForItem(t *testing.T, r *race) {
	r.all(func(i int, w *ingest.Writer) {
		c := command(ingest.Create, "Item", `{"UserId":"u","Name":"Hat","Category":"hats"}`)
		c.IdempotencyKey = "k"
		r.do(t, i, w, c, nil, func(r ingest.Result) any { return answered{r.Row.Get("PK").Text(), !r.Repeated} })
	})
	r.check(t, first, func(out any) bool { return out.(answered).first })
	if n := r.count(t, "WardrobeTable", "PK", "ITEM#"); n != 1 {
		t.Errorf("%d items", n)
	}
}

// The key stands in our table, and the row's own key is each writer's.
func raceForKey(t *testing.T, r *race) {
	r.all(func(i int, w *ingest.Writer) {
		c := command(ingest.Update, "Album", `{"id":"sea","title":"The sea"}`)
		c.Op, c.IdempotencyKey = ingest.Put, "k"
		c.Item = c.Item.With(value.Attr{Name: "createdAt", Value: value.OfString("2025-01-01T00:00:00Z")})
		r.do(t, i, w, c, nil, func(r ingest.Result) any { return answered{string(r.Done), !r.Repeated} })
	})
	r.check(t, first, func(out any) bool { return out.(answered).first })
}

func (r *race) count(t *testing.T, table, attr, prefix string) (n int) {
	page, err := r.store.Query(t.Context(), store.Query{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range page.Rows {
		if strings.HasPrefix(row.Get(attr).Text(), prefix) {
			n++
		}
	}
	return n
}

// shown is the result of a completion.
type shown struct {
	times   int
	changed bool
}

// insertTime models the set of times in the list, as bits; each result shows all of them.
var insertTime = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, in, out any) (bool, any) {
		s := state.(int) | 1<<in.(int)
		return out.(shown).times == s, s
	},
}

func raceForCompletion(t *testing.T, r *race) {
	const times = 8
	at := func(n int) string { return fmt.Sprintf("2025-01-01T00:00:0%dZ", n) }
	watched := func(state string, n int) ingest.Command {
		return command(ingest.Put, "History", `{"profileId":"p","attr":{"assetId":"1","state":"`+state+`","updateTime":"`+at(n)+`"}}`)
	}
	w := &ingest.Writer{Model: r.model, Store: r.store}
	if res := w.Do(t.Context(), []ingest.Command{watched("IN_PROGRESS", 0)}); res[0].Err != nil {
		t.Fatal(res[0].Err)
	}
	r.all(func(i int, w *ingest.Writer) {
		n := rand.IntN(times)
		r.do(t, i, w, watched("COMPLETED", n), n, func(r ingest.Result) any {
			set := 0
			for _, e := range r.Row.Get("m.timestamps").Elements() {
				for n := range times {
					if e.Value.Text() == at(n) {
						set |= 1 << n
					}
				}
			}
			return shown{set, r.Done != ingest.Unchanged}
		})
	})
	r.check(t, insertTime, func(out any) bool { return out.(shown).changed })
	table := r.model.Tables[0].Name
	page, err := r.store.Query(t.Context(), store.Query{Table: table, Partition: value.OfString("p")})
	if err != nil || len(page.Rows) != 1 || page.Rows[0].Get("sk").Text() != "COMPLETED|1" {
		t.Errorf("%v %v", page.Rows, err)
	}
}

// forward models a status that only moves forward: steps back are refused.
var forward = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, in, out any) (bool, any) {
		s, to := state.(int), in.(int)
		if out == "backward" {
			return to < s, s
		}
		return out == "moved" && to > s || out == "ok" && to == s, to
	},
}

func raceForStatus(t *testing.T, r *race) {
	words := []string{"draft", "voting", "selected", "watched", "rated", "expired"}
	w := &ingest.Writer{Model: r.model, Store: r.store}
	if res := w.Do(t.Context(), []ingest.Command{command(ingest.Create, "Round", `{"round_id":"r","group_id":"g","started_by":"m","status":"draft","created_at":"2025-01-01T00:00:00Z"}`)}); res[0].Err != nil {
		t.Fatal(res[0].Err)
	}
	r.all(func(i int, w *ingest.Writer) {
		to := rand.IntN(len(words))
		c := command(ingest.Update, "Round", `{"round_id":"r","status":"`+words[to]+`"}`)
		r.do(t, i, w, c, to, func(r ingest.Result) any {
			if r.Done == ingest.Updated {
				return "moved"
			}
			return kind(r)
		})
	})
	r.check(t, forward, func(out any) bool { return out == "moved" })
}
