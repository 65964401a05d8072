package owntable

import (
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of claim|MODEL|ENTITY.FIELD|VALUE are claims: which row has a unique value. The
// command, migration or backfill that gives a row the value writes the claim in the same
// transaction, and the one that takes the value away deletes it. The consumer of the stream
// deletes the claim of a row that TTL or another program has deleted; until then, the next
// command with that value takes it over. A claim has about 300 bytes.
const (
	claimRow   = "r" // the row, as RowText
	claimTable = "t"
	claimKey   = "key"
	claimToken = "n" // another one each time that the claim is taken
)

// ClaimRow is the content of a claim. The zero ClaimRow stands for a claim that does not
// exist.
type ClaimRow struct {
	Table string     // of the row that has the value
	Key   value.Item // of that row; nil if the claim names none
	row   string
	token value.Value
}

// ClaimFrom decodes the row of a claim, nil if there is none. A damaged claim names no
// row: the caller asks the index for rows with the value as well.
func ClaimFrom(row value.Item) ClaimRow {
	return ClaimRow{
		Table: row.Get(claimTable).Text(), Key: row.Get(claimKey).Item(),
		row: row.Get(claimRow).Text(), token: row.Get(claimToken),
	}
}

// IsOf reports whether the claim belongs to a row.
func (c ClaimRow) IsOf(row store.Ref) bool { return c.row == RowText(row) }

// Take gives the claim to a row, whose key attributes are key, on condition that the claim
// has not changed since it was read. The token must be one that no claim had before. It
// keeps two commands that read the same claim from both taking it; a version number would
// begin again after the claim was deleted.
func (c ClaimRow) Take(at, row store.Ref, key value.Item, token string) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{{store.AsRead(claimToken, c.token)}},
		Ops: []store.Op{
			setAttr(claimRow, value.OfString(RowText(row))), setAttr(claimTable, value.OfString(row.Table)),
			setAttr(claimKey, value.OfMap(key)), setAttr(claimToken, value.OfString(token)),
		},
	}
}

// Free deletes the claim of a row, on condition that the claim has not changed since it
// was read. A claim of another row is only checked: a backfill could give it to the row
// meanwhile, and it would then name a row without its value.
func (c ClaimRow) Free(at, row store.Ref) store.Write {
	mine := c.IsOf(row)
	return store.Write{Ref: at, If: store.Cond{{store.AsRead(claimToken, c.token)}}, Delete: mine, Check: !mine}
}

// claimDry is, in the memory of a dry run, the old row that would take the value.
const claimDry = "by"

// TakeDry notes in a table of its own, which no other program sees, that a row would take a
// claim, on condition that none would.
func TakeDry(at store.Ref, by string) store.Write {
	return store.Write{Ref: at, If: NotThere(), Put: RefItem(at).With(newAttr(claimDry, value.OfString(by)))}
}

// DryTaker returns the row that would take a claim.
func DryTaker(row value.Item) string { return row.Get(claimDry).Text() }

// The rows of once|MODEL|KEY are results of commands by their idempotency keys. The
// command writes its row in the transaction of its writes; TTL deletes it after OnceLife.
// There are as many as commands with a key in that time, about 400 bytes each.
const (
	onceDone  = "d"
	onceTable = "t"
	onceKey   = "key"
)

// OnceHash is the attribute with the hash of the command that had an idempotency key. A
// row of a model that stores keys has it too; it is never shown.
const OnceHash = prefix + "of"

// OnceLife is how long an idempotency key is remembered after its use: longer than any
// client goes on sending a command again.
const OnceLife = 48 * time.Hour

// OnceRow is the result of a command.
type OnceRow struct {
	Hash  string     // of the command
	Done  string     // the command's change
	Table string     // of the row that it wrote
	Key   value.Item // of that row
	until int64      // second of its expiry
	was   value.Value
}

// OnceFrom decodes the row of an idempotency key, nil if there is none.
func OnceFrom(row value.Item) OnceRow {
	r := OnceRow{
		Hash: row.Get(OnceHash).Text(), Done: row.Get(onceDone).Text(), Table: row.Get(onceTable).Text(),
		Key: row.Get(onceKey).Item(), was: row.Get(Expiry),
	}
	r.until, _ = r.was.Int64()
	return r
}

// Expired reports whether the key may be used again.
func (r OnceRow) Expired(now time.Time) bool { return r.until <= now.Unix() }

// Becomes stores the result of a command, on condition that the key was not used since its
// row was read.
func (r OnceRow) Becomes(at store.Ref, next OnceRow, now time.Time) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{{store.AsRead(Expiry, r.was)}},
		Put: RefItem(at).With(
			value.Attr{Name: OnceHash, Value: value.OfString(next.Hash)},
			value.Attr{Name: onceDone, Value: value.OfString(next.Done)},
			value.Attr{Name: onceTable, Value: value.OfString(next.Table)},
			value.Attr{Name: onceKey, Value: value.OfMap(next.Key)},
			value.Attr{Name: Expiry, Value: value.OfInt(now.Add(OnceLife).Unix())}),
	}
}
