package lambda_test

import (
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

const films = `model: films
tables:
  films: {key: [PK, SK]}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}, attributes: {title: string}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {stars: number}}
derive:
  Movie.ratings: {count: Rating, to: {id: movie}}
  Movie.points: {sum: Rating.stars, to: {id: movie}}
`

// TestNumberThatNoSumHas: a number that no sum can be shown with stops nothing but that sum,
// which a dead letter says. It comes right by itself when the row goes.
func TestNumberThatNoSumHas(t *testing.T) {
	for _, o := range []lambda.Order{lambda.ByItem, lambda.ByShard} {
		t.Run(string(o), func(t *testing.T) {
			numbers(t, o, func(tables []store.Table) (store.Store, error) {
				return embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
			})
		})
	}
}

func TestNumberThatNoSumHasOnDynamoDB(t *testing.T) {
	for _, o := range []lambda.Order{lambda.ByItem, lambda.ByShard} {
		t.Run(string(o), func(t *testing.T) {
			numbers(t, o, func(tables []store.Table) (store.Store, error) {
				return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{}), nil
			})
		})
	}
}

func numbers(t *testing.T, o lambda.Order, open func([]store.Table) (store.Store, error)) {
	m, err := model.Parse("films.yaml", []byte(films))
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
	s := value.OfString
	movie := store.Ref{Table: "films", Key: store.Key{Partition: s("MOVIE#m"), Sort: s("METADATA")}}
	row := value.Item{{Name: "PK", Value: s("MOVIE#m")}, {Name: "SK", Value: s("METADATA")}, {Name: "title", Value: s("Em")}, {Name: "type", Value: s("Movie")}}
	if out, err := db.Write(t.Context(), []store.Write{{Ref: movie, Put: row}}); err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
	w := &world{Store: db, t: t, model: m, now: time.Now().UTC(), shards: []string{"shardId-1"}}
	h := w.byOrder(o, w)
	sequence := 100
	invoke := func(records ...string) {
		t.Helper()
		payload := recordsOf(records...)
		if o == lambda.ByShard {
			payload = strings.Replace(inWindow(","+payload[1:len(payload)-1]+`,"state":{},"isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false`), "table/gallery", "table/films", 1)
		}
		for range 2 { // it is delivered again
			if out, err := h.Invoke(t.Context(), []byte(payload)); err != nil || !strings.HasPrefix(string(out), `{"batchItemFailures":[]`) {
				t.Fatalf("%.300s %v", out, err)
			}
		}
	}
	rating := func(event, image, user, stars string) string {
		sequence++
		key := `"PK":{"S":"USER#` + user + `"},"SK":{"S":"RATING#m"}`
		return fmt.Sprintf(`{"eventID":"e%d","eventName":"%s","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/films/stream/x","dynamodb":{"SequenceNumber":"%d","ApproximateCreationDateTime":%d,"Keys":{%s},"%s":{%s,"type":{"S":"Rating"},"stars":{"N":"%s"}}}}`,
			sequence, event, sequence, w.now.Unix(), key, image, key, stars)
	}
	shows := func(ratings, points string, letters int) {
		t.Helper()
		rows, err := w.Get(t.Context(), []store.Ref{movie})
		if err != nil {
			t.Fatal(err)
		}
		if n, p := plainly(rows[0].Get("ratings")), plainly(rows[0].Get("points")); n != ratings || p != points {
			t.Errorf("it shows %s ratings and %s points, not %s and %s", n, p, ratings, points)
		}
		var kinds []runner.DeadKind
		if err := h.Runner.Dead(t.Context(), func(d runner.Dead) error { kinds = append(kinds, d.Kind); return nil }); err != nil || len(kinds) != letters {
			t.Errorf("dead letters %v, not %d: %v", kinds, letters, err)
		}
	}
	invoke(rating("INSERT", "NewImage", "a", "3"), rating("INSERT", "NewImage", "b", "1e125"), rating("INSERT", "NewImage", "c", "4"))
	shows("3", "", 1)
	invoke(rating("REMOVE", "OldImage", "b", "1e125"))
	shows("2", "7", 0)
}

func plainly(v value.Value) string {
	if v.IsMissing() {
		return ""
	}
	return string(value.AppendPlain(nil, v))
}
