package dynamodb_test

import (
	"strings"
	"testing"

	"weir/internal/deploy"
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// TestMayOnDynamoDB: the calls for each permission are such as DynamoDB takes, need that permission and no other on the
// table, and leave nothing: no row, and no record in the stream.
func TestMayOnDynamoDB(t *testing.T) {
	cfg := dynamodbtest.Config(t)
	rec := dynamodbtest.NewRecorder(*cfg.BaseEndpoint)
	defer rec.Close()
	own, rows := deploy.Own(), store.Table{Name: "rows", Key: store.KeySchema{Partition: store.KeyAttr{Name: "n", Type: value.Number}, Sort: store.KeyAttr{Name: "b", Type: value.Binary}}, Stream: true}
	s := dynamodbtest.Open(t, cfg, []store.Table{own, rows}, dynamodb.Options{})
	cfg.BaseEndpoint = &rec.URL
	asked := dynamodb.Open(cfg, []store.Table{own, rows}, dynamodb.Options{})
	defer asked.Close()
	want := map[string]bool{}
	for _, p := range []deploy.Process{deploy.Rows} {
		for _, g := range deploy.Grants(p) {
			table := map[deploy.Resource]string{deploy.OwnTable: own.Name, deploy.ModelTables: "rows", deploy.ModelStreams: "rows"}[g.On]
			for _, a := range g.Actions {
				if table == "" {
					continue
				}
				want[a+" "+table] = true
				if got := asked.May(t.Context(), a, table, ""); got.Unknown != "" || !got.Is {
					t.Errorf("%s on %s: %+v", a, table, got)
				}
			}
		}
	}
	calls, odd := rec.Calls()
	if len(odd) > 0 {
		t.Errorf("%q", odd)
	}
	for w := range want {
		action, table, _ := strings.Cut(w, " ")
		met := false
		for c := range calls {
			met = met || c.Action == action && strings.HasPrefix(c.Resource, "table/"+table)
		}
		if !met {
			t.Errorf("%s on %s was not asked", action, table)
		}
	}
	for c := range calls {
		if parts := strings.Split(c.Resource, "/"); !want[c.Action+" "+parts[1]] {
			t.Errorf("%s on %s was asked, and is not granted", c.Action, c.Resource)
		}
	}
	shards, err := s.Shards(t.Context(), "rows")
	if err != nil || len(shards) == 0 {
		t.Fatal(shards, err)
	}
	page, err := s.Read(t.Context(), "rows", shards[0].ID, events.Position{}, 10)
	if err != nil || len(page.Records) > 0 {
		t.Errorf("%d records came of dry calls, %v", len(page.Records), err)
	}
}
