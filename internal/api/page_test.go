package api

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"weir/internal/query"
	"weir/internal/value"
)

// TestPagesShareBuffers: pages share buffers, and each has its own rows only, larger than a buffer or not.
func TestPagesShareBuffers(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for size := range 40 {
				text := strings.Repeat(fmt.Sprint(i), 1+size*size*100)
				row := value.Item{{Name: "a", Value: value.OfString(text)}}
				w := httptest.NewRecorder()
				writePage(w, query.Result{Items: []value.Item{row, row}}, nil)
				want := fmt.Sprintf(`{"items":[{"a":%q},{"a":%q}]}`+"\n", text, text)
				if got := w.Body.String(); got != want {
					t.Errorf("page %d of %d bytes is not its own: it has %d bytes", i, len(want), len(got))
				}
			}
		})
	}
	wg.Wait()
}
