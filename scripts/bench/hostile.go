package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"weir/internal/api"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// benchHostile searches for prefixes that very many words have: there are 200,000 pictures named
// img000000 to img199999. It sends one search at a time and then 64 at once. The memory in a
// line is the highest resident memory of this process meanwhile.
func (b *bench) benchHostile() error {
	rows := shortOrFull(b, 20_000, 200_000)
	r, err := b.openPictures(rows)
	if err != nil {
		return err
	}
	defer r.removeSystem()
	handler, err := api.New([]*query.Engine{r.part.Query}, api.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for _, at := range []struct {
		q    string
		once int
	}{{"img000123", 1}, {"img", 1}, {"i", 1}, {"jpg img", 1}, {"img", 32}, {"img", 64}} {
		c, most, answers, err := b.searchOnce(handler, at.q, at.once)
		if err != nil {
			return err
		}
		b.table.add(line{
			what:   fmt.Sprintf("q=%s over %d rows, %d at once", at.q, rows, at.once),
			figure: fmt.Sprintf("%.2f s CPU, %.2f s, %d MB resident", c.cpu.Seconds(), c.wall.Seconds(), most>>20),
			peer:   answers, goal: "≤ " + b.size.String(), met: most <= int64(b.size),
		})
	}
	return nil
}

// searchOnce sends a search once times concurrently.
func (b *bench) searchOnce(h http.Handler, q string, once int) (cost, int64, string, error) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // begins VmHWM again
		return cost{}, 0, "", err
	}
	var mu sync.Mutex
	answers := map[int]int{}
	c, err := measureCost(func() error {
		var wg sync.WaitGroup
		for range once {
			wg.Go(func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(b.ctx, http.MethodGet, "/v1/gallery/search-media?limit=20&q="+url.QueryEscape(q), nil))
				mu.Lock()
				defer mu.Unlock()
				answers[w.Code]++
			})
		}
		wg.Wait()
		return b.ctx.Err()
	})
	text := ""
	for _, code := range slices.Sorted(maps.Keys(answers)) {
		text += fmt.Sprintf("%d × %d ", answers[code], code)
	}
	return c, highWater(os.Getpid()), text, err
}

// openPictures returns a gallery with n pictures, and its index.
func (b *bench) openPictures(n int) (*running, error) {
	m, err := model.Load("gallery")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return nil, err
	}
	at := system.Place{Data: dir, Memory: b.size}
	s, err := system.OpenAt(b.ctx, at, []*model.Model{m}, system.Options{NoSearch: true})
	if err != nil {
		return nil, err
	}
	for from := 0; from < n && err == nil; from += 1000 {
		var ws []store.Write
		for i := from; i < min(n, from+1000); i++ {
			ws = append(ws, pictureWrite(i))
		}
		_, err = s.Store.Write(b.ctx, ws)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	b.limitMemory()
	start := time.Now()
	if s, err = system.OpenAt(b.ctx, at, []*model.Model{m}, system.Options{}); err != nil {
		return nil, err
	}
	if err := s.Reach(b.ctx, nil); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.talk, "  %d rows indexed in %.0f s\n", n, time.Since(start).Seconds())
	return &running{s, dir, s.Models[0]}, nil
}

func pictureWrite(i int) store.Write {
	id, at := fmt.Sprintf("m%06d", i), time.Unix(1_700_000_000+int64(i), 0).UTC().Format(time.RFC3339)
	row := value.NewItem()
	for name, text := range map[string]string{
		"PK": "MEDIA#" + id, "SK": "METADATA", "EntityType": "Media", "id": id, "filename": fmt.Sprintf("img%06d.jpg", i),
		"GSI1PK": "MEDIA_BY_CREATOR", "GSI1SK": "u1#" + at + "#" + id, "GSI2PK": "MEDIA_ID", "GSI2SK": id, "createdBy": "u1", "createdAt": at,
	} {
		row = row.With(value.Attr{Name: name, Value: value.OfString(text)})
	}
	return store.Write{Ref: store.Ref{Table: "gallery", Key: store.Key{Partition: value.OfString("MEDIA#" + id), Sort: value.OfString("METADATA")}}, Put: row}
}
