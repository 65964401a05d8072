package status_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/status"
	"weir/internal/store"
	"weir/internal/value"
)

func movienight(t testing.TB) *model.Model {
	m, err := model.Load("movienight")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func item(pairs ...any) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		v := value.OfNull()
		switch x := pairs[i+1].(type) {
		case string:
			v = value.OfString(x)
		case bool:
			v = value.OfBool(x)
		case int:
			v = value.OfInt(int64(x))
		case value.Value:
			v = x
		}
		attrs = append(attrs, value.Attr{Name: pairs[i].(string), Value: v})
	}
	return value.NewItem(attrs...)
}

func names(texts ...string) value.Value {
	var vs []value.Value
	for _, s := range texts {
		vs = append(vs, value.OfString(s))
	}
	return value.OfList(vs...)
}

// facts are what rows tell, in memory.
type facts map[string]value.Item

func (f facts) tell(t testing.TB, m *model.Model, table string, rows ...value.Item) facts {
	for _, row := range rows {
		for _, fact := range fold(t, m, table, nil, row) {
			f[fact.List+"\x00"+fact.Name] = fact.Says
		}
	}
	return f
}

func (f facts) Each(list string, names status.Names, yield func(string, value.Item) bool) error {
	var all []string
	for name := range f {
		if one, ok := strings.CutPrefix(name, list+"\x00"); ok && strings.HasPrefix(one, names.Begins) && one >= names.From {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	for _, name := range all {
		if !yield(strings.TrimPrefix(name, list+"\x00"), f[name]) {
			break
		}
	}
	return nil
}

func (f facts) Get(list string, names []string) ([]value.Item, error) {
	out := make([]value.Item, len(names))
	for i, name := range names {
		out[i] = f[list+"\x00"+name]
	}
	return out, nil
}

func (f facts) First(list string, _ *model.Latest) (first value.Item, err error) {
	err = f.Each(list, status.Names{}, func(_ string, told value.Item) bool { first = told; return false })
	return first, err
}

func change(t testing.TB, m *model.Model, table string, old, new value.Item) *projections.Change {
	t.Helper()
	tab := m.Table(table)
	keys := new
	if new == nil {
		keys = old
	}
	c, ok := projections.NewChange(tab, &events.Record{Keys: keys, Old: old, New: new, Position: events.PositionOf(5)})
	if !ok {
		t.Fatalf("no key of %s in %v", table, keys)
	}
	return &c
}

func fold(t testing.TB, m *model.Model, table string, old, new value.Item) []status.Fact {
	t.Helper()
	return status.Fold(change(t, m, table, old, new), nil)
}

func rating(round, member, at string) value.Item {
	return item("round_id", round, "member_id", member, "rated_at", at)
}

func TestWhatRowsTell(t *testing.T) {
	m := movienight(t)
	pick := item("pick_id", "p", "round_id", "r", "picked_at", "2026-01-01T00:00:00Z", "watched", false)
	watched := pick.With(item("watched", true, "watched_at", "2026-01-02T00:00:00Z")...)
	moved := watched.With(item("round_id", "q")...)
	for _, c := range []struct {
		name, table string
		old, new    value.Item
		want        []string // list, word, and whether it is told or taken back
	}{
		{"a pick", "Picks", nil, pick, []string{"+Round.status|Rounds|r selected"}},
		{"is watched", "Picks", pick, watched, []string{"+Round.status|Rounds|r watched"}},
		{"is not, after all", "Picks", watched, pick, []string{"-Round.status|Rounds|r watched"}},
		{"gets another title", "Picks", pick, pick.With(item("title", "Alien")...), nil},
		{"is of another round", "Picks", watched, moved, []string{"+Round.status|Rounds|q selected", "+Round.status|Rounds|q watched", "-Round.status|Rounds|r selected", "-Round.status|Rounds|r watched"}},
		{"of no round", "Picks", nil, item("pick_id", "p", "watched", true), nil},
		{"goes", "Picks", watched, nil, []string{"-Round.status|Rounds|r selected", "-Round.status|Rounds|r watched"}},
		{"a rating", "Ratings", nil, rating("r", "a", "2026-01-01"), []string{"+Round.status|Rounds|r rated"}},
		{"at another time", "Ratings", rating("r", "a", "2026-01-01"), rating("r", "a", "2026-01-02"), []string{"+Round.status|Rounds|r rated"}},
		{"otherwise", "Ratings", rating("r", "a", "2026-01-01"), rating("r", "a", "2026-01-01").With(item("rating", "loved")...), nil},
		{"a member", "GroupMemberships", nil, item("group_id", "g", "user_id", "a"), []string{"+Round.attendees|g m"}},
		{"another role", "GroupMemberships", item("group_id", "g", "user_id", "a"), item("group_id", "g", "user_id", "a", "role", "creator"), nil},
		{"a round of all", "Rounds", nil, item("round_id", "r", "group_id", "g", "attendees", nil), []string{"+Round.attendees|g t"}},
		{"of some", "Rounds", nil, item("round_id", "r", "group_id", "g", "attendees", names("a")), nil},
		{"of nobody", "Rounds", item("round_id", "r", "group_id", "g"), item("round_id", "r", "group_id", "g", "attendees", names()), []string{"-Round.attendees|g t"}},
		{"of another group", "Rounds", item("round_id", "r", "group_id", "g"), item("round_id", "r", "group_id", "h|g"), []string{"+Round.attendees|h%7Cg t", "-Round.attendees|g t"}},
		{"of no group", "Rounds", nil, item("round_id", "r"), nil},
	} {
		var have []string
		for _, f := range fold(t, m, c.table, c.old, c.new) {
			sign := "+"
			if f.Says == nil {
				sign = "-"
			}
			word, _, _ := strings.Cut(f.Name, "|")
			have = append(have, sign+f.List+" "+word)
			if f.All != strings.HasPrefix(f.Name, owntable.MembersBegin) {
				t.Errorf("%s: %s looks at all: %v", c.name, f.Name, f.All)
			}
		}
		if slices.Sort(have); !slices.Equal(have, c.want) {
			t.Errorf("%s: tells %q, want %q", c.name, have, c.want)
		}
	}
}

func look(t testing.TB, m *model.Model, row value.Item, known status.Facts) (value.Item, error) {
	e := m.Entity("Round")
	is, many, err := status.Recompute(e, store.Ref{Table: "Rounds", Key: store.Key{Partition: row.Get("round_id")}}, row, known)
	if err != nil {
		return nil, err
	}
	if len(many) > 0 {
		err = tooMany(status.CannotCompute(many))
	}
	return is, err
}

func TestLook(t *testing.T) {
	m := movienight(t)
	picks := func(rows ...value.Item) facts { return facts{}.tell(t, m, "Picks", rows...) }
	pick := func(id, at string) value.Item {
		return item("pick_id", id, "round_id", "r", "picked_at", at, "watched", false)
	}
	many := facts{}
	var all []string
	for i := range 205 {
		who := fmt.Sprint("u", i)
		all = append(all, who)
		many.tell(t, m, "GroupMemberships", item("group_id", "g", "user_id", who))
		many.tell(t, m, "Ratings", rating("r", who, fmt.Sprintf("2026-01-01T00:%02d:%02dZ", i/60, i%60)))
	}
	round := func(pairs ...any) value.Item { return item("round_id", "r", "group_id", "g").With(item(pairs...)...) }
	for _, c := range []struct {
		name  string
		row   value.Item
		known facts
		want  string // status selected_at watched_at rated_at
	}{
		{"nothing known", round("status", "voting"), nil, "voting - - -"},
		{"no status", round(), picks(pick("p", "2026-01-01")), "selected 2026-01-01 - -"},
		{"a word nobody knows", round("status", "odd"), picks(pick("p", "2026-01-01")), "selected 2026-01-01 - -"},
		{"a word of old", round("status", "closed"), nil, "closed - - -"},
		{"a word of old, overtaken", round("status", "closed"), picks(pick("p", "2026-01-01")), "selected 2026-01-01 - -"},
		{"a word of old, not overtaken", round("status", "discarded"), picks(pick("p", "2026-01-01")), "discarded 2026-01-01 - -"},
		{"the application is ahead", round("status", "expired", "selected_at", "9"), picks(pick("p", "2026-01-01")), "expired 2026-01-01 - -"},
		{"the later of two picks, by when they are", round("status", "draft"), picks(pick("p", "2026-01-01T10:00:00+09:00"), pick("q", "2026-01-01T09:00:00Z")), "selected 2026-01-01T09:00:00Z - -"},
		{"a time is missing", round("status", "draft", "selected_at", "own"), picks(item("pick_id", "p", "round_id", "r")), "selected own - -"},
		{"all of 205 members", round("status", "voting"), many, "rated - - 2026-01-01T00:03:24Z"},
		{"all of 205 named", round("status", "voting", "attendees", names(all...)), many, "rated - - 2026-01-01T00:03:24Z"},
		{"one more named", round("status", "voting", "attendees", names(append(all, "x")...)), many, "voting - - -"},
		{"nobody", round("status", "voting", "attendees", names()), many, "voting - - -"},
		{"no group", item("round_id", "r", "status", "voting"), many, "voting - - -"},
		{"something that is no name", round("status", "voting", "attendees", value.OfList(value.OfNull(), value.OfString("u1"))), many, "rated - - 2026-01-01T00:00:01Z"},
		{"nothing but that", round("status", "voting", "attendees", value.OfList(value.OfNull())), many, "voting - - -"},
		{"what is no list", round("status", "voting", "attendees", "u1"), many, "voting - - -"},
		{"no list", round("status", "voting", "attendees", nil), many, "rated - - 2026-01-01T00:03:24Z"},
		{"a set", round("status", "voting", "attendees", value.OfStrings([]string{"u1", "u2"})), many, "rated - - 2026-01-01T00:00:02Z"},
	} {
		got, err := look(t, m, c.row, c.known)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var have []string
		for _, name := range []string{"status", "selected_at", "watched_at", "rated_at"} {
			text := got.Get(name).Text()
			if text == "" {
				text = "-"
			}
			have = append(have, text)
		}
		if h := strings.Join(have, " "); h != c.want {
			t.Errorf("%s: %s, want %s", c.name, h, c.want)
		}
		e := m.Entity("Round")
		if !value.EqualItems(projections.OwnRow(e, got), c.row) {
			t.Errorf("%s: the application's own row is lost: %v", c.name, projections.OwnRow(e, got))
		}
	}
}

// TestLookHasABound says that a max of the model bounds what is looked at, and that a
// word that takes attributes from the rows that reach it has one in any case, since
// every change reads them all. Where a row is enough by itself, one is read.
func TestLookHasABound(t *testing.T) {
	m := movienight(t)
	for _, st := range m.Entity("Round").Statuses[0].Stages {
		if st.List != nil {
			st.Max = 500
		}
	}
	known := facts{}
	var all []string
	for i := range 501 {
		who := fmt.Sprint("u", i)
		all = append(all, who)
		known.tell(t, m, "GroupMemberships", item("group_id", "g", "user_id", who))
		known.tell(t, m, "Ratings", rating("r", who, "1"))
	}
	const most = 1000
	for i := range most + 1 {
		known.tell(t, m, "Picks", item("pick_id", fmt.Sprint("p", i), "round_id", "q"))
	}
	for _, row := range []value.Item{
		item("round_id", "r", "group_id", "g"),
		item("round_id", "r", "group_id", "h", "attendees", names(all...)),
		item("round_id", "q", "group_id", "h"),
	} {
		var many tooMany
		got, err := look(t, m, row, known)
		if !errors.As(err, &many) || got.Has("rated_at") || got.Has("selected_at") {
			t.Errorf("%v: %v, %v", row, got, err)
		}
		if want := map[string]string{"q": "selected"}[row.Get("round_id").Text()]; got.Get("status").Text() != want {
			t.Errorf("%v: the status is %v, should be %q", row, got, want)
		}
	}
	if got, err := look(t, m, item("round_id", "q", "group_id", "g", "attendees", names(all[:500]...)), facts{}); err != nil || got.Has("status") {
		t.Errorf("500 are allowed: %v, %v", got, err)
	}
	for _, st := range m.Entity("Round").Statuses[0].Stages {
		if st.List == nil {
			st.Set, st.Max = nil, 0
		}
	}
	c := &counted{Facts: known}
	if got, err := look(t, m, item("round_id", "q", "group_id", "h"), c); err != nil || got.Get("status").Text() != "selected" || c.rows > 1 {
		t.Errorf("one is enough: %v, %v, %d rows read", got, err, c.rows)
	}
}

// tooMany says which stages cannot be computed.
type tooMany string

func (t tooMany) Error() string { return string(t) }

// counted counts the rows that are looked at.
type counted struct {
	status.Facts
	rows int
}

func (c *counted) Each(list string, names status.Names, yield func(string, value.Item) bool) error {
	return c.Facts.Each(list, names, func(name string, told value.Item) bool {
		c.rows++
		return yield(name, told)
	})
}

// TestOwn: whatever is shown over a row, and whatever the application writes over
// that, the row tells what the application wrote.
func TestOwn(t *testing.T) {
	e := movienight(t).Entity("Round")
	r := rand.New(rand.NewPCG(1, 2))
	random := func() value.Item {
		out := value.Item{}
		for _, name := range []string{"status", "selected_at", "rated_at", "title"} {
			if r.IntN(3) > 0 {
				out = out.With(item(name, []any{"a", "b", 7, nil, true, names("x")}[r.IntN(6)])...)
			}
		}
		return out
	}
	for range 3000 {
		own, shown := random(), random().Filter(func(name string) bool { return name != "title" })
		row := projections.WriteOver(own, shown)
		if got := projections.OwnRow(e, row); !value.EqualItems(got, own) {
			t.Fatalf("own %v under %v reads as %v", own, shown, got)
		}
		if !value.Equal(row.Get("title"), own.Get("title")) {
			t.Fatalf("title moved: %v", row)
		}
		// One attribute is written; the others stay as they were.
		written := row.With(item("status", "new")...)
		if got := projections.OwnRow(e, written); !value.EqualItems(got, own.With(item("status", "new")...)) {
			t.Fatalf("own %v under %v, written over, reads as %v", own, shown, got)
		}
		// A recorded image takes the row's place, and shows on what it did not change.
		image := random()
		kept := projections.KeepStatuses(e, image, row)
		if got := projections.OwnRow(e, kept); !value.EqualItems(got, image) {
			t.Fatalf("image %v over %v reads as %v", image, row, got)
		}
		if value.Equal(image.Get("status"), own.Get("status")) && !value.Equal(kept.Get("status"), row.Get("status")) {
			t.Fatalf("image %v over %v forgets what was shown: %v", image, row, kept)
		}
		if !value.Equal(image.Get("status"), own.Get("status")) && !value.Equal(kept.Get("status"), image.Get("status")) {
			t.Fatalf("image %v over %v is hidden by what was shown: %v", image, row, kept)
		}
	}
}

func TestNeedsLook(t *testing.T) {
	m := movienight(t)
	base := item("round_id", "r", "group_id", "g", "status", "voting", "attendees", names("a"), "weir", 5)
	shown := projections.WriteOver(base, item("status", "rated", "rated_at", "1")).With(item("weir", 6)...)
	for _, c := range []struct {
		name     string
		old, new value.Item
		want     bool
	}{
		{"it is new", nil, base, true},
		{"it goes", base, nil, false},
		{"weir shows something", base, shown, false},
		{"weir shows for the first time", base.With(value.Attr{Name: "weir"}), shown, false},
		{"something else changed", shown, shown.With(item("note", "x")...), false},
		{"the application wrote its status", shown, shown.With(item("status", "draft")...), true},
		{"the list", shown, shown.With(item("attendees", nil)...), true},
		{"the group", shown, shown.With(item("group_id", "h")...), true},
		{"a time that is shown", shown, shown.With(item("rated_at", "2")...), true},
		{"the row whole", shown, base.With(value.Attr{Name: "weir"}), true},
		{"an old copy", shown, base, true},
		{"what is under it", shown, shown.With(value.Attr{Name: owntable.Own}), true},
		{"a version that is not weir's", shown, shown.With(item("weir", "x")...), true},
		{"a higher one, and its status", shown, base.With(item("status", "draft", "weir", 9)...), true},
	} {
		if have := status.NeedsRecompute(change(t, m, "Rounds", c.old, c.new)); have != c.want {
			t.Errorf("%s: %v", c.name, have)
		}
	}
}

// TestNotesOfARetiredStatus: what a status has covered that the model no longer has stays noted for its removal, while
// other statuses of the row go on, until someone writes over it.
func TestNotesOfARetiredStatus(t *testing.T) {
	e := movienight(t).Entity("Round")
	note := func(row value.Item) value.Value { return row.Get(owntable.Own).Item().Get("mood") }
	covers := owntable.CoveringNote(value.OfString("calm"), value.OfString("busy"))
	row := projections.WriteOver(item("status", "a", "mood", "busy"), item("status", "b"))
	row = row.With(value.Attr{Name: owntable.Own, Value: value.OfMap(row.Get(owntable.Own).Item().With(value.Attr{Name: "mood", Value: covers}))})
	own := projections.OwnRow(e, row)
	if now := projections.AlsoNoted(e, projections.WriteOver(own, item("status", "c")), row); !value.Equal(note(now), covers) || now.Get(owntable.Own).Item().Get("status").IsMissing() {
		t.Errorf("a recompute leaves %v", now)
	}
	if now := projections.AlsoNoted(e, own, row); !value.Equal(note(now), covers) || len(now.Get(owntable.Own).Item()) != 1 {
		t.Errorf("a recompute that shows nothing leaves %v", now)
	}
	if now := projections.KeepStatuses(e, own, row); !value.Equal(note(now), covers) {
		t.Errorf("an image leaves %v", now)
	}
	if now := projections.KeepStatuses(e, own.With(item("mood", "new")...), row); !note(now).IsMissing() {
		t.Errorf("an image with another mood leaves %v", now)
	}
}
