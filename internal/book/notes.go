package book

import (
	"fmt"

	"weir/internal/store"
	"weir/internal/value"
)

// The row of secret, s cursor: the key that signs cursors of queries. The process that
// needs it first makes it; nothing removes it. It has some 50 bytes, after any time.
const secretKey = "v"

// SecretBytes is the least that a key has.
const SecretBytes = 16

// Secret is where the key of cursors is.
func Secret() store.Ref { return Ref(KindSecret, "cursor") }

const secretDo = "delete the row, and a new key is made; cursors that were given before are refused"

// DecodeSecret reads the key of cursors.
func DecodeSecret(row value.Item) ([]byte, error) {
	v := row.Get(secretKey)
	if v.Kind() != value.Binary || len(v.Text()) < SecretBytes {
		return nil, hidden(row, secretKey, fmt.Sprintf("binary of %d bytes or more", SecretBytes), secretDo)
	}
	return []byte(v.Text()), nil
}

// SetSecret makes the key of cursors, on condition that there is none. It returns the
// row.
func SetSecret(key []byte) store.Write {
	own := Table()
	return store.Write{
		Ref: Secret(), If: NotThere(), Return: true,
		Put: own.Item(Secret().Key).With(value.Attr{Name: secretKey, Value: value.OfBinary(string(key))}),
	}
}

// The rows of search, s INDEX: which instance of a search index has all documents. The
// process that fills an index writes them, and one without an index where changes go by;
// nothing removes them. They are one for each index, of some 100 bytes, after any time.
const noteInstance = "i"

// IndexNote is where it stands which instance of an index is complete.
func IndexNote(index string) store.Ref { return Ref("search", index) }

const noteDo = "delete the row; the index is filled again"

// DecodeIndexNote reads the note of an index, nil for one that is not there.
func DecodeIndexNote(row value.Item) (instance string, err error) {
	return text(row, noteInstance, noteDo)
}

// SetIndexNote says which instance of an index is complete.
func SetIndexNote(at store.Ref, instance string) store.Write {
	own := Table()
	return store.Write{Ref: at, Put: own.Item(at.Key).With(value.Attr{Name: noteInstance, Value: value.OfString(instance)})}
}

// The rows of made|TABLE: that a replay made a table, and which one. The replay that makes
// a table writes them, before and after; nothing removes them. They are one for each
// table, of some 100 bytes, after any time.
const (
	madeBy = "by" // always "replay"
	madeID = "id" // what tells the table from others of its name; absent while it is being made
)

const madeDo = "delete the row, drop the table that it names, and replay again"

// DecodeMade reads which table a replay made, "" while it makes it or where it made none.
func DecodeMade(row value.Item) (id string, err error) { return text(row, madeID, madeDo) }

// SetMade says that a replay made a table, or with "" that it is about to.
func SetMade(at store.Ref, id string) store.Write {
	w := store.Write{Ref: at, Ops: []store.Op{set(madeBy, value.OfString("replay"))}}
	if id != "" {
		w.Ops = append(w.Ops, set(madeID, value.OfString(id)))
	}
	return w
}
