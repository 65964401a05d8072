package lambda_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/lambda"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// TestLetterOfAnyRecord: a row whose derived key is far beyond every limit becomes a
// dead letter, in either order of events and when it is delivered again. Later records
// of the same event are applied, and the letter can be read, retried and discarded.
func TestLetterOfAnyRecord(t *testing.T) {
	for _, o := range []lambda.Order{lambda.ByItem, lambda.ByShard} {
		t.Run(string(o), func(t *testing.T) {
			letters(t, o, func(tables []store.Table) (store.Store, error) {
				return embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
			})
		})
	}
}

func TestLetterOfAnyRecordOnDynamoDB(t *testing.T) {
	letters(t, lambda.ByItem, func(tables []store.Table) (store.Store, error) {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{}), nil
	})
}

func letters(t *testing.T, o lambda.Order, open func([]store.Table) (store.Store, error)) {
	m, err := model.Load("wardrobe")
	if err != nil {
		t.Fatal(err)
	}
	st := m.Tables[0].Table
	st.Stream = true
	db, err := open([]store.Table{owntable.Table(), st})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := &world{Store: db, t: t, model: m, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), shards: []string{"shardId-1"}}
	item := func(seq, id, user, at string) string {
		row := `"PK":{"S":"ITEM#` + id + `"},"SK":{"S":"METADATA"}`
		return fmt.Sprintf(`{"eventID":"e%s","eventName":"INSERT","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/WardrobeTable/stream/x","dynamodb":{"SequenceNumber":"%s","ApproximateCreationDateTime":1767225600,"Keys":{%s},"NewImage":{%s,"EntityType":{"S":"Item"},"UserId":{"S":"%s"},"Name":{"S":"Hat"},"Category":{"S":"hats"},"CreatedAt":{"S":"%s"},"UpdatedAt":{"S":"2025-01-01T00:00:00Z"},"filler":{"S":"%s"}}}}`,
			seq, seq, row, row, user, at, strings.Repeat("f", 200_000))
	}
	wide, late := strings.Repeat("w", 140_000), "2025-01-01T00:00:00."+strings.Repeat("1", 150_000)+"Z"
	payload := recordsOf(item("76", "wide", wide, "2025-01-01T00:00:00Z"), item("77", "late", "bo", late), item("78", "good", "ida", "2025-01-01T00:00:00Z"))
	if o == lambda.ByShard {
		payload = strings.Replace(inWindow(","+payload[1:len(payload)-1]+`,"state":{},"isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false`), "table/gallery", "table/WardrobeTable", 1)
	}
	h := w.byOrder(o, w)
	for range 2 {
		if out, err := h.Invoke(t.Context(), []byte(payload)); err != nil || !strings.HasPrefix(string(out), `{"batchItemFailures":[]`) {
			t.Fatalf("%.300s %v", out, err)
		}
	}
	copied, err := w.Get(t.Context(), []store.Ref{{Table: "WardrobeTable", Key: store.Key{Partition: value.OfString("USER#ida"), Sort: value.OfString("ITEM#good")}}})
	if err != nil || copied[0].Get("Name").Text() != "Hat" {
		t.Error(copied, err)
	}
	var ids []string
	if err := h.Runner.Dead(t.Context(), func(d runner.Dead) error { ids = append(ids, d.ID); return nil }); err != nil || len(ids) != 3 {
		t.Fatal(ids, err)
	}
	for _, id := range ids {
		d, err := h.Runner.DeadByID(t.Context(), id)
		if err != nil || d.ChangeRecord().New.Get("UserId").Text() != wide && d.ChangeRecord().New.Get("CreatedAt").Text() != late {
			t.Errorf("%s %.300s: %v", id, d.Reason, err)
		}
		if _, err := h.Runner.Retry(t.Context(), id); err == nil {
			t.Errorf("%s %.300s was applied", id, d.Reason)
		}
		if err := h.Runner.Discard(t.Context(), id); err != nil {
			t.Error(err)
		}
		if _, err := h.Runner.DeadByID(t.Context(), id); !errors.Is(err, runner.ErrNoDead) {
			t.Error(err)
		}
	}
	if page, err := w.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Dead(m.Name))}); err != nil || len(page.Rows) > 0 {
		t.Error(len(page.Rows), err)
	}
}
