package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
)

// Reader is who reads a stream, and the kind of its positions.
type Reader string

// The readers. They move the same checkpoints, so one may follow the other or read beside it.
const (
	Process Reader = "log"      // processes, one of which reads at a time
	Shard   Reader = "frontier" // functions, also beside a process
)

// Name returns the name that status gives the reader.
func (r Reader) Name() string {
	switch r {
	case Process:
		return "process"
	case Shard:
		return "shard"
	}
	return string(r)
}

// String describes the reader.
func (r Reader) String() string {
	if r == Shard {
		return "a function"
	}
	return "a process"
}

// ErrRefused is wrapped by all errors that say that this program must not derive from
// these tables as they are. Nothing was applied. The text says what to do.
var ErrRefused = errors.New("refused")

// The kinds of refusal. Each wraps ErrRefused.
var (
	// ErrTable: the table is missing, has no stream, or is another one than it was.
	ErrTable = kind("table")
	// ErrImages: the stream lacks images that the model needs.
	ErrImages = kind("images")
	// ErrUnbuilt: rows that were written before weir read the stream may be missing.
	ErrUnbuilt = kind("unbuilt")
	// ErrDefinition: the values were derived by another definition.
	ErrDefinition = kind("definition")
	// ErrUnknown: another program derives something that this one does not know.
	ErrUnknown = kind("unknown")
	// ErrReplica: another region derives from the table, or none was named.
	ErrReplica = kind("replica")
	// ErrFormat: another version of weir wrote the catalog.
	ErrFormat = kind("format")
	// ErrModel: another model shows values on the same rows.
	ErrModel = kind("model")
)

func kind(name string) error { return fmt.Errorf("%w: %s", ErrRefused, name) }

// refusal is an error of one kind with a text of its own.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// newRefusal makes a refusal of a kind that callers ask for by errors.Is, with a text for people that
// names the command which helps.
func newRefusal(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

// Where the user reads more.
const (
	guide      = "docs/guide/lifecycle.md"
	operations = "docs/guide/operations.md"
)

// retention is how long a stream certainly keeps a record, with an hour for clocks that
// differ.
const retention = 23 * time.Hour

// Program is the part of the decision that a program brings: its model's derivations, and their needs.
type Program struct {
	Model       string
	Command     func(verb string, args ...string) string // see model.Model.Command
	Derivations []model.Derivation                       // without search indexes, see isSearch
	Needs       map[string]store.Images                  // by logical table name: the images that its stream must have

	// built has the name of the build of each derivation that rows tell.
	built map[string]string
	reads []string // the tables from which anything is derived, search indexes too, sorted
	// searches are the search indexes. The catalog has no state of them.
	searches []model.Derivation
}

// ProgramOf returns the program of a model. It depends on the model file alone, so two
// programs with the same file are equal.
func ProgramOf(m *model.Model) *Program {
	p := &Program{Model: m.Name, Command: m.Command, Needs: map[string]store.Images{}}
	for _, d := range m.Derivations() {
		if p.reads = append(p.reads, d.Reads...); isSearch(d.Name) {
			p.searches = append(p.searches, d)
		} else {
			p.Derivations = append(p.Derivations, d)
		}
	}
	slices.Sort(p.reads)
	p.reads = slices.Compact(p.reads)
	for _, t := range m.Tables {
		p.Needs[t.Name] = t.Images
	}
	p.built = m.Builds()
	return p
}

// isSearch reports whether a derivation is a search index. The catalog has none: programs
// with different definitions have different indexes, side by side, and the rows of their
// generations say how far they are filled (owntable.GenerationRow).
func isSearch(name string) bool {
	_, is := model.SearchOf(name)
	return is
}

// Switch is a stream that was switched off and on again: the changes in between are in
// no stream. With Passed, it is one from which another model has removed the records before the
// position To.
type Switch struct {
	Table, From, To string
	Passed          bool
}

// Found is the state of tables and streams when a program starts. Tables has an entry for each table of
// Program.Needs; the zero Identity stands for a table that does not exist.
type Found struct {
	Own    string // the id of weir's own table; "" if it is not known
	Tables map[string]store.Identity
	Now    time.Time
	// Passed has the tables whose streams lack the record after one of the model's checkpoints, with the
	// position from which on they have all.
	Passed map[string]events.Position
	behind []store.Write // moves these checkpoints there
	// Restarted has the tables whose stream is another one than the one that is pinned, and may have positions below
	// those of that one. See store.Store.Continues.
	Restarted map[string]bool
	// Assume: the operator says that no table of the model has a change that its stream
	// no longer has.
	Assume bool
	// DeriveIn is the one region that derives from tables that are replicated.
	DeriveIn string
}

// Start decides whether a program may begin, and the next catalog: tables are
// pinned, and derivations that are new on tables that were not read yet are entered. It
// returns the next catalog also with a refusal, because pins and losses hold then too; where programs of the model have
// read a table, nothing begins with a refusal.
func (p *Program) Start(was owntable.CatalogRow, f Found) (next owntable.CatalogRow, switched []Switch, err error) {
	next = was.Clone()
	if err := p.CheckTables(was, f); err != nil {
		return was, nil, err
	}
	for _, t := range slices.Sorted(maps.Keys(p.Needs)) {
		if err := p.derivesHere(t, f.Tables[t], f.DeriveIn); err != nil {
			return was, nil, err
		}
		pin, is := was.Tables[t], f.Tables[t]
		switch other := pin.Stream != "" && is.Stream != "" && pin.Stream != is.Stream; {
		case other && pin.Reader != "":
			switched = append(switched, Switch{Table: t, From: pin.Stream, To: is.Stream})
		case other: // the changes since the builds were announced, no program reads any more
			p.makeUnbuilt(&next, f.Now, func(d *model.Derivation, is owntable.Derived) bool {
				return d == nil && is.Generation > 1 || d != nil && slices.Contains(d.Reads, t) && (is.Generation > 1 || p.hasBuild(was, d.Name))
			})
		}
		next.Tables[t] = pinAfterStart(t, pin, is, f)
		if to, passed := f.Passed[t]; passed {
			reads := func(d *model.Derivation, _ owntable.Derived) bool { return d == nil || slices.Contains(d.Reads, t) }
			p.makeUnbuilt(&next, f.Now, reads)
			if pin.Reader != "" && slices.ContainsFunc(p.Derivations, func(d model.Derivation) bool { return d.History && slices.Contains(d.Reads, t) }) {
				switched = append(switched, Switch{Table: t, To: to.String(), Passed: true})
			}
		}
	}
	if f.Own != "" {
		if was.Own != "" && was.Own != f.Own { // its ledgers are older than the values of rows
			p.makeUnbuilt(&next, f.Now, allLack)
		}
		next.Own = f.Own
	}
	lost := next.Clone()
	p.enterDerivations(&next, f)
	if err := p.refuseDifferent(next, f.Now); err != nil {
		if was.WasRead() {
			withoutBegun(&next, lost)
		}
		return next, switched, err
	}
	return next, switched, nil
}

// withoutBegun takes back that derivations begin: those of a program that is refused would refuse the programs that run.
func withoutBegun(next *owntable.CatalogRow, was owntable.CatalogRow) {
	for name, is := range next.Derivations {
		switch before, there := was.Derivations[name]; {
		case !isLive(is) || isLive(before):
		case there:
			next.Derivations[name] = before
		default:
			delete(next.Derivations, name)
		}
	}
}

// allLack says that everything lacks changes.
func allLack(*model.Derivation, owntable.Derived) bool { return true }

// makeUnbuilt makes derivations unbuilt that rows tell and that lack changes, as the caller says, and ends the
// builds that count them and are not shown yet. d is nil for a derivation of another program.
func (p *Program) makeUnbuilt(next *owntable.CatalogRow, now time.Time, lacks func(d *model.Derivation, is owntable.Derived) bool) {
	lost := map[string]bool{} // names of builds; "" for one that this program does not know
	unbuilt := func(name string, is owntable.Derived) {
		next.Derivations[name] = owntable.Derived{Hash: is.Hash, Generation: max(is.Generation, 2), State: owntable.Unbuilt, Since: now}
	}
	for name, is := range next.Derivations {
		var d *model.Derivation
		if at := slices.IndexFunc(p.Derivations, func(d model.Derivation) bool { return d.Name == name }); at >= 0 {
			d = &p.Derivations[at]
		}
		history := d != nil && p.built[name] == ""
		if is.State == owntable.Unbuilt || is.State == owntable.Retired || isSearch(name) || history || !lacks(d, is) {
			continue
		}
		lost[p.built[name]] = true
		unbuilt(name, is)
	}
	for i := range next.Builds {
		b := &next.Builds[i]
		if b.State != owntable.BuildBuilding || !lost[b.Entity] && !lost[""] {
			continue
		}
		b.State, b.Since = owntable.BuildDropped, now
		for name, is := range next.Derivations {
			if is.State == owntable.Building && is.Generation == b.Generation {
				unbuilt(name, is)
			}
		}
	}
}

// derivesHere refuses a table that another region derives from: the stream of each replica has
// the writes of all, so two regions would write the same derived values over each other, each
// with versions of its own.
func (p *Program) derivesHere(t string, is store.Identity, in string) error {
	switch {
	case is.Strong:
		return newRefusal(ErrReplica, "table %s is a global table with multi-region strong consistency, which has neither transactions nor TTL; weir needs both: use a global table with eventual consistency (%s)", t, guide)
	case is.Replicas == "" || in != "" && in == is.Region:
		return nil
	case in == "":
		return newRefusal(ErrReplica, "table %s is replicated between %s and %s. One region derives, and the others receive what it derives with the rows; say which, the same in all of them: --derive-in %s, or WEIR_DERIVE_IN (%s)",
			t, is.Region, strings.ReplaceAll(is.Replicas, ",", ", "), is.Region, guide)
	}
	return newRefusal(ErrReplica, "table %s is derived in %s. This is %s, which receives what is derived there with the rows: run nothing that derives here (%s)", t, in, is.Region, guide)
}

// CheckTables refuses tables that are not those that are pinned, or lack a need: a stream, its images, a
// key. It is pure. The error says which table, the difference, and the command or the page that helps.
func (p *Program) CheckTables(row owntable.CatalogRow, f Found) error {
	if err := p.sharesTables(row, f.Tables); err != nil {
		return err
	}
	for _, t := range slices.Sorted(maps.Keys(p.Needs)) {
		pin, is := row.Tables[t], f.Tables[t]
		if err := p.checkTable(t, pin, is); err != nil {
			return err
		}
		if pin.ID != "" && is.ID != pin.ID && (pin.Reader != "" || p.builtFrom(row, t)) {
			return newRefusal(ErrTable, "table %s is another one than the table that weir derived from: its id is %s, and was %s. "+
				"It was dropped and made again, or restored under its name, or the names of tables (--tables) are others; ledgers in table %s belong to the rows of the old one. "+
				"Start over with an own table of its own, for which nothing is derived yet (another --stage), or drop table %s too; see %s",
				t, is.ID, pin.ID, owntable.TableName, owntable.TableName, guide)
		}
		searches := slices.ContainsFunc(p.searches, func(d model.Derivation) bool { return slices.Contains(d.Reads, t) })
		if f.Restarted[t] && (pin.Reader != "" || searches) {
			return newRefusal(ErrTable, "the stream of %s was switched off and on again (from %s to %s), and the new one may have sequence numbers below those of the old one, which table %s, search indexes and rows carry: changes would be taken for older ones, and left out. "+
				"Stop all programs that derive here, delete the event source mapping of the old stream and table %s, and begin again, with %s, then %s (%s, A stream that was switched off)",
				t, pin.Stream, is.Stream, owntable.TableName, owntable.TableName, p.Command("deploy tables"), p.Command("build"), operations)
		}
	}
	return nil
}

// sharesTables refuses a model file that has none of the tables from which the model of its name derives in this stage: it is
// another model, and would retire its derivations. A table is the same under the same name in the file, wherever
// --tables moves it, or if it is the same in the store.
func (p *Program) sharesTables(row owntable.CatalogRow, found map[string]store.Identity) error {
	derives := false
	for name, is := range row.Derivations {
		derives = derives || isLive(is) && !isSearch(name)
	}
	if !derives || len(p.reads) == 0 {
		return nil
	}
	for t, pin := range row.Tables {
		if _, ours := p.Needs[t]; ours {
			return nil
		}
		for _, is := range found {
			if sameTable(pin, pinOf(is)) {
				return nil
			}
		}
	}
	return newRefusal(ErrTable, "model %s derives from %s in this stage, and this file of the same name has %s instead. Give it a stage of its own (--stage), or another name; "+
		"or, if nothing is to derive from the former tables any more, build a file of this name first that derives nothing: projector build FILE (%s)",
		p.Model, strings.Join(slices.Sorted(maps.Keys(row.Tables)), ", "), strings.Join(slices.Sorted(maps.Keys(p.Needs)), ", "), guide)
}

// builtFrom reports whether something was built, or is being built, from the rows of a table.
func (p *Program) builtFrom(row owntable.CatalogRow, t string) bool {
	return slices.ContainsFunc(row.Builds.Counting(), func(b owntable.Build) bool {
		of := p.tallyIndexes(b.Entity) // none if another model builds it
		return len(of) == 0 || slices.ContainsFunc(of, func(i int) bool { return slices.Contains(p.Derivations[i].Reads, t) })
	})
}

// checkTable refuses a table that lacks a need.
func (p *Program) checkTable(t string, pin owntable.Pin, is store.Identity) error {
	need := p.Needs[t]
	switch {
	case is.ID == "":
		return newRefusal(ErrTable, "there is no table %s, or none that has the name which --tables gives it; %s makes it", t, p.Command("deploy tables"))
	case is.Stream == "" && pin.Reader == "":
		return newRefusal(ErrTable, "table %s has no stream; switch one on with %s: %s", t, need, p.switchOn(t, is))
	case is.Stream != "" && !is.Images.Has(need):
		return newRefusal(ErrImages, "the stream of %s has %s, and model %s needs %s: what a row was before is not in its records, so no change could be taken back. "+
			"Switch the stream off, and on again with %s; what is written in between is in no stream, so stop writing meanwhile", t, is.Images, p.Model, need, need)
	}
	return nil
}

// switchOn is the command that switches the stream of a table on.
func (p *Program) switchOn(t string, is store.Identity) string {
	name := t
	if at := strings.LastIndexByte(is.ARN, '/'); at >= 0 {
		name = is.ARN[at+1:]
	}
	return fmt.Sprintf("aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=true,StreamViewType=%s", name, p.Needs[t])
}

// StreamsOff says of each table whose stream is off what that means, and the commands that help. A change of such
// a table is in no stream, so values that are derived from it stay as they are.
func (p *Program) StreamsOff(tables map[string]store.Identity) map[string]error {
	off := map[string]error{}
	for t, is := range tables {
		if _, ours := p.Needs[t]; ours && is.ID != "" && is.Stream == "" {
			off[t] = newRefusal(ErrTable, "the stream of table %s is off: what is written to the table is in no stream, and nothing is derived from it. "+
				"Switch it on: %s; start a process, which reports the gap, and derive again what lacks the changes: %s (%s)",
				t, p.switchOn(t, is), p.Command("build", "--again"), guide)
		}
	}
	return off
}

// refuseUnread refuses a program that would follow nothing: programs of the model have read the streams of all
// tables that it derives from, and now these are off. While one is on, the program serves the derivations of that one.
func (p *Program) refuseUnread(row owntable.CatalogRow, f Found) error {
	off := p.StreamsOff(f.Tables)
	for _, t := range p.reads {
		if pin := row.Tables[t]; off[t] == nil || pin.Reader == "" || pin.ID != f.Tables[t].ID {
			return nil
		}
	}
	if len(p.reads) == 0 {
		return nil
	}
	return off[p.reads[0]]
}

// refuseUnreadable refuses to build derivations beside a stream that is off: changes after their rows are read
// would be missing from them.
func (p *Program) refuseUnreadable(names []string, tables map[string]store.Identity) error {
	off := p.StreamsOff(tables)
	for i := range p.Derivations {
		d := &p.Derivations[i]
		for _, t := range d.Reads {
			if slices.Contains(names, d.Name) && off[t] != nil {
				return newRefusal(ErrTable, "%s cannot be built: %v. To build only what is derived from other tables, name it", d.Name, off[t])
			}
		}
	}
	return nil
}

// pinAfterStart is a table's pin after a start. Until its stream was read, another table or stream
// takes its place, and it is found out again whether the stream is complete.
func pinAfterStart(t string, pin owntable.Pin, is store.Identity, f Found) owntable.Pin {
	switch {
	case pin.Reader != "" || pin.ID == is.ID && pin.Stream == is.Stream:
	case pin.ID == is.ID && !f.Restarted[t]:
		pin = owntable.Pin{First: pin.First}
	default:
		pin = owntable.Pin{}
	}
	pin.ID, pin.ARN, pin.Made = is.ID, is.ARN, is.Made
	if is.Stream != "" {
		if pin.Stream == "" && pin.First == "" {
			pin.First = is.Stream
		}
		pin.Stream, pin.Images = is.Stream, is.Images
	}
	if pin.Reader != "" {
		return pin
	}
	complete := pin.Complete
	switch _, passed := f.Passed[t]; {
	case passed:
		complete = ""
	case f.Assume:
		complete = owntable.CompleteAssumed
	case complete == owntable.CompleteAssumed:
	case is.Whole:
		complete = owntable.CompleteWhole
	case is.Together:
		complete = owntable.CompleteMade
	case complete == owntable.CompleteWhole:
		complete = ""
	}
	if complete != pin.Complete || pin.Since.IsZero() {
		pin.Complete, pin.Since = complete, f.Now
	}
	return pin
}

// isComplete reports whether the stream of a table has, or had when weir began to read it,
// every change since the table was made. A stream that is not read for longer than it
// keeps records may have lost some.
func isComplete(pin owntable.Pin, now time.Time) bool {
	switch pin.Complete {
	case owntable.CompleteMade:
		return pin.Reader != "" || pin.Made.IsZero() || now.Sub(pin.Made) < retention
	case owntable.CompleteWhole, owntable.CompleteAssumed:
		return true
	}
	return false
}

// enterDerivations enters the program's derivations where they can begin, and removes those that no values
// belong to: entries of other definitions before anything was read.
func (p *Program) enterDerivations(next *owntable.CatalogRow, f Found) {
	read := next.WasRead()
	ours := map[string]bool{}
	for _, d := range p.Derivations {
		ours[d.Name] = true
		is, there := next.Derivations[d.Name]
		isRead := slices.ContainsFunc(d.Reads, func(t string) bool { return next.Tables[t].Reader != "" })
		lacks := slices.ContainsFunc(d.Reads, func(t string) bool { return !isComplete(next.Tables[t], f.Now) })
		lapsed := there && is.Generation == 1 && !isRead && lacks && !d.History // it began, read nothing, and its stream has forgotten something
		if there && is.Hash == d.Hash && is.State != owntable.Unbuilt && is.State != owntable.Retired && !lapsed || p.hasBuild(*next, d.Name) {
			continue
		}
		live := owntable.Derived{Hash: d.Hash, Generation: max(is.Generation, 1), State: owntable.Live, Since: f.Now}
		isRead = isRead || read && there && is.State != owntable.Unbuilt && is.Hash != d.Hash // its definition of until now may have read other tables
		begins := !isRead && !lacks && is.Generation <= 1                                     // else rows show values that are gone
		switch {
		case !begins && there && (is.State == owntable.Retired || isRead && is.State != owntable.Unbuilt):
			continue // retired, or another definition: refused, and left as it is
		case !begins:
			live.State = owntable.Unbuilt
		}
		if there && live.State == is.State && live.Hash == is.Hash {
			continue
		}
		next.Derivations[d.Name] = live
	}
	maps.DeleteFunc(next.Derivations, func(name string, d owntable.Derived) bool {
		switch {
		case ours[name]:
			return false
		case d.State == owntable.Building:
			return false // by another model, which has to end its build
		case d.State != owntable.Retired && slices.ContainsFunc(next.Builds.Counting(), func(b owntable.Build) bool { return b.Generation == d.Generation }):
			return false // built by another model, from rows, although no stream was read
		case d.Generation > 1 && !read:
			return false // see above
		}
		return !read || d.State == owntable.Unbuilt || d.State == owntable.Retired && f.Now.Sub(d.Since) > retiredLife
	})
}

// retiredLife is how long the catalog remembers a derivation that is gone.
const retiredLife = 30 * 24 * time.Hour

// Unfinished returns the names of derivations that rows of the entities do not show yet, or show
// by another definition, or that read a table whose stream is off, sorted. One that reads the rows of such a derivation
// is one of them. So is a search that is named in the place of an entity, if its index is no longer updated or reads values of which one
// is not finished; whether an index is filled is asked elsewhere.
func (p *Program) Unfinished(row owntable.CatalogRow, tables map[string]store.Identity, of []string) (names []string) {
	off := p.StreamsOff(tables)
	lacks := p.partialDerivations(row, off)
	for _, d := range p.Derivations {
		if lacks[d.Name] && slices.Contains(of, d.Into) {
			names = append(names, d.Name)
		}
	}
	for _, d := range p.searches {
		lacking := readsOff(&d, off) || slices.ContainsFunc(d.After, func(name string) bool { return lacks[name] })
		if lacking && slices.Contains(of, d.Name) {
			names = append(names, d.Name)
		}
	}
	return names
}

// readsOff reports whether a derivation reads a table whose stream is off.
func readsOff(d *model.Derivation, off map[string]error) bool {
	return slices.ContainsFunc(d.Reads, func(t string) bool { return off[t] != nil })
}

// WaitFor returns, by derivation, the names of those that it reads and that are not complete, sorted.
func (p *Program) WaitFor(row owntable.CatalogRow) map[string][]string {
	out, lacks := map[string][]string{}, p.partialDerivations(row, nil)
	for _, d := range p.Derivations {
		if of := slices.DeleteFunc(slices.Clone(d.After), func(name string) bool { return !lacks[name] }); len(of) > 0 {
			out[d.Name] = of
		}
	}
	return out
}

// partialDerivations returns the derivations that are not complete by their definitions in the model, or read a table whose stream
// is off, and those that read the rows of these.
func (p *Program) partialDerivations(row owntable.CatalogRow, off map[string]error) map[string]bool {
	lacks := map[string]bool{}
	for _, d := range p.Derivations {
		is := row.Derivations[d.Name]
		live := is.State == owntable.Live || is.State == owntable.Verified
		if readsOff(&d, off) || !live || is.Hash != d.Hash {
			lacks[d.Name] = true
		}
	}
	for more := len(lacks) > 0; more; {
		more = false
		for _, d := range p.Derivations {
			if !lacks[d.Name] && slices.ContainsFunc(d.After, func(name string) bool { return lacks[name] }) {
				lacks[d.Name], more = true, true
			}
		}
	}
	return lacks
}

// Batch is the records that a program is about to apply.
type Batch struct {
	Reader Reader
	Tables []string
	Labels map[string]string // by table: the label of the stream that it came from, if that is known
}

// isLaterStream reports whether a batch came from a later stream of a table than the one that is pinned.
// Labels sort in the order in which streams were made.
func (b *Batch) isLaterStream(row owntable.CatalogRow) bool {
	for t, label := range b.Labels {
		if pin := row.Tables[t]; pin.Stream != "" && label > pin.Stream {
			return true
		}
	}
	return false
}

// refuseEarlier refuses a batch of a stream that was switched off before our own table knew the table: a build has its
// changes, and its sequence numbers may be above those of all later streams.
func (b *Batch) refuseEarlier(row owntable.CatalogRow) error {
	for _, t := range slices.Sorted(maps.Keys(b.Labels)) {
		pin, label := row.Tables[t], b.Labels[t]
		if !madeBefore(label, pin.First) {
			continue
		}
		return newRefusal(ErrTable, "these events are of an earlier stream of table %s (%s), which was switched off before table %s knew it; the first one that it knows is %s. What they say is in the rows, and their sequence numbers may be above those of later changes. "+
			"Delete the event source mapping of the earlier stream; the function needs one of the stream that is on (%s, A stream that was switched off)",
			t, label, owntable.TableName, pin.First, operations)
	}
	return nil
}

// madeBefore reports whether a stream was made before another one, by their labels. Those of DynamoDB are times
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TableDescription.html); others say nothing.
func madeBefore(label, other string) bool {
	const form = "2006-01-02T15:04:05.000"
	at, err := time.Parse(form, label)
	than, also := time.Parse(form, other)
	return err == nil && also == nil && at.Before(than)
}

// Admit decides whether a batch may be applied to rows, by the catalog as it was read after
// the batch was received. If next says something else, it must be written first: the reader
// begins.
func (p *Program) Admit(row owntable.CatalogRow, b Batch, now time.Time) (next owntable.CatalogRow, err error) {
	if err := p.refuseDifferent(row, now); err != nil {
		return row, err
	}
	if err := b.refuseEarlier(row); err != nil {
		return row, err
	}
	next = row
	for _, t := range b.Tables {
		pin, known := row.Tables[t]
		began := Reader(pin.Reader) == b.Reader || pin.Reader != "" && b.Reader == Process // a function may go on beside a process
		if _, ours := p.Needs[t]; !known || !ours || began {
			continue
		}
		pin.Reader, pin.Read = string(b.Reader), now
		next = next.Clone()
		next.Tables[t] = pin
	}
	return next, nil
}

// refuseDifferent refuses a catalog whose derivations are not exactly those of this program.
// Of several reasons one is given.
func (p *Program) refuseDifferent(row owntable.CatalogRow, now time.Time) error {
	ours := map[string]bool{}
	for i := range p.Derivations {
		d := &p.Derivations[i]
		ours[d.Name] = true
		if err := p.refuseEntry(row, d, now); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(row.Derivations)) {
		is := row.Derivations[name]
		if ours[name] || is.State == owntable.Unbuilt || is.State == owntable.Retired || isSearch(name) {
			continue
		}
		if is.State == owntable.Building {
			return newRefusal(ErrUnknown, "model %s: %s is being built since %s, and this program does not know it. If this program is older than the one that builds, replace it. "+
				"If the model no longer has %s: %s, which ends that (%s)", p.Model, name, formatTime(is.Since), name, p.Command("build"), guide)
		}
		return newRefusal(ErrUnknown, "model %s: %s is derived since %s, and this program does not know it. If this program is older than another that runs, replace it. "+
			"If the model no longer has %s: %s, which retires it (%s)", p.Model, name, formatTime(is.Since), name, p.Command("build"), guide)
	}
	return nil
}

// refuseEntry refuses a derivation of the program that the catalog has otherwise.
func (p *Program) refuseEntry(row owntable.CatalogRow, d *model.Derivation, now time.Time) error {
	is, there := row.Derivations[d.Name]
	switch {
	case !there || is.State == owntable.Unbuilt:
		return p.unbuiltReason(row, d, now)
	case is.State == owntable.Retired:
		return newRefusal(ErrDefinition, "model %s: %s is retired since %s, and this program derives it: replace the program by one whose model no longer has it%s",
			p.Model, d.Name, formatTime(is.Since), p.orBuild(d.Name, "; or, if the model has it again, %s derives it from the rows"))
	case is.Hash != d.Hash && is.State == owntable.Building:
		return newRefusal(ErrDefinition, "model %s: %s is being built by another definition since %s (%s; this program has %s). Go back to the model by which it is built; or end that build: %s (%s)",
			p.Model, d.Name, formatTime(is.Since), is.Hash, d.Hash, p.Command("build", "--abort"), guide)
	case is.Hash != d.Hash:
		return newRefusal(ErrDefinition, "model %s: the values of %s are of another definition, live since %s (%s; this program has %s). "+
			"Go back to the model that was running; or %s (%s)", p.Model, d.Name, formatTime(is.Since), is.Hash, d.Hash, p.deriveHint(row, d), guide)
	case is.Generation > 1 || is.State == owntable.Building:
		return p.ofBuild(row, d.Name, d.Reads, now)
	}
	return nil
}

// unbuiltReason says why a derivation is not built, and what to do.
// The error wraps ErrUnbuilt, and names the command that derives it. It asks for the most particular reason first.
func (p *Program) unbuiltReason(row owntable.CatalogRow, d *model.Derivation, now time.Time) error {
	if is := row.Derivations[d.Name]; is.Generation > 1 {
		return newRefusal(ErrUnbuilt, "model %s: %s is new, or not counted since %s: its build was ended, or ledgers in table %s lack changes, because that table was restored, another model that ran here alone has removed records of them, or a stream was switched off and on before it was read; %s (%s)",
			p.Model, d.Name, formatTime(is.Since), owntable.TableName, p.deriveHint(row, d), guide)
	}
	for _, t := range d.Reads {
		if pin := row.Tables[t]; pin.Reader != "" {
			return newRefusal(ErrUnbuilt, "model %s: %s is new, and the stream of %s is read since %s: the rows that are there would be missing from its values. "+
				"Leave it out of the model; or %s (%s)", p.Model, d.Name, t, formatTime(pin.Read), p.deriveHint(row, d), guide)
		}
	}
	if p.hasBuild(row, d.Name) {
		return newRefusal(ErrUnbuilt, "model %s: %s is new, and was not counted when the values of %s were built from the rows; %s (%s)", p.Model, d.Name, p.built[d.Name], p.deriveHint(row, d), guide)
	}
	for _, t := range d.Reads {
		pin := row.Tables[t]
		if isComplete(pin, now) {
			continue
		}
		why := "it is not known that its stream has every change since the table was made, as it has where one CreateTable call made the table and its stream"
		if pin.Complete == owntable.CompleteMade {
			why = fmt.Sprintf("it was made on %s and not read since, and a stream keeps its records for 24 hours", formatTime(pin.Made))
		} else if pin.ARN == "" {
			why = "it is not known by which model its rows were derived until now: another model has read its stream"
		}
		return newRefusal(ErrUnbuilt, "model %s: %s cannot begin on table %s: %s. Rows that are missing from the stream would be missing from its values. "+
			"If no row was written or deleted that the stream no longer has, start with --assume-complete; else %s (%s)", p.Model, d.Name, t, why, p.deriveHint(row, d), guide)
	}
	return newRefusal(ErrUnbuilt, "model %s: %s is not in the catalog: start the program again", p.Model, d.Name)
}

// deriveHint is how a derivation that cannot go on is derived from the rows.
func (p *Program) deriveHint(row owntable.CatalogRow, d *model.Derivation) string {
	if p.built[d.Name] != "" {
		return p.orBuild(d.Name, "%s derives it from the rows, while applications go on writing")
	}
	return fmt.Sprintf("%s begins it: it is history, which no row tells, and complete from then on; or %s", p.Command("build"), p.startOverHint(row, d))
}

// orBuild is a sentence about the command that builds a derivation, "" if it cannot be built.
func (p *Program) orBuild(name, format string) string {
	if p.built[name] == "" {
		return ""
	}
	return fmt.Sprintf(format, p.Command("build"))
}

// startOverHint is how to start over where a derivation cannot go on.
func (p *Program) startOverHint(row owntable.CatalogRow, d *model.Derivation) string {
	if slices.ContainsFunc(d.Reads, func(t string) bool { return row.Tables[t].ARN != "" }) {
		return "export the tables and replay the export into new ones (docs/guide/operations.md, A table that already has rows)"
	}
	return "replay the recordings into a new --data directory; rows that are in no recording cannot be taken along yet"
}

// Retire decides the next catalog when the model no longer has the derivations that this program lacks, and returns
// their names, sorted. With building, these are also the ones that another program is building.
func (p *Program) Retire(was owntable.CatalogRow, building bool, now time.Time) (next owntable.CatalogRow, retired []string) {
	next = was.Clone()
	for _, name := range slices.Sorted(maps.Keys(was.Derivations)) {
		is := was.Derivations[name]
		ours := slices.ContainsFunc(p.Derivations, func(d model.Derivation) bool { return d.Name == name })
		if ours || !isLive(is) || isSearch(name) || is.State == owntable.Building && !building {
			continue
		}
		is.State, is.Since = owntable.Retired, now
		next.Derivations[name], retired = is, append(retired, name)
	}
	p.dropRetired(&next, now)
	return next, retired
}

// dropRetired drops the builds of which all is retired and that the program cannot count: it
// would wait for a program that can.
func (p *Program) dropRetired(row *owntable.CatalogRow, now time.Time) {
	for i := range row.Builds {
		b := &row.Builds[i]
		counts := len(p.tallyIndexes(b.Entity)) > 0
		for _, is := range row.Derivations {
			counts = counts || is.Generation == b.Generation && is.State != owntable.Retired
		}
		if !counts && b.State != owntable.BuildDropped {
			b.State, b.Since = owntable.BuildDropped, now
		}
	}
}

// formatTime is a time as messages have it.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
