package system_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// restarting is a store with a table whose stream is switched off and on: all positions of the second stream are below those of
// the first.
type restarting struct {
	store.Store
	second bool
	at     events.Position // of the store, where the first stream ends
	met    bool            // a program that has seen the first stream lists its shards too
}

// The labels of the two streams.
const (
	label1 = "2026-11-01T08:00:00.000"
	label2 = "2026-11-02T08:00:00.000"
)

// ofSecond begins the ids of the shards of the second stream.
const ofSecond = "second "

func (*restarting) Close() error { return nil }

func (*restarting) Trim(context.Context, string, string, events.Position) error { return nil }

func (*restarting) Tip() store.Tip { return store.Tip{} }

func (*restarting) Horizon(context.Context, string, string) (events.Position, error) {
	return events.Position{}, nil
}

func (*restarting) Continues(context.Context, string, string, string) (bool, error) {
	return false, nil
}

func (r *restarting) Identity(ctx context.Context, table string) (store.Identity, error) {
	is, err := r.Store.Identity(ctx, table)
	if is.Stream != "" {
		is.Stream = label1
		if r.second {
			is.Stream, is.Whole, is.Together = label2, false, false
		}
	}
	return is, err
}

func (r *restarting) Shards(ctx context.Context, table string) (out []store.Shard, err error) {
	all, err := r.Store.Shards(ctx, table)
	for _, s := range all {
		if !r.second || r.met {
			out = append(out, store.Shard{ID: s.ID, Closed: r.second})
		}
		if r.second {
			out = append(out, store.Shard{ID: ofSecond + s.ID})
		}
	}
	return out, err
}

func (r *restarting) Read(ctx context.Context, table, shard string, after events.Position, limit int) (page store.Records, err error) {
	if of, second := strings.CutPrefix(shard, ofSecond); second {
		if after.Compare(r.at) < 0 {
			after = r.at
		}
		return r.Store.Read(ctx, table, of, after, limit)
	}
	after[3] = 0
	all, err := r.Store.Read(ctx, table, shard, after, limit)
	page.More, page.End = all.More, r.second && !all.More
	for _, rec := range all.Records {
		if r.second && rec.Position.Compare(r.at) > 0 {
			page.More, page.End = false, true
			break
		}
		rec.Position[3] = 7
		page.Records = append(page.Records, rec)
	}
	return page, err
}

// notes has derivations of every kind that compares positions.
const notes = `model: notes
tables:
  notes: {key: [PK, SK]}
entities:
  User: {where: {type: User}, key: {PK: "USER#{user}", SK: ABOUT}, attributes: {name: string, state: {type: string, enum: [open, busy, closed], default: open}}}
  Note: {where: {type: Note}, key: {PK: "NOTE#{id}", SK: NOTE}, attributes: {user: string, list: string, text: string, n: number}}
  Mine: {where: {type: Mine}, key: {PK: "LIST#{list}", SK: "NOTE#{id}"}, attributes: {text: string, user: string, name: string}}
  Fan: {where: {type: Fan}, key: {PK: "USER#{user}", SK: "FAN#{fan}"}, attributes: {}}
  News: {where: {type: News}, key: {PK: "NEWS#{fan}", SK: "{id}#{position}"}, attributes: {text: string}}
  Texts: {where: {type: texts}, key: {PK: "USER#{user}", SK: "TEXTS[#{leaf}]"}}
derive:
  Mine: {row: Note, set: {id: id, list: list, text: text, user: user, name: {follow: User.name, by: {user: user}}}}
  User.last: {max: Note.n, also: {lastText: text}}
  User.notes: {count: Note}
  User.state: {steps: {busy: {when: Note, to: {user: user}, where: {n: {above: 5}}}}}
  News: {row: Note, keep: [insert, modify], each: {of: Fan, by: [user]}, set: {fan: Fan.fan, id: id, position: $position, text: text}}
  Texts.texts: {set: Note.text, to: {user: user}}
search:
  notes: {of: Note, text: [text]}
`

// noted is a restarting store with the model notes.
type noted struct {
	*testing.T
	db    *restarting
	model *model.Model
}

func (n *noted) must(err error) {
	n.Helper()
	failtest.On(n, err)
}

// open is a program with its indexes in a directory.
func (n *noted) open(dir string) *system.System {
	n.Helper()
	s, err := system.Over(n.Context(), n.db, dir, []*model.Model{n.model}, system.Options{Shared: true})
	n.must(err)
	return s
}

// put writes a row, or deletes it if it has only a key.
func (n *noted) put(pk, sk string, attrs ...string) {
	n.Helper()
	it := value.Item{{Name: "PK", Value: value.OfString(pk)}, {Name: "SK", Value: value.OfString(sk)}}
	for i := 0; i < len(attrs); i += 2 {
		v := value.OfString(attrs[i+1])
		if attrs[i] == "n" {
			v = value.MustNumber(attrs[i+1])
		}
		it = append(it, value.Attr{Name: attrs[i], Value: v})
	}
	it = value.NewItem(it...)
	key, _ := n.model.Tables[0].KeyOf(it)
	w := store.Write{Ref: store.Ref{Table: "notes", Key: key}, Put: it}
	if len(attrs) == 0 {
		w.Put, w.Delete = nil, true
	}
	out, err := n.db.Write(n.Context(), []store.Write{w})
	n.must(err)
	n.must(out[0].Err)
}

func (n *noted) note(id, list, text, nr string) {
	n.Helper()
	n.put("NOTE#"+id, "NOTE", "type", "Note", "user", "u", "list", list, "text", text, "n", nr)
}

// dropOwn takes all rows out of weir's own table.
func (n *noted) dropOwn() {
	n.Helper()
	own := owntable.Table()
	for {
		page, err := n.db.Query(n.Context(), store.Query{Table: own.Name})
		n.must(err)
		if len(page.Rows) == 0 {
			return
		}
		var ws []store.Write
		for _, row := range page.Rows {
			key, _ := own.KeyOf(row)
			ws = append(ws, store.Write{Ref: store.Ref{Table: own.Name, Key: key}, Delete: true})
		}
		_, err = n.db.Write(n.Context(), ws)
		n.must(err)
	}
}

// TestRestartedStream: a stream that was switched off and on, and may count from a lower number, is refused before anything of it
// is applied, to programs that run too. With an own table that is new, and what is built then, all is right for good.
func TestRestartedStream(t *testing.T) {
	path := t.TempDir() + "/notes.yaml"
	n := &noted{T: t}
	n.must(os.WriteFile(path, []byte(notes), 0o600))
	var err error
	n.model, err = model.Load(path)
	n.must(err)
	tables, err := system.Tables([]*model.Model{n.model})
	n.must(err)
	n.db = &restarting{Store: embeddedStore(t, tables), met: true}
	s := n.open(t.TempDir())
	n.must(s.Start(t.Context()))
	fillNow(t, s)
	n.put("USER#u", "ABOUT", "type", "User", "name", "Uma", "state", "open")
	n.put("USER#u", "FAN#f", "type", "Fan")
	n.put("USER#u", "FAN#g", "type", "Fan")
	n.note("1", "a", "one", "9")
	n.note("2", "a", "two", "2")
	n.note("4", "a", "four", "8")
	settle(t, s)
	verifyNothing(t, s)

	n.db.at, n.db.second = n.db.Store.Tip().Seen, true
	n.note("1", "b", "uno", "1")
	n.put("USER#u", "FAN#f")
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, catalog.ErrTable) || !strings.Contains(err.Error(), "the stream of notes was switched off and on again (from "+label1+" to "+label2+")") ||
			!strings.Contains(err.Error(), "projector build "+n.model.Arg) {
			t.Errorf("%s: %v", what, err)
		}
	}
	run := s.Models[0].Runner
	_, err = run.AdmitEvent(t.Context(), "notes", label2)
	refused("a function that runs", err)
	refused("a process that runs", run.Start(t.Context())) // as its reader does with a stream that it meets
	n.must(s.Close())
	s = n.open(t.TempDir())
	for range 2 { // it stays so
		refused("a program that starts", s.Start(t.Context()))
	}
	_, is, err := s.Models[0].Runner.Catalog.ReadAndCheck(t.Context())
	n.must(err)
	refused("projector status", is)
	_, err = s.Models[0].Builder().Announce(t.Context())
	refused("a build", err)
	n.must(s.Close())

	n.dropOwn()
	n.db.met = false
	s = n.open(t.TempDir()) // on OpenSearch, indexes have other names with another own table
	b := s.Models[0].Builder()
	b.Names = n.model.InBuildOrder(func(string) bool { return true })
	_, err = b.Run(t.Context())
	n.must(err)
	n.must(s.Start(t.Context()))
	fillNow(t, s)
	settle(t, s)
	verifyNothing(t, s)
	n.put("NOTE#2", "NOTE")
	n.note("3", "a", "three", "3")
	n.note("4", "c", "vier", "4")
	n.put("USER#u", "FAN#g")
	n.put("USER#u", "FAN#f", "type", "Fan")
	n.put("USER#u", "ABOUT", "type", "User", "name", "Una", "state", "open")
	settle(t, s)
	verifyNothing(t, s)
	run = s.Models[0].Runner
	_, err = run.AdmitEvent(t.Context(), "notes", label1) // the mapping of the first stream is still there
	if !errors.Is(err, catalog.ErrTable) || !strings.Contains(err.Error(), "of an earlier stream of table notes ("+label1+")") || !strings.Contains(err.Error(), "Delete the event source mapping") {
		t.Errorf("events of the first stream: %v", err)
	}
	n.must(s.Close())
}

// TestRestartedSearch: a model that only searches, and whose documents a function applies alone, refuses such a stream too.
// Nothing else writes its catalog.
func TestRestartedSearch(t *testing.T) {
	path := t.TempDir() + "/only.yaml"
	n := &noted{T: t}
	before, _, _ := strings.Cut(notes, "derive:")
	n.must(os.WriteFile(path, []byte(before+"search:\n  notes: {of: Note, text: [text]}\n"), 0o600))
	var err error
	n.model, err = model.Load(path)
	n.must(err)
	tables, err := system.Tables([]*model.Model{n.model})
	n.must(err)
	n.db = &restarting{Store: embeddedStore(t, tables)}
	warm := n.open(t.TempDir())
	defer warm.Close()
	cold := func() *runner.Runner {
		s := n.open(t.TempDir())
		t.Cleanup(func() { s.Close() })
		return s.Models[0].Runner
	}
	for range 2 {
		_, err = warm.Models[0].Runner.AdmitEvent(t.Context(), "notes", label1)
		n.must(err)
	}
	n.db.second = true
	for name, r := range map[string]*runner.Runner{"warm": warm.Models[0].Runner, "cold": cold()} {
		if _, err := r.AdmitEvent(t.Context(), "notes", label2); !errors.Is(err, catalog.ErrTable) || !strings.Contains(err.Error(), "was switched off and on again") {
			t.Errorf("%s: %v", name, err)
		}
	}
	n.dropOwn()
	run := cold()
	_, err = run.AdmitEvent(t.Context(), "notes", label2)
	n.must(err)
	for name, r := range map[string]*runner.Runner{"warm": run, "cold": cold()} {
		if _, err := r.AdmitEvent(t.Context(), "notes", label1); !errors.Is(err, catalog.ErrTable) || !strings.Contains(err.Error(), "earlier stream") {
			t.Errorf("events of the first stream, %s: %v", name, err)
		}
	}
}
