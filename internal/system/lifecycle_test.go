package system_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

const lifeOf = `
model: life
tables: {life: {key: [PK, SK]}}
entities:
  Album: {where: {t: album}, key: {PK: "A#{id}", SK: A}, attributes: {title: string}}
  Picture: {where: {t: picture}, key: {PK: "A#{id}", SK: "P#{p}"}, attributes: {size: number}}
derive:
  Album.count: {count: Picture, to: {id: id}}
  Album.size: {sum: Picture.size, to: {id: id}}
`

// TestOlderProgramBesideANewer: of two programs with different models on one store, the one
// that does not have what is derived has its next batch refused. It applies nothing of it,
// its checkpoints stay, and the right program goes on.
func TestOlderProgramBesideANewer(t *testing.T) {
	older := strings.Replace(lifeOf, "  Album.size: {sum: Picture.size, to: {id: id}}\n", "", 1)
	other := strings.Replace(lifeOf, "{count: Picture,", "{count: Picture, where: {size: present},", 1)
	for name, wrong := range map[string]string{"older": older, "another": other} {
		t.Run(name, func(t *testing.T) {
			models := map[string]*model.Model{}
			for as, text := range map[string]string{"right": lifeOf, "wrong": wrong} {
				m, err := model.Parse("life.yaml", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				models[as] = m
			}
			tables, err := system.Tables([]*model.Model{models["right"]})
			if err != nil {
				t.Fatal(err)
			}
			db := embeddedStore(t, tables)
			open := func(as string) *system.System {
				s, err := system.Over(t.Context(), db, "", []*model.Model{models[as]}, system.Options{NoSearch: true, Now: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			right := open("right")
			t.Cleanup(func() { right.Close() })
			put := func(sk string, attrs ...value.Attr) {
				t.Helper()
				row := append(value.Item{{Name: "PK", Value: value.OfString("A#1")}, {Name: "SK", Value: value.OfString(sk)}}, attrs...)
				key, _ := tables[1].KeyOf(row)
				writeOne(t, db, store.Write{Ref: store.Ref{Table: "life", Key: key}, Put: value.NewItem(row...)})
			}
			picture := value.Attr{Name: "t", Value: value.OfString("picture")}
			put("A", value.Attr{Name: "t", Value: value.OfString("album")})
			put("P#1", picture, value.Attr{Name: "size", Value: value.OfInt(5)})
			if err := catchUp(t.Context(), right); err != nil {
				t.Fatal(err)
			}

			put("P#2", picture, value.Attr{Name: "size", Value: value.OfInt(7)})
			beside := open("wrong") // shares the store, which right closes
			places := func() []runner.Place {
				t.Helper()
				ps, err := right.Models[0].Runner.Places(t.Context(), runner.GroupRows)
				if err != nil {
					t.Fatal(err)
				}
				return ps
			}
			before := places()
			for range 2 {
				if err := catchUp(t.Context(), beside); !errors.Is(err, catalog.ErrRefused) {
					t.Fatalf("the wrong program goes on: %v", err)
				}
			}
			if after := places(); !reflect.DeepEqual(before, after) {
				t.Errorf("the checkpoints moved from %v to %v", before, after)
			}
			if err := catchUp(t.Context(), right); err != nil {
				t.Fatal(err)
			}
			verifyNothing(t, right)
			rows, err := db.Get(t.Context(), []store.Ref{{Table: "life", Key: store.Key{Partition: value.OfString("A#1"), Sort: value.OfString("A")}}})
			if err != nil || rows[0].Get("count").Text() != "2" || rows[0].Get("size").Text() != "12" {
				t.Errorf("%v, %v", rows, err)
			}
		})
	}
}
