package ingest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// TestDates: in rows that other programs wrote, a date alone is its midnight in UTC, for what
// supersedes them and for what is computed from it.
func TestDates(t *testing.T) {
	eachDate(t, func(t *testing.T, name string) *ingest.Writer { return newWorld(t, name).Writer })
}

func TestDatesOnDynamoDB(t *testing.T) {
	config := dynamodbtest.Config(t)
	eachDate(t, func(t *testing.T, name string) *ingest.Writer {
		m, err := model.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := system.Tables([]*model.Model{m})
		if err != nil {
			t.Fatal(err)
		}
		return &ingest.Writer{Model: m, Store: dynamodbtest.Open(t, config, tables, dynamodb.Options{})}
	})
}

func eachDate(t *testing.T, open func(t *testing.T, model string) *ingest.Writer) {
	begun := value.NewItem(readText("profileId", "p"), readText("sk", "IN_PROGRESS|a"), readText("a.assetId", "a"), readText("a.state", "IN_PROGRESS"),
		readText("a.updateTime", "2025-01-02"))
	done := value.NewItem(readText("profileId", "p"), readText("sk", "COMPLETED|a"), readText("a.assetId", "a"), readText("a.state", "COMPLETED"),
		readText("a.updateTime", "2025-01-02"), value.Attr{Name: "m.timestamps", Value: value.OfList(value.OfString("2025-01-02"))})
	cached := value.NewItem(readText("cache_key", "c"), readText("response_data", "{}"), readText("cached_at", "2025-01-02"), readText("kind", "movie"))
	completed := func(at string) string {
		return `{"op":"put","entity":"History","item":{"profileId":"p","attr":{"assetId":"a","state":"COMPLETED","updateTime":"` + at + `"}}}`
	}
	for _, tt := range []struct {
		name, model, line string
		was               value.Item
		want              []string // how each row begins that is there afterwards
	}{
		{"a row of midnight goes", "viewing", completed("2025-01-02T00:00:00Z"), begun,
			[]string{`{"a.assetId":"a","a.state":"COMPLETED","a.updateTime":"2025-01-02T00:00:00Z","m.timestamps":["2025-01-02T00:00:00Z"],"profileId":"p","sk":"COMPLETED|a"}`}},
		{"a row of later stays", "viewing", completed("2025-01-01T23:59:59.999Z"), begun,
			[]string{`{"a.assetId":"a","a.state":"COMPLETED","a.updateTime":"2025-01-01T23:59:59.999Z","m.timestamps":["2025-01-01T23:59:59.999Z"],"profileId":"p","sk":"COMPLETED|a"}`,
				`{"a.assetId":"a","a.state":"IN_PROGRESS","a.updateTime":"2025-01-02","profileId":"p","sk":"IN_PROGRESS|a"}`}},
		{"an instant is listed once", "viewing", completed("2025-01-02T01:00:00+01:00"), done,
			[]string{`{"a.assetId":"a","a.state":"COMPLETED","a.updateTime":"2025-01-02T00:00:00Z","m.timestamps":["2025-01-02"],"profileId":"p","sk":"COMPLETED|a"}`}},
		{"what is late is listed before", "viewing", completed("2025-01-01T12:00:00Z"), done,
			[]string{`{"a.assetId":"a","a.state":"COMPLETED","a.updateTime":"2025-01-02","m.timestamps":["2025-01-01T12:00:00Z","2025-01-02"],"profileId":"p","sk":"COMPLETED|a"}`}},
		{"what is later is listed behind", "viewing", completed("2025-01-02T00:00:00.1Z"), done,
			[]string{`{"a.assetId":"a","a.state":"COMPLETED","a.updateTime":"2025-01-02T00:00:00.1Z","m.timestamps":["2025-01-02","2025-01-02T00:00:00.1Z"],"profileId":"p","sk":"COMPLETED|a"}`}},
		{"an attribute is computed", "movienight", `{"op":"update","entity":"Cached","item":{"cache_key":"c","kind":"providers"}}`, cached,
			[]string{`{"cache_key":"c","cached_at":"2025-01-02","kind":"providers","response_data":"{}","ttl":1735819200}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := open(t, tt.model)
			commands := readAll(t, []string{tt.line})
			table := w.Model.Entity(commands[0].Entity).Table
			ref := store.Ref{Table: table.Name, Key: store.Key{Partition: tt.was.Get(table.Key.Partition.Name), Sort: tt.was.Get(table.Key.Sort.Name)}}
			if err := w.Store.Transact(t.Context(), []store.Write{{Ref: ref, Put: tt.was}}); err != nil {
				t.Fatal(err)
			}
			if r := w.Do(t.Context(), commands)[0]; r.Err != nil {
				t.Fatal(r.Err)
			}
			page, err := w.Store.Query(t.Context(), store.Query{Table: table.Name})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, row := range page.Rows {
				got = append(got, string(value.AppendPlainItem(nil, row)))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func readText(name, s string) value.Attr { return value.Attr{Name: name, Value: value.OfString(s)} }
