package projectorcli

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"weir/internal/failtest"
	"weir/internal/lambda/lambdatest"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
)

// handovers are ways in which a stream gets another reader.
var handovers = map[string]func(*life){"beside marks": (*life).handedOver, "a new mapping": (*life).newMapping}

// TestHandedOver has a function and a process take over from each other while what is derived is
// counted by the marks of a build, on the embedded store. A second test gives the function a new mapping.
func TestHandedOver(t *testing.T) {
	soaktest.Calm(t)
	for name, do := range handovers {
		t.Run(name, func(t *testing.T) {
			l := &life{T: t, at: system.Place{Data: filepath.Join(t.TempDir(), "data")}}
			l.flags = []string{"--data", l.at.Data}
			do(l)
		})
	}
}

// TestHandedOverOnDynamoDB does the same on tables in DynamoDB.
func TestHandedOverOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	for name, do := range handovers {
		t.Run(name, func(t *testing.T) {
			cfg, env := localAWS(t)
			setEnv(t, env)
			l := &life{T: t, at: system.Place{AWS: true, Data: t.TempDir()}, db: sdk.NewFromConfig(cfg), env: env}
			l.flags = []string{"--aws", "--data", l.at.Data}
			do(l)
		})
	}
}

// records are those of each shard behind a position, as Lambda has them, with the position of the
// last of them.
func (l *life) records(behind places) (of map[string][]json.RawMessage, last places) {
	l.Helper()
	of, last = map[string][]json.RawMessage{}, places{}
	l.store(func(db store.Store) {
		shards, err := db.Shards(l.Context(), "Shop")
		failtest.On(l, err)
		for _, sh := range shards {
			from, err := db.Horizon(l.Context(), "Shop", sh.ID)
			failtest.On(l, err)
			if behind[sh.ID].Compare(from) > 0 {
				from = behind[sh.ID]
			}
			page, err := db.Read(l.Context(), "Shop", sh.ID, from, 1000)
			failtest.On(l, err)
			for i := range page.Records {
				of[sh.ID], last[sh.ID] = append(of[sh.ID], lambdatest.Record("Shop", &page.Records[i])), page.Records[i].Position
			}
		}
	})
	return of, last
}

// events are the records of each shard behind a position as a function gets them, with the position
// of the last of them.
func (l *life) events(behind places) (payloads map[string][]byte, last places) {
	l.Helper()
	of, last := l.records(behind)
	payloads = map[string][]byte{}
	for shard, records := range of {
		payloads[shard] = payload(l.T, windowed(shard, records, nil))
	}
	return payloads, last
}

// invoke gives events to a function, and returns what it answered, by shard.
func (l *life) invoke(m string, payloads map[string][]byte, env ...string) map[string]string {
	l.Helper()
	env = append(env, l.env...)
	if l.db == nil {
		env = append(env, "WEIR_DATA="+l.at.Data)
	}
	f := lambdatest.New(l.T, "projector", append([]string{"WEIR_MODEL=" + m}, env...)...)
	f.Start()
	defer f.Kill()
	said := map[string]string{}
	for shard, event := range payloads {
		a := f.Invoke(event, time.Minute)
		said[shard] = a.Kind + " " + a.Body
	}
	return said
}

// applies gives a function the records of each shard behind a position, or all that there are. It
// must acknowledge all, and then the positions move on.
func (l *life) applies(m string, behind places, env ...string) {
	l.Helper()
	payloads, last := l.events(behind)
	for _, said := range l.invoke(m, payloads, env...) {
		if !strings.HasPrefix(said, "response") || strings.Contains(said, "itemIdentifier") {
			l.Fatal(said)
		}
	}
	maps.Copy(behind, last)
}

// read is how far each shard was read.
func (l *life) read() (at places) {
	l.Helper()
	of, _ := l.records(places{})
	at = places{}
	l.store(func(db store.Store) {
		for shard := range of {
			row, err := store.GetRow(l.Context(), db, owntable.Checkpoint("shop", "Shop", shard).Ref)
			failtest.On(l, err)
			c, err := owntable.DecodeCheckpoint(row)
			failtest.On(l, err)
			at[shard] = c.At
		}
	})
	return at
}

// bare is a deployment of a model without searches.
func (l *life) bare() (m string) {
	l.Helper()
	text, _, _ := strings.Cut(lifeModel, "search:")
	m = l.model(text + "queries:\n  customer: {get: Customer, with: [id]}\nderive:\n" + lifeCount + lifeSum)
	l.deploys(m)
	return m
}

// shown is what the customer's row should show.
func (l *life) shown() map[string]int {
	want := l.want()
	delete(want, "large")
	return want
}

// handedOver hands the stream from a function to a process and back, with a build that counts by marks.
func (l *life) handedOver() {
	m, at := l.bare(), places{}
	l.write(6)
	l.applies(m, at)
	l.ends(exitGood, []string{"build", m, "--again"}, "Customer: live")
	l.write(3)
	l.applies(m, at)
	l.exact(m)
	for range 2 {
		l.write(3)
		l.runs(m, l.shown())
		l.exact(m)
		l.write(2)
		l.applies(m, at) // also what the process has counted
		l.exact(m)
	}
}

// newMapping makes a mapping after a process that begins at the end of the stream, and one that begins too late.
func (l *life) newMapping() {
	m := l.bare()
	l.write(6)
	l.runs(m, l.shown())
	at := l.read()
	l.write(3)
	l.applies(m, at)
	l.exact(m)
	l.write(2)
	l.runs(m, l.shown())
	l.write(2)
	_, at = l.records(places{})
	l.write(3)
	payloads, _ := l.events(at)
	refused := 0
	for _, said := range l.invoke(m, payloads) {
		if strings.Contains(said, "the stream has records before it that did not come") {
			refused++
		}
	}
	if refused == 0 {
		l.Error("a function passes over what nothing has read")
	}
	l.runs(m, l.shown())
	l.exact(m)
}
