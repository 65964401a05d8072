package query

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// A cursor is base64url without padding of a place's bytes and 16 bytes that sign
// them, with the model's, the query's and the parameters' names and values. It can
// be read by who has it; it holds nothing but keys of rows that they were given,
// or walked past. It cannot be made or changed without the secret, nor used with
// another query.
//
// A place's bytes are its form ('o', 'u' or 's') and then
//
//	o  each scan's key and index entry, outermost first
//	u  the key
//	s  the index's own cursor
//
// where a key is two values, and a value is its kind, its length and its text.

const (
	// The shortest secret, how many bytes of a cursor sign it, and the longest cursor that is looked at.
	minSecret = owntable.SecretBytes
	signature = 16
	maxCursor = 64 << 10
)

// seal signs the cursors of one query with its parameters.
type seal struct {
	secret       []byte
	model, query string
	params       map[string]string
}

// close makes the cursor of a place, "" of the zero place.
// It is base64 for URLs, and signed but not encrypted, so a client can read the key of a row in it.
func (s *seal) close(at place) string {
	if at.zero() {
		return ""
	}
	b := appendPlace(nil, at)
	return base64.RawURLEncoding.EncodeToString(append(b, s.sign(b)...))
}

// open is the place of a cursor; its only error is ErrCursor.
// "" is the place before the first row. A cursor of another model, query, set of parameters or
// stage has another signature, and is ErrCursor as any forged one.
func (s *seal) open(cursor string) (place, error) {
	if cursor == "" {
		return place{}, nil
	}
	if len(cursor) > maxCursor {
		return place{}, ErrCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < signature {
		return place{}, ErrCursor
	}
	b, signed := b[:len(b)-signature], b[len(b)-signature:]
	if !hmac.Equal(signed, s.sign(b)) {
		return place{}, ErrCursor
	}
	return parsePlace(b)
}

// sign returns the signature of a cursor. It covers model, query and parameters, so that a
// cursor is good for the request that it came from and no other.
func (s *seal) sign(b []byte) []byte {
	h := hmac.New(sha256.New, s.secret)
	write(h, "weir cursor 1", s.model, s.query)
	for _, name := range slices.Sorted(maps.Keys(s.params)) {
		write(h, name, s.params[name])
	}
	write(h, "", string(b))
	return h.Sum(nil)[:signature]
}

// write hashes texts so that no others have the same hash.
func write(h hash.Hash, texts ...string) {
	for _, t := range texts {
		h.Write(appendText(nil, t))
	}
}

// appendText appends a text after its length.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendPlace encodes where an answer goes on: after a document, at an unfinished row, or after
// the rows that several partitions have given so far. The first byte says which.
func appendPlace(b []byte, at place) []byte {
	switch {
	case at.after != "":
		return append(append(b, 's'), at.after...)
	case at.key != nil:
		return appendKey(append(b, 'u'), *at.key)
	}
	b = append(b, 'o')
	for _, c := range at.at {
		b = appendKey(appendKey(b, c.Key), c.Entry)
	}
	return b
}

// appendKey appends a key, whose sort key may be missing.
// Each part is its kind, and its text unless it is missing.
func appendKey(b []byte, k store.Key) []byte {
	for _, v := range [...]value.Value{k.Partition, k.Sort} {
		b = append(b, byte(v.Kind()))
		if !v.IsMissing() {
			b = appendText(b, v.Text())
		}
	}
	return b
}

// parsePlace decodes what appendPlace encoded. The bytes come from a client, but with a good
// signature; what cannot be decoded is of another version, and ErrCursor.
func parsePlace(b []byte) (at place, err error) {
	if len(b) < 2 {
		return place{}, ErrCursor
	}
	p := parser{rest: b[1:]}
	switch b[0] {
	case 's':
		at.after = string(b[1:])
	case 'u':
		k := p.key()
		at.key, p.bad = &k, p.bad || len(p.rest) > 0
	case 'o':
		for len(p.rest) > 0 && !p.bad {
			at.at = append(at.at, store.Cursor{Key: p.key(), Entry: p.key()})
		}
	default:
		p.bad = true
	}
	if p.bad {
		return place{}, ErrCursor
	}
	return at, nil
}

// parser reads the bytes of a place; bad says that they are none.
type parser struct {
	rest []byte
	bad  bool
}

// key decodes what appendKey appended.
func (p *parser) key() store.Key { return store.Key{Partition: p.value(), Sort: p.value()} }

// value decodes a value, or notes that the bytes are bad; then it and all later calls return
// nothing.
func (p *parser) value() value.Value {
	if p.bad = p.bad || len(p.rest) == 0; p.bad {
		return value.Value{}
	}
	kind := value.Kind(p.rest[0])
	p.rest = p.rest[1:]
	if kind == value.Missing {
		return value.Value{}
	}
	n, w := binary.Uvarint(p.rest)
	if p.bad = w <= 0 || n > uint64(len(p.rest)-w); p.bad {
		return value.Value{}
	}
	text := string(p.rest[w : w+int(n)])
	p.rest = p.rest[w+int(n):]
	switch kind {
	case value.String:
		return value.OfString(text)
	case value.Binary:
		return value.OfBinary(text)
	case value.Number:
		v, err := value.ParseNumber(text)
		p.bad = err != nil
		return v
	}
	p.bad = true
	return value.Value{}
}

// secretBytes is the length of a new secret.
const secretBytes = 32

// LoadSecret is the secret that signs cursors and keys the revisions of rows, kept in weir's own table so
// that all processes have the same one, today and tomorrow. The first to ask makes it.
// The table must exist.
func LoadSecret(ctx context.Context, s store.Store) ([]byte, error) {
	row, err := store.GetRow(ctx, s, owntable.Secret())
	if err != nil {
		return nil, fmt.Errorf("read the secret of cursors: %w", err)
	}
	if row != nil {
		return owntable.DecodeSecret(row)
	}
	fresh := make([]byte, secretBytes)
	rand.Read(fresh)
	row, err = store.WriteRow(ctx, s, owntable.SetSecret(fresh))
	switch {
	case errors.Is(err, store.ErrCondition): // another was first
		return owntable.DecodeSecret(row)
	case err != nil:
		return nil, fmt.Errorf("make the secret of cursors: %w", err)
	}
	return fresh, s.Sync(ctx)
}
