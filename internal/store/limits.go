package store

import (
	"time"

	"weir/internal/value"
)

// expiryForgotten is how long after its expiry TTL still deletes a row. DynamoDB takes an
// earlier expiry for a mistake.
const expiryForgotten = 5 * 365 * 24 * time.Hour

// ExpiresBetween returns the expiries, in Unix seconds, of the rows that TTL deletes at a
// time: the first and the last of them.
func ExpiresBetween(at time.Time) (first, last int64) {
	return at.Add(-expiryForgotten).Unix(), at.Unix()
}

// Expired reports whether TTL deletes a row at a time, or may have deleted it.
func (t *Table) Expired(row value.Item, at time.Time) bool {
	if t.TTL == "" {
		return false
	}
	n, ok := row.Get(t.TTL).Int64()
	first, last := ExpiresBetween(at)
	return ok && n >= first && n <= last
}

// DynamoDB's limits of expressions and transactions. weir composes its writes within them,
// and every driver refuses values that exceed them, so that a write that one store takes is taken
// by all.
const (
	MaxExpressionBytes = 4 << 10 // an update's or a condition's expression
	MaxOperators       = 300     // operators and functions in an expression
	MaxTransactBytes   = 4 << 20 // the rows of a transaction, each as large as it was or becomes
)

// checkExpressions returns ErrRefused if DynamoDB would not take the write's expressions.
func (w *Write) checkExpressions() error {
	tests := 0
	for _, clause := range w.If {
		tests += max(1, len(clause))
	}
	if len(w.Ops) < fewOps && tests < fewOps {
		return nil
	}
	update, condition := w.Expressions()
	for _, x := range []struct {
		name string
		is   Expression
	}{{"update", update}, {"condition", condition}} {
		if x.is.Bytes > MaxExpressionBytes {
			return refused("the expression of the %s has %d bytes, the limit is %d", x.name, x.is.Bytes, MaxExpressionBytes)
		}
		if x.is.Operators > MaxOperators {
			return refused("the expression of the %s has %d operators, the limit is %d", x.name, x.is.Operators, MaxOperators)
		}
	}
	return nil
}

// fewOps operations or tests never make an expression too large.
const fewOps = 40

// CheckTransact returns ErrRefused if the rows of a transaction are too large together. Each
// counts as it was or as it becomes, whichever is larger.
func CheckTransact(bytes int) error {
	if bytes > MaxTransactBytes {
		return refused("the rows of the transaction have %d bytes, the limit is %d", bytes, MaxTransactBytes)
	}
	return nil
}
