package live

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

func row(n int) value.Item {
	return value.NewItem(value.Attr{Name: "PK", Value: value.OfString(fmt.Sprint(n))}, value.Attr{Name: "v", Value: value.OfInt(int64(n))})
}

// records are those with the positions from first to last.
func records(first, last int) (out []events.Record) {
	for n := first; n <= last; n++ {
		out = append(out, events.Record{
			Table: "t", Keys: row(n)[:1], New: row(n), Position: events.PositionOf(uint64(n)), Time: time.Unix(int64(n), 5).UTC(), ID: fmt.Sprint("id", n),
		})
	}
	return out
}

func at(n int) events.Position { return events.PositionOf(uint64(n)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, dir string, applied int) *spool {
	t.Helper()
	s, err := openSpool(machine{}, dir, 0, at(applied), quiet)
	must(t, err)
	t.Cleanup(s.close)
	return s
}

// all reads a spool to its end in pages.
func all(t *testing.T, s *spool, after, limit int) (out []events.Record, end bool) {
	t.Helper()
	p := at(after)
	for {
		page, err := s.read("t", p, limit)
		must(t, err)
		out = append(out, page.Records...)
		if len(page.Records) == 0 || page.End {
			return out, page.End
		}
		if len(page.Records) > limit {
			t.Fatalf("%d records, the limit is %d", len(page.Records), limit)
		}
		p = page.Records[len(page.Records)-1].Position
	}
}

func same(t *testing.T, got, want []events.Record) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(value.EqualItems), cmp.Comparer(func(a, b events.Position) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestFramesKeepRecordsWhole(t *testing.T) {
	rs := records(1, 3)
	rs[1].Old, rs[1].New, rs[1].Expired, rs[1].Origin = row(9), nil, true, at(77)
	rs[2].Old, rs[2].Time, rs[2].ID = row(8), time.Time{}, ""
	s := opened(t, t.TempDir(), 0)
	must(t, s.append(rs))
	got, _ := all(t, s, 0, 2)
	same(t, got, rs)
}

func TestSpoolGoesOnWhereItWas(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 0; n < 5000; {
		m := min(5000, n+1+rng.IntN(300))
		must(t, s.append(records(n+1, m)))
		n = m
	}
	for _, after := range []int{0, 1, 2499, 4999, 5000} {
		got, end := all(t, s, after, 700)
		same(t, got, records(after+1, 5000))
		if end {
			t.Error("an end")
		}
	}
	must(t, s.end())
	s.close()
	s = opened(t, dir, 2500)
	got, end := all(t, s, 2500, 1000)
	same(t, got, records(2501, 5000))
	if !end {
		t.Error("no end")
	}
	if last, ended := s.position(); last != at(5000) || !ended {
		t.Errorf("at %v, %v", last, ended)
	}
}

// TestSpoolThrowsAwayWhatDoesNotFollow says that a spool with a gap before it, or
// behind which another process has come, is begun anew.
func TestSpoolThrowsAwayWhatDoesNotFollow(t *testing.T) {
	for _, applied := range []int{5, 31} {
		dir := filepath.Join(t.TempDir(), "s")
		s := opened(t, dir, 10)
		must(t, s.append(records(11, 30)))
		s.close()
		s = opened(t, dir, applied)
		if last, _ := s.position(); last != at(applied) {
			t.Errorf("applied %d: the spool is at %v", applied, last)
		}
		must(t, s.append(records(applied+1, applied+2)))
		got, _ := all(t, s, applied, 10)
		same(t, got, records(applied+1, applied+2))
	}
}

func TestSpoolCutsOffWhatIsTorn(t *testing.T) {
	whole := opened(t, t.TempDir(), 0)
	must(t, whole.append(records(1, 20)))
	must(t, whole.end())
	path := whole.segments[0].path
	content, err := os.ReadFile(path)
	must(t, err)
	for name, damage := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)-7] },
		"zeros":   func(b []byte) []byte { clear(b[len(b)-300:]); return b },
		"flipped": func(b []byte) []byte { b[len(b)-40] ^= 1; return b },
	} {
		dir := filepath.Join(t.TempDir(), "s")
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), damage(append([]byte{}, content...)), 0o644))
		must(t, os.WriteFile(filepath.Join(dir, endFile), []byte("20"), 0o644))
		s := opened(t, dir, 3)
		last, ended := s.position()
		n := int(last.Uint64())
		if n < 15 || n >= 20 || ended {
			t.Fatalf("%s: the spool is at %d, ended %v", name, n, ended)
		}
		must(t, s.append(records(n+1, 40)))
		got, _ := all(t, s, 3, 1000)
		same(t, got, records(4, 40))
	}
}

// TestSpoolIsOnDiskWhenOpened: of what a process that died had written, and not synced,
// the next one believes nothing that it has not synced itself.
func TestSpoolIsOnDiskWhenOpened(t *testing.T) {
	disk := &counting{Disk: machine{}, synced: map[string]int{}}
	dir := filepath.Join(t.TempDir(), "s")
	s, err := openSpool(disk, dir, 1, events.PositionOf(1), quiet)
	must(t, err)
	for n := 2; n < 5; n++ { // a segment each
		must(t, s.append(records(n, n)))
	}
	must(t, s.end())
	s.close()
	clear(disk.synced)
	s, err = openSpool(disk, dir, 1, events.PositionOf(2), quiet)
	must(t, err)
	defer s.close()
	if last := filepath.Base(s.path(events.PositionOf(3))); disk.synced[last] == 0 || disk.synced[endFile] == 0 {
		t.Errorf("synced when it was opened: %v, neither %s nor %s may be missing", disk.synced, last, endFile)
	}
}

// counting counts how often each file is synced.
type counting struct {
	Disk
	synced map[string]int
}

func (d *counting) Create(path string) (File, error) {
	f, err := d.Disk.Create(path)
	return countingFile{f, d, filepath.Base(path)}, err
}

func (d *counting) Open(path string) (File, error) {
	f, err := d.Disk.Open(path)
	return countingFile{f, d, filepath.Base(path)}, err
}

type countingFile struct {
	File
	of   *counting
	name string
}

func (f countingFile) Sync() error {
	f.of.synced[f.name]++
	return f.File.Sync()
}

func TestSpoolTrims(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 0)
	for n := 0; n < 30; n += 10 {
		must(t, s.append(records(n+1, n+10)))
		s.segments[len(s.segments)-1].size += segmentBytes // as if it were full
		_, err := s.current()
		must(t, err)
		s.segments[len(s.segments)-2].size -= segmentBytes
	}
	must(t, s.append(records(31, 35)))
	must(t, s.trim(at(20)))
	if files, _ := filepath.Glob(filepath.Join(dir, "*"+suffix)); len(files) != 2 {
		t.Errorf("%d segments are left", len(files))
	}
	got, _ := all(t, s, 20, 1000)
	same(t, got, records(21, 35))
	if _, err := s.read("t", at(5), 10); !errors.Is(err, store.ErrTrimmed) {
		t.Errorf("reading what is gone: %v", err)
	}
	s.close()
	s = opened(t, dir, 25)
	got, _ = all(t, s, 25, 1000)
	same(t, got, records(26, 35))
}

// tails is a disk that has what was cut off back after a power cut, unless the file
// was synced since.
type tails struct {
	machine
	cut map[string][]byte
}

type tailFile struct {
	File
	path string
	on   *tails
}

func (d *tails) Open(path string) (File, error) {
	f, err := d.machine.Open(path)
	return tailFile{f, path, d}, err
}

func (f tailFile) Truncate(size int64) error {
	b, err := os.ReadFile(f.path)
	f.on.cut[f.path] = b
	return errors.Join(err, f.File.Truncate(size))
}

func (f tailFile) Sync() error {
	delete(f.on.cut, f.path)
	return f.File.Sync()
}

// TestSpoolCutStaysCut: a torn tail that was cut off does not come back with the next
// power cut. It would hide the durable segments that go on from there.
func TestSpoolCutStaysCut(t *testing.T) {
	disk, dir := &tails{cut: map[string][]byte{}}, filepath.Join(t.TempDir(), "t", "s")
	open := func() *spool {
		s, err := openSpool(disk, dir, 1, at(0), quiet) // each page has a segment of its own
		must(t, err)
		t.Cleanup(s.close)
		return s
	}
	s := open()
	must(t, s.append(records(1, 2)))
	torn := s.segments[0].path
	s.close()
	b, err := os.ReadFile(torn)
	must(t, err)
	must(t, os.WriteFile(torn, b[:len(b)-1], 0o644))

	s = open()
	must(t, s.append(records(2, 2)))
	must(t, s.append(records(3, 3)))
	s.close()
	for path, b := range disk.cut {
		must(t, os.WriteFile(path, b, 0o644))
	}
	got, _ := all(t, open(), 0, 10)
	same(t, got, records(1, 3))
}

// TestSpooled: the files of a shard are read without its spool, in any range, as far as they go
// on from each other.
func TestSpooled(t *testing.T) {
	dir := t.TempDir()
	s, err := openSpool(machine{}, dir, 300, at(10), quiet)
	must(t, err)
	for n := 11; n <= 40; n += 3 {
		must(t, s.append(records(n, n+2)))
	}
	files, err := machine{}.List(dir)
	must(t, err)
	if len(files) < 5 {
		t.Fatalf("only %d segments", len(files))
	}
	check := func(after, to, first, last int, whole bool) {
		t.Helper()
		got, all, err := spooled(machine{}, dir, "t", at(after), at(to))
		must(t, err)
		if same(t, got, records(first, last)); all != whole {
			t.Errorf("behind %d up to %d: all is %v", after, to, all)
		}
	}
	for after := 10; after <= 40; after++ {
		for to := after + 1; to <= 45; to++ {
			check(after, to, after+1, min(to, 40), to <= 40)
		}
	}
	check(5, 20, 11, 10, false) // the files begin later
	s.close()
	check(15, 30, 16, 30, true)

	cut := filepath.Join(dir, files[3]) // a segment is torn: nothing behind it is taken
	info, err := os.Stat(cut)
	must(t, err)
	must(t, os.Truncate(cut, info.Size()-3))
	got, all, err := spooled(machine{}, dir, "t", at(10), at(40))
	must(t, err)
	if all || len(got) == 0 || len(got) >= 30 {
		t.Errorf("%d records behind a torn segment, all is %v", len(got), all)
	}
	same(t, got, records(11, 10+len(got)))
	if _, all, err := spooled(machine{}, filepath.Join(dir, "none"), "t", at(1), at(2)); all || err != nil {
		t.Error("there is no such spool", err)
	}
}
