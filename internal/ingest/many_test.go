package ingest_test

import (
	"fmt"
	"testing"

	"weir/internal/ingest"
)

// TestMany: many commands in one call have the same results as one after the other,
// also commands on the same row and refused ones.
func TestMany(t *testing.T) {
	var cs []ingest.Command
	for i := range 1000 {
		line := fmt.Sprintf(`{"op":"create","entity":"AlbumMedia","item":{"albumId":"a%d","mediaId":"m%d","addedAt":"2026-01-31T12:00:00Z"}}`, i%7, i%300)
		switch {
		case i%11 == 0:
			line = fmt.Sprintf(`{"op":"put","entity":"AlbumMedia","item":{"albumId":"a%d","mediaId":"m%d","addedAt":"2026-01-31T12:00:%02dZ"}}`, i%7, i%300, i%60)
		case i%13 == 0:
			line = fmt.Sprintf(`{"op":"delete","entity":"AlbumMedia","item":{"albumId":"a%d","mediaId":"m%d"}}`, i%7, i%300)
		case i%17 == 0:
			line = `{"op":"create","entity":"AlbumMedia","item":{"albumId":"a","mediaId":"m","addedAt":"today"}}`
		case i%19 == 0:
			line = fmt.Sprintf(`{"op":"create","entity":"User","item":{"id":"u%d","email":"e%d","username":"n%d","createdAt":"2026-01-31T12:00:00Z"}}`, i, i%50, i)
		}
		c, err := ingest.ReadCommand([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		cs = append(cs, c)
	}
	together, alone := newWorld(t, "gallery"), newWorld(t, "gallery")
	all := together.Do(t.Context(), cs)
	for i := range cs {
		one := alone.Do(t.Context(), cs[i:i+1])[0]
		if got, want := fmt.Sprint(all[i].Done, all[i].Err, all[i].Revision), fmt.Sprint(one.Done, one.Err, one.Revision); got != want {
			t.Errorf("command %d: %s, by itself %s", i, got, want)
		}
	}
	if got, want := together.rows(t), alone.rows(t); got != want {
		t.Errorf("the rows are\n%s, by themselves\n%s", got, want)
	}
}
