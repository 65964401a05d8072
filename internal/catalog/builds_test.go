package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/owntable"
)

// announce announces builds until there is nothing more to announce.
func (w *world) announce(p *Program, again bool) ([]owntable.Build, error) {
	w.Helper()
	for range 10 {
		next, builds, err := p.Announce(w.row, w.tables, []string{"Album"}, again, w.asked, w.now)
		if err != nil || next.Same(w.row) {
			return builds, err
		}
		next.Count = w.row.Count + 1
		w.row = next
	}
	w.Fatal("there is always something to announce")
	return nil, nil
}

func (w *world) advance(p *Program, b owntable.Build, to owntable.BuildState) owntable.Build {
	w.Helper()
	next, became, ok := p.Advance(w.row, b, to, Moment{Time: w.now})
	if !ok || became.State != to {
		w.Fatalf("%+v does not become %s", b, to)
	}
	next.Count = w.row.Count + 1
	w.row = next
	return became
}

// built builds the tallies of albums.
func (w *world) built(p *Program, again bool) owntable.Build {
	w.Helper()
	bs, err := w.announce(p, again)
	w.must(err)
	if len(bs) != 1 {
		w.Fatalf("%+v", bs)
	}
	return w.advance(p, w.advance(p, bs[0], owntable.BuildShowing), owntable.BuildLive)
}

// TestBuildOfOlderRows: tables that had rows are refused, until a build is announced; after
// an abort they are refused again.
func TestBuildOfOlderRows(t *testing.T) {
	w, p := newWorld(t, false), programOf(t, albums)
	w.refused(w.start(p), ErrUnbuilt, "projector build albums")
	bs, err := w.announce(p, false)
	w.must(err)
	if len(bs) != 1 || bs[0].State != owntable.BuildBuilding || bs[0].Base <= w.now.UnixMicro() {
		t.Fatalf("%+v", bs)
	}
	w.must(w.start(p))
	w.must(w.batch(p, Process, "rows", "more"))
	if got := w.states(); got != "Album.count building, Album.votes building" || !w.row.IsPending("Album.count") {
		t.Error(got)
	}
	next, dropped := Abort(w.row, []string{"Album"}, w.now)
	if len(dropped) != 1 {
		t.Fatalf("%+v", dropped)
	}
	w.row = ForgetBuilds(next, dropped)
	if got := w.states(); got != "Album.count unbuilt, Album.votes unbuilt" || len(w.row.Builds) > 0 {
		t.Error(got, w.row.Builds)
	}
	w.refused(w.batch(p, Process, "rows"), ErrUnbuilt, "projector build albums")
	w.row.Count++ // as the two writes
	b := w.built(p, false)
	if b.Generation == bs[0].Generation {
		t.Error("two builds have one number")
	}
	w.must(w.batch(p, Process, "rows"))
	if got := w.states(); got != "Album.count live, Album.votes live" || w.row.IsPending("Album.count") {
		t.Error(got)
	}
	if again, err := w.announce(p, false); err != nil || len(again) != 1 || again[0].Generation != b.Generation {
		t.Errorf("a live build is not worked at: %+v, %v", again, err)
	}
	w.advance(p, b, owntable.BuildVerified)
	if got := w.states(); got != "Album.count verified, Album.votes verified" {
		t.Error(got)
	}
	if more, err := w.announce(p, false); err != nil || len(more) > 0 {
		t.Errorf("there is nothing to build: %+v, %v", more, err)
	}
	if _, dropped := Abort(w.row, []string{"Album"}, w.now); len(dropped) > 0 {
		t.Errorf("what rows show is aborted: %+v", dropped)
	}
}

// TestBuildOfChanges: a program with an added or changed tally is refused until it builds.
// From then on, that with the older model is, and after an abort both are where the values
// of the older definition have missed changes.
func TestBuildOfChanges(t *testing.T) {
	less := without(albums, votes)
	for name, c := range map[string]struct {
		text, during, after string
		older               bool // the older program may go on after an abort
	}{
		"added":   {albums, "Album.count live, Album.votes building", "Album.count live, Album.votes unbuilt", true},
		"changed": {strings.Replace(less, "count: Picture,", "count: Picture, where: {size: present},", 1), "Album.count building", "Album.count unbuilt", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, old, p := newWorld(t, true), programOf(t, less), programOf(t, c.text)
			w.must(w.start(old))
			w.must(w.batch(old, Process, "rows", "more"))
			w.refused(w.start(p), ErrRefused, "projector build albums")
			w.must(w.batch(old, Process, "rows"))
			_, err := w.announce(p, false)
			w.must(err)
			w.must(w.batch(p, Process, "rows"))
			w.refused(w.batch(old, Process, "rows"), ErrRefused)
			w.refused(w.start(old), ErrRefused)
			if got := w.states(); got != c.during+"" {
				t.Error(got)
			}
			during := w.row
			next, dropped := Abort(w.row, []string{"Album"}, w.now)
			w.row = ForgetBuilds(next, dropped)
			if got := w.states(); got != c.after+"" {
				t.Error(got)
			}
			w.refused(w.batch(p, Process, "rows"), ErrUnbuilt)
			if err := w.batch(old, Process, "rows"); c.older != (err == nil) {
				t.Errorf("after the abort, the older program: %v", err)
			}
			w.row = during
			w.built(p, false)
			w.must(w.batch(p, Process, "rows"))
			w.refused(w.batch(old, Process, "rows"), ErrRefused)
			if got := w.states(); strings.Contains(got, "building") || strings.Contains(got, "unbuilt") {
				t.Error(got)
			}
		})
	}
}

// TestBuildsOfOthers: programs with different models do not build over each other.
func TestBuildsOfOthers(t *testing.T) {
	w, p := newWorld(t, false), programOf(t, albums)
	other := programOf(t, strings.Replace(albums, "count: Picture,", "count: Picture, where: {size: present},", 1))
	less := programOf(t, without(albums, votes))
	w.refused(w.start(p), ErrUnbuilt)
	_, err := w.announce(p, false)
	w.must(err)
	_, err = w.announce(other, false)
	w.refused(err, ErrDefinition, "is being built by another definition", "projector build albums --abort")
	w.refused(w.start(other), ErrDefinition)
	_, err = w.announce(less, false)
	w.refused(err, ErrUnknown, "Album.votes is being built", "projector build albums, which ends that")
	w.refused(w.start(less), ErrUnknown)
	next, dropped := Abort(w.row, []string{"Album"}, w.now)
	w.row = ForgetBuilds(next, dropped)
	w.row.Count++
	w.built(less, false)
	w.must(w.batch(less, Process, "rows"))
	w.refused(w.start(p), ErrUnbuilt, "Album.votes is new", "projector build albums")
	w.must(w.batch(less, Process, "rows"))
}

// TestBuildAgain: what is live is built again only if that is asked for, and the older
// generation is dropped when the new one is shown.
func TestBuildAgain(t *testing.T) {
	w, p := newWorld(t, true), programOf(t, albums)
	w.must(w.start(p))
	w.must(w.batch(p, Process, "rows", "more"))
	if bs, err := w.announce(p, false); err != nil || len(bs) > 0 {
		t.Fatalf("%+v, %v", bs, err)
	}
	first := w.advance(p, w.built(p, true), owntable.BuildVerified)
	second := w.built(p, true)
	if second.Base <= first.Base || second.Generation <= first.Generation {
		t.Errorf("%+v after %+v", second, first)
	}
	if shown, building := w.row.Builds.Of("Album"); shown.Generation != second.Generation || building.State != "" {
		t.Errorf("%+v", w.row.Builds)
	}
	w.must(w.batch(p, Process, "rows"))
	at := slices.IndexFunc(w.row.Builds, func(b owntable.Build) bool { return b.Generation == first.Generation })
	if w.row.Builds[at].State != owntable.BuildDropped {
		t.Errorf("%+v", w.row.Builds)
	}
	if _, became, ok := p.Advance(w.row, first, owntable.BuildVerified, Moment{Time: now}); ok || became.State != owntable.BuildDropped {
		t.Errorf("a builder of the older generation goes on: %+v", became)
	}
	w.row.Builds = w.row.Builds[:at] // as if the row had been damaged
	w.refused(w.batch(p, Process, "rows"), ErrDefinition, "which this program does not know")
}

// TestBuiltBeforeAnythingIsRead: a program of an older model forgets nothing that was built
// before any stream was read.
func TestBuiltBeforeAnythingIsRead(t *testing.T) {
	w, p, older := newWorld(t, false), programOf(t, albums), programOf(t, without(albums, votes))
	w.refused(w.start(p), ErrUnbuilt)
	w.advance(p, w.built(p, false), owntable.BuildLive)
	w.refused(w.start(older), ErrUnknown, "Album.votes")
	w.refused(w.batch(older, Process, "rows"), ErrUnknown, "Album.votes")
	w.must(w.start(p))
	w.must(w.batch(p, Process, "rows"))
}

// TestBuildAgainBeforeItsAudit: what is asked for again while a build is not audited yet is
// built once for each time it is asked for, and not where the audit is due.
func TestBuildAgainBeforeItsAudit(t *testing.T) {
	w, p := newWorld(t, true), programOf(t, albums)
	w.must(w.start(p))
	first := w.advance(p, w.built(p, true), owntable.BuildLive)
	begins := func() (fresh int) {
		_, all := p.Plan(w.row, []string{"Album"}, true, w.asked, w.now)
		return len(all)
	}
	w.asked = first.Announced
	if begins() != 0 {
		t.Error("what was announced since it was asked for is announced again")
	}
	w.now = w.now.Add(time.Hour)
	w.asked = w.now
	if begins() != 1 {
		t.Error("a build of an hour ago is taken for what is asked for now")
	}
	second := w.built(p, true)
	if second.Generation <= first.Generation || begins() != 0 {
		t.Errorf("%+v after %+v", second, first)
	}
	w.advance(p, second, owntable.BuildLive)
	w.now = second.Announced.Add(AuditAfter)
	w.asked = w.now
	if begins() != 0 {
		t.Error("a build is announced where an audit is due")
	}
}

// TestUnreadBuild: a build that no program reads behind misses what the stream has lost.
func TestUnreadBuild(t *testing.T) {
	w, p := newWorld(t, false), programOf(t, albums)
	w.refused(w.start(p), ErrUnbuilt)
	b := w.built(p, false)
	w.now = w.now.Add(22 * time.Hour)
	w.must(w.start(p))
	w.now = w.now.Add(2 * time.Hour)
	w.refused(w.start(p), ErrUnbuilt, "was not read since", "--again")
	w.refused(w.batch(p, Process, "rows", "more"), ErrUnbuilt)
	w.now = w.now.Add(time.Hour)
	w.advance(p, b, owntable.BuildVerified) // which reads all rows once more
	w.must(w.start(p))
	w.now = w.now.Add(22 * time.Hour)
	w.must(w.batch(p, Process, "rows", "more"))
	w.now = w.now.Add(100 * time.Hour)
	w.must(w.batch(p, Process, "rows", "more"))
}

// TestRetiredBeside: a derivation that is retired while a build has it stays retired.
func TestRetiredBeside(t *testing.T) {
	w, p, less := newWorld(t, false), programOf(t, albums), programOf(t, without(albums, votes))
	w.refused(w.start(p), ErrUnbuilt)
	bs, err := w.announce(p, false)
	w.must(err)
	if next, names := less.Retire(w.row, false, now); len(names) > 0 || !next.Same(w.row) {
		t.Errorf("what is being built is retired: %v", names)
	}
	w.row, _ = less.Retire(w.row, true, now)
	w.advance(p, w.advance(p, bs[0], owntable.BuildShowing), owntable.BuildLive)
	if got := w.states(); got != "Album.count live, Album.votes retired" {
		t.Error(got)
	}
	w.must(w.batch(less, Process, "rows"))
	w.refused(w.batch(p, Process, "rows"), ErrDefinition, "is retired", "projector build albums")
}
