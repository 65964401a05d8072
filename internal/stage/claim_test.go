package stage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/owntable"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/store/embedded"
)

// account is the tables of several stages in one store.
func account(t *testing.T, real ...string) store.Store {
	t.Helper()
	var tables []store.Table
	for _, name := range real {
		one := table(name)
		if strings.HasPrefix(name, owntable.TableName) {
			one = owntable.Table()
			one.Name = name
		}
		tables = append(tables, one)
	}
	s, err := embedded.Open("data", tables, embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func named(t *testing.T, name string, pairs ...stage.Pair) *stage.Names {
	t.Helper()
	n, err := stage.New(stage.Stage{Name: name, Tables: pairs}, []store.Table{owntable.Table(), table("AAA"), table("BBB")})
	if err != nil {
		t.Fatal(err)
	}
	return &n
}

// TestClaim: a table belongs to the first stage that writes it, by its real name.
func TestClaim(t *testing.T) {
	now := time.Now()
	s := account(t, "weir", "weir-prod", "weir-dev")
	prod, dev := named(t, "prod", stage.Pair{Logical: "AAA", Real: "BBB"}, stage.Pair{Logical: "BBB", Real: "AAA"}), named(t, "dev", stage.Pair{Logical: "AAA", Real: "aaa-dev"})
	plain, other := named(t, "default"), named(t, "", stage.Pair{Logical: "AAA", Real: "aaa-1"}, stage.Pair{Logical: "BBB", Real: "bbb-1"})
	claim := func(n *stage.Names, take bool, want error) string {
		t.Helper()
		err := stage.Claim(t.Context(), s, n, now, take)
		if !errors.Is(err, want) {
			t.Errorf("stage %q, take %v: %v, should be %v", n.Stage().Name, take, err, want)
		}
		return fmt.Sprint(err)
	}
	claim(plain, false, nil) // a reader claims nothing
	claim(prod, true, nil)
	claim(prod, true, nil)
	claim(prod, false, nil)
	claim(plain, false, stage.ErrTaken)
	claim(plain, true, stage.ErrTaken)
	text := claim(dev, true, stage.ErrTaken)
	for _, want := range []string{"BBB belongs to the stage prod, and this is the stage dev", `delete the row "stage|BBB" of the table weir`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s; it should say %s", text, want)
		}
	}
	claim(other, true, nil)
	claim(named(t, "prod", stage.Pair{Logical: "AAA", Real: "aaa-1"}), false, stage.ErrTaken)
	now = now.Add(100 * 24 * time.Hour) // renewed, by its own stage alone
	claim(plain, true, stage.ErrTaken)
	claim(prod, true, nil)
	rows, err := s.Get(t.Context(), []store.Ref{owntable.StageOf("AAA"), owntable.StageOf("aaa-dev")})
	if err != nil || rows[1] != nil {
		t.Errorf("a stage that is refused one table has another one: %v, %v", rows[1], err)
	}
	if has, fresh, err := owntable.DecodeStage(rows[0], now); has != "prod" || !fresh || err != nil {
		t.Errorf("AAA belongs to %q, renewed %v, %v", has, fresh, err)
	}
}

// TestClaimOfAStageThatIsNot: a slip in the name of the stage claims nothing.
func TestClaimOfAStageThatIsNot(t *testing.T) {
	s := account(t, "weir")
	if err := stage.Claim(t.Context(), s, named(t, "porduction"), time.Now(), true); !errors.Is(err, store.ErrNoTable) {
		t.Error(err)
	}
	if rows, err := s.Get(t.Context(), []store.Ref{owntable.StageOf("AAA")}); err != nil || rows[0] != nil {
		t.Error(rows, err)
	}
	if err := stage.Claim(t.Context(), account(t, "weir-prod"), named(t, "prod"), time.Now(), false); err != nil {
		t.Errorf("a reader where nothing was ever claimed: %v", err)
	}
}

// TestClaimsAtOnce: of stages that claim a table at the same time one gets it.
func TestClaimsAtOnce(t *testing.T) {
	const many = 20
	own := []string{"weir"}
	for i := range many {
		own = append(own, fmt.Sprint("weir-s", i))
	}
	s := account(t, own...)
	met := &together{Store: s}
	met.all.Add(many)
	got := make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		n := named(t, fmt.Sprint("s", i), stage.Pair{Logical: "BBB", Real: fmt.Sprint("bbb", i)})
		wg.Go(func() { got[i] = stage.Claim(t.Context(), met, n, time.Now(), true) })
	}
	wg.Wait()
	have := 0
	for i, err := range got {
		switch {
		case err == nil:
			have++
		case !errors.Is(err, stage.ErrTaken):
			t.Errorf("stage %d: %v", i, err)
		}
	}
	if have != 1 {
		t.Errorf("%d stages have the table", have)
	}
}

// together is a store that all have read before any of them writes.
type together struct {
	store.Store
	all sync.WaitGroup
}

func (m *together) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	m.all.Done()
	m.all.Wait()
	return m.Store.Write(ctx, ws)
}

// deploying is a store that notes which tables are made.
type deploying struct {
	store.Store
	made []string
}

func (d *deploying) Deploy(_ context.Context, table string, _ bool) (store.Deployed, error) {
	d.made = append(d.made, table)
	return store.Deployed{Table: table, Created: true}, nil
}

// TestDeployClaims: the tables belong to the stage before any of them is made, and are
// reported by the model's names.
func TestDeployClaims(t *testing.T) {
	tables := &deploying{Store: account(t, "weir", "weir-prod", "weir-dev")}
	prod := stage.WrapDeployer(tables, *named(t, "prod", stage.Pair{Logical: "AAA", Real: "aaa-1"}), time.Now)
	for _, name := range []string{owntable.TableName, "AAA"} {
		if got, err := prod.Deploy(t.Context(), name, name == owntable.TableName); err != nil || got.Table != name || !got.Created {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if want := "[weir-prod weir aaa-1]"; fmt.Sprint(tables.made) != want {
		t.Errorf("made are %v, not %s", tables.made, want)
	}
	for _, s := range []string{"dev", "default"} {
		other := stage.WrapDeployer(tables, *named(t, s, stage.Pair{Logical: "BBB", Real: "aaa-1"}), time.Now)
		if _, err := other.Deploy(t.Context(), owntable.TableName, true); !errors.Is(err, stage.ErrTaken) {
			t.Errorf("the stage %s gets a table of another one: %v", s, err)
		}
	}
}
