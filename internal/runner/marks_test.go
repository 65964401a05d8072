package runner_test

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir/internal/model"
	"weir/internal/value"
)

// differs is what a script prints that is not the same without shards: how many
// writes a delivery takes, which moves later positions, the ids of what is kept, and
// which kind of write was refused.
var differs = regexp.MustCompile(`\d+ of \d+ writes|\b0{20}\d{20}\b|\b[0-9a-f]{16}\b|transact: `)

// TestPromisesByItem runs the scripts of the promises again, without shards: the same
// comes of the same.
func TestPromisesByItem(t *testing.T) {
	if testing.Short() {
		t.Skip("the same scripts once more")
	}
	files, err := filepath.Glob("testdata/*.txt")
	must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t, byItem: true}
			defer s.close()
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				out := s.run(t, d)
				if differs.ReplaceAllString(out, "") == differs.ReplaceAllString(d.Expected, "") {
					return d.Expected
				}
				return out
			})
		})
	}
}

// TestItemsInAnyOrder delivers without shards what comes in order for each item only:
// the changes of the rows are mixed, and come again, whole runs or single ones.
// Counts, sets and what followers are told come out right.
func TestItemsInAnyOrder(t *testing.T) {
	for name, w := range map[string]struct{ first, put, remove string }{
		"gallery": {
			put:    `put gallery {"PK":"ALBUM#$b","SK":"MEDIA#$i","EntityType":"AlbumMedia","albumId":"$b","mediaId":"$i","addedAt":"2025-01-01T00:00:00Z"}`,
			remove: `delete gallery {"PK":"ALBUM#$b","SK":"MEDIA#$i"}`,
		},
		"viewing": {
			put:    `put viewing-history {"profileId":"p$b","sk":"IN_PROGRESS|$i","a.assetId":"$i","a.state":"IN_PROGRESS"}`,
			remove: `delete viewing-history {"profileId":"p$b","sk":"IN_PROGRESS|$i"}`,
		},
		"watchlists": {
			first:  `put worthwatch {"PK":"USER#u$i","SK":"SAVED#WATCHLIST#$b","entityType":"USER_SAVED_WATCHLIST","savedAt":"2026-01-01T00:00:00Z"}`,
			put:    `put worthwatch {"PK":"WATCHLIST#$b","SK":"ITEM#MOVIE#$i","entityType":"WATCHLIST_ITEM","contentType":"MOVIE","contentId":"$i","addedAt":"2026-01-02T00:00:00Z"}`,
			remove: `delete worthwatch {"PK":"WATCHLIST#$b","SK":"ITEM#MOVIE#$i"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := model.Load(name)
			must(t, err)
			h := newHarness(t, m)
			defer h.close()
			h.byItem = true
			rng := rand.New(rand.NewPCG(5, 5))
			do := func(line string, i int) {
				if line != "" {
					must(t, h.write(strings.NewReplacer("$b", strconv.Itoa(i%2), "$i", strconv.Itoa(i/2)).Replace(line)))
				}
			}
			for i := range 6 {
				do(w.first, i)
			}
			must(t, h.settle(1))
			from := len(h.records)
			for range 700 {
				if i := rng.IntN(300); rng.IntN(3) > 0 {
					do(w.put, i)
				} else {
					do(w.remove, i)
				}
			}
			h.pull()
			for part := range slices.Chunk(mixed(h, from, rng), 40) {
				_, err := h.deliver(nil, part)
				must(t, err)
				if rng.IntN(3) == 0 {
					_, err := h.deliver(nil, part[:1+rng.IntN(len(part))])
					must(t, err)
				}
			}
			must(t, h.settle(from+1))
			if out := h.audit(); out != "" {
				t.Error(elide(out))
			}
		})
	}
}

// mixed is the records after the one given in an order that only each row keeps.
func mixed(h *harness, from int, rng *rand.Rand) (out []int) {
	var rows [][]int
	at := map[string]int{}
	for n := from; n < len(h.records); n++ {
		key := string(value.AppendPlainItem(nil, h.records[n].rec.Keys))
		i, ok := at[key]
		if !ok {
			i = len(rows)
			at[key], rows = i, append(rows, nil)
		}
		rows[i] = append(rows[i], n+1)
	}
	for len(rows) > 0 {
		i := rng.IntN(len(rows))
		out = append(out, rows[i][0])
		if rows[i] = rows[i][1:]; len(rows[i]) == 0 {
			rows = slices.Delete(rows, i, i+1)
		}
	}
	return out
}
