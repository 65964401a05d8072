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
// and every driver refuses what exceeds them, so that a write that one store takes is taken
// by all.
const (
	MaxExpressionBytes = 4 << 10 // an update's or a condition's expression
	MaxOperators       = 300     // operators and functions in an expression
	MaxTransactBytes   = 4 << 20 // the rows of a transaction, each as large as it was or becomes
)

// checkExpressions returns ErrRefused if DynamoDB would not take the write's expressions.
// The sizes are those of the text that the DynamoDB driver writes, with placeholders for all
// names and values.
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

// Expression is the size of an expression.
type Expression struct{ Bytes, Operators int }

// Expressions returns the sizes of a write's update and condition.
// Bytes are those of the text that DynamoDB gets, with placeholders for names and values. A name that occurs twice has one
// placeholder.
func (w *Write) Expressions() (update, condition Expression) {
	p := placeholders{names: map[string]int{}}
	sections := map[OpKind]bool{}
	for i := range w.Ops {
		op := &w.Ops[i]
		name, kind := p.name(op.Attr), op.Kind
		switch {
		case op.Kind == Set:
			update.Bytes += name + len("=") + p.value()
		case op.Kind == Add && op.From.IsMissing():
			update.Bytes += name + len(" ") + p.value()
			update.Operators++
		case op.Kind == Add:
			update.Bytes += 2*name + len("=if_not_exists(,)+") + p.value() + p.value()
			update.Operators += 2
			kind = Set
		default:
			update.Bytes += name
		}
		update.Bytes++ // a comma, or the blank before the first of its section
		sections[kind] = true
	}
	for kind, n := range map[OpKind]int{Set: len("SET"), Add: len("ADD"), Remove: len("REMOVE")} {
		if sections[kind] {
			update.Bytes += n + len(" ")
		}
	}
	update.Bytes = max(0, update.Bytes-1)
	for i, clause := range w.If {
		condition.Bytes += len("()")
		if i > 0 {
			condition.Bytes += len(" AND ")
			condition.Operators++
		}
		for j := range clause {
			if j > 0 {
				condition.Bytes += len(" OR ")
				condition.Operators++
			}
			condition.add(&p, &clause[j])
		}
		if len(clause) == 0 {
			condition.Bytes += len("attribute_exists() AND attribute_not_exists()") + 2*len("#999")
			condition.Operators += 3
		}
	}
	return update, condition
}

// add counts the text of a test as the DynamoDB driver writes it. The driver's own tests hold
// the two to each other.
func (x *Expression) add(p *placeholders, t *Test) {
	name := p.name(t.Attr)
	x.Operators++
	switch t.Is {
	case Exists:
		x.Bytes += len("attribute_exists()") + name
	case Absent:
		x.Bytes += len("attribute_not_exists()") + name
	case Ne:
		x.Bytes += len("attribute_not_exists() OR <>") + 2*name + p.value()
		x.Operators += 2
	case Le:
		x.Bytes += name + len("<=") + p.value()
	default:
		x.Bytes += name + len("=") + p.value()
	}
}

// placeholders counts the names and values of a request's expressions.
type placeholders struct {
	names  map[string]int
	values int
}

// name returns the length of the placeholder of an attribute's name. A name that stands twice
// has one placeholder.
func (p *placeholders) name(n string) (size int) {
	i, ok := p.names[n]
	if !ok {
		i = len(p.names)
		p.names[n] = i
	}
	return sizeOf(i)
}

// value counts one more value of an expression, and returns the bytes of its placeholder.
func (p *placeholders) value() (size int) {
	p.values++
	return sizeOf(p.values - 1)
}

// sizeOf is the length of # or : and a number.
func sizeOf(i int) int {
	n := 2
	for ; i >= 10; i /= 10 {
		n++
	}
	return n
}

// CheckTransact returns ErrRefused if the rows of a transaction are too large together. Each
// counts as it was or as it becomes, whichever is larger.
func CheckTransact(bytes int) error {
	if bytes > MaxTransactBytes {
		return refused("the rows of the transaction have %d bytes, the limit is %d", bytes, MaxTransactBytes)
	}
	return nil
}
