package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// FuzzPosition holds positions to math/big: what is taken, how it compares, and
// that both ways of writing it give it back.
func FuzzPosition(f *testing.F) {
	for _, s := range []string{"0", "1", "00", "100000000000000000001", "49545115243490985018280067714973144582180062593244200961", "9999999999999999999999999999999999999999", "18446744073709551616", "-1", " 1", "1e3", "０"} {
		f.Add(s, "340282366920938463463374607431768211456")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		p, n := bothWays(t, a)
		q, m := bothWays(t, b)
		if n != nil && m != nil && p.Compare(q) != n.Cmp(m) {
			t.Fatalf("%s and %s compare %d", a, b, p.Compare(q))
		}
	})
}

// bothWays is a text as a position and as a number, nil where it is none.
func bothWays(t *testing.T, s string) (Position, *big.Int) {
	p, err := ParsePosition(s)
	digits := s != "" && len(s) <= maxPositionDigits && strings.Trim(s, "0123456789") == ""
	if (err == nil) != digits || err != nil && !errors.Is(err, ErrPosition) {
		t.Fatalf("%q: %v", s, err)
	}
	if err != nil {
		return p, nil
	}
	n, _ := new(big.Int).SetString(s, 10)
	if p.String() != n.String() || new(big.Int).SetBytes(p[:]).Cmp(n) != 0 || PositionFrom(p.Value()) != p {
		t.Fatalf("%s is %s, %x, and from its value %s", s, p, p[:], PositionFrom(p.Value()))
	}
	if n.IsUint64() && (p.Uint64() != n.Uint64() || PositionOf(n.Uint64()) != p) {
		t.Fatalf("%s is %d", s, p.Uint64())
	}
	return p, n
}

// FuzzPayload: of an invocation's payload nothing is passed over in silence. One
// that gives neither entries nor an error is an event with an empty list of records, or
// of a window to which none came, as encoding/json sees it too.
func FuzzPayload(f *testing.F) {
	f.Add(lambdaPayload(2))
	for _, s := range []string{
		"", " ", "[]", "null", "{}", `{"Records":[]}`, `{"Records":null}`, `{"Records":[],"window":{"start":"a","end":"b"},"state":{"weir":"7"},"shardId":"s","isFinalInvokeForWindow":true}`,
		`{"window":{"start":"a","end":"b"},"state":{},"shardId":"s","isFinalInvokeForWindow":true}`,
		`{"window":{"start":"a"}}`, `{"shardId":"s","window":{}}`, `{"shardId":"s","window":{"start":""}}`, `{"shardId":"","window":{"start":"a"}}`, `{"payload":{"shardId":"s","window":{"start":"a"}}}`,
		`[[]]`, `,`, "\ufeff", `{"payload":[]}`, `{"payload":{"Records":[]}}`, `{"Records":[]}{"Records":[]}`, `{"records":[]}`, `{"Records":[`, `{"Records":[],"Records":[1]}`, `[{"Records":[]}]`,
		`[]{"Records":[]}`, `{"Records":[],"Records":null}`, `{"shardId":"s","window":{"start":"a"},"window":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		ev, err := DecodeLambda(payload)
		if err != nil {
			if !errors.Is(err, ErrNoRecords) || len(ev.Entries) > 0 {
				t.Fatalf("%d entries, %v", len(ev.Entries), err)
			}
			return
		}
		if docs := documents(payload); len(ev.Entries) == 0 && !anyObject(docs, holdsEmptyList) && !anyObject(docs, endsWindow) {
			t.Fatalf("%q passes as an event without records", payload)
		}
	})
}

// documents are those of a payload up to the first that is none.
func documents(payload []byte) (docs []any) {
	for {
		payload = bytes.TrimPrefix(bytes.TrimLeft(payload, " \t\r\n,"), []byte("\ufeff"))
		d := json.NewDecoder(bytes.NewReader(payload))
		doc, err := document(d)
		if err != nil {
			return docs
		}
		docs, payload = append(docs, doc), payload[d.InputOffset():]
	}
}

// members are those of an object; a name may come twice.
type members []member

type member struct {
	name  string
	value any
}

func document(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		object := members{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := document(d)
			if err != nil {
				return nil, err
			}
			object = append(object, member{name.(string), v})
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := document(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}

// endsWindow reports whether an object is an event that names its shard and its
// window, in the capitals in which Lambda writes them.
func endsWindow(o members) bool {
	return o.any("shardId", isText) && o.any("window", func(v any) bool {
		window, _ := v.(members)
		return window.any("start", isText)
	})
}

func isText(v any) bool {
	text, _ := v.(string)
	return text != ""
}

// any reports whether a member of that name is one.
func (o members) any(name string, is func(any) bool) bool {
	return slices.ContainsFunc(o, func(m member) bool { return m.name == name && is(m.value) })
}

// holdsEmptyList reports whether an object has an empty list of records.
func holdsEmptyList(o members) bool {
	return slices.ContainsFunc(o, func(m member) bool {
		list, ok := m.value.([]any)
		return ok && strings.EqualFold(m.name, "Records") && !anyRecord(list)
	})
}

// anyObject reports whether an object that a document is, or holds at any depth, is one.
func anyObject(v any, is func(members) bool) bool {
	switch v := v.(type) {
	case members:
		return is(v) || slices.ContainsFunc(v, func(m member) bool { return anyObject(m.value, is) })
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return anyObject(e, is) })
	}
	return false
}

// anyRecord reports whether a list holds anything but lists of nothing.
func anyRecord(list []any) bool {
	for _, e := range list {
		inner, ok := e.([]any)
		if !ok || anyRecord(inner) {
			return true
		}
	}
	return false
}
