// Package status says how far everything is that a model derives: its tables and who reads
// them, its derivations, builds and search indexes, for people and for programs.
//
// It reads the catalog, the positions of readers, the rows of builds and of each shard one record at
// the most, and the first 10,000 rows of an application's table at the most; so a status costs the same however large
// the tables are and however far readers are behind. Reading takes several requests and is not atomic: a build that ends
// meanwhile may show in one part and not in another. A time left is absent where nothing says how fast the work is. The names of the
// fields are a contract: projector status -o json prints them, and the API serves them.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/budget"
	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/deploy"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/system"
)

// Status is the state of a model. Its names are those of the JSON that projector status and GET
// /v1/MODEL/status answer; scripts rely on them. Times are UTC.
type Status struct {
	Model string `json:"model"`
	// Tables has the tables of the model, and those that only the catalog still knows, by name.
	Tables []Table `json:"tables"`
	// Derivations has those of the model first, in its order.
	Derivations []Derivation `json:"derivations"`
	// Builds has the builds that are not settled: one that runs, waits for its audit, or still has
	// marks.
	Builds  []Build `json:"builds,omitempty"`
	Search  []Index `json:"search,omitempty"`
	Refused string  `json:"refused,omitempty"` // why the program would be
	// Missing has the targets for which rows count and that do not exist, among the first rows of each table. That is
	// normal while parents come later.
	Missing []projections.Missing `json:"missingTargets,omitempty"`
	// Expired is how many dead letters lack the rows that they are about, because TTL has deleted these. Of letters beyond
	// the first 1,000 it is not known.
	Expired int `json:"expiredLetters,omitempty"`
	// LagAt is when the lags were found out, zero if they were not.
	LagAt time.Time `json:"lagAt"`
	// Process is the use of the server that answers; nil if it counts nothing, as on the embedded store.
	Process *Process `json:"process,omitempty"`
}

// Table is the state of one table of the model. Of a table that no program has read yet only
// its name is given.
type Table struct {
	// Table is the name in the model; ARN has the name in the store.
	Table string `json:"table"`
	// ID is DynamoDB's TableId: another one under the same name is another table, and refused.
	ID  string `json:"id,omitempty"`
	ARN string `json:"arn,omitempty"`
	// Stream is pinned like ID. Images says which images its records have.
	Stream string `json:"stream,omitempty"`
	Images string `json:"images,omitempty"`
	// Complete says why the stream is known to have every row's first change, or is empty if it
	// is not: made, whole or assumed. Since goes with it.
	Complete string     `json:"complete,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	// Reader is who reads the stream, since ReadSince; empty before the first batch.
	Reader    string `json:"reader,omitempty"`
	reader    catalog.Reader
	ReadSince *time.Time `json:"readSince,omitempty"`
	// Off says that the stream is off, so that nothing is derived from the table, and the remedy. It is empty
	// while the stream is on.
	Off string `json:"off,omitempty"`
	// Lag says how far each group is behind the stream; empty before a program of the model has begun.
	Lag *reader.Lag `json:"lag,omitempty"`
}

// Derivation is the state of one derivation: as the model declares it, as the catalog has it,
// or both. A caller tells them apart by Hash and Model: two hashes mean that the values are of
// an earlier definition and wait for a build.
type Derivation struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"` // "" if the model does not have it
	// State is new before any program with this model has begun, and then the catalog's.
	State string `json:"state"`
	// Generation rises with each build; the first is 1.
	Generation int64      `json:"generation,omitempty"`
	Hash       string     `json:"hash,omitempty"`  // of the present values
	Model      string     `json:"model,omitempty"` // of the model, where it is another
	Since      *time.Time `json:"since,omitempty"`
	// Shares names the part that it has in common with others, so that they are built together.
	Shares []string `json:"shares,omitempty"`
	// WaitsFor names the derivations that it reads and that are not complete: until they are, its own
	// values are of both definitions.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// Unsent is how many notifications of a feed wait as dead letters, until its lists are built.
	// Letters beyond the first 10,000 are not counted.
	Unsent int `json:"unsent,omitempty"`
	// Off names the tables that decide its values and whose streams are off: the values stay as they are.
	Off []string `json:"off,omitempty"`
	// Lag is the greatest lag of the tables that decide its values, in seconds; nil if it is not known, or if
	// no program applies changes for it.
	Lag *float64 `json:"lagSeconds,omitempty"`
}

// Build is a build that is not verified, or that goes over or has gone over from marks to
// positions.
type Build struct {
	Entity     string              `json:"entity"`
	Generation int64               `json:"generation"`
	State      owntable.BuildState `json:"state"`
	Since      time.Time           `json:"since"`
	// Audit is when the second pass may begin, of a build that is live.
	Audit     *time.Time `json:"auditFrom,omitempty"`
	Rows      int64      `json:"rows,omitempty"`        // read in this state
	Of        int64      `json:"of,omitempty"`          // approximately
	PerSecond float64    `json:"perSecond,omitempty"`   // rows
	Left      float64    `json:"secondsLeft,omitempty"` // approximately
	Unfit     int64      `json:"unfit,omitempty"`       // rows that a derivation of it cannot use
	// Paused is since when no program works on it, of a build that could go on.
	Paused   *time.Time `json:"pausedSince,omitempty"`
	HandOver *time.Time `json:"handOverAt,omitempty"`    // later records count by position
	Waits    int        `json:"handOverWaits,omitempty"` // shards that may have earlier ones
	// Positions is since when all records count by position.
	Positions *time.Time `json:"positionsSince,omitempty"`
	Unmarked  *time.Time `json:"unmarkedSince,omitempty"` // since when there are no marks
	// Used is the use of the build until now, in all its states, and Expected that at the end of
	// this one, approximately; nil if that is not known.
	Used     *Cost `json:"used,omitempty"`
	Expected *Cost `json:"expected,omitempty"`
	now      time.Time
}

// Cost is units of DynamoDB by its documented rules, and their price on demand in us-east-1. On the embedded
// store, it is the cost of the same.
type Cost struct {
	WriteUnits int64   `json:"writeUnits"`
	ReadUnits  int64   `json:"readUnits"`
	Dollars    float64 `json:"dollars"`
}

// Process is the use of a process since it started, of all its models.
type Process struct {
	Since  time.Time `json:"since"`
	Tables []Spent   `json:"tables"`
}

// Spent is a process's use of a table for a purpose, as the metrics name them.
type Spent struct {
	Table      string  `json:"table"`
	Purpose    string  `json:"purpose"`
	WriteUnits float64 `json:"writeUnits"`
	ReadUnits  float64 `json:"readUnits"`
	Dollars    float64 `json:"dollars"`
}

// ProcessOf is the use of a process since it started; nil for nothing.
func ProcessOf(since time.Time, uses []budget.Use) *Process {
	p := &Process{Since: since.UTC()}
	for _, u := range uses {
		for _, purpose := range slices.Sorted(maps.Keys(u.By)) {
			is := u.By[purpose]
			p.Tables = append(p.Tables, Spent{u.Table, string(purpose), is.Write, is.Read, deploy.Price(is.Write, is.Read)})
		}
	}
	if len(p.Tables) == 0 {
		return nil
	}
	return p
}

// costOf is the cost of work, nil for nothing.
func costOf(p build.Progress) *Cost {
	if p.Units == 0 && p.ReadUnits() == 0 {
		return nil
	}
	return &Cost{p.Units, p.ReadUnits(), p.Price()}
}

// text is a cost for people.
func (c *Cost) text() string {
	return fmt.Sprintf("%d write units and %d read units, $%.4f on demand", c.WriteUnits, c.ReadUnits, c.Dollars)
}

// Index is a search index, of the model's definitions or of others.
type Index struct {
	Name string `json:"name"`
	// State is new, building, left (by a program that stopped filling it), live, or retired (readers keep another one).
	State string `json:"state"`
	// Generation names the set of definitions that the index was made for.
	Generation string `json:"generation,omitempty"`
	Hash       string `json:"hash,omitempty"`
	Model      string `json:"model,omitempty"` // of the model, where it is another
	Kind       string `json:"kind,omitempty"`
	// Place is where the index is: an index of the cluster, or a directory. Kind is which of
	// both.
	Place string     `json:"place,omitempty"`
	Rows  int64      `json:"rows,omitempty"` // read until now, while it is building
	Since *time.Time `json:"since,omitempty"`
	// Pending is how many documents of the model the cluster did not take in time; 1,000 stands for more too.
	Pending int `json:"pending,omitempty"`
	// Lag is that of a Derivation; it is not known while documents are pending.
	Lag *float64 `json:"lagSeconds,omitempty"`
}

// Of reads the status of one of a system's models, with its lags. It writes nothing, takes no lease and needs no program that
// runs. That this program would be refused is no error: the status has the reason.
func Of(ctx context.Context, s *system.System, part *system.Part) (Status, error) {
	st, err := readKnown(ctx, s, part)
	if err != nil {
		return Status{}, err
	}
	if st.Refused == "" { // else a table may be missing
		if st.Missing, err = s.MissingTargets(ctx, part); err != nil {
			return Status{}, err
		}
	}
	is, err := lagsOf(ctx, part, &st)
	return st.with(is, part.Model), err
}

// readKnown reads the own table's knowledge, without the lags.
func readKnown(ctx context.Context, s *system.System, part *system.Part) (Status, error) {
	of := part.Runner.Catalog
	row, refused, err := of.ReadAndCheck(ctx)
	if err != nil {
		return Status{}, err
	}
	tables, err := of.Tables(ctx)
	if err != nil {
		return Status{}, err
	}
	st := statusOf(of.Program(), row, tables)
	if st.Builds, err = builtOf(ctx, part); err != nil {
		return Status{}, err
	}
	if st.Search, err = searchOf(ctx, s, part); err != nil {
		return Status{}, err
	}
	if err := st.countLetters(ctx, part.Runner); err != nil {
		return Status{}, err
	}
	if refused != nil {
		st.Refused = part.Model.Typed(refused.Error())
	}
	return st, nil
}

// countLetters counts the letters that have expired, and the notifications that feeds could not send while their lists were built.
func (s *Status) countLetters(ctx context.Context, r *runner.Runner) error {
	feeds := map[string]*Derivation{}
	for i := range s.Derivations {
		if d := &s.Derivations[i]; d.Kind == "feed" {
			feeds[d.Name] = d
		}
	}
	enough, left := errors.New("enough"), 1_000
	if len(feeds) > 0 {
		left = 10_000
	}
	err := r.EachDeadLetter(ctx, func(d deadletter.Letter) error {
		rule, _, _ := strings.Cut(d.Target, "<")
		if feed := feeds[rule]; feed != nil && d.Kind == deadletter.Notification && d.Row.Table == "" {
			feed.Unsent++
		}
		if d.Expired {
			s.Expired++
		}
		if left--; left == 0 {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// statusOf describes the tables and derivations of a program by the catalog's row. It lists
// those of the program first, in the order of the model, and then those that only the catalog
// knows: the derivations of an earlier or a newer model.
func statusOf(prog *catalog.Program, row owntable.CatalogRow, found map[string]store.Identity) Status {
	off, waits := prog.StreamsOff(found), prog.WaitFor(row)
	st := Status{Model: prog.Model, Tables: []Table{}, Derivations: []Derivation{}}
	tables := maps.Clone(row.Tables)
	for t := range prog.Needs {
		if _, ok := tables[t]; !ok {
			tables[t] = owntable.Pin{}
		}
	}
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		pin := tables[t]
		st.Tables = append(st.Tables, Table{
			Table: t, ID: pin.ID, ARN: pin.ARN, Stream: pin.Stream, Images: string(pin.Images), Complete: string(pin.Complete),
			Since: unlessZero(pin.Since), Reader: catalog.Reader(pin.Reader).Name(), reader: catalog.Reader(pin.Reader), ReadSince: unlessZero(pin.Read),
		})
		if off[t] != nil {
			st.Tables[len(st.Tables)-1].Off = off[t].Error()
		}
	}
	ours := map[string]bool{}
	for i := range prog.Derivations {
		d := &prog.Derivations[i]
		ours[d.Name] = true
		out := Derivation{Name: d.Name, Kind: d.Kind, Shares: d.Shares, State: "new", Model: d.Hash}
		if is, ok := row.Derivations[d.Name]; ok {
			out.State, out.Generation, out.Hash, out.Since = string(is.State), is.Generation, is.Hash, unlessZero(is.Since)
			if is.Hash == d.Hash {
				out.Model = ""
			}
			out.WaitsFor = waits[d.Name]
		}
		out.Off = seq.Where(d.Reads, func(t string) bool { return off[t] != nil })
		st.Derivations = append(st.Derivations, out)
	}
	for _, name := range slices.Sorted(maps.Keys(row.Derivations)) {
		if is := row.Derivations[name]; !ours[name] {
			st.Derivations = append(st.Derivations, Derivation{
				Name: name, State: string(is.State), Generation: is.Generation, Hash: is.Hash, Since: unlessZero(is.Since),
			})
		}
	}
	return st
}

// builtOf describes the builds that are not settled: one that runs, one that waits for its
// audit, and a verified one whose marks are still there. It reads the rows of the builds, but
// no source rows.
func builtOf(ctx context.Context, part *system.Part) (out []Build, err error) {
	b := part.Builder()
	all, err := b.States(ctx)
	now := b.Runner.Now()
	for i := range all {
		is := &all[i]
		if h := is.HandOver; is.State == owntable.BuildVerified {
			if is.Marks {
				out = append(out, Build{
					Entity: is.Entity, Generation: is.Generation, State: is.State, Since: is.Since, Waits: is.Waits, now: now,
					Used: costOf(is.Used), HandOver: unlessZero(h.At), Positions: unlessZero(h.Passed), Unmarked: unlessZero(h.Over),
				})
			}
			continue
		}
		one := Build{Entity: is.Entity, Generation: is.Generation, State: is.State, Since: is.Since, Rows: is.Rows, Of: is.Of, Unfit: is.Unfit, Left: is.TimeLeft().Seconds(), Paused: unlessZero(is.PausedSince(now)), Used: costOf(is.Used)}
		if p, ok := is.Expected(); ok && is.State != owntable.BuildLive {
			one.Expected = costOf(p)
		}
		if is.State != owntable.BuildLive {
			one.PerSecond = is.Pace
		}
		if is.State == owntable.BuildLive {
			at := is.Announced.Add(catalog.AuditAfter)
			one.Audit = &at
		}
		out = append(out, one)
	}
	return out, err
}

// sayCounts says how a verified build counts.
func (b Build) sayCounts() string {
	switch {
	case b.Unmarked != nil:
		return "counts by positions since " + stamped(b.Positions)
	case b.Positions != nil:
		return "counts by positions since " + stamped(b.Positions) + "; its marks are removed from " + stamped(new(b.Positions.Add(build.InUse)))
	case b.HandOver == nil:
		return "counts by marks; it goes over to positions when processes read its streams"
	case b.now.Before(*b.HandOver):
		return "counts by marks until " + stamped(b.HandOver)
	}
	waits := "1 shard has"
	if b.Waits != 1 {
		waits = fmt.Sprint(b.Waits, " shards have")
	}
	return fmt.Sprintf("goes over from marks to positions since %s; %s applied no later record yet", stamped(b.HandOver), waits)
}

// text is the line of a build in the output of projector status.
func (b Build) text() string {
	out := b.sayProgress()
	if b.Used != nil {
		out += "; used " + b.Used.text()
	}
	if b.Expected != nil {
		out += ", of about " + b.Expected.text()
	}
	return out
}

// sayProgress says how far a build is.
func (b Build) sayProgress() string {
	if b.State == owntable.BuildVerified {
		return fmt.Sprintf("build of %s: verified, generation %d, %s", b.Entity, b.Generation, b.sayCounts())
	}
	out := fmt.Sprintf("build of %s: %s since %s, generation %d", b.Entity, b.State, stamped(&b.Since), b.Generation)
	if b.Unfit > 0 {
		out += fmt.Sprintf(", without %d rows that it cannot use: projector verify MODEL names them", b.Unfit)
	}
	if b.Audit != nil {
		return out + ", not yet audited: projector build MODEL audits it from " + stamped(b.Audit)
	}
	out += fmt.Sprintf(", %d rows read, %.0f/s", b.Rows, b.PerSecond)
	if b.Paused != nil {
		return out + fmt.Sprintf(", paused: no program works on it since %s", stamped(b.Paused))
	}
	if b.Left > 0 {
		out += fmt.Sprintf(", of about %d, about %s left", b.Of, (time.Duration(b.Left) * time.Second).Round(time.Second))
	}
	return out
}

// searchOf describes every index that exists, of this model's definition or another, and then
// the searches of the model that have none yet.
func searchOf(ctx context.Context, s *system.System, part *system.Part) (all []Index, err error) {
	gs, err := s.SearchGenerations(ctx, part)
	hashes, there := map[string]string{}, map[string]bool{}
	for _, d := range part.Model.Derivations() {
		if _, is := model.SearchOf(d.Name); is {
			hashes[d.Name] = d.Hash
		}
	}
	for _, g := range gs {
		state := map[bool]string{true: string(owntable.Building), false: "left"}[g.Filling]
		switch {
		case g.Filled && g.Kept:
			state = string(owntable.Live)
		case g.Filled:
			state = string(owntable.Retired)
		}
		for _, ix := range g.Indexes {
			is := Index{
				Name: ix.Name, State: state, Generation: g.Generation, Hash: ix.Hash, Kind: g.Kind, Place: ix.Place, Rows: g.Rows,
				Since: unlessZero(g.Since),
			}
			if there[ix.Name] = there[ix.Name] || g.Ours; !g.Ours {
				is.Model = hashes[ix.Name]
			}
			all = append(all, is)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		if !there[name] {
			all = append(all, Index{Name: name, State: "new", Model: hashes[name]})
		}
	}
	return all, err
}

// unlessZero is nil for the zero time, so that JSON leaves it out.
func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Write prints the status for people: tables, derivations, builds and indexes, one a line.
// Scripts read the JSON, which has the same facts.
func (st *Status) Write(to io.Writer) {
	for _, t := range st.Tables {
		if t.ID == "" {
			fmt.Fprintf(to, "table %s: not begun\n", t.Table)
			continue
		}
		fmt.Fprintf(to, "table %s: %s", t.Table, t.ID)
		switch t.Complete {
		case string(owntable.CompleteMade):
			fmt.Fprintf(to, ", made with its stream %s", stamped(t.Since))
		case string(owntable.CompleteWhole):
			fmt.Fprintf(to, ", read from its first change on")
		case string(owntable.CompleteAssumed):
			fmt.Fprintf(to, ", assumed complete %s", stamped(t.Since))
		default:
			fmt.Fprint(to, ", not known to be complete")
		}
		fmt.Fprintf(to, ", stream %s %s", t.Stream, t.Images)
		if t.Reader != "" {
			fmt.Fprintf(to, ", read by %s since %s", t.reader, stamped(t.ReadSince))
		}
		if t.Off != "" {
			fmt.Fprint(to, "; it stands still, its stream is off")
		}
		fmt.Fprintln(to)
		if t.Lag != nil {
			fmt.Fprintln(to, lagLine(t.Lag))
		}
	}
	for _, d := range st.Derivations {
		fmt.Fprintf(to, "%s: %s", d.Name, d.State)
		if d.Since != nil {
			fmt.Fprintf(to, " since %s, generation %d, definition %s", stamped(d.Since), d.Generation, d.Hash)
		}
		switch {
		case d.Kind == "" && d.State != string(owntable.Retired):
			fmt.Fprint(to, "; the model does not have it")
		case d.Model != "" && d.Hash != "":
			fmt.Fprintf(to, "; the model has definition %s", d.Model)
		case len(d.WaitsFor) > 0:
			fmt.Fprintf(to, "; not complete before %s", strings.Join(d.WaitsFor, ", "))
		}
		if d.Unsent > 0 {
			fmt.Fprintf(to, "; %d notifications were not sent while its lists were built (projector dead list MODEL)", d.Unsent)
		}
		if len(d.Off) > 0 {
			fmt.Fprintf(to, "; it stands still, the stream of %s is off", strings.Join(d.Off, ", "))
		} else if d.applied() && !st.LagAt.IsZero() {
			fmt.Fprint(to, endLine(d.Lag))
		}
		fmt.Fprintln(to)
	}
	for _, m := range st.Missing {
		fmt.Fprintln(to, m.String()+", among the first rows of each table")
	}
	for _, b := range st.Builds {
		fmt.Fprintln(to, b.text())
	}
	if st.Expired > 0 {
		fmt.Fprintf(to, "the rows of %d dead letters have expired, which no retry applies (projector dead list MODEL)\n", st.Expired)
	}
	for _, x := range st.Search {
		fmt.Fprint(to, x.text())
		switch {
		case x.Pending > 0:
			fmt.Fprintf(to, "; %d documents or more are pending, which the cluster did not take; they are written when it does", x.Pending)
		case x.ours() && !st.LagAt.IsZero():
			fmt.Fprint(to, endLine(x.Lag))
		}
		fmt.Fprintln(to)
	}
}

// text is the line of an index in the output of projector status.
func (x Index) text() string {
	out := fmt.Sprintf("%s: %s", x.Name, x.State)
	if x.Generation == "" {
		return out
	}
	switch {
	case x.Since != nil:
		out += " since " + stamped(x.Since)
	case x.State == string(owntable.Building):
		out += fmt.Sprintf(", %d rows read", x.Rows)
	}
	out += fmt.Sprintf(", generation %s, definition %s, %s %s", x.Generation, x.Hash, x.Kind, x.Place)
	if x.Model != "" && x.Model != x.Hash {
		out += "; the model has definition " + x.Model
	}
	return out
}

// stamped is a time for people, in UTC to the second.
func stamped(t *time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }
