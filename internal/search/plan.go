package search

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// maxWords is the maximum of words in a query.
const maxWords = 256

// Plan is a query in the form that every driver understands, checked against its
// schema.
type Plan struct {
	Nothing bool        // no document can match
	Words   []string    // all must match whole; sorted, unique, without Last
	Last    string      // the last word typed, "" for none; it also matches the beginning of a word
	Fuzzy   bool        // words that MayForgive also match with one typo
	Filters []FieldTerm // all must match
	Sort    string      // "" for best first
	Reverse bool        // reverses the order of Sort
	Limit   int         // at least 1
	After   *Place      // the answer begins after this place; nil for the beginning
}

// FieldTerm is a field and the term that a document must have in it.
type FieldTerm struct{ Field, Term string }

// Every reports whether the text restricts nothing: all documents match equally well.
func (p *Plan) Every() bool { return p.Last == "" }

// Plan checks a query and makes its plan, which means the same for every index. Its errors wrap ErrQuery, and
// name the question that can be asked instead, or ErrCursor.
func (s *Schema) Plan(q Query) (Plan, error) {
	p := Plan{Fuzzy: q.Fuzzy, Sort: q.Sort, Reverse: q.Reverse && q.Sort != "", Limit: q.Limit}
	if q.Limit < 1 {
		return p, fmt.Errorf("%w: a limit of %d; it must be 1 or more", ErrQuery, q.Limit)
	}
	if q.Sort != "" && !slices.Contains(s.Sorts, q.Sort) {
		return p, fmt.Errorf("%w: %s cannot be sorted by %q; possible: %s", ErrQuery, s.Name, q.Sort, list(s.Sorts))
	}
	if words := Words(q.Text); len(words) > 0 {
		p.Last = words[len(words)-1]
		p.Words = slices.Compact(slices.Sorted(slices.Values(words[:len(words)-1])))
	} else {
		p.Nothing = strings.TrimSpace(q.Text) != ""
	}
	if len(p.Words) >= maxWords {
		return p, fmt.Errorf("%w: it has %d words; at most %d are possible", ErrQuery, len(p.Words)+1, maxWords)
	}
	for _, field := range slices.Sorted(maps.Keys(q.Filters)) {
		if !slices.Contains(s.Filters, field) {
			return p, fmt.Errorf("%w: %s cannot be filtered by %q; possible: %s", ErrQuery, s.Name, field, list(s.Filters))
		}
		t, ok := Term(q.Filters[field])
		if !ok {
			return p, fmt.Errorf("%w: %q is fixed to a %s; it must be a string, number or boolean", ErrQuery, field, q.Filters[field].Kind())
		}
		p.Filters = append(p.Filters, FieldTerm{field, t})
	}
	return p, p.setAfter(q.After)
}

// list is names for a message, in the order given.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// setAfter says behind which document the answer goes on. A cursor of another order is
// ErrCursor.
func (p *Plan) setAfter(after string) error {
	if after == "" {
		return nil
	}
	at, err := parsePlace(after)
	if err != nil {
		return err
	}
	if (p.Sort == "") != (at.kind == byScore) {
		return ErrCursor
	}
	p.After = &at
	return nil
}

// Place is the position of a hit in an answer: its score, or its sort key (or that it
// has none), and its id.
type Place struct {
	ID    string
	Score float64
	Key   string
	kind  byte
}

const (
	byScore = 'b' // not 's': old cursors with 's' have scores of another kind
	byKey   = 'k'
	keyless = 'm'
)

// PlaceByScore is the place of a hit in an answer in the order of scores.
func PlaceByScore(score float64, id string) Place { return Place{id, score, "", byScore} }

// PlaceByKey is the place of a hit with this SortKey in a sorted answer.
func PlaceByKey(key, id string) Place { return Place{id, 0, key, byKey} }

// PlaceLast is the place of a hit that lacks the field by which the answer is sorted.
func PlaceLast(id string) Place { return Place{id, 0, "", keyless} }

// Missing reports whether the hit lacks the field by which the answer is sorted.
func (p Place) Missing() bool { return p.kind == keyless }

// String is the place in the form of a Hit's After.
func (p Place) String() string {
	b := []byte{p.kind}
	switch p.kind {
	case byScore:
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.Score))
	case byKey:
		b = binary.AppendUvarint(b, uint64(len(p.Key)))
		b = append(b, p.Key...)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, p.ID...))
}

// parsePlace reads a text of String. For a made-up text it returns ErrCursor, or a
// place that no hit has.
func parsePlace(s string) (Place, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) == 0 {
		return Place{}, ErrCursor
	}
	p := Place{kind: b[0]}
	switch b = b[1:]; p.kind {
	case byScore:
		if len(b) < 8 {
			return Place{}, ErrCursor
		}
		p.Score = math.Float64frombits(binary.BigEndian.Uint64(b))
		b = b[8:]
	case byKey:
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			return Place{}, ErrCursor
		}
		p.Key, b = string(b[w:w+int(n)]), b[w+int(n):]
	case keyless:
	default:
		return Place{}, ErrCursor
	}
	p.ID = string(b)
	if math.IsNaN(p.Score) || math.IsInf(p.Score, 0) || p.ID == "" || len(p.ID) > MaxID {
		return Place{}, ErrCursor
	}
	return p, nil
}

// Compare orders places in the same way as the answer to the plan's query.
func (p *Plan) Compare(a, b Place) int {
	if c := p.Rank(a, b); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// Rank is Compare without the ids.
func (p *Plan) Rank(a, b Place) int {
	switch {
	case a.kind == byScore && a.Score != b.Score:
		if a.Score > b.Score {
			return -1
		}
		return 1
	case a.Missing() != b.Missing():
		if b.Missing() {
			return -1
		}
		return 1
	case p.Reverse:
		return strings.Compare(b.Key, a.Key)
	}
	return strings.Compare(a.Key, b.Key)
}
