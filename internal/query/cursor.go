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
// A place's bytes are the stored form of an item (value.AppendItem).

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

// sealPlace makes the cursor of a place, "" of the zero place.
// It is base64 for URLs, and signed but not encrypted, so a client can read the key of a row in it.
func (s *seal) sealPlace(at place) string {
	if at.isZero() {
		return ""
	}
	b := appendPlace(nil, at)
	return base64.RawURLEncoding.EncodeToString(append(b, s.signCursor(b)...))
}

// openCursor is the place of a cursor; its only error is ErrCursor.
// "" is the place before the first row. A cursor of another model, query, set of parameters or
// stage has another signature, and is ErrCursor as any forged one.
func (s *seal) openCursor(cursor string) (place, error) {
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
	if !hmac.Equal(signed, s.signCursor(b)) {
		return place{}, ErrCursor
	}
	return parsePlace(b)
}

// signCursor returns the signature of a cursor. It covers model, query and parameters, so that a
// cursor is good for the request that it came from and no other.
func (s *seal) signCursor(b []byte) []byte {
	h := hmac.New(sha256.New, s.secret)
	hashTexts(h, "weir cursor 2", s.model, s.query)
	for _, name := range slices.Sorted(maps.Keys(s.params)) {
		hashTexts(h, name, s.params[name])
	}
	hashTexts(h, "", string(b))
	return h.Sum(nil)[:signature]
}

// hashTexts hashes texts so that no others have the same hash.
func hashTexts(h hash.Hash, texts ...string) {
	for _, t := range texts {
		h.Write(append(binary.AppendUvarint(nil, uint64(len(t))), t...))
	}
}

// The names of an item that is a place.
const (
	afterHit = "doc"  // the index's own cursor
	afterRow = "row"  // the key of a row
	atRow    = "scan" // the key and the index entry of a scan; one for each scan, outermost first
)

// appendPlace encodes where an answer goes on: after a document, at an unfinished row, or after
// the rows that several partitions have given so far. A key without a sort key has a Missing one.
func appendPlace(b []byte, at place) []byte {
	var it value.Item
	switch {
	case at.after != "":
		it = value.Item{{Name: afterHit, Value: value.OfString(at.after)}}
	case at.key != nil:
		it = value.Item{{Name: afterRow, Value: value.OfList(at.key.Partition, at.key.Sort)}}
	}
	for _, c := range at.at {
		it = append(it, value.Attr{Name: atRow, Value: value.OfList(c.Key.Partition, c.Key.Sort, c.Entry.Partition, c.Entry.Sort)})
	}
	return value.AppendItem(b, it)
}

// keyText is a key as a text that no other key has.
func keyText(k store.Key) string { return string(appendPlace(nil, place{key: &k})) }

// parsePlace decodes bytes of appendPlace. The bytes come from a client, but with a good
// signature; bytes that cannot be decoded are of another version, and ErrCursor.
func parsePlace(b []byte) (at place, err error) {
	it, rest, err := value.DecodeItem(b)
	if err != nil || len(rest) > 0 || len(it) == 0 {
		return place{}, ErrCursor
	}
	for i, a := range it {
		switch vs := a.Value.Elements(); {
		case a.Name == afterHit && len(it) == 1 && a.Value.Text() != "":
			at.after = a.Value.Text()
		case a.Name == afterRow && len(it) == 1 && len(vs) == 2:
			at.key = &store.Key{Partition: vs[0].Value, Sort: vs[1].Value}
		case a.Name == atRow && len(at.at) == i && len(vs) == 4:
			at.at = append(at.at, store.Cursor{Key: store.Key{Partition: vs[0].Value, Sort: vs[1].Value}, Entry: store.Key{Partition: vs[2].Value, Sort: vs[3].Value}})
		default:
			return place{}, ErrCursor
		}
	}
	return at, nil
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
	made, err := store.WriteRow(ctx, s, owntable.SetSecret(fresh))
	switch {
	case errors.Is(err, store.ErrCondition): // another was first
		return owntable.DecodeSecret(made)
	case err != nil:
		return nil, fmt.Errorf("make the secret of cursors: %w", err)
	}
	return fresh, s.Sync(ctx)
}
