package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/api"
	"weir/internal/ingest"
	"weir/internal/query"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
	"weir/internal/web"
	"weir/internal/writeapi"
)

// ingest measures writes. It measures how long it takes until the data derived from a write is
// visible, with the write API, the follower and the queries in this process. It also measures
// how many rows per second the write side writes, compared with the store alone, which gets
// the same rows ready-made.
func (b *bench) ingest() error {
	if err := b.visible(); err != nil {
		return err
	}
	return b.writes()
}

// served is a system that accepts writes, derives and answers queries, at an address.
type served struct {
	*running
	*watch
	base   string
	timing *atomic.Pointer[load] // is told how long handlers take, nil for nothing
	stop   func() error
}

// serve serves an empty gallery.
func (b *bench) serve() (*served, error) {
	r, err := b.open("gallery", system.Options{})
	if err != nil {
		return nil, err
	}
	return b.serveIt(r)
}

// serveIt serves a system, and removes it at the end.
func (b *bench) serveIt(r *running) (*served, error) {
	log := slog.New(slog.DiscardHandler)
	queries, err := api.New([]*query.Engine{r.part.Query}, api.Options{Log: log})
	if err != nil {
		return nil, err
	}
	w := &watch{Store: r.rows(), seen: map[string]time.Time{}}
	r.part.Runner.Store = w
	writes, err := writeapi.New([]writeapi.Target{{Model: r.part.Model, Writer: &ingest.Writer{Model: r.part.Model, Store: w}}}, writeapi.Options{Log: log})
	if err != nil {
		return nil, err
	}
	timing, handler := new(atomic.Pointer[load]), writes.Beside(queries)
	server, err := web.Listen("127.0.0.1:0", web.Bounds{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		handler.ServeHTTP(w, r)
		if l := timing.Load(); l != nil {
			l.handled(time.Since(began))
		}
	}), log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	errs := make(chan error, 2)
	go func() { errs <- server.Run(ctx) }()
	go func() {
		f := runner.Follower{Runner: r.part.Runner, Prompt: true}
		errs <- f.CatchUp(context.WithoutCancel(ctx), ctx.Done())
	}()
	stop := func() error {
		cancel()
		return errors.Join(<-errs, <-errs, r.remove())
	}
	return &served{r, w, "http://" + server.Addr().String(), timing, stop}, nil
}

// ask sends a request and returns the body of the answer. It is an error if the answer does
// not have the given status.
func (s *served) ask(method, path, body string, status int) ([]byte, error) {
	req, err := http.NewRequest(method, s.base+path, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != status {
		err = fmt.Errorf("%s %s: %s %s", method, path, res.Status, answer)
	}
	return answer, err
}

const (
	visibleGoal = 5 * time.Millisecond
	ofAlbums    = 20
	at          = `"2026-01-31T12:00:00Z"`
)

// visible measures the time from just before an HTTP request puts a picture into an album
// until an HTTP query returns the album with its new count.
func (b *bench) visible() error {
	s, err := b.serve()
	if err != nil {
		return err
	}
	for a := range ofAlbums {
		if _, err := s.ask("POST", "/v1/gallery/Album", fmt.Sprintf(`{"id":"a%d","title":"An album","createdAt":%s}`, a, at), 201); err != nil {
			return errors.Join(err, s.stop())
		}
	}
	n := pick(b, 500, 4000)
	var written, shown []time.Duration
	took := map[string][]time.Duration{}
	for i := range n + 100 { // the first warm it up
		s.reset()
		start := time.Now()
		if _, err := s.ask("POST", "/v1/gallery/AlbumMedia", fmt.Sprintf(`{"albumId":"a%d","mediaId":"m%d","addedAt":%s}`, i%ofAlbums, i, at), 201); err != nil {
			return errors.Join(err, s.stop())
		}
		answered := time.Since(start)
		if err := s.await(i%ofAlbums, 1+i/ofAlbums); err != nil {
			return errors.Join(err, s.stop())
		}
		if i >= 100 {
			written, shown = append(written, answered), append(shown, time.Since(start))
			s.until(start, took)
		}
	}
	for _, what := range []string{committed, read, published, synced} {
		b.say("%s after p50 %v, p99 %v", what, percentile(took[what], 50), percentile(took[what], 99))
	}
	p50, p99 := percentile(shown, 50), percentile(shown, 99)
	b.say("%d writes: answered p50 %v, p99 %v; shown p50 %v, p99 %v", n, percentile(written, 50), percentile(written, 99), p50, p99)
	b.table.add(line{what: "a write by HTTP until it is answered, p50 and p99", figure: ms(percentile(written, 50)) + ", " + ms(percentile(written, 99))})
	b.table.add(line{what: "a write by HTTP until its count shows, p50", figure: ms(p50)})
	b.table.add(line{what: "a write by HTTP until its count shows, p99", figure: ms(p99), goal: "≤ " + ms(visibleGoal), met: p99 <= visibleGoal})
	return s.stop()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

func percentile(ds []time.Duration, p int) time.Duration {
	ds = slices.Sorted(slices.Values(ds))
	return ds[min(len(ds)-1, len(ds)*p/100)]
}

// await queries until an album has a count.
func (s *served) await(album, count int) error {
	for deadline := time.Now().Add(10 * time.Second); ; {
		body, err := s.ask("GET", fmt.Sprintf("/v1/gallery/album?albumId=a%d", album), "", 200)
		if err != nil {
			return err
		}
		var page struct{ Items []struct{ MediaCount int } }
		if err := json.Unmarshal(body, &page); err != nil {
			return err
		}
		if len(page.Items) == 1 && page.Items[0].MediaCount == count {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("album a%d has no %d pictures within 10 s: %s", album, count, body)
		}
	}
}

const atOnce = 256

// writes measures rows per second in batches: by the write side, which checks each command,
// makes its row and writes it on condition that it does not exist; and by the store, which
// gets the rows that the write side made.
func (b *bench) writes() error {
	n := pick(b, 20_000, 100_000)
	kept := filepath.Join(b.dir, "rows")
	var ours, bare, https []cost
	for round := range pick(b, 3, 5) {
		r, err := b.open("gallery", system.Options{NoSearch: true})
		if err != nil {
			return err
		}
		w := &ingest.Writer{Model: r.part.Model, Store: r.Store, Brief: true}
		c, err := b.writeCommands(w, n)
		if err == nil {
			err = keepRows(b.ctx, r.Store, kept)
		}
		if err = errors.Join(err, r.remove()); err != nil {
			return err
		}
		ours = append(ours, c)
		if r, err = b.open("gallery", system.Options{NoSearch: true}); err != nil {
			return err
		}
		c, err = putRows(b.ctx, r.Store, kept)
		if err = errors.Join(err, r.remove()); err != nil {
			return err
		}
		bare = append(bare, c)
		if round == 0 {
			if c, err = b.writeHTTP(n); err != nil {
				return err
			}
			https = append(https, c)
		}
	}
	text := func(cs []cost) string { return fmt.Sprintf("%.0f, %.1f cpu µs each", rate(n, cs), cpuEach(n, cs)) }
	b.say("%d rows: %s, bare %s", n, text(ours), text(bare))
	b.table.atLeast(0.5, "%", line{
		what:   fmt.Sprintf("rows a second by the write side, %d at once, beside the bare store", atOnce),
		figure: text(ours), peer: text(bare),
	}, rate(n, ours), rate(n, bare))
	b.table.add(line{what: fmt.Sprintf("rows a second by HTTP, %d in a batch, followed at the same time", atOnce), figure: fmt.Sprintf("%.0f", rate(n, https))})
	return nil
}

// command returns the command that puts the nth picture into an album.
func command(n int) string {
	return fmt.Sprintf(`{"op":"create","entity":"AlbumMedia","item":{"albumId":"album-%06d","mediaId":"media-%08d","addedAt":%s,"addedBy":"user-%05d"}}`, n/50, n, at, n%977)
}

// writeCommands executes n commands. The time to generate them is not measured.
func (b *bench) writeCommands(w *ingest.Writer, n int) (total cost, err error) {
	runtime.GC()
	var cs []ingest.Command
	for from := 0; from < n; from += atOnce {
		var lines [][]byte
		for i := from; i < min(n, from+atOnce); i++ {
			lines = append(lines, []byte(command(i)))
		}
		err := total.add(func() error {
			cs = cs[:0]
			for _, line := range lines {
				c, err := ingest.ReadCommand(line)
				if err != nil {
					return err
				}
				cs = append(cs, c)
			}
			for _, res := range w.Do(b.ctx, cs) {
				if res.Err != nil || res.Done != ingest.Created {
					return fmt.Errorf("%s: %w", res.Done, res.Err)
				}
			}
			return nil
		})
		if err != nil {
			return total, err
		}
	}
	return total, total.add(func() error { return w.Sync(b.ctx) })
}

// keepRows writes all rows to a file. In memory they would be work for the garbage collector
// on one side only.
func keepRows(ctx context.Context, s store.Store, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	for q := (store.Query{Table: "gallery"}); ; {
		page, err := s.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			text := value.AppendItem(nil, row)
			out.Write(binary.AppendUvarint(nil, uint64(len(text))))
			out.Write(text)
		}
		if q.After = page.Next; page.Next == nil {
			return out.Flush()
		}
	}
}

// putRows writes the rows of a file. The time to read them is not measured.
func putRows(ctx context.Context, s store.Store, path string) (total cost, err error) {
	file, err := os.Open(path)
	if err != nil {
		return total, err
	}
	defer file.Close()
	in := bufio.NewReader(file)
	runtime.GC()
	for {
		ws, err := nextRows(in)
		if err != nil {
			return total, err
		}
		if len(ws) == 0 {
			return total, total.add(func() error { return s.Sync(ctx) })
		}
		err = total.add(func() error {
			out, err := s.Write(ctx, ws)
			for _, o := range out {
				err = errors.Join(err, o.Err)
			}
			return err
		})
		if err != nil {
			return total, err
		}
	}
}

// nextRows returns the writes of the next rows of a file, none at its end.
func nextRows(in *bufio.Reader) (ws []store.Write, err error) {
	for len(ws) < atOnce {
		size, err := binary.ReadUvarint(in)
		if err == io.EOF {
			return ws, nil
		}
		text := make([]byte, size)
		if err == nil {
			_, err = io.ReadFull(in, text)
		}
		if err != nil {
			return nil, err
		}
		row, _, err := value.DecodeItem(text)
		if err != nil {
			return nil, err
		}
		ws = append(ws, store.Write{Ref: store.Ref{Table: "gallery", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}, Put: row})
	}
	return ws, nil
}

// writeHTTP sends batches from several clients concurrently.
func (b *bench) writeHTTP(n int) (cost, error) {
	const clients = 4
	s, err := b.serve()
	if err != nil {
		return cost{}, err
	}
	c, err := measured(func() error {
		errs := make([]error, clients)
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				for from := client * atOnce; from < n && errs[client] == nil; from += clients * atOnce {
					var body bytes.Buffer
					for i := from; i < min(n, from+atOnce); i++ {
						fmt.Fprintln(&body, command(i))
					}
					errs[client] = s.sendBatch(&body)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	return c, errors.Join(err, s.stop())
}

func (s *served) sendBatch(body io.Reader) error {
	res, err := http.Post(s.base+"/v1/gallery/batch", "application/jsonl", body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct{ Results []struct{ Status int } }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return err
	}
	for _, one := range answer.Results {
		if one.Status != 201 {
			return fmt.Errorf("a command was answered by %d", one.Status)
		}
	}
	return nil
}
