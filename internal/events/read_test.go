package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"weir/internal/failtest"
	"weir/internal/soaktest"
)

func gzipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	failtest.On(t, z.Close())
	return b.String()
}

func zstded(t testing.TB, s string) string {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	failtest.On(t, err)
	defer z.Close()
	return string(z.EncodeAll([]byte(s), nil))
}

func TestReadCompressed(t *testing.T) {
	content := strings.Join(streamRecords(100, 500), "\n")
	want := readAll(strings.NewReader(content))
	half := len(content) / 2
	for name, packed := range map[string]string{
		"gzip":               gzipped(t, content),
		"gzip, two members":  gzipped(t, content[:half]) + gzipped(t, content[half:]),
		"zstd":               zstded(t, content),
		"zstd, two frames":   zstded(t, content[:half]) + zstded(t, content[half:]),
		"zstd, skippable":    "\x5a\x2a\x4d\x18\x03\x00\x00\x00abc" + zstded(t, content),
		"gzip, empty":        gzipped(t, "") + gzipped(t, content),
		"plain in bytes":     content,
		"plain with an end":  content + "\n",
		"plain with windows": strings.ReplaceAll(content, "\n", "\n"),
	} {
		if diff := cmp.Diff(want, readAll(strings.NewReader(packed))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A compressed file that is cut anywhere gives a beginning of its records and
// then one bad entry which says so.
func TestReadCutOff(t *testing.T) {
	content := `{"Records":[` + strings.Join(streamRecords(100, 20), ",") + `]}`
	whole, _ := positions(t, []byte(content))
	for name, packed := range map[string]string{"plain": content, "gzip": gzipped(t, content), "zstd": zstded(t, content)} {
		for n := len(packed) - 1; n > 40; n -= 1 + n%7 {
			var good []string
			var bad []Entry
			err := Read(strings.NewReader(packed[:n]), "f", func(e Entry) error {
				if e.Bad != nil {
					bad = append(bad, e)
				} else {
					good = append(good, e.Record.Position.String())
				}
				return nil
			})
			if errors.Is(err, ErrNoRecords) && strings.Contains(err.Error(), "cut off") && len(good)+len(bad) == 0 {
				continue // cut before the first record
			}
			if err != nil {
				t.Fatalf("%s cut at %d: %v", name, n, err)
			}
			if len(good) > len(whole) || !slices.Equal(good, whole[:len(good)]) || len(bad) != 1 || !errors.Is(bad[0].Bad.Err, ErrTruncated) {
				t.Fatalf("%s cut at %d: %d good, bad: %v", name, n, len(good), bad)
			}
		}
	}
}

func TestReadDamaged(t *testing.T) {
	content := strings.Join(streamRecords(100, 5000), "\n")
	packed := []byte(gzipped(t, content))
	packed[len(packed)/2] ^= 0xff
	good, bad := positions(t, packed)
	if len(good) == 0 || bad == 0 {
		t.Errorf("%d good, %d bad", len(good), bad)
	}
	got := readAll(bytes.NewReader(packed))
	if !strings.Contains(got, "the gzip data is damaged") {
		t.Error(got[max(0, len(got)-300):])
	}
}

// The sizes in which a file happens to be read make no difference.
func TestReadInPieces(t *testing.T) {
	content := "\ufeff[\n" + strings.Join(streamRecords(1, 5), ",\n") + ",\n{\"eventID\":tru},\n" + streamRecord(7) + "]\n" +
		streamRecord(8) + "\n{broken\n" + pretty(t, `{"Records":[`+streamRecord(9)+`,`+streamRecord(10)+`],"NextShardIterator":"x"}`) +
		`{"Item":{"s":{"S":"é\ud83d\ude00\u00e9` + "\xff" + `旅"}}}` + "\n" + `[{"eventID":"x},` + streamRecord(11) + `,{"a":1}}` + streamRecord(12)[:99]
	want := readAll(strings.NewReader(content))
	for name, r := range map[string]io.Reader{
		"a byte":    iotest.OneByteReader(strings.NewReader(content)),
		"halves":    iotest.HalfReader(strings.NewReader(content)),
		"with EOF":  iotest.DataErrReader(strings.NewReader(content)),
		"gzip":      strings.NewReader(gzipped(t, content)),
		"by 7":      pieces{strings.NewReader(content), 7},
		"by 1000":   pieces{strings.NewReader(content), 1000},
		"with gaps": &gaps{r: iotest.HalfReader(strings.NewReader(content))},
	} {
		if diff := cmp.Diff(want, readAll(r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// pieces reads at most n bytes at a time.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// gaps reads nothing every other time.
type gaps struct {
	r    io.Reader
	turn bool
}

func (g *gaps) Read(b []byte) (int, error) {
	if g.turn = !g.turn; g.turn {
		return 0, nil
	}
	return g.r.Read(b)
}

// TestReadOtherForms: content that is compressed is told by what it is inside, and a document of another
// form that is too large for a record by how it begins.
func TestReadOtherForms(t *testing.T) {
	soaktest.Calm(t)
	large := `{"Items":[` + strings.Repeat(`{"PK":{"S":"a"}},`, maxUnit/16) + `{}]}`
	for want, content := range map[string]string{
		"it is Amazon Ion; export the table in the format DYNAMODB_JSON":                 gzipped(t, "$ion_1_0 {Item:{PK:\"a\"}}"),
		"it is Parquet; weir reads JSON":                                                 zstded(t, "PAR1 and more"),
		"the answer of a scan or a query, which has rows and no changes; make lines":     large,
		"jq -c '.. | objects | .PutRequest // empty'":                                    `{"t":[{"PutRequest":{"Item":{"PK":{"S":"a"}}}}]}`,
		"messages of a queue (SQS), whose bodies are texts; take the bodies out: jq -r ": `{"Messages":[{"MessageId":"m","Body":"{}"}]}`,
	} {
		err := Read(strings.NewReader(content), "f", func(Entry) error { return nil })
		if !errors.Is(err, ErrNoRecords) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	failure := errors.New("the disk is on fire")
	content := streamRecord(1) + "\n" + streamRecord(2) + "\n" + streamRecord(3)[:50]
	for name, c := range map[string]string{"plain": content, "gzip": gzipped(t, content)} {
		n := 0
		err := Read(io.MultiReader(strings.NewReader(c[:len(c)-12]), iotest.ErrReader(failure)), "f", func(e Entry) error {
			if e.Bad != nil {
				t.Errorf("%s: %v", name, e.Bad)
			}
			n++
			return nil
		})
		if !errors.Is(err, failure) {
			t.Errorf("%s: %v after %d records", name, err, n)
		}
	}
	stop := errors.New("enough")
	if err := Read(strings.NewReader(content), "f", func(Entry) error { return stop }); err != stop {
		t.Errorf("the consumer's error came back as %v", err)
	}
	if err := Read(iotest.ErrReader(failure), "f", nil); !errors.Is(err, failure) {
		t.Error(err)
	}
}

// A record larger than a chunk is read whole, and what follows it too.
func TestReadLargeRecord(t *testing.T) {
	large := strings.Replace(streamRecord(2), `"n":{"N":"2"}`, `"n":{"S":"`+strings.Repeat("long ", 1<<20)+`"}`, 1)
	content := "[" + streamRecord(1) + "," + large + "," + streamRecord(3) + "," + strings.Replace(large, "INSERT", "UPSERT", 1) + "," + streamRecord(4) + "]"
	var got []string
	err := Read(pieces{strings.NewReader(content), 32 << 10}, "f", func(e Entry) error {
		got = append(got, fmt.Sprint(e.Record.Position, " ", e.Record.New.Size()))
		if e.Bad != nil && (len(e.Bad.Raw) != maxRaw || e.Bad.Size != int64(len(large)) ||
			e.Bad.Error() != fmt.Sprintf(`eventName: "UPSERT"; expected INSERT, MODIFY or REMOVE (kept: the first 1048576 of %d bytes)`, len(large))) {
			t.Errorf("kept %d of %d: %v", len(e.Bad.Raw), e.Bad.Size, e.Bad)
		}
		return nil
	})
	want := []string{"100000000000000000001 7", "200000000000000000001 5242885", "300000000000000000001 7", "200000000000000000001 5242885", "400000000000000000001 7"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestReadTooLarge(t *testing.T) {
	soaktest.Calm(t)
	content := io.MultiReader(strings.NewReader(streamRecord(1)+"\n"+`{"eventID":"`), io.LimitReader(endless('x'), maxUnit*2), strings.NewReader("\"}\n"+streamRecord(2)))
	got := readAll(content)
	if !strings.Contains(got, "2@430 bad: larger than 32 MB, which no record is (kept: the first 1048576 of 67108879 bytes)\n") || !strings.Contains(got, "pos=2") {
		t.Error(got)
	}
}

// endless is a reader of one byte for ever.
type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

// One document of 200 MB takes no more memory than a small one.
func TestReadMemory(t *testing.T) {
	soaktest.Calm(t)
	for _, form := range []struct{ name, before, between, after string }{
		{"one event", `{"Records":[`, `,`, `]}`},
		{"one array, broken", `[{"eventID":"x},`, `,`, ``},
		{"garbage", `{"Records":[]} `, `garbage `, ``},
	} {
		t.Run(form.name, func(t *testing.T) {
			runtime.GC()
			r, w := io.Pipe()
			record := streamRecord(1)
			if form.name == "garbage" {
				record = strings.Repeat("garbage ", 200)
			}
			go func() {
				io.WriteString(w, form.before)
				block := strings.Repeat(record+form.between, 100)
				for written := 0; written < 200<<20; written += len(block) {
					io.WriteString(w, block)
				}
				io.WriteString(w, record+form.after)
				w.Close()
			}()
			n, highest := 0, uint64(0)
			err := Read(r, "f", func(e Entry) error {
				if n++; n%20_000 == 0 {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					highest = max(highest, m.HeapAlloc)
				}
				return nil
			})
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if highest = max(highest, m.HeapAlloc); err != nil || highest > 32<<20 {
				t.Errorf("%d entries, %d MB of heap, %v", n, highest>>20, err)
			}
			t.Logf("%d entries, at most %d MB of heap", n, highest>>20)
		})
	}
}

// Bad entries before the first known form are given when it comes; a file without
// any is an error and nothing else.
func TestReadUnknownFirst(t *testing.T) {
	got := readAll(strings.NewReader("starting\n{\"a\":1}\n" + streamRecord(1)))
	want := "1@0 bad: not JSON: expected a document that begins with { or [, found 's'\n2@9 bad: an object with \"a\", not a record\n3@17 " + streamWant(1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, content := range []string{
		strings.Repeat("{\"a\":1}\n", maxHeld) + streamRecord(1),
		"{\"a\":\"" + strings.Repeat("x", maxHeldSize) + "\"}\n" + streamRecord(1),
		"a,b\n1,2\n",
	} {
		n := 0
		err := Read(strings.NewReader(content), "f", func(Entry) error { n++; return nil })
		if !errors.Is(err, ErrNoRecords) || n > 0 {
			t.Errorf("%d entries, %v", n, err)
		}
	}
}
