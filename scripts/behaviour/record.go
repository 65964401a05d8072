package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/reader"
	"weir/internal/replay"
	"weir/internal/search"
	"weir/internal/sim"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// clock is the time of every recording. It is later than all times in the streams.
var clock = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func recordAll(ctx context.Context, dir, streams string, seeds int) error {
	for _, name := range model.Builtin() {
		m, err := model.Load(name)
		if err != nil {
			return err
		}
		for seed := 1; seed <= seeds && ctx.Err() == nil; seed++ {
			if err := recordTrace(m, uint64(seed), filepath.Join(dir, "traces", fmt.Sprintf("%s-%02d", name, seed))); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %d traces\n", name, seeds)
		if err := recordDerived(ctx, m, filepath.Join(streams, name), dir); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return ctx.Err()
}

// writeFile creates a file and lets put write it.
func writeFile(path string, put func(w io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err = put(w); err == nil {
		err = w.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

func recordTrace(m *model.Model, seed uint64, path string) error {
	return writeFile(path, func(w io.Writer) error {
		out := sim.Run(m, seed, sim.Options{Faults: sim.Kinds, Trace: func(line string) { fmt.Fprintln(w, line) }})
		_, err := fmt.Fprintf(w, "%d records, %d acts, counted %v, failures %v\n", out.Records, out.Acts, out.Counted, out.Failures)
		return err
	})
}

// recordDerived replays a model's recorded streams into an empty store and writes everything that
// the store then holds.
func recordDerived(ctx context.Context, m *model.Model, streams, dir string) error {
	files, err := filepath.Glob(filepath.Join(streams, "*"))
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasPrefix(filepath.Base(f), "expected.") })
	temp, err := os.MkdirTemp("", "behaviour")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	s, err := system.Open(ctx, temp, []*model.Model{m}, system.Options{Now: func() time.Time { return clock }})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := replayAll(ctx, s, files); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, "rows", m.Name), func(w io.Writer) error { return writeRows(ctx, w, s) }); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, "own", m.Name), func(w io.Writer) error {
		ids, err := tableIdentities(ctx, s)
		if err != nil {
			return err
		}
		return writeTable(ctx, w, s.Store, store.Query{Table: owntable.TableName}, "", ids)
	}); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "documents", m.Name), func(w io.Writer) error { return writeDocuments(ctx, w, s) })
}

func writeRows(ctx context.Context, w io.Writer, s *system.System) error {
	for _, t := range s.Models[0].Model.Tables {
		if err := writeTable(ctx, w, s.Store, store.Query{Table: t.Name}, t.Name+" ", nil); err != nil {
			return err
		}
		for _, ix := range t.Indexes {
			if err := writeTable(ctx, w, s.Store, store.Query{Table: t.Name, Index: ix.Name}, t.Name+" "+ix.Name+" ", nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// secret is the partition of the row whose value is random in each new store.
const secret = "secret"

// tableIdentities returns the ids of the model's tables, which are random in each new store and
// which our own table holds.
func tableIdentities(ctx context.Context, s *system.System) (ids []string, err error) {
	for _, t := range s.Models[0].Model.Tables {
		is, err := s.Store.Identity(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, is.ID)
	}
	return ids, nil
}

// writeTable writes the rows that a query returns, except the secret. In place of each of random
// it writes where in random it stands.
func writeTable(ctx context.Context, w io.Writer, db store.Store, q store.Query, prefix string, random []string) error {
	var lines []string
	for row, err := range store.EachRow(ctx, db, q) {
		if err != nil {
			return err
		}
		if q.Table == owntable.TableName && row.Get(owntable.Partition).Text() == secret {
			continue
		}
		line := string(value.AppendTypedItem(nil, row))
		for i, id := range random {
			line = strings.ReplaceAll(line, id, fmt.Sprintf("(random %d)", i))
		}
		lines = append(lines, prefix+line)
	}
	slices.Sort(lines)
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return err
		}
	}
	return nil
}

// writeDocuments writes for each row of a searched entity whether the index holds exactly
// the document that must come of it, and each id that the index answers with.
func writeDocuments(ctx context.Context, w io.Writer, s *system.System) error {
	m := s.Models[0].Model
	for _, sr := range m.Searches {
		if err := writeIndexed(ctx, w, s, sr); err != nil {
			return err
		}
		q := search.Query{Index: document.IndexName(m, sr), Limit: 1000}
		for {
			found, err := s.Index.Search(ctx, q)
			if err != nil {
				return err
			}
			for _, h := range found {
				fmt.Fprintf(w, "%s found %q\n", sr.Name, h.ID)
				q.After = h.After
			}
			if len(found) < q.Limit {
				break
			}
		}
	}
	return nil
}

func writeIndexed(ctx context.Context, w io.Writer, s *system.System, sr *model.Search) error {
	m, t := s.Models[0].Model, sr.Of.Table
	q := store.Query{Table: t.Name}
	for {
		page, err := s.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		var docs []search.Document
		for _, row := range page.Rows {
			if key, ok := t.KeyOf(row); ok {
				if d, ok := document.DocumentOf(m, sr, t.Classify(row), key, row); ok {
					docs = append(docs, d)
				}
			}
		}
		holds, err := s.Index.Holds(ctx, docs)
		if err != nil {
			return err
		}
		for i, d := range docs {
			fmt.Fprintf(w, "%s held %v %q %q", sr.Name, holds[i], d.ID, d.Text)
			for _, name := range slices.Sorted(maps.Keys(d.Values)) {
				fmt.Fprintf(w, " %s=%s", name, value.AppendTyped(nil, d.Values[name]))
			}
			fmt.Fprintln(w)
		}
		if q.After = page.Next; q.After == nil {
			return nil
		}
	}
}

// replayAll reads the recorded files and follows until all is derived.
func replayAll(ctx context.Context, s *system.System, files []string) error {
	part := s.Models[0]
	r := &replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner}
	in, err := events.Open(files...)
	if err != nil {
		return err
	}
	for batch, err := range in.Batches(ctx) {
		if err != nil {
			return err
		}
		if err := r.Batch(ctx, batch, ""); err != nil {
			return err
		}
	}
	done := make(chan struct{})
	close(done)
	if err := (&reader.Follower{Runner: part.Runner}).CatchUp(ctx, done); err != nil {
		return err
	}
	return s.Show(ctx)
}
