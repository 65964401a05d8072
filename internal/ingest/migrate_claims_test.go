package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// claimed says which row each unique value is claimed for, by what stands before the
// value in the claim's key.
func (w *moveWorld) claimed(field string) map[string]string {
	out := map[string]string{}
	for _, row := range w.scan(owntable.TableName) {
		if v, ok := strings.CutPrefix(row.Get(owntable.Partition).Text(), "claim|"+w.model.Name+"|"+field+"|"); ok {
			out[v] = row.Get("r").Text()
		}
	}
	return out
}

// wellClaimed checks that each of the rows is the only one with its value and has the
// claim on it, and that there are no other claims.
func (w *moveWorld) wellClaimed(field, attr string, rows []value.Item) {
	w.Helper()
	claims := w.claimed(field)
	for _, r := range rows {
		v, table := r.Get(attr).Text(), w.model.Tables[0].Name
		if have, want := claims[owntable.JoinTexts([]string{v})], owntable.RowText(w.ref(table, r)); have != want {
			w.Errorf("%s is claimed for %q, not for %q", v, have, want)
		}
		delete(claims, owntable.JoinTexts([]string{v}))
	}
	if len(claims) > 0 {
		w.Errorf("claimed without a row: %v", claims)
	}
}

func (w *moveWorld) users() (out []value.Item) {
	for _, r := range w.scan(w.model.Tables[0].Name) {
		if r.Has("email") {
			out = append(out, r)
		}
	}
	return out
}

func oldUser(i int, email string) value.Item {
	return row("id", fmt.Sprint(i), "entityType", "USER", "userId", fmt.Sprintf("u%d", i), "email", email, "username", "U",
		"createdAt", "2025-01-01T00:00:00Z", "updatedAt", "2025-01-01T00:00:00Z")
}

// TestLiveClaims: while an unreliable scan goes over old users and the projector
// follows, other clients send commands and an old application changes addresses, of
// which there are too few. At the end no two users have the same address, each has its
// claim, and there is no other claim. An index that is empty all the time makes no
// difference.
func TestLiveClaims(t *testing.T) { onEmbedded(t, "watchlists", liveClaims) }

func TestLiveClaimsOnDynamoDB(t *testing.T) { onDynamoDB(t, "watchlists", liveClaims) }

func TestLiveClaimsWithoutAnIndex(t *testing.T) {
	onEmbedded(t, "watchlists", func(w *moveWorld) {
		w.store = blind{w.store}
		liveClaims(w)
	})
}

func TestLiveClaimsWithoutAnIndexOnDynamoDB(t *testing.T) {
	onDynamoDB(t, "watchlists", func(w *moveWorld) {
		w.store = blind{w.store}
		liveClaims(w)
	})
}

// blind is a store whose indexes are always empty.
type blind struct{ store.Store }

func (b blind) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Index != "" {
		return store.Page{}, nil
	}
	return b.Store.Query(ctx, q)
}

func liveClaims(w *moveWorld) {
	const rows, addresses = 20, 14
	rng := rand.New(rand.NewPCG(9, 10))
	address := func() string { return fmt.Sprintf("%d@example.com", rng.IntN(addresses)) }
	for i := range rows {
		w.put("worthwatch-v1", oldUser(i, address()))
	}
	taken := 0
	w.follow(func() {
		var wg sync.WaitGroup
		wg.Go(func() { w.migrate(&shaky{Store: w.store, rng: rand.New(rand.NewPCG(11, 12))}) })
		people := &ingest.Writer{Model: w.model, Store: w.store}
		for n := range 120 {
			i := rng.IntN(rows)
			key := row("id", fmt.Sprint(i))
			switch k := rng.IntN(8); {
			case k < 4:
				w.set("worthwatch-v1", key, "email", value.OfString(address()))
			case k < 5:
				w.delete("worthwatch-v1", key)
			case k < 6:
				w.put("worthwatch-v1", oldUser(i, address()))
			default:
				item := row("userId", fmt.Sprintf("p%d", n), "email", address(), "username", "P", "createdAt", "2025-01-01T00:00:00Z", "updatedAt", "2025-01-01T00:00:00Z")
				res := people.Do(context.Background(), []ingest.Command{{Op: ingest.Create, Entity: "User", Item: item}})[0]
				var refusal *ingest.Refusal
				switch {
				case errors.As(res.Err, &refusal) && refusal.Kind == ingest.Taken:
					taken++
				case res.Err != nil:
					w.Error(res.Err)
				}
			}
		}
		wg.Wait()
	})
	users := w.users()
	if taken == 0 || len(users) < addresses/2 {
		w.Errorf("%d refused, %d users", taken, len(users))
	}
	w.wellClaimed("User.email", "email", users)
}

// TestAClashIsRefused: a row that clashes is refused and reported, also in a dry run;
// once the other row is gone it is moved.
func TestAClashIsRefused(t *testing.T)           { onEmbedded(t, "watchlists", clashes) }
func TestAClashIsRefusedOnDynamoDB(t *testing.T) { onDynamoDB(t, "watchlists", clashes) }

func clashes(w *moveWorld) {
	for i := range 3 {
		w.put("worthwatch-v1", oldUser(i, "one@example.com"))
	}
	scan := func(dry bool) (ingest.Counts, string) {
		reason := ""
		s := ingest.Scan{Mover: &ingest.Mover{Model: w.model, Store: w.store}, Migration: w.model.Migration("v1"), DryRun: dry}
		s.Each = func(_ store.Ref, _ value.Item, r ingest.MigrationResult) { reason += r.Reason }
		counts, err := s.Run(context.Background())
		failtest.On(w, err)
		return counts, reason
	}
	if n, why := scan(true); n[ingest.Moved] != 1 || n[ingest.Refused] != 2 || !strings.Contains(why, "another old row") {
		w.Errorf("%v %s", n, why)
	}
	// Pages of one row, each of which sees only its own.
	taken, err := embedded.Open("taken", []store.Table{owntable.Table()}, embedded.Options{FS: vfs.NewMem()})
	failtest.On(w, err)
	defer taken.Close()
	s := ingest.Scan{Mover: &ingest.Mover{Model: w.model, Store: w.store}, Migration: w.model.Migration("v1"), DryRun: true, Rows: 1, Taken: taken}
	var reasons []string
	s.Each = func(_ store.Ref, _ value.Item, r ingest.MigrationResult) { reasons = append(reasons, r.Reason) }
	if n, err := s.Run(context.Background()); err != nil || n[ingest.Moved] != 1 || n[ingest.Refused] != 2 || !strings.Contains(strings.Join(reasons, ""), "another old row has a value that only one row may have: worthwatch-v1") {
		w.Errorf("%v %q, %v", n, reasons, err)
	}
	if n, why := scan(false); n[ingest.Moved] != 1 || n[ingest.Refused] != 2 || !strings.Contains(why, `User: email "one@example.com" belongs to another row too: worthwatch`) {
		w.Errorf("%v %s", n, why)
	}
	users := w.users()
	if len(users) != 1 {
		w.Fatalf("%v", users)
	}
	w.wellClaimed("User.email", "email", users)
	w.delete("worthwatch", users[0])
	if n, why := scan(false); n[ingest.Moved] != 1 || n[ingest.Kept]+n[ingest.There] != 1 || n[ingest.Refused] != 1 {
		w.Errorf("%v %s", n, why)
	}
	w.wellClaimed("User.email", "email", w.users())
}

// TestBackfillClaims: a backfill that is interrupted at every single write, and run
// again, ends with every value claimed for one row that has it. Every other row with
// the value is reported.
func TestBackfillClaims(t *testing.T)           { onEmbedded(t, "gallery", backfillClaims) }
func TestBackfillClaimsOnDynamoDB(t *testing.T) { onDynamoDB(t, "gallery", backfillClaims) }

func backfillClaims(w *moveWorld) {
	const users, addresses = 12, 9 // three of them share one
	for i := range users {
		w.put("gallery", galleryUser(i, fmt.Sprintf("%d@example.com", i%addresses)))
	}
	b := ingest.Backfill{Model: w.model, Store: w.store, Rows: 5, DryRun: true}
	dry, err := b.Run(context.Background())
	failtest.On(w, err)
	if dry.Claims != addresses || dry.Shared != users-addresses {
		w.Errorf("a dry run counts %+v", dry)
	}
	for at := 0; ; at++ {
		for _, after := range []bool{false, true} {
			for _, c := range w.scan(owntable.TableName) {
				w.forget(c)
			}
			fill := ingest.Backfill{Model: w.model, Store: &cutting{Store: w.store, at: at, after: after}, Rows: 5}
			got, err := fill.Run(context.Background())
			broken := errors.Is(err, errBroken)
			if broken {
				got, err = fill.Run(context.Background())
			}
			failtest.On(w, err)
			// Claims of a page whose counts were not saved are taken, but not counted.
			if got.Claims > addresses || !broken && got.Claims != addresses || got.Shared != users-addresses {
				w.Errorf("broken at %d (after: %v): %+v", at, after, got)
			}
			claims, have := w.claimed("User.email"), map[string]string{}
			for _, u := range w.users() {
				have[owntable.RowText(w.ref("gallery", u))] = owntable.JoinTexts([]string{u.Get("email").Text()})
			}
			for v, r := range claims {
				if have[r] != v {
					w.Errorf("broken at %d: %s is claimed for %s, which has %q", at, v, r, have[r])
				}
			}
			if len(claims) != addresses {
				w.Errorf("broken at %d: %d claims", at, len(claims))
			}
			if !broken {
				return
			}
		}
	}
}

func galleryUser(i int, email string) value.Item {
	return row("PK", fmt.Sprintf("USER#%02d", i), "SK", "METADATA", "EntityType", "User", "userId", fmt.Sprintf("%02d", i), "email", email,
		"role", "user", "emailVerified", true, "createdAt", "2025-01-01T00:00:00Z", "GSI1PK", "USER_EMAIL", "GSI1SK", email)
}

// forget removes a row of our own table.
func (w *moveWorld) forget(r value.Item) {
	t := owntable.Table()
	key, _ := t.KeyOf(r)
	w.write(store.Write{Ref: store.Ref{Table: owntable.TableName, Key: key}, Delete: true})
}

// betweenMoves is a store with a moment before its first transaction.
type betweenMoves struct {
	store.Store
	once sync.Once
	do   func()
}

func (b *betweenMoves) Transact(ctx context.Context, ws []store.Write) error {
	b.once.Do(b.do)
	return b.Store.Transact(ctx, ws)
}

// TestClaimedMeanwhile: what a command gives up has no claim when it looks, and a
// backfill gives its row one before it writes.
func TestClaimedMeanwhile(t *testing.T) {
	for name, c := range map[string]ingest.Command{
		"changed": {Op: ingest.Update, Entity: "User", Item: row("userId", "01", "email", "new@example.com")},
		"removed": {Op: ingest.Delete, Entity: "User", Item: row("userId", "01")},
	} {
		t.Run(name, func(t *testing.T) {
			onEmbedded(t, "gallery", func(w *moveWorld) {
				w.put("gallery", galleryUser(1, "old@example.com"))
				met := false
				people := &ingest.Writer{Model: w.model, Store: &betweenMoves{Store: w.store, do: func() {
					met = true
					b := ingest.Backfill{Model: w.model, Store: w.store}
					_, err := b.Run(context.Background())
					failtest.On(w, err)
				}}}
				if res := people.Do(context.Background(), []ingest.Command{c})[0]; res.Err != nil || !met {
					w.Errorf("%+v; the backfill came between: %v", res, met)
				}
				w.wellClaimed("User.email", "email", w.users())
			})
		})
	}
}

// TestBackfillClaimsBesideCommands: commands take and give back addresses, while
// several backfills claim the addresses of existing rows.
func TestBackfillClaimsBesideCommands(t *testing.T) {
	onEmbedded(t, "gallery", backfillClaimsBesideCommands)
}

func TestBackfillClaimsBesideCommandsOnDynamoDB(t *testing.T) {
	onDynamoDB(t, "gallery", backfillClaimsBesideCommands)
}

func backfillClaimsBesideCommands(w *moveWorld) {
	const users = 30
	for i := range users {
		w.put("gallery", galleryUser(i, fmt.Sprintf("%d@example.com", i)))
	}
	var wg sync.WaitGroup
	for n := range 3 {
		wg.Go(func() {
			b := ingest.Backfill{Model: w.model, Store: w.store, Rows: 7 + n}
			if _, err := b.Run(context.Background()); err != nil {
				w.Error(err)
			}
		})
		wg.Go(func() {
			people, rng := &ingest.Writer{Model: w.model, Store: w.store}, rand.New(rand.NewPCG(uint64(n), 1))
			for range 60 {
				c := ingest.Command{Op: ingest.Update, Entity: "User", Item: row("userId", fmt.Sprintf("%02d", rng.IntN(users)), "email", fmt.Sprintf("%d@example.com", rng.IntN(users+5)))}
				var refusal *ingest.Refusal
				if res := people.Do(context.Background(), []ingest.Command{c})[0]; res.Err != nil && !errors.As(res.Err, &refusal) {
					w.Error(res.Err)
				}
			}
		})
	}
	wg.Wait()
	b := ingest.Backfill{Model: w.model, Store: w.store}
	_, err := b.Run(context.Background())
	failtest.On(w, err)
	w.wellClaimed("User.email", "email", w.users())
}
