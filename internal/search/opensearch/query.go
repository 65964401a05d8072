package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"

	"weir/internal/search"
	"weir/internal/seq"
)

// maxPage is the maximum of hits that a cluster returns at a time, unless configured
// otherwise.
const maxPage = 10000

// searchPages answers a plan, in as many requests as its limit needs.
func (s *server) searchPages(ctx context.Context, sp *space, p *search.Plan) ([]search.Hit, error) {
	hits := []search.Hit{}
	at := *p
	for {
		at.Limit = min(p.Limit-len(hits), maxPage)
		places, err := s.askPage(ctx, sp, &at)
		if err != nil {
			return nil, err
		}
		for _, place := range places {
			hits = append(hits, search.Hit{ID: place.ID, After: place.String()})
		}
		if len(places) < at.Limit || len(hits) == p.Limit {
			return hits, nil
		}
		at.After = &places[len(places)-1]
	}
}

// askPage asks for one page of hits. A cluster that answers in part, or gives up at the deadline, is
// an error: hits that are missing would look like none.
func (s *server) askPage(ctx context.Context, sp *space, p *search.Plan) ([]search.Place, error) {
	query := sp.query(p)
	order, err := json.Marshal(query)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(sp.request(p, query))
	if err != nil {
		return nil, err
	}
	var got struct {
		TimedOut bool `json:"timed_out"`
		Hits     struct {
			Hits []struct{ Sort []json.RawMessage }
		}
	}
	all, no := false, false
	err = s.callUntilAnswered(ctx, &got, func() opensearchapi.Request {
		return opensearchapi.SearchRequest{
			Index: []string{sp.alias}, Body: bytes.NewReader(body),
			AllowPartialSearchResults: &all, TrackTotalHits: no,
			// Copies of a shard show writes at different moments, so the
			// pages of one query all ask the same copy.
			Preference: newPreference(order),
			FilterPath: []string{"timed_out", "hits.hits.sort"},
			Timeout:    timeout(ctx),
		}
	})
	if err != nil {
		return nil, err
	}
	if got.TimedOut {
		return nil, fmt.Errorf("the cluster gave up: %w", context.DeadlineExceeded)
	}
	places := make([]search.Place, len(got.Hits.Hits))
	for i, h := range got.Hits.Hits {
		if places[i], err = decodePlace(p, h.Sort); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// timeout is the time left for a request, 0 for any time.
func timeout(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(end).Truncate(time.Millisecond), time.Millisecond)
}

// newPreference makes the pages of one query ask the same copies of the shards: it is a
// hash of the query.
func newPreference(query []byte) string {
	h := fnv.New64a()
	h.Write(query)
	return "weir" + strconv.FormatUint(h.Sum64(), 36)
}

// decodePlace reads the values by which a hit was sorted.
func decodePlace(p *search.Plan, sort []json.RawMessage) (search.Place, error) {
	var id string
	var key *string
	var score float64
	if len(sort) != 2 {
		return search.Place{}, fmt.Errorf("OpenSearch gives a hit with %d sort values", len(sort))
	}
	err := json.Unmarshal(sort[1], &id)
	if err == nil && p.Sort == "" {
		err = json.Unmarshal(sort[0], &score)
	} else if err == nil {
		err = json.Unmarshal(sort[0], &key)
	}
	switch {
	case err != nil:
		return search.Place{}, fmt.Errorf("OpenSearch's sort values: %w", err)
	case p.Sort == "":
		return search.PlaceByScore(score, id), nil
	case key == nil:
		return search.PlaceLast(id), nil
	}
	return search.PlaceByKey(*key, id), nil
}

// request is the whole body of a search.
func (sp *space) request(p *search.Plan, query object) object {
	var first any = object{"_score": object{"order": "desc"}}
	if p.Sort != "" {
		order := "asc"
		if p.Reverse {
			order = "desc"
		}
		first = object{sortField(slices.Index(sp.sorts, p.Sort)): object{"order": order, "missing": "_last"}}
	}
	r := object{
		"query": query, "size": p.Limit, "_source": false,
		"sort": []any{first, object{"i": object{"order": "asc"}}},
	}
	if p.After != nil {
		r["search_after"] = after(p)
	}
	return r
}

// after is the place behind which the page begins, in the form of search_after.
func after(p *search.Plan) []any {
	switch {
	case p.Sort == "":
		return []any{p.After.Score, p.After.ID}
	case p.After.Missing():
		return []any{nil, p.After.ID}
	}
	return []any{p.After.Key, p.After.ID}
}

// query is the OpenSearch query of a plan, with search.Score as its score.
// Documents of deleted rows (x) are never found. With a sort nothing is scored, which saves OpenSearch the work.
func (sp *space) query(p *search.Plan) object {
	must := seq.Map(p.Words, func(w string) object { return word(p, w, false) })
	if !p.Every() {
		must = append(must, word(p, p.Last, true))
	}
	filter := []object{}
	for _, f := range p.Filters {
		n := slices.Index(sp.filters, f.Field)
		filter = append(filter, object{"term": object{filterField(n): f.Term}})
	}
	occur := "must"
	if p.Sort != "" {
		occur = "filter"
		must = append(must, filter...)
		filter = nil
	}
	b := object{occur: must, "must_not": []object{{"exists": object{"field": "x"}}}}
	if len(filter) > 0 {
		b["filter"] = filter
	}
	if p.Every() && len(filter) == 0 && p.Sort == "" {
		b["filter"] = []object{{"match_all": object{}}} // scores 0, as with filters
	}
	return object{"bool": b}
}

// word matches a word: the whole word, a word with a typo, or a beginning, whatever
// applies. The score is that of the best of these. A beginning and a typo match all
// such words of the index, however many: the cluster collects their documents in a set,
// and gives up at the request's timeout.
func word(p *search.Plan, w string, last bool) object {
	share := object{"term": object{"t": object{"value": w, "boost": 1 / float64(len(p.Words)+2)}}}
	ways := []object{{"bool": object{
		"must":   []object{constant(object{"term": object{"t": w}}, search.WorthWhole)},
		"should": []object{share},
	}}}
	if last {
		ways = append(ways, constant(object{"prefix": object{"t": object{"value": w, "rewrite": "constant_score"}}}, search.WorthBeginning))
	}
	if p.Fuzzy && search.MayForgive(w) {
		ways = append(ways, constant(object{"fuzzy": object{"t": object{
			"value": w, "fuzziness": 1, "transpositions": true, "rewrite": "constant_score",
		}}}, search.WorthTypo))
	}
	return object{"dis_max": object{"queries": ways}}
}

// constant matches like query and is worth the same for every document, so that a score depends on
// the document alone.
func constant(query object, worth int) object {
	return object{"constant_score": object{"filter": query, "boost": worth}}
}
