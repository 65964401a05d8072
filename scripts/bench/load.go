package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/system"
)

const (
	askedEach   = time.Second / 1000 // between two queries
	writtenEach = time.Second / 500  // between two writes
	keyedGoal   = 10 * time.Millisecond
	searchGoal  = 50 * time.Millisecond
)

// benchLoad measures how long queries and searches take while the application writes: 1,000
// queries a second, a fifth of them searches, beside 500 writes a second, all by HTTP. Each
// begins when it is due, however late the ones before it are, and its time counts from then.
//
// Clients and server share this process and its processors. Requests that the server turns
// away because it is busy are counted apart.
func (b *bench) benchLoad() error {
	w := newWorld(1)
	documents := shortOrFull(b, 50_000, 1_000_000)
	made := 0
	rec, err := b.recordingAt(b.dir+"/load.jsonl", "gallery", func(p []byte) []byte {
		made++
		if made > documents { // likes, pictures in albums, edits
			return w.appendNext(p)
		}
		if made%20 == 1 {
			return w.newAlbum(p)
		}
		return w.appendUpload(p)
	}, documents+documents/5)
	if err != nil {
		return err
	}
	r, err := b.openSystem("gallery", system.Options{})
	if err != nil {
		return err
	}
	b.printProgress("replaying %d records, %d documents and more", rec.records, documents)
	if err := r.replayRecording(b.ctx, rec); err != nil {
		return errors.Join(err, r.removeSystem())
	}
	s, err := b.serveIt(r)
	if err != nil {
		return err
	}
	t := http.DefaultTransport.(*http.Transport)
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = 100, 100
	l := &load{served: s, took: map[string][]time.Duration{}, albums: w.albums, media: w.media, likes: w.likes}
	during := shortOrFull(b, 5*time.Second, 30*time.Second)
	idle := &load{took: map[string][]time.Duration{}, albums: w.albums, media: w.media, likes: w.likes}
	alone := &load{served: s, took: map[string][]time.Duration{}}
	b.printProgress("writes alone")
	err = alone.measureCounts(1, time.Now().Add(2*during))
	if err == nil {
		err = idle.measureNothing(during)
	}
	if err == nil {
		b.printProgress("the same requests to the system")
		err = l.runLoad(during)
	}
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	for _, of := range []struct {
		name string
		load *load
	}{{"a handler that does nothing", idle}, {"the system", l}} {
		for _, what := range []string{aStart, aHandler, anAnswer} {
			if d := of.load.took[what]; len(d) > 0 {
				b.table.add(line{what: of.name + ", " + what + ": p50, p99", figure: milliseconds(percentile(d, 50)) + ", " + milliseconds(percentile(d, 99))})
			}
		}
		b.table.add(line{what: of.name + ", processors used, and waited for", figure: fmt.Sprintf("%.2f, %.2f", of.load.used, of.load.waited)})
	}
	for _, q := range kindsOfQuery {
		d, goal := l.took[q.name], keyedGoal
		if q.search {
			goal = searchGoal
		}
		p99 := percentile(d, 99)
		b.table.add(line{what: fmt.Sprintf("%s, 1,000 queries and 500 writes a second, %d documents: p50, p99", q.name, documents),
			figure: milliseconds(percentile(d, 50)) + ", " + milliseconds(p99), goal: "≤ " + milliseconds(goal), met: p99 <= goal})
	}
	n := l.refused.Load()
	b.table.add(line{what: "requests turned away", figure: fmt.Sprint(n), goal: "0", met: n == 0})
	written, shown, single := l.took[aWrite], l.took[aCount], alone.took[aCount]
	b.table.add(line{what: fmt.Sprintf("a write until its count shows, 20 a second and nothing else, %d documents: p50, p99", documents),
		figure: milliseconds(percentile(single, 50)) + ", " + milliseconds(percentile(single, 99)), goal: "≤ " + milliseconds(visibleGoal), met: percentile(single, 99) <= visibleGoal})
	b.table.add(line{what: "a write until it is answered, beside them: p50, p99", figure: milliseconds(percentile(written, 50)) + ", " + milliseconds(percentile(written, 99))})
	b.table.add(line{what: "a write until its count shows, beside them: p50, p99", figure: milliseconds(percentile(shown, 50)) + ", " + milliseconds(percentile(shown, 99)),
		goal: "≤ " + milliseconds(visibleGoal), met: percentile(shown, 99) <= visibleGoal})
	return nil
}

const (
	aStart   = "a request until it begins"
	aHandler = "a request within its handler"
	anAnswer = "a request until it is answered"

	aWrite = "a write"
	aCount = "a write until its count shows"
)

// kindOfQuery is a named query with parameters from the rows that the recording left.
type kindOfQuery struct {
	name   string
	search bool
	with   func(l *load) url.Values
}

var kindsOfQuery = []kindOfQuery{
	{"album", false, func(l *load) url.Values { return url.Values{"albumId": {l.drawAlbum()}} }},
	{"media", false, func(l *load) url.Values { return url.Values{"mediaId": {l.drawPicture()}} }},
	{"album-media", false, func(l *load) url.Values { return url.Values{"albumId": {l.drawAlbum()}, "limit": {"20"}} }},
	{"media-albums", false, func(l *load) url.Values { return url.Values{"mediaId": {l.drawPicture()}, "limit": {"20"}} }},
	{"media-by-creator", false, func(l *load) url.Values { return url.Values{"createdBy": {l.drawUser()}, "limit": {"20"}} }},
	{"albums", false, func(*load) url.Values { return url.Values{"limit": {"20"}} }},
	{"public-albums", false, func(*load) url.Values { return url.Values{"isPublic": {"true"}, "limit": {"20"}} }},
	{"media-interactions", false, func(l *load) url.Values { return url.Values{"mediaId": {l.drawPicture()}, "limit": {"20"}} }},
	{"search-media", true, func(l *load) url.Values { return url.Values{"q": {l.drawWords()}, "limit": {"20"}} }},
	{"search-albums", true, func(l *load) url.Values { return url.Values{"q": {l.drawWords()}, "limit": {"20"}} }},
}

// load is one run.
type load struct {
	*served
	albums []album
	media  []media
	likes  []like

	refused atomic.Int64 // requests

	// used is the processors that this process had, on average; waited is how many of its
	// threads were ready to run and had none.
	used, waited float64

	mu   sync.Mutex
	took map[string][]time.Duration
	errs []error
}

func (l *load) drawAlbum() string   { return randomID('a', l.albums[rand.IntN(len(l.albums))].n) }
func (l *load) drawPicture() string { return randomID('m', l.media[rand.IntN(len(l.media))].n) }
func (l *load) drawUser() string    { return randomID('u', l.media[rand.IntN(len(l.media))].by) }

// drawWords returns the name of a picture, one word or both.
func (l *load) drawWords() string {
	return titleWords(l.media[rand.IntN(len(l.media))].n, 0, 1+rand.IntN(2))
}

// measureNothing is run with a server in place of the system that answers at once. What it measures
// is due to the clients, to HTTP and to the machine.
func (l *load) measureNothing(during time.Duration) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
	}))
	defer server.Close()
	l.served = &served{base: server.URL}
	return l.runLoad(during)
}

// runLoad keeps the load up for a time.
func (l *load) runLoad(during time.Duration) error {
	if l.timing != nil {
		l.timing.Store(l)
		defer l.timing.Store(nil)
	}
	cpu, delay, began := cpuTime(), runDelay(), time.Now()
	defer func() {
		wall := time.Since(began).Seconds()
		l.used, l.waited = (cpuTime()-cpu).Seconds()/wall, (runDelay()-delay).Seconds()/wall
	}()
	var wg sync.WaitGroup
	start := time.Now()
	wg.Go(func() {
		l.doWhenDue(start, during, askedEach, func(i int) {
			q := kindsOfQuery[i%len(kindsOfQuery)]
			l.noteTimed(q.name, start.Add(time.Duration(i)*askedEach), func() error {
				_, err := l.sendRequest("GET", "/v1/gallery/"+q.name+"?"+q.with(l).Encode(), "", 200)
				return err
			})
		})
	})
	wg.Go(func() {
		l.doWhenDue(start, during, writtenEach, func(i int) {
			l.noteTimed(aWrite, start.Add(time.Duration(i)*writtenEach), func() error {
				_, err := l.sendRequest("POST", "/v1/gallery/AlbumMedia", fmt.Sprintf(`{"albumId":%q,"mediaId":"load-%d","addedAt":%s}`, l.drawAlbum(), i, at), 201)
				return err
			})
		})
	})
	if l.running != nil {
		wg.Go(func() { l.noteError(l.measureCounts(0, start.Add(during))) })
	}
	wg.Wait()
	return errors.Join(l.errs[:min(3, len(l.errs))]...)
}

// doWhenDue calls do when it is due, at most a thousand at a time.
func (l *load) doWhenDue(start time.Time, during, pause time.Duration, do func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, 1000)
	for i := range int(during / pause) {
		time.Sleep(time.Until(start.Add(time.Duration(i) * pause)))
		free <- struct{}{}
		wg.Go(func() { do(i); <-free })
	}
	wg.Wait()
}

// noteTimed notes when do began and when it had ended, counted from when it was due.
func (l *load) noteTimed(what string, due time.Time, do func() error) {
	late := time.Since(due)
	err := do()
	took := time.Since(due)
	if err != nil && strings.Contains(err.Error(), ": 503 ") {
		l.refused.Add(1)
		return
	}
	l.noteError(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took[what] = append(l.took[what], took)
	if what != aCount {
		l.took[aStart], l.took[anAnswer] = append(l.took[aStart], late), append(l.took[anAnswer], took)
	}
}

// noteHandled notes how long a request was within its handler.
func (l *load) noteHandled(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took[aHandler] = append(l.took[aHandler], took)
}

func (l *load) noteError(err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs = append(l.errs, err)
	}
}

// measureCounts makes an album and puts a picture into it 20 times a second, and measures how long
// it takes until the album says so.
func (l *load) measureCounts(album int, end time.Time) error {
	if _, err := l.sendRequest("POST", "/v1/gallery/Album", fmt.Sprintf(`{"id":"own%d","title":"An album","createdAt":%s}`, album, at), 201); err != nil {
		return err
	}
	for i := 1; time.Now().Before(end); i++ {
		due := time.Now()
		if _, err := l.sendRequest("POST", "/v1/gallery/AlbumMedia", fmt.Sprintf(`{"albumId":"own%d","mediaId":"m%d","addedAt":%s}`, album, i, at), 201); err != nil {
			return err
		}
		if err := l.awaitCount(album, i); err != nil {
			return err
		}
		l.noteTimed(aCount, due, func() error { return nil })
		time.Sleep(time.Until(due.Add(time.Second / 20)))
	}
	return nil
}
