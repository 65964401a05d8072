package cases

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

const page = "# Shop\n```yaml shop.yaml\n" + `model: shop
tables: {shop: {key: [PK, SK]}}
entities:
  User: {where: {type: user}, key: {PK: "USER#{user}", SK: USER}, attributes: {user: string!}}
  Order: {where: {type: order}, key: {PK: "USER#{user}", SK: "ORDER#{order}"}, attributes: {total: number!}}
derive:
  User.spent: {sum: Order.total}
queries:
  user: {get: User, with: [user]}
` + "```\n## One\n```json rows.jsonl\n[]\n```\n```console\n$ projector query shop.yaml user user=u1\n{\"user\":\"u1\",\"spent\":3}\n```\n"

// runner loads two orders of a user.
func runner() *Runner {
	return &Runner{
		Parse: func(string) (Query, error) {
			return Query{Name: "user", Params: map[string]string{"user": "u1"}, Only: []string{"user", "spent"}}, nil
		},
		Load: func(ctx context.Context, s *system.System, _ *system.Part, _ string) error {
			put := func(sort string, attrs ...value.Attr) store.Write {
				row := value.NewItem(append(attrs, value.Attr{Name: "PK", Value: value.OfString("USER#u1")}, value.Attr{Name: "SK", Value: value.OfString(sort)})...)
				key := store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}
				return store.Write{Ref: store.Ref{Table: "shop", Key: key}, Put: row}
			}
			kind := func(is string) value.Attr { return value.Attr{Name: "type", Value: value.OfString(is)} }
			total := func(n int64) value.Attr { return value.Attr{Name: "total", Value: value.OfInt(n)} }
			_, err := s.Store.Write(ctx, []store.Write{
				put("USER", kind("user"), value.Attr{Name: "user", Value: value.OfString("u1")}),
				put("ORDER#1", kind("order"), total(9)),
				put("ORDER#1", kind("order"), total(1)),
				put("ORDER#2", kind("order"), total(2)),
			})
			return err
		},
	}
}

func readPage(t *testing.T, text string) *Page {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.test.md")
	failtest.On(t, os.WriteFile(path, []byte(text), 0o666))
	p, err := Read(path)
	failtest.On(t, err)
	return p
}

// TestWaysAgree: an engine that derives something else in one of the ways fails the case, by the name of the way.
func TestWaysAgree(t *testing.T) {
	one := readPage(t, page).Cases[0]
	found, err := runner().Run(t.Context(), one)
	failtest.On(t, err)
	for _, f := range found {
		t.Errorf("%s: %s: %s", f.Way, f.What, f.Diff())
	}
	was := ways
	t.Cleanup(func() { ways = was })
	for i, w := range was {
		ways = append([]way(nil), was...)
		ways[i].come = func(ctx context.Context, in *world, records []events.Record) error {
			return w.come(ctx, in, records[:len(records)-1]) // the last order is lost
		}
		found, err := runner().Run(t.Context(), one)
		failtest.On(t, err)
		if len(found) == 0 || i > 0 && (len(found) != 1 || found[0].Way != w.name || found[0].Diff() != "- {\"user\":\"u1\",\"spent\":3}\n+ {\"user\":\"u1\",\"spent\":1}\n") {
			t.Errorf("%s: %+v", w.name, found)
		}
	}
}

// TestWaysAreDifferent: records come several times in one way, and in another order of rows, but not of changes of a row, in another.
func TestWaysAreDifferent(t *testing.T) {
	one := readPage(t, page).Cases[0]
	records, err := runner().writeSources(t.Context(), one)
	failtest.On(t, err)
	var order string
	for _, r := range reordered(records) {
		order += r.Keys.Get("SK").Text() + "=" + value.Scalar(r.New.Get("total")) + " "
	}
	if order != "ORDER#2=2 ORDER#1=9 ORDER#1=1 USER= " {
		t.Error(order)
	}
	w, err := newWorld(t.Context(), one.model)
	failtest.On(t, err)
	defer w.close()
	failtest.On(t, w.comeAgain(t.Context(), records, 2))
	if n := len(w.delivered); n < 2 {
		t.Errorf("%d pages are delivered again", n)
	}
}

// TestBlocksAreRead: what looks like a block of a case, and would be passed over, is refused.
func TestBlocksAreRead(t *testing.T) {
	for _, more := range []string{
		"```jsonl expected.jsonl\n{\"letter\":\"image\"}\n",
		"```text\nno end\n\n```jsonl expected.jsonl\n{}\n```\n",
		"```jsonl  expected.jsonl\n{}\n```\n",
		"  ```jsonl expected.jsonl\n  {}\n  ```\n",
		"~~~jsonl expected.jsonl\n{}\n~~~\n",
		"```console title=x\n$ projector query shop.yaml user user=u1\n```\n",
	} {
		path := filepath.Join(t.TempDir(), "shop.test.md")
		failtest.On(t, os.WriteFile(path, []byte(page+more), 0o666))
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "is not read as a block of code") {
			t.Errorf("%q: %v", more, err)
		}
	}
}

// TestUpdateKeeps: a page keeps its mode, one that was changed meanwhile stays, and nothing is left beside it.
func TestUpdateKeeps(t *testing.T) {
	p := readPage(t, page)
	a := p.Cases[0].asks[0]
	found := []Failure{{from: a.from, to: a.to, Got: "{}\n"}}
	failtest.On(t, os.Chmod(p.Path, 0o640))
	failtest.On(t, p.Update(found))
	text, err := os.ReadFile(p.Path)
	failtest.On(t, err)
	if info, err := os.Stat(p.Path); err != nil || info.Mode().Perm() != 0o640 || !strings.HasSuffix(string(text), "user=u1\n{}\n```\n") {
		t.Errorf("%v %v %q", info.Mode(), err, text)
	}
	p = readPage(t, page)
	failtest.On(t, os.WriteFile(p.Path, []byte("of an editor"), 0o666))
	if err := p.Update(found); err == nil || !strings.Contains(err.Error(), "was changed meanwhile") {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(p.Path)); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
}
