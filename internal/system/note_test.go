package system_test

import (
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/store"
	"weir/internal/value"
)

// TestUnreadableNote says that an index whose note cannot be read stops nothing, and is
// one that is not complete.
func TestUnreadableNote(t *testing.T) {
	s := sampled(t, "gallery", embeddedStore)
	defer s.Close()
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	at := owntable.IndexNote(document.Index(m, m.Searches[0]))
	writeOne(t, s.Store, store.Write{Ref: at, Ops: []store.Op{{Kind: store.Set, Attr: "i", Value: value.OfInt(1)}}})
	if err := s.Fill(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Store.Get(t.Context(), []store.Ref{at})
	if err != nil {
		t.Fatal(err)
	}
	if is, err := owntable.DecodeIndexNote(rows[0]); err != nil || !strings.HasPrefix(is, "none ") {
		t.Error(is, err)
	}
}
