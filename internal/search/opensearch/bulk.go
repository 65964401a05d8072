package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"

	"weir/internal/parallel"
	"weir/internal/search"
	"weir/internal/seq"
)

// change is the newest change of a document in one call of Apply.
type change struct {
	doc    *search.Document
	places []int // indexes of the call's documents that share its result
	lines  []byte
}

// putResult puts the result of the change into all places that share it.
func (c *change) putResult(errs []error, err error) {
	for _, i := range c.places {
		errs[i] = err
	}
}

// A bulk request is closed when it has this many changes, or bytes. Amazon's small
// instances accept no request above 10 MB. Several requests run at the same time.
const (
	maxBulk      = 1000
	maxBulkBytes = 4 << 20
	bulksAtOnce  = 2
)

// applyChanges writes changes and puts a result for each into errs.
// It returns when all are settled. At most bulksAtOnce requests run, each of at most maxBulk
// changes and about maxBulkBytes, so memory does not grow with the number of changes.
func (s *server) applyChanges(ctx context.Context, sp *space, changes []*change, errs []error, now time.Time) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, bulksAtOnce)
	for len(changes) > 0 {
		slots <- struct{}{}
		n, size := 0, 0
		for n < len(changes) && n < maxBulk && size < maxBulkBytes {
			changes[n].lines = sp.lines(changes[n].doc, now)
			size += len(changes[n].lines)
			n++
		}
		part := changes[:n]
		changes = changes[n:]
		wg.Go(func() {
			defer func() { <-slots }()
			s.sendBulk(ctx, sp, part, errs)
			for _, c := range part {
				c.lines = nil
			}
		})
	}
	wg.Wait()
}

// sendBulk sends changes until each has a final result. It sends only those again that were
// not accepted yet. A request whose outcome is unknown is sent again whole; positions
// make that harmless.
func (s *server) sendBulk(ctx context.Context, sp *space, pending []*change, errs []error) {
	wait := tries(ctx, s.patience)
	var why error // the cluster's last reason
	for {
		left, err := s.sendRound(ctx, sp, pending, errs)
		if len(left) == 0 {
			return
		}
		if !errors.Is(err, ctx.Err()) {
			why = err
		}
		if len(left) < len(pending) {
			wait.Reset() // patience only counts while nothing succeeds
		}
		pending = left
		pause := wait.NextBackOff()
		if pause == backoff.Stop || parallel.Sleep(ctx, pause) != nil {
			for _, c := range pending {
				c.putResult(errs, fmt.Errorf("search index %s: %w", sp.schema.Name, errors.Join(why, ctx.Err())))
			}
			return
		}
	}
}

// sendRound sends changes once. It returns those that have to be sent again, and an error
// of one of them.
func (s *server) sendRound(ctx context.Context, sp *space, pending []*change, errs []error) ([]*change, error) {
	answers, err := s.send(ctx, sp, pending)
	switch {
	case isStatus(err, http.StatusRequestEntityTooLarge) && len(pending) > 1:
		half := len(pending) / 2
		s.sendBulk(ctx, sp, pending[:half:half], errs)
		s.sendBulk(ctx, sp, pending[half:], errs)
		return nil, nil
	case isStatus(err, http.StatusRequestEntityTooLarge):
		pending[0].putResult(errs, fmt.Errorf("%w: %w", search.ErrRefused, err))
		return nil, nil
	case err != nil && final(err):
		for _, c := range pending {
			c.putResult(errs, fmt.Errorf("search index %s: %w", sp.schema.Name, err))
		}
		return nil, nil
	case err != nil:
		return pending, err
	}
	var left []*change
	var last error
	for i, a := range answers {
		switch err := a.Update.judge(); {
		case errors.Is(err, errAgain):
			left, last = append(left, pending[i]), err
		case err != nil:
			pending[i].putResult(errs, fmt.Errorf("search index %s: %w", sp.schema.Name, err))
		default:
			pending[i].putResult(errs, nil)
		}
	}
	return left, last
}

// final reports whether the same request would always get this error.
func final(err error) bool {
	var a *AnswerError
	return errors.As(err, &a) && !passing(a.Status)
}

// item is the result of one change.
type item struct {
	Update result `json:"update"`
}

// result is the cluster's answer for one document of a bulk request. The request as a whole may
// succeed while documents fail.
type result struct {
	Status int   `json:"status"`
	Error  cause `json:"error"`
}

// errAgain: another try may succeed.
var errAgain = errors.New("not taken yet")

// judge is the error of a change: nil, one that wraps errAgain, or a final one. A
// conflict is a concurrent write of the same document; the script has to compare again.
// Only a fault of the document itself refuses the document. A script that the cluster
// does not run, a block or a missing index say nothing about the document.
func (r *result) judge() error {
	switch {
	case r.Status >= 200 && r.Status < 300:
		return nil
	case r.Status == http.StatusConflict || passing(r.Status):
		return fmt.Errorf("%w: %w", errAgain, r.Error.answer(r.Status))
	case r.Status == http.StatusBadRequest && !strings.HasPrefix(r.Error.Reason, "failed to execute script"):
		return fmt.Errorf("%w: %w", search.ErrRefused, r.Error.answer(r.Status))
	}
	return r.Error.answer(r.Status)
}

// send sends changes as one request. It returns one item for each change, in the same
// order.
func (s *server) send(ctx context.Context, sp *space, changes []*change) ([]item, error) {
	var body bytes.Buffer
	for _, c := range changes {
		body.Write(c.lines)
	}
	var got struct{ Items []item }
	yes := true
	err := s.sendOnce(ctx, &got, opensearchapi.BulkRequest{
		Index: sp.alias, Body: bytes.NewReader(body.Bytes()), RequireAlias: &yes,
		FilterPath: []string{"items.*.status", "items.*.error"},
	})
	if err == nil && len(got.Items) != len(changes) {
		err = fmt.Errorf("OpenSearch answers %d changes of %d", len(got.Items), len(changes))
	}
	return got.Items, err
}

// newer is the script of every write. It replaces the document unless the stored one is
// newer or the same. It runs in the shard of the document, between reading and writing
// it. It is compiled once, because its text is always the same.
const newer = `def s = ctx._source; def d = params.d; int c = s.p == null ? -1 : s.p.compareTo(d.p); ` +
	`if (c > 0 || (c == 0 && s.equals(d))) { ctx.op = 'none' } else { ctx._source = d }`

// lines is a change in the format of a bulk request.
// The same lines may be sent again at any time: the script does nothing if the document there has
// the position, or a later one.
func (sp *space) lines(d *search.Document, now time.Time) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, line := range []object{
		{"update": object{"_id": d.ID, "retry_on_conflict": 3}},
		{
			"script":          object{"source": newer, "lang": "painless", "params": object{"d": sp.source(d, now)}},
			"scripted_upsert": true,
			"upsert":          object{},
		},
	} {
		if err := enc.Encode(line); err != nil {
			panic(err) // strings and numbers
		}
	}
	return b.Bytes()
}

// source is a document, or a tombstone, in its stored form.
// A tombstone has its position and the hour, and nothing else, so no search finds it.
func (sp *space) source(d *search.Document, now time.Time) object {
	o := object{"p": fmt.Sprintf("%x", d.Position[:])}
	if d.Deleted {
		o["x"] = hoursSince1970(now)
		return o
	}
	o["i"], o["t"] = d.ID, strings.Join(seq.Flat(d.Text, search.Words), " ")
	for n, f := range sp.filters {
		if terms := search.Terms(d.Values[f]); len(terms) > 0 {
			o[filterField(n)] = slices.Compact(slices.Sorted(slices.Values(terms)))
		}
	}
	for n, f := range sp.sorts {
		if key, ok := search.SortKey(d.Values[f]); ok {
			o[sortField(n)] = key
		}
	}
	return o
}

// hoursSince1970 counts the hours since 1970.
func hoursSince1970(t time.Time) int64 { return t.Unix() / 3600 }
