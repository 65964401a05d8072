package lambda_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/store"
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

// TestNumberThatNoSumTakes: a number that a sum cannot take is left out of that sum, which a dead letter says, also
// when the row goes.
func TestNumberThatNoSumTakes(t *testing.T) { numbers(t, inMemory) }

func TestNumberThatNoSumTakesOnDynamoDB(t *testing.T) { numbers(t, onDynamoDB) }

func numbers(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	m, err := model.Parse("films.yaml", []byte(films))
	failtest.On(t, err)
	w := worldOf(t, m, open)
	w.now, w.shards = time.Now().UTC(), []string{"shardId-1"}
	s := value.OfString
	movie := store.Ref{Table: "films", Key: store.Key{Partition: s("MOVIE#m"), Sort: s("METADATA")}}
	row := value.Item{{Name: "PK", Value: s("MOVIE#m")}, {Name: "SK", Value: s("METADATA")}, {Name: "title", Value: s("Em")}, {Name: "type", Value: s("Movie")}}
	if out, err := w.Write(t.Context(), []store.Write{{Ref: movie, Put: row}}); err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
	h := w.over(w)
	sequence := 100
	rating := func(event, image, user, stars string) string {
		sequence++
		key := `"PK":{"S":"USER#` + user + `"},"SK":{"S":"RATING#m"}`
		return fmt.Sprintf(`{"eventID":"e%d","eventName":"%s","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/films/stream/x","dynamodb":{"SequenceNumber":"%d","ApproximateCreationDateTime":%d,"Keys":{%s},"%s":{%s,"type":{"S":"Rating"},"stars":{"N":"%s"}}}}`,
			sequence, event, sequence, w.now.Unix(), key, image, key, stars)
	}
	shows := func(ratings, points string, letters int) {
		t.Helper()
		rows, err := w.Get(t.Context(), []store.Ref{movie})
		failtest.On(t, err)
		if n, p := plainly(rows[0].Get("ratings")), plainly(rows[0].Get("points")); n != ratings || p != points {
			t.Errorf("it shows %s ratings and %s points, not %s and %s", n, p, ratings, points)
		}
		var kinds []deadletter.Kind
		if err := h.Runner.EachDeadLetter(t.Context(), func(d deadletter.Letter) error { kinds = append(kinds, d.Kind); return nil }); err != nil || len(kinds) != letters {
			t.Errorf("dead letters %v, not %d: %v", kinds, letters, err)
		}
	}
	w.twice(h, rating("INSERT", "NewImage", "a", "3"), rating("INSERT", "NewImage", "b", "1e12"), rating("INSERT", "NewImage", "c", "4"))
	shows("3", "7", 1)
	w.twice(h, rating("REMOVE", "OldImage", "b", "1e12"))
	shows("2", "7", 1)
}

func plainly(v value.Value) string {
	if v.IsMissing() {
		return ""
	}
	return string(value.AppendPlain(nil, v))
}
