package system_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// TestRecut delivers every recorded stream as batches that come again, cut
// otherwise and overlapping, over several files in several forms; and in parts, a
// beginning before the whole. The rows, index entries, documents and answers are
// those of the recording as it is.
func TestRecut(t *testing.T) {
	for _, dir := range systemtest.Recordings(t) {
		name := systemtest.Name(dir)
		if testing.Short() && name != "wardrobe" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := model.Load(systemtest.Model(dir))
			if err != nil {
				t.Fatal(err)
			}
			checks := systemtest.Read(t, dir).Checks
			whole := systemtest.Files(t, dir)
			straight := openSystem(t, t.TempDir(), m)
			replayInto(t, straight, whole)
			want := dump(t, straight)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			c := cutter{t: t, entries: entriesOf(t, whole), r: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), table: m.Tables[0].Name}
			s := openSystem(t, t.TempDir(), m)
			for _, path := range c.recut() {
				replayInto(t, s, []string{path})
			}
			checkAll(t, s, checks)
			verifyNothing(t, s)
			same(t, want, dump(t, s))
			for range 3 { // parts of it again, and the whole
				from := c.r.IntN(len(c.entries))
				replayInto(t, s, []string{c.file(0, [][2]int{{from, from + c.r.IntN(len(c.entries)-from) + 1}})})
			}
			replayInto(t, s, whole)
			same(t, want, dump(t, s))
		})
	}
}

// TestBeginningFirst replays the first part of each recording, then all of it, and
// then all of it again.
func TestBeginningFirst(t *testing.T) {
	for _, dir := range systemtest.Recordings(t) {
		name := systemtest.Name(dir)
		if testing.Short() && name != "watchlists" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := model.Load(systemtest.Model(dir))
			if err != nil {
				t.Fatal(err)
			}
			want := systemtest.Read(t, dir)
			whole := systemtest.Files(t, dir)
			entries := entriesOf(t, whole)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			c := cutter{t: t, entries: entries, r: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), table: m.Tables[0].Name}
			s := openSystem(t, t.TempDir(), m)
			n := c.r.IntN(len(entries)-1) + 1
			first := replayInto(t, s, []string{c.file(0, [][2]int{{0, n}})})
			if first.Records() != n || first.Dead != 0 {
				t.Errorf("%d records replayed, want %d: %+v", first.Applied, n, first)
			}
			if rest := replayInto(t, s, whole); rest.Records() != len(entries) || rest.Skipped < n || rest.Dead != 0 || rest.Gaps != 0 {
				t.Errorf("after %d of %d records: %+v", n, len(entries), rest)
			}
			checkAll(t, s, want.Checks)
			if again := replayInto(t, s, whole); again.Applied != 0 || again.Dead != 0 || again.Gaps != 0 {
				t.Errorf("the second replay did something: %+v", again)
			}
			checkAll(t, s, want.Checks)
			verifyNothing(t, s)
		})
	}
}

func entriesOf(t testing.TB, paths []string) (all []events.Entry) {
	t.Helper()
	in, err := events.Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range in.Batches(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch {
			if e.Bad != nil {
				t.Fatal(e.Bad)
			}
		}
		all = append(all, batch...)
	}
	return all
}

// cutter writes records into files as a stream would deliver them that repeats
// itself: each batch begins at or before where the one before it ended.
type cutter struct {
	t       testing.TB
	entries []events.Entry
	r       *rand.Rand
	dir     string
	table   string // of records that name none
	files   int
}

func (c *cutter) recut() (paths []string) {
	var batches [][2]int
	for end := 0; end < len(c.entries); {
		from := end
		if c.r.IntN(3) == 0 {
			from = max(0, end-c.r.IntN(300))
		}
		to := min(len(c.entries), from+1+c.r.IntN(1+c.r.IntN(500)))
		batches = append(batches, [2]int{from, to})
		end = max(end, to)
	}
	for len(batches) > 0 {
		n := min(len(batches), 1+c.r.IntN(20))
		paths = append(paths, c.file(c.r.IntN(4), batches[:n]))
		batches = batches[n:]
	}
	return paths
}

// file writes batches in one of the forms: Lambda events a line each, GetRecords
// pages of the CLI, records a line each, one event over several lines.
func (c *cutter) file(form int, batches [][2]int) string {
	var text []byte
	for _, b := range batches {
		var records [][]byte
		for i := b[0]; i < b[1]; i++ {
			records = append(records, c.record(&c.entries[i].Record))
		}
		switch form {
		case 0, 3:
			text = append(text, `{"Records":[`...)
			text = append(join(text, records, map[int]string{0: ",", 3: ",\n "}[form]), "]}\n"...)
		case 1:
			text = append(text, `{"Records":[`...)
			text = append(join(text, records, ",\n"), `],"NextShardIterator":"x"}`+"\n"...)
		case 2:
			text = append(join(text, records, "\n"), '\n')
		}
	}
	c.files++
	pack := c.r.IntN(3)
	path := filepath.Join(c.dir, fmt.Sprintf("part-%04d%s", c.files, []string{".json", ".json.gz", ".json.zst"}[pack]))
	f, err := os.Create(path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	w := io.WriteCloser(f)
	switch pack {
	case 1:
		w = gzip.NewWriter(f)
	case 2:
		if w, err = zstd.NewWriter(f); err != nil {
			c.t.Fatal(err)
		}
	}
	if _, err := w.Write(text); err != nil {
		c.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func join(text []byte, records [][]byte, with string) []byte {
	for i, r := range records {
		if i > 0 {
			text = append(text, with...)
		}
		text = append(text, r...)
	}
	return text
}

// record is a record as a Lambda event has it.
func (c *cutter) record(r *events.Record) []byte {
	b := fmt.Appendf(nil, `{"eventName":%q,"eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/%s/stream/2026-01-01T00:00:00.000",`,
		r.Event(), cmp.Or(r.Table, c.table))
	if r.Expired {
		b = append(b, `"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},`...)
	}
	b = fmt.Appendf(b, `"dynamodb":{"ApproximateCreationDateTime":%d,"SequenceNumber":%q,"StreamViewType":"NEW_AND_OLD_IMAGES","Keys":`, r.Time.Unix(), r.Position)
	b = value.AppendTypedItem(b, r.Keys)
	for name, image := range map[string]value.Item{"OldImage": r.Old, "NewImage": r.New} {
		if image != nil {
			b = value.AppendTypedItem(append(b, `,"`+name+`":`...), image)
		}
	}
	return append(b, "}}"...)
}
