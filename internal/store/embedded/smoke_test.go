package embedded

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

func S(s string) value.Value { return value.OfString(s) }

func TestSmoke(t *testing.T) {
	tables := []store.Table{{Name: "tab", Key: store.KeySchema{Partition: store.KeyAttr{"PK", value.String}, Sort: store.KeyAttr{"SK", value.String}}, Stream: true, TTL: "ttl",
		Indexes: []store.Index{{Name: "G", Key: store.KeySchema{Partition: store.KeyAttr{"G", value.String}}}}}}
	fs := vfs.NewMem()
	s, err := Open("d", tables, Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	k := store.Key{S("a"), S("b")}
	ref := store.Ref{"tab", k}
	out, err := s.Write(ctx, []store.Write{
		{Ref: ref, Put: value.NewItem(value.Attr{"PK", S("a")}, value.Attr{"SK", S("b")}, value.Attr{"G", S("g")}), Return: true},
		{Ref: ref, Ops: []store.Op{{Kind: store.Add, Attr: "n", Value: value.OfInt(3)}}, Return: true},
		{Ref: ref, Ops: []store.Op{{Kind: store.Add, Attr: "n", Value: value.OfInt(0)}}, Return: true},
		{Ref: ref, Delete: true, If: store.Cond{{{"n", store.Lt, value.OfInt(3)}}}, Return: true},
	})
	for _, o := range out {
		t.Log(o.Err, string(value.AppendPlainItem(nil, o.Row)))
	}
	t.Log(err)
	p, err := s.Query(ctx, store.Query{Table: "tab", Index: "G", Partition: S("g")})
	t.Log(p, err)
	sh, err := s.Shards(ctx, "tab")
	t.Log(sh, err)
	for _, x := range sh {
		r, err := s.Read(ctx, "tab", x.ID, events.Position{}, 10)
		t.Log(r, err)
	}
	if _, err := Open("d", tables, Options{FS: fs}); err != nil {
		t.Log(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open("d", tables, Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	its, err := s.Get(ctx, []store.Ref{ref, {"tab", store.Key{S("x"), S("y")}}})
	t.Log(its, err)
	_, err = s.Write(ctx, []store.Write{{Ref: ref, Delete: true}})
	t.Log(err, s.Close())
}
