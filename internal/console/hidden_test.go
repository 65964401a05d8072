package console

import (
	"regexp"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/value"
)

// TestHiddenInDeadLetters: neither the record of a dead letter nor its reason shows what the model
// hides.
func TestHiddenInDeadLetters(t *testing.T) {
	m := open(t).part.Model
	row := texts("pot", "Tea pot").With(value.Attr{Name: "cost", Value: value.OfString("geheim")})
	d := runner.Dead{Reason: `"geheim" is no number`, Record: owntable.RecordItem(&events.Record{Table: "shop-rows", New: row})}
	if got := reasonOf(m, &d); got != hiddenText {
		t.Errorf("the reason is %q", got)
	}
	if got := recordText(m, &d); strings.Contains(got, "geheim") || !strings.Contains(got, "Tea pot") {
		t.Errorf("the record is %q", got)
	}
	if d.Reason = "the row is too large"; reasonOf(m, &d) != d.Reason {
		t.Error("a reason that quotes nothing is hidden")
	}
	if d = (runner.Dead{Reason: "not JSON: geheim", Raw: "geheim"}); reasonOf(m, &d) != hiddenText {
		t.Error("bytes that cannot be told apart are shown")
	}
}

// TestHiddenInLedgers: a ledger of a model that hides something shows positions, and no sums.
func TestHiddenInLedgers(t *testing.T) {
	w := open(t)
	w.put("Product", texts("pot", "Tea pot"))
	w.put("Review", review("pot", "ida"))
	w.derive()
	_, ledger, found := strings.Cut(w.page("/console/shop/row?pk=PRODUCT%23pot&sk=ABOUT&table=shop-rows"), "<h2>Ledger</h2>")
	if !found || strings.Contains(ledger, "ida") {
		t.Fatalf("the ledger:\n%s", ledger)
	}
	lines := regexp.MustCompile(`<bdi>([^<]*)</bdi></th><td class="wide"><bdi>([^<]*)<`).FindAllStringSubmatch(ledger, -1)
	for _, line := range lines {
		if is := strings.HasPrefix(line[1], owntable.PositionOf("")); is == (line[2] == hiddenText) {
			t.Errorf("%s is shown as %q", line[1], line[2])
		}
	}
	if len(lines) < 3 {
		t.Errorf("%d attributes", len(lines))
	}
}
