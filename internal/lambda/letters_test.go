package lambda_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestLetterOfAnyRecord: a row whose derived key is far beyond every limit becomes a
// dead letter, also when it is delivered again. Later records
// of the same event are applied, and the letter can be read, retried and discarded.
func TestLetterOfAnyRecord(t *testing.T) {
	letters(t, inMemory)
}

func TestLetterOfAnyRecordOnDynamoDB(t *testing.T) { letters(t, onDynamoDB) }

func letters(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	m, err := model.Load("wardrobe")
	failtest.On(t, err)
	w := worldOf(t, m, open)
	w.shards = []string{"shardId-1"}
	item := func(seq, id, user, at string) string {
		row := `"PK":{"S":"ITEM#` + id + `"},"SK":{"S":"METADATA"}`
		return fmt.Sprintf(`{"eventID":"e%s","eventName":"INSERT","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/WardrobeTable/stream/x","dynamodb":{"SequenceNumber":"%s","ApproximateCreationDateTime":1767225600,"Keys":{%s},"NewImage":{%s,"EntityType":{"S":"Item"},"UserId":{"S":"%s"},"Name":{"S":"Hat"},"Category":{"S":"hats"},"CreatedAt":{"S":"%s"},"UpdatedAt":{"S":"2025-01-01T00:00:00Z"},"filler":{"S":"%s"}}}}`,
			seq, seq, row, row, user, at, strings.Repeat("f", 200_000))
	}
	wide, late := strings.Repeat("w", 140_000), "2025-01-01T00:00:00."+strings.Repeat("1", 150_000)+"Z"
	h := w.over(w)
	w.twice(h, item("76", "wide", wide, "2025-01-01T00:00:00Z"), item("77", "late", "bo", late), item("78", "good", "ida", "2025-01-01T00:00:00Z"))
	copied, err := w.Get(t.Context(), []store.Ref{{Table: "WardrobeTable", Key: store.Key{Partition: value.OfString("USER#ida"), Sort: value.OfString("ITEM#good")}}})
	if err != nil || copied[0].Get("Name").Text() != "Hat" {
		t.Error(copied, err)
	}
	var ids []string
	if err := h.Runner.EachDeadLetter(t.Context(), func(d deadletter.Letter) error { ids = append(ids, d.ID); return nil }); err != nil || len(ids) != 3 {
		t.Fatal(ids, err)
	}
	for _, id := range ids {
		d, err := h.Runner.DeadByID(t.Context(), id)
		if err != nil || d.ChangeRecord().New.Get("UserId").Text() != wide && d.ChangeRecord().New.Get("CreatedAt").Text() != late {
			t.Errorf("%s %.300s: %v", id, d.Reason, err)
		}
		if err := h.Runner.RetryLetter(t.Context(), id); err == nil {
			t.Errorf("%s %.300s was applied", id, d.Reason)
		}
		if err := h.Runner.DiscardLetter(t.Context(), id); err != nil {
			t.Error(err)
		}
		if _, err := h.Runner.DeadByID(t.Context(), id); !errors.Is(err, deadletter.ErrNoDead) {
			t.Error(err)
		}
	}
	if page, err := w.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Dead(m.Name))}); err != nil || len(page.Rows) > 0 {
		t.Error(len(page.Rows), err)
	}
}
