package system_test

import (
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// TestFollowersLeaveOnDynamoDB says that a copy that is removed leaves the lists of what it
// followed, in one transaction of two rows for each attribute, and that one that follows the
// row after all stays.
func TestFollowersLeaveOnDynamoDB(t *testing.T) {
	t.Parallel()
	m, err := model.Load("../sim/testdata/press.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	var paid bill
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{Consumed: paid.take})
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
	apply := func(at uint64, was, is value.Item) {
		t.Helper()
		row := is
		if is == nil {
			row = was
		}
		key, _ := m.Tables[0].KeyOf(row)
		c, ok := projections.NewChange(m.Tables[0], &events.Record{Keys: m.Tables[0].Item(key), Old: was, New: is, Position: events.PositionOf(at), Time: time.Unix(int64(at), 0)})
		if !ok {
			t.Fatal("no key")
		}
		paid.start()
		if n, err := r.Rows(t.Context(), runner.Batch{ShardKey: "shardKey", Changes: []projections.Change{c}}); err != nil || n.Dead > 0 {
			t.Fatal(n, err)
		}
	}
	places := func(author string) (n int, v value.Item) {
		t.Helper()
		list := owntable.Followed(m.Name, "Author.name", store.Ref{Table: "press", Key: store.Key{Partition: value.OfString("AUTHOR#" + author), Sort: value.OfString("METADATA")}})
		page, err := db.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: list.Key.Partition})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			if value.Equal(row.Get(owntable.Sort), list.Key.Sort) {
				v = row
			} else {
				n++
			}
		}
		return n, v
	}
	author := rowOf("PK", "AUTHOR#a", "SK", "METADATA", "type", "Author", "name", "Ada")
	by := func(name string) value.Item {
		return rowOf("PK", "POST#1", "SK", "METADATA", "type", "Post", "title", "One", "author", name)
	}
	apply(1, nil, author)
	apply(2, nil, by("a"))
	if n, _ := places("a"); n != 2 {
		t.Fatalf("%d places for two attributes that follow", n)
	}
	// Two transactions leave lists; the third lets a ledger go, as no author is in the table.
	apply(3, by("a"), by("b"))
	if n, _ := places("a"); n != 0 || paid.requests["weir TransactWriteItems"] != 3 || paid.requests["press TransactWriteItems"] != 3 {
		t.Errorf("it left %d places behind, by %v", n, paid.requests)
	}
	apply(4, by("b"), by("a"))
	apply(3, by("a"), by("b")) // it comes again, and is overtaken
	if n, _ := places("a"); n != 2 {
		t.Errorf("%d places are left of a row that follows after all", n)
	}
	apply(5, author, nil)
	if _, v := places("a"); !owntable.FollowedFrom(v).Gone || v.Has(owntable.Expiry) {
		t.Errorf("the last value of what is kept is %v", v)
	}
	apply(6, by("a"), nil)
	if paid.requests["weir TransactWriteItems"] != 3 || paid.requests["press TransactWriteItems"] != 3 {
		t.Errorf("it leaves two lists by %v", paid.requests)
	}
	if n, v := places("a"); n != 0 || !v.Has(owntable.Expiry) {
		t.Errorf("%d places are left, and of the value %v", n, v)
	}
}
