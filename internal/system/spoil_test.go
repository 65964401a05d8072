package system_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/search"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// spoil is what somebody does to one row behind weir's back: the first row of the
// table whose attributes begin so is changed, or taken away where Put is nil.
type spoil struct {
	model, what, table string
	row                []string // NAME, or NAME=BEGINNING
	put                func(value.Item) value.Item
	says               string // of a difference
}

// spoils are all kinds of what can be wrong.
var spoils = []spoil{
	{"gallery", "count", "gallery", []string{"mediaCount=1"}, setting("mediaCount", value.OfInt(99)), "Album.mediaCount"},
	{"gallery", "count lost", "gallery", []string{"mediaCount=1"}, without("mediaCount"), "Album.mediaCount"},
	{"gallery", "counted row lost", "gallery", []string{"EntityType=AlbumMedia"}, nil, "ledger a:mediaCount"},
	{"gallery", "ledger", "weir", []string{"k=ledger|gallery", "a:mediaCount"}, setting("a:mediaCount", value.OfInt(99)), "ledger a:mediaCount"},
	{"gallery", "ledger lost", "weir", []string{"k=ledger|gallery", "a:mediaCount"}, nil, "ledger a:mediaCount"},
	{"watchlists", "mean", "worthwatch", []string{"rating", "entityType=MOVIE"}, setting("rating", value.OfInt(99)), "Movie.rating"},
	{"watchlists", "rows of a mean", "weir", []string{"k=ledger|watchlists", "c:rating"}, setting("c:rating", value.OfInt(99)), "ledger c:rating"},
	{"watchlists", "dead letter of nothing", "weir", []string{"k=ledger|watchlists", "c:rating"}, setting(owntable.Unshown, value.OfString("0123456789abcdef no number")), "dead letter"},
	{"watchlists", "follower lost", "weir", []string{"k=feed|watchlists", "v", "n"}, nil, "subscribers"},
	{"watchlists", "follower too many", "worthwatch", []string{"entityType=USER_SAVED"}, nil, "subscribers"},
	{"wardrobe", "copy", "WardrobeTable", []string{"EntityType=UserItem"}, setting("Category", value.OfString("x")), "UserItem"},
	{"wardrobe", "copy's index key", "WardrobeTable", []string{"EntityType=UserItem", "GSI1SK"}, without("GSI1SK"), "UserItem"},
	{"wardrobe", "copy lost", "WardrobeTable", []string{"EntityType=UserItem"}, nil, "UserItem"},
	{"wardrobe", "copy of nothing", "WardrobeTable", []string{"EntityType=Item"}, nil, "UserItem"},
	{"wardrobe", "followed value", "WardrobeTable", []string{"EntityType=Activity", "ItemName"}, setting("ItemName", value.OfString("x")), "Item.Name followed"},
	{"wardrobe", "following", "WardrobeTable", []string{"EntityType=Activity", "ItemName"}, without("ItemName", owntable.FollowsAttr("ItemName")), "Item.Name followed"},
	{"wardrobe", "place on the list", "weir", []string{"k=follow|wardrobe", "s=m"}, nil, "Item.Name followers"},
	{"wardrobe", "value on the list", "weir", []string{"k=follow|wardrobe", "s=-", "v"}, setting("v", value.OfString("x")), "Item.Name as followed"},
	{"viewing", "set", "viewing-history", []string{"assetIds"}, setting("assetIds", value.OfString("x")), "Summary.assetIds"},
	{"viewing", "set lost", "viewing-history", []string{"assetIds"}, nil, "Summary.assetIds"},
	{"viewing", "node of a set lost", "weir", []string{"k=set|viewing"}, nil, "members of a set"},
	{"viewing", "row of a split set", "viewing-history", []string{owntable.InnerLeaf}, nil, "rows of a set"},
	{"viewing", "member lost", "viewing-history", []string{"a.assetId"}, nil, "Summary.assetIds"},
	{"movienight", "status", "Rounds", []string{"status=watched"}, setting("status", value.OfString("draft")), "Round.status"},
	{"movienight", "time of a status", "Rounds", []string{"watched_at"}, setting("watched_at", value.OfString("x")), "Round.watched_at"},
	{"movienight", "fact lost", "weir", []string{"k=fact|movienight", "v"}, nil, "fact"},
	{"movienight", "fact", "weir", []string{"k=fact|movienight", "v"}, setting("v", value.OfMap(nil)), "fact"},
	{"movienight", "rating lost", "Ratings", []string{"round_id"}, nil, "fact"},
	{"shop", "value of a group", "shop", []string{"type=day", "total"}, setting("total", value.OfInt(-1)), "Day.total"},
	{"shop", "latest of a group", "shop", []string{"type=day", "last"}, setting("last", value.OfString("x")), "Day.last"},
	{"shop", "fact of a group's latest lost", "weir", []string{"k=fact|shop|Day.last", "v"}, nil, "fact"},
	{"shop", "key of a group's index lost", "shop", []string{"type=day", "GSI1PK"}, without("GSI1PK"), "Day"},
	{"shop", "row of a group lost", "shop", []string{"type=day"}, nil, "Day"},
	{"shop", "row of a group of groups lost", "shop", []string{"type=branch"}, nil, "Branch"},
	{"shop", "ledger of a group", "weir", []string{"k=ledger|shop|shop|BRANCH", "a:total"}, setting("a:total", value.OfInt(-1)), "ledger a:total"},
	{"shop", "ledger of a group lost", "weir", []string{"k=ledger|shop|shop|BRANCH", "a:total"}, nil, "ledger a:total"},
	{"shop", "rows of a group", "weir", []string{"k=ledger|shop|shop|BRANCH", owntable.SumAccumulator(owntable.Grouped)}, setting(owntable.SumAccumulator(owntable.Grouped), value.OfInt(99)), "ledger " + owntable.SumAccumulator(owntable.Grouped)},
	{"shop", "dead letter of a group about nothing", "weir", []string{"k=ledger|shop|shop|BRANCH", "a:total"}, setting(owntable.Unshown, value.OfString("0123456789abcdef no number")), "dead letter"},
	{"shop", "counted row of a group lost", "shop", []string{"type=order", "status=paid"}, nil, "Day.orders"},
}

// TestSpoilt: whatever of the derived rows, of our own and of the indexes is not as
// it should be, verify says so, also where a generation that was replaced is still there.
func TestSpoilt(t *testing.T) {
	soaktest.Calm(t)
	eachRecording(t, []string{"gallery", "wardrobe", "movienight"}, onEmbedded, func(t *testing.T, s *system.System) {
		spoilAll(t, s, spoilsOf(s))
		if len(s.Models[0].Model.Searches) > 0 {
			spoilDocuments(t, s)
		}
		buildAgain(t, s)
		spoilAll(t, s, ofBuilds(t, s))
	})
}

// TestSpoiltOnDynamoDB spoils all at once in DynamoDB, without search, and builds it again. The long form also spoils one after
// the other.
func TestSpoiltOnDynamoDB(t *testing.T) {
	cfg := dynamodbtest.Config(t)
	eachRecording(t, []string{"movienight"}, func(t *testing.T, m *model.Model) *system.System {
		tables, err := system.Tables([]*model.Model{m})
		failtest.On(t, err)
		s, err := system.Over(t.Context(), dynamodbtest.Open(t, cfg, tables, dynamodb.Options{}), "", []*model.Model{m}, system.Options{NoSearch: true})
		return callOpened(t, s, err)
	}, func(t *testing.T, s *system.System) {
		if !testing.Short() {
			spoilAll(t, s, spoilsOf(s))
		}
		for _, sp := range spoilsOf(s) {
			sp.do(t, s)
		}
		buildAgain(t, s)
		verifyNothing(t, s)
	})
}

// spoilAll spoils one after the other, each of which verify must find and is undone.
func spoilAll(t *testing.T, s *system.System, all []spoil) {
	t.Helper()
	verifyNothing(t, s)
	for _, sp := range all {
		t.Run(sp.what, func(t *testing.T) { sp.run(t, s) })
	}
	verifyNothing(t, s)
}

// ofBuilds are the spoils of rows of weir's own table, of the generations that targets show.
func ofBuilds(t *testing.T, s *system.System) (out []spoil) {
	m := s.Models[0].Model.Name
	c, err := s.Models[0].Runner.Catalog.Row(t.Context())
	failtest.On(t, err)
	for _, sp := range spoilsOf(s) {
		for _, b := range c.Builds {
			is := sp
			is.what = "built " + is.what
			is.row = slices.Clone(sp.row)
			is.row[0] = strings.Replace(sp.row[0], "|"+m, "|"+b.Ledgers(m), 1)
			if b.State.IsShown() && is.row[0] != sp.row[0] && find(t, s.Store, is.table, is.row) != nil {
				out = append(out, is)
			}
		}
	}
	if len(out) == 0 && m != "wardrobe" { // whose copies are built in place
		t.Error("no row is of a build")
	}
	return out
}

// eachRecording has every model's recording replayed into a system of its own; the
// short form has some.
func eachRecording(t *testing.T, short []string, open func(*testing.T, *model.Model) *system.System, do func(t *testing.T, s *system.System)) {
	for _, dir := range systemtest.Recordings(t) {
		name := systemtest.Name(dir)
		if testing.Short() && !slices.Contains(short, name) || name == "github" || name == "chat" { // shop has groups, and groups of these
			continue
		}
		t.Run(name, func(t *testing.T) {
			m, err := model.Load(systemtest.Model(dir))
			failtest.On(t, err)
			s := open(t, m)
			replayInto(t, s, systemtest.Files(t, dir))
			do(t, s)
		})
	}
}

func onEmbedded(t *testing.T, m *model.Model) *system.System { return openSystem(t, t.TempDir(), m) }

// spoilsOf are those for the system's model.
func spoilsOf(s *system.System) []spoil {
	name := s.Models[0].Model.Name
	return slices.DeleteFunc(slices.Clone(spoils), func(sp spoil) bool { return sp.model != name })
}

func (sp *spoil) run(t *testing.T, s *system.System) {
	back := sp.do(t, s)
	said(t, s, sp.says)
	writeOne(t, s.Store, back)
}

// do spoils, and returns what undoes it.
func (sp *spoil) do(t *testing.T, s *system.System) (back store.Write) {
	tables, err := system.Tables([]*model.Model{s.Models[0].Model})
	failtest.On(t, err)
	table := tables[slices.IndexFunc(tables, func(t store.Table) bool { return t.Name == sp.table })]
	row := first(t, s.Store, sp.table, sp.row)
	key, _ := table.KeyOf(row)
	w := store.Write{Ref: store.Ref{Table: sp.table, Key: key}}
	back = w
	if back.Put = row; sp.put == nil {
		w.Delete = true
	} else {
		w.Put = sp.put(row)
	}
	writeOne(t, s.Store, w)
	return back
}

func said(t *testing.T, s *system.System, derivation string) {
	t.Helper()
	diffs, err := verifyAll(s)
	failtest.On(t, err)
	for _, d := range diffs {
		if d.Derivation == derivation && d.Have != d.Want {
			return
		}
	}
	t.Errorf("%s is not said among %v", derivation, diffs)
}

func writeOne(t *testing.T, db store.Store, w store.Write) {
	t.Helper()
	out, err := db.Write(context.Background(), []store.Write{w})
	if err == nil {
		err = out[0].Err
	}
	failtest.On(t, err)
}

func first(t *testing.T, db store.Store, table string, has []string) value.Item {
	t.Helper()
	row := find(t, db, table, has)
	if row == nil {
		t.Fatalf("no row of %s has %v", table, has)
	}
	return row
}

// find returns the first row that has some attributes, nil if there is none.
func find(t *testing.T, db store.Store, table string, has []string) value.Item {
	t.Helper()
	for row, err := range store.EachRow(context.Background(), db, store.Query{Table: table}) {
		failtest.On(t, err)
		if !slices.ContainsFunc(has, func(h string) bool {
			name, begins, _ := strings.Cut(h, "=")
			return !row.Has(name) || begins != "" && !strings.HasPrefix(value.Scalar(row.Get(name)), begins)
		}) {
			return row
		}
	}
	return nil
}

func setting(name string, v value.Value) func(value.Item) value.Item {
	return func(row value.Item) value.Item { return row.With(value.Attr{Name: name, Value: v}) }
}

func without(names ...string) func(value.Item) value.Item {
	return func(row value.Item) value.Item {
		return row.Filter(func(name string) bool { return !slices.Contains(names, name) })
	}
}

// spoilDocuments gives the index another document of a row, none, and one of a row
// that is not there.
func spoilDocuments(t *testing.T, s *system.System) {
	m := s.Models[0].Model
	sr := m.Searches[0]
	derivation := "search " + sr.Name
	var doc search.Document
	for q := (store.Query{Table: sr.Of.Table.Name}); doc.ID == ""; {
		page, err := s.Store.Query(context.Background(), q)
		if err != nil || len(page.Rows) == 0 {
			t.Fatal(err, "no row is searched")
		}
		for _, row := range page.Rows {
			key, _ := sr.Of.Table.KeyOf(row)
			if d, ok := document.DocumentOf(m, sr, sr.Of.Table.Classify(row), key, row); ok {
				doc = d
			}
		}
		q.After = page.Next
	}
	at := 0
	apply := func(d search.Document) {
		t.Helper()
		at++
		d.Position, _ = events.ParsePosition(fmt.Sprintf("9%039d", at))
		if errs, err := s.Index.Apply(context.Background(), []search.Document{d}); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
	}
	stale, gone, other := doc, doc, doc
	stale.Text, gone.Deleted, other.ID = []string{"other words"}, true, doc.ID+"x"
	for _, d := range []search.Document{stale, gone, other} {
		apply(d)
		said(t, s, derivation)
		failtest.On(t, s.IndexAgain(t.Context(), s.Models[0], func(system.Filling) {}))
		verifyNothing(t, s)
	}
}
