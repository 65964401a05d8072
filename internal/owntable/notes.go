package owntable

import (
	"fmt"

	"weir/internal/store"
	"weir/internal/value"
)

// The row of secret, s cursor, holds the key that signs the paging cursors of queries. The
// first process that needs the key creates it; nothing deletes it. It has about 50 bytes.
const secretKey = "v"

// SecretBytes is the minimum length of the key.
const SecretBytes = 16

// Secret refers to the row that holds the key for cursors.
func Secret() store.Ref { return Ref(KindSecret, "cursor") }

const secretDo = "delete the row, and a new key is made; cursors that were given before are refused"

// DecodeSecret decodes the key for cursors. The error wraps ErrRow and does not reveal the
// value found.
func DecodeSecret(row value.Item) ([]byte, error) {
	v := row.Get(secretKey)
	if v.Kind() != value.Binary || len(v.Text()) < SecretBytes {
		return nil, hiddenError(row, secretKey, fmt.Sprintf("binary of %d bytes or more", SecretBytes), secretDo)
	}
	return []byte(v.Text()), nil
}

// SetSecret stores the key for cursors, on condition that none is stored. The write
// returns the row.
func SetSecret(key []byte) store.Write {
	return store.Write{
		Ref: Secret(), If: NotThere(), Return: true,
		Put: RefItem(Secret()).With(newAttr(secretKey, value.OfBinary(string(key)))),
	}
}

// The rows of made|TABLE record that a replay made a table, and the table's id. The replay
// writes the row before it makes the table and again afterwards; nothing deletes it. There
// is one row for each table, about 100 bytes. A crash in between leaves a row without an
// id.
const (
	madeBy = "by" // always "replay"
	madeID = "id" // tells the table from others of its name; absent while it is being made
)

const madeDo = "delete the row, drop the table that it names, and replay again"

// DecodeMade decodes the id of the table that a replay made. It is "" while the replay
// makes the table, and if no replay made it. The error wraps ErrRow.
func DecodeMade(row value.Item) (id string, err error) { return decodeText(row, madeID, madeDo) }

// SetMade records that a replay made the table with this id, or, with "", that it is about
// to make one.
func SetMade(at store.Ref, id string) store.Write {
	w := store.Write{Ref: at, Ops: []store.Op{setAttr(madeBy, value.OfString("replay"))}}
	if id != "" {
		w.Ops = append(w.Ops, setAttr(madeID, value.OfString(id)))
	}
	return w
}
