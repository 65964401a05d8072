package search

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// ID is the document id of a row. It is the row's key as text, and ParseID reads it
// back. Each part of the key has its type, its length and its text:
// S7:ALBUM#1S8:METADATA. An id longer than MaxID bytes cannot be indexed; OpenSearch
// has the same limit.
func ID(k store.Key) string {
	var b strings.Builder
	for _, v := range [...]value.Value{k.Partition, k.Sort} {
		if v.IsMissing() {
			continue
		}
		text := v.Text()
		if v.Kind() == value.Binary {
			text = base64.RawURLEncoding.EncodeToString([]byte(text))
		}
		b.WriteString(v.Kind().Descriptor())
		b.WriteString(strconv.Itoa(len(text)))
		b.WriteByte(':')
		b.WriteString(text)
	}
	return b.String()
}

// MaxID is the longest document id, in bytes.
const MaxID = 512

// ParseID returns the key from which ID made the id.
func ParseID(id string) (store.Key, error) {
	var parts []value.Value
	for rest := id; rest != ""; {
		head, tail, ok := strings.Cut(rest, ":")
		if !ok || len(head) < 2 {
			return store.Key{}, badID(id)
		}
		n, err := strconv.Atoi(head[1:])
		if err != nil || n < 0 || n > len(tail) || len(parts) == 2 {
			return store.Key{}, badID(id)
		}
		v, err := parsePart(head[0], tail[:n])
		if err != nil {
			return store.Key{}, badID(id)
		}
		parts, rest = append(parts, v), tail[n:]
	}
	switch len(parts) {
	case 1:
		return store.Key{Partition: parts[0]}, nil
	case 2:
		return store.Key{Partition: parts[0], Sort: parts[1]}, nil
	}
	return store.Key{}, badID(id)
}

// parsePart reads one part of an id: a string as it is, a number as DynamoDB writes it, a binary in
// base64 for URLs without padding.
func parsePart(kind byte, text string) (value.Value, error) {
	switch kind {
	case 'S':
		return value.OfString(text), nil
	case 'N':
		return value.ParseNumber(text)
	case 'B':
		raw, err := base64.RawURLEncoding.DecodeString(text)
		return value.OfBinary(string(raw)), err
	}
	return value.Value{}, fmt.Errorf("type %q", kind)
}

func badID(id string) error { return fmt.Errorf("%.80q is not the id of a row's document", id) }

// PlainName returns a name for a place where only lower-case letters, digits, "-" and "_"
// are safe: every other byte is written in the given format. Different names stay
// different, because the format begins with a character that is never kept.
func PlainName(name, format string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, format, c)
		}
	}
	return b.String()
}
