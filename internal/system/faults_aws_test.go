package system_test

import (
	"fmt"
	"testing"
	"time"
	"weir/internal/owntable"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
)

// TestFaultsOnDynamoDB: calls whose answers are lost are settled alone. No batch fails, and
// every record counts once, whether the shard of the records is known or not.
func TestFaultsOnDynamoDB(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]dynamodbtest.Faults{
		"dropped and broken": {Dropped: 0.01, Broken: 0.01},
		"silent":             {Silent: 0.02},
		"throttled":          {Throttled: 0.05},
	} {
		t.Run(name, func(t *testing.T) { countThrough(t, faults) })
	}
}

func countThrough(t *testing.T, faults dynamodbtest.Faults) {
	t.Parallel()
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	const albums, pictures, batch = 200, 1000, 250
	cfg := dynamodbtest.Config(t)
	db := dynamodbtest.Open(t, cfg, tables, dynamodb.Options{})
	var rows []store.Write
	for i := range albums {
		id := fmt.Sprintf("a%d", i)
		row := rowOf("PK", "ALBUM#"+id, "SK", "METADATA", "EntityType", "Album", "id", id, "title", "t")
		key, _ := m.Tables[0].KeyOf(row)
		rows = append(rows, store.Write{Ref: store.Ref{Table: m.Tables[0].Name, Key: key}, Put: row})
	}
	if _, err := db.Write(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	proxy := dynamodbtest.NewFaulty(*cfg.BaseEndpoint, 1)
	defer proxy.Close()
	cfg.BaseEndpoint = &proxy.URL
	through := dynamodb.Open(cfg, tables, dynamodb.Options{})
	defer through.Close()
	proxy.Set(faults)
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: through, Now: time.Now}
	want := map[string]int64{}
	for at := 0; at < pictures; at += batch {
		b := runner.Batch{ShardKey: owntable.ShardKey(m.Tables[0].Name, "shard")}
		for i := at; i < at+batch; i++ {
			album := fmt.Sprintf("a%d", i*i%albums)
			want[album]++
			b.Changes = append(b.Changes, added(t, m, album, i))
		}
		if n, err := r.Rows(t.Context(), b); err != nil || n.Applied != batch {
			t.Fatalf("%+v, %v", n, err)
		}
	}
	if proxy.Struck.Load() == 0 {
		t.Error("no request went wrong")
	}
	for i := range rows {
		got, err := db.Get(t.Context(), []store.Ref{rows[i].Ref})
		if err != nil {
			t.Fatal(err)
		}
		id := rows[i].Put.Get("id").Text()
		if n, _ := got[0].Get("mediaCount").Int64(); n != want[id] {
			t.Errorf("%s shows %d pictures, it has %d", id, n, want[id])
		}
	}
}

// added is the record of a picture that was put into an album.
func added(t *testing.T, m *model.Model, album string, i int) projections.Change {
	t.Helper()
	id := fmt.Sprintf("m%d", i)
	row := rowOf("PK", "ALBUM#"+album, "SK", "MEDIA#"+id, "EntityType", "AlbumMedia", "albumId", album, "mediaId", id, "addedAt", "2025-03-01T08:00:00.000Z")
	return changeOf(t, m, row, uint64(i+1))
}
