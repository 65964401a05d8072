package console

import (
	"context"
	"html"
	"os"
	"regexp"
	"strconv"
	"testing"

	"weir/internal/failtest"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// counted counts the rows that are read of a store.
type counted struct {
	store.Store
	rows int
}

func (c *counted) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := c.Store.Query(ctx, q)
	c.rows += len(page.Rows)
	return page, err
}

func (c *counted) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	c.rows += len(refs)
	return c.Store.Get(ctx, refs)
}

// rowsOf is how many rows a large table has: WEIR_TEST_ROWS, or few enough for every day.
func rowsOf(t testing.TB) int {
	n, err := strconv.Atoi(os.Getenv("WEIR_TEST_ROWS"))
	if os.Getenv("WEIR_TEST_ROWS") == "" {
		return 4 * readRows
	}
	failtest.On(t, err)
	return n
}

// TestLargeTable: no page reads more rows than its bound, however many rows the table has: the first
// page and a later one, of an entity, of an item collection, of an index, of one of few among many,
// and of what counts towards a value.
func TestLargeTable(t *testing.T) {
	soaktest.Calm(t)
	w := open(t)
	w.put("Product", texts("pot", "Tea pot"))
	n := rowsOf(t)
	for from := 0; from < n; from += 2000 {
		w.reviewsFrom("pot", from, min(2000, n-from), "words")
		w.derive()
	}
	reads := &counted{Store: w.s.Store}
	w.s.Store = reads
	next := regexp.MustCompile(`href="([^"]*)" rel="next"`)
	for path, most := range map[string]int{
		"/console/shop":                                               0,
		"/console/shop/rows":                                          pageRows,
		"/console/shop/rows?entity=Review":                            pageRows + 4*pageRows,
		"/console/shop/rows?pk=PRODUCT%23pot":                         pageRows,
		"/console/shop/rows?index=GSI1&pk=PRODUCT":                    pageRows,
		"/console/shop/rows?entity=Product":                           readRows + 4*pageRows, // one, before all reviews
		whyReviews:                                                    readRows + 4*pageRows,
		"/console/shop/row?pk=PRODUCT%23pot&sk=ABOUT&table=shop-rows": 10,
	} {
		for page := range 3 {
			reads.rows = 0
			body := w.page(path)
			if reads.rows > most+8 { // a page may read a few rows of our own
				t.Errorf("%s, page %d of a table with %d rows: %d rows read, at most %d", path, page, n, reads.rows, most)
			}
			t.Logf("%s, page %d: %d rows read", path, page, reads.rows)
			found := next.FindStringSubmatch(body)
			if found == nil {
				break
			}
			path = html.UnescapeString(found[1])
		}
	}
}
