package opensearch

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"

	"weir/internal/search"
)

// Format must be raised when the content of documents, or the way words are cut,
// changes.
const Format = 1

// newSpace returns the names of a schema on the server. The name has a hash of all that decides
// its mapping, so a changed definition gets an index of its own beside the old one.
func newSpace(s search.Schema, source, prefix string) *space {
	sp := &space{schema: s, filters: slices.Sorted(slices.Values(s.Filters)), sorts: slices.Sorted(slices.Values(s.Sorts))}
	b, err := json.Marshal([]any{Format, sp.filters, sp.sorts, s.Version, source})
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(b)
	sp.alias = "weir-" + search.PlainName(prefix+s.Name, "=%02x") + "-" + hex.EncodeToString(sum[:8])
	return sp
}

// isAlias reports whether a name can be the alias of an index, and nothing that stands for
// several.
func isAlias(name string) bool {
	rest, ok := strings.CutPrefix(name, "weir-")
	return ok && rest != "" && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-_=") == ""
}

// about is an index's description of itself, in its mapping.
type about struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	After    string `json:"after"` // the instance that was current when the index was made
}

// index is the index behind the alias. Its name is fixed. So if two processes make it
// at the same time, the second one finds the index of the first.
func (sp *space) index() string { return sp.alias + ".docs" }

// openIndex finds the index of a space, or makes it. An index that is not the current one,
// and was not made to replace it, has missed changes and is made again. If several
// processes open at the same time, one makes the index and the others find it; each of
// them fills it.
func (s *server) openIndex(ctx context.Context, sp *space, current, refresh string) error {
	for range 5 {
		found, err := s.findIndex(ctx, sp)
		if err != nil {
			return err
		}
		if found != nil && (found.Instance == current || found.After == current) {
			sp.instance, sp.fresh = found.Instance, found.Instance != current
			return nil
		}
		if found != nil {
			if err := s.dropIndex(ctx, sp); err != nil {
				return err
			}
		}
		if err := s.createIndex(ctx, sp, current, refresh); err != nil {
			return err
		}
	}
	return errors.New("other processes keep making it again; are they of another version?")
}

// findIndex reads the index behind the alias; nil if nothing is.
func (s *server) findIndex(ctx context.Context, sp *space) (*about, error) {
	var got map[string]struct {
		Mappings struct {
			Meta struct{ Weir about } `json:"_meta"`
		}
	}
	err := s.callUntilAnswered(ctx, &got, func() opensearchapi.Request {
		return opensearchapi.IndicesGetMappingRequest{Index: []string{sp.alias}}
	})
	if isStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a := got[sp.index()].Mappings.Meta.Weir
	if len(got) != 1 || a.Name != sp.schema.Name || a.Instance == "" {
		return nil, fmt.Errorf("behind the alias %s is something that weir did not make: %s; delete it, or the alias",
			sp.alias, strings.Join(slices.Sorted(maps.Keys(got)), ", "))
	}
	return &a, nil
}

// present returns search.ErrGone unless the space's instance is behind the alias.
func (s *server) present(ctx context.Context, sp *space) error {
	found, err := s.findIndex(ctx, sp)
	if err == nil && (found == nil || found.Instance != sp.instance) {
		err = search.ErrGone
	}
	return err
}

// dropIndex deletes a space's index. It is no error if the index does not exist.
func (s *server) dropIndex(ctx context.Context, sp *space) error {
	err := s.callUntilAnswered(ctx, nil, func() opensearchapi.Request {
		return opensearchapi.IndicesDeleteRequest{Index: []string{sp.index()}}
	})
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// createIndex makes the index, empty, and tries the script that every write needs.
func (s *server) createIndex(ctx context.Context, sp *space, current, refresh string) error {
	body, err := json.Marshal(sp.definition(about{Name: sp.schema.Name, Instance: rand.Text(), After: current}, refresh))
	if err != nil {
		return err
	}
	err = s.callUntilAnswered(ctx, nil, func() opensearchapi.Request {
		return opensearchapi.IndicesCreateRequest{Index: sp.index(), Body: bytes.NewReader(body)}
	})
	if isType(err, "resource_already_exists_exception") {
		return nil
	}
	if err != nil {
		return err
	}
	return s.probeScript(ctx, sp)
}

// probeScript writes a tombstone under an id that no row has. So a cluster that does not run
// inline scripts fails here, with a clear error, and not later with every document.
func (s *server) probeScript(ctx context.Context, sp *space) error {
	errs := make([]error, 1)
	d := search.Document{Index: sp.schema.Name, ID: "weir", Deleted: true}
	s.applyChanges(ctx, sp, []*change{{doc: &d, places: []int{0}}}, errs, time.Now())
	if errs[0] == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("the cluster does not take a scripted update, by which every document is written: %w", errs[0]), s.dropIndex(ctx, sp))
}

// refreshIndex makes the writes into one index visible to searches.
func (s *server) refreshIndex(ctx context.Context, sp *space) error {
	return s.callUntilAnswered(ctx, nil, func() opensearchapi.Request {
		return opensearchapi.IndicesRefreshRequest{Index: []string{sp.alias}}
	})
}

type object = map[string]any

// definition is the definition of the index that is sent to the cluster. The number of
// shards and replicas is left to the cluster's own templates.
func (sp *space) definition(a about, refresh string) object {
	// A term is either searched or sorted by, never both, and never returned.
	searched := object{"type": "keyword", "doc_values": false}
	sorted := object{"type": "keyword", "index": false}
	properties := object{
		"p": object{"type": "keyword", "index": false, "doc_values": false},
		"i": sorted,
		"t": object{"type": "text", "analyzer": "words", "index_options": "freqs", "similarity": "share"},
		"x": object{"type": "long"},
	}
	for n := range sp.filters {
		properties[filterField(n)] = searched
	}
	for n := range sp.sorts {
		properties[sortField(n)] = sorted
	}
	settings := object{
		"index.translog.durability": "request", // acknowledged writes are on disk
		"similarity.share":          object{"type": "scripted", "script": object{"source": share}},
		"analysis":                  object{"analyzer": object{"words": object{"type": "custom", "tokenizer": "whitespace"}}},
	}
	if refresh != "" {
		settings["index.refresh_interval"] = refresh
	}
	return object{
		"settings": settings,
		"aliases":  object{sp.alias: object{}},
		"mappings": object{"dynamic": "strict", "_meta": object{"weir": a}, "properties": properties},
	}
}

// share is a word's share of a document's words, see search.Score. It uses nothing else
// of the index.
const share = "return query.boost * Math.sqrt(Math.min(1.0, doc.freq / doc.length));"

func filterField(n int) string { return "f" + strconv.Itoa(n) }
func sortField(n int) string   { return "o" + strconv.Itoa(n) }

// A tombstone may be deleted this long after it was written. Old tombstones are looked
// for this often.
const (
	keepTombstones = 48 * time.Hour
	pruneEvery     = time.Hour
	maxPrune       = 5000 // at a time
)

// pruneTombstones deletes old tombstones when that is due. A tombstone that was replaced
// meanwhile stays. Any number of processes may prune at the same time.
func (s *server) pruneTombstones(ctx context.Context, sp *space, now time.Time) error {
	sp.mu.Lock()
	due := !now.Before(sp.nextPrune)
	if due {
		sp.nextPrune = now.Add(pruneEvery)
	}
	sp.mu.Unlock()
	if !due {
		return nil
	}
	body, err := json.Marshal(object{"query": object{"range": object{"x": object{"lt": hoursSince1970(now.Add(-keepTombstones))}}}})
	if err != nil {
		return err
	}
	var got struct{ Deleted int }
	most := maxPrune
	err = s.sendOnce(ctx, &got, opensearchapi.DeleteByQueryRequest{
		Index: []string{sp.alias}, Body: bytes.NewReader(body), Conflicts: "proceed", MaxDocs: &most,
	})
	if err == nil && got.Deleted == maxPrune {
		sp.mu.Lock()
		sp.nextPrune = now
		sp.mu.Unlock()
	}
	return err
}
