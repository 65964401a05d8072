package cli

import (
	"bytes"
	"testing"

	"weir/internal/model"
)

// TestCalled: texts name the commands of weir, if weir was started, and those of its programs otherwise.
func TestCalled(t *testing.T) {
	const said = "run projector verify MODEL, or projector\n  run; the projector is fast.\n    simulator gallery\nas ingest put reads them, and the simulator gives\n    zcat x | ingest put gallery\n"
	if Called("ingest") != "ingest" || Called("projector") != "projector" || Typed(said) != said {
		t.Error("programs are not called by their names")
	}
	model.Called = "weir"
	t.Cleanup(func() { model.Called = "projector" })
	if Called("ingest") != "weir ingest" || Called("projector") != "weir" {
		t.Errorf("%s, %s", Called("ingest"), Called("projector"))
	}
	const want = "run weir verify MODEL, or weir\n  run; the projector is fast.\n    weir simulator gallery\nas weir ingest put reads them, and the simulator gives\n    zcat x | weir ingest put gallery\n"
	if got := Typed(said); got != want || Typed(want) != want {
		t.Errorf("%s", got)
	}
	if got := (&model.Model{Name: "shop"}).Command("verify"); got != "weir verify shop" {
		t.Error(got)
	}
	var out bytes.Buffer
	Messages(&out).Write([]byte(said))
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
