package build_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/value"
)

// wide is mixed with every other kind that a task or its votes can have: means, distinct values, the greatest, the
// least, the latest and the earliest, and groups.
var wide = strings.Replace(mixed, "derive:\n", `  Team: {where: {type: Team}, key: {PK: TEAMS, SK: "{team}"}, attributes: {tasks: number}}
derive:
`, 1) + `  Task.mean: {mean: Vote.points, round: 2}
  Task.kinds: {distinct: Vote.up, max: 9}
  Task.most: {max: Vote.points, also: {mostNr: nr}}
  Task.least: {min: Vote.points}
  Task.last: {latest: Vote.up, by: points}
  Task.first: {earliest: Vote.nr, by: points}
  Team: {group: Task, set: {tasks: count}}
`

// shownOfTask are the attributes of a task that only wide derives, and those of its tallies.
var shownOfTask = []string{"votes", "points", "mean", "kinds", "most", "mostNr", "least", "last", "first"}

// widened are the definitions of wide, of each kind, and what they were in the older model.
var widened = [][2]string{
	{"{count: Vote}", `{count: Vote, where: {up: "no"}}`},
	{"{sum: Vote.points}", `{sum: Vote.points, where: {up: "yes"}}`},
	{"{mean: Vote.points, round: 2}", `{mean: Vote.points, round: 1, where: {points: {above: 0}}}`},
	{"{distinct: Vote.up, max: 9}", "{distinct: Vote.nr, max: 9}"},
	{"{max: Vote.points, also", `{max: Vote.points, where: {up: "yes"}, also`},
	{"{min: Vote.points}", `{min: Vote.points, where: {up: "yes"}}`},
	{"{latest: Vote.up, by: points}", "{latest: Vote.nr, by: points}"},
	{"{earliest: Vote.nr, by: points}", "{earliest: Vote.up, by: points}"},
	{"{group: Task, set", "{group: Task, by: {team: owner}, set"},
	olders["set changed"], olders["status changed"], olders["copy changed"], olders["follow changed"], olders["feed changed"],
}

// TestChangedKindsTogether: the definitions of all kinds are changed at once, as TestChangedKinds does with one after the
// other, where processes read the stream and where a function reads it.
func TestChangedKindsTogether(t *testing.T) {
	t.Run("by a process", func(t *testing.T) { open(t, load(t, narrow(t))).changesAll(30) })
	t.Run("by a function", func(t *testing.T) {
		f := open(t, load(t, narrow(t)))
		f.byFunction = true
		f.changesAll(30)
	})
}

// TestChangedKindsOnDynamoDB is the same on DynamoDB Local.
func TestChangedKindsOnDynamoDB(t *testing.T) {
	t.Run("by a process", func(t *testing.T) { openOnDynamoDB(t, load(t, narrow(t))).changesAll(12) })
	t.Run("by a function", func(t *testing.T) {
		f := openOnDynamoDB(t, load(t, narrow(t)))
		f.byFunction = true
		f.changesAll(12)
	})
}

// narrow is wide with the older definitions.
func narrow(t *testing.T) string {
	t.Helper()
	text := wide
	for _, w := range widened {
		was := text
		if text = strings.Replace(text, w[0], w[1], 1); text == was {
			t.Fatalf("%s is not in the model", w[0])
		}
	}
	return text
}

func (f *fixture) changesAll(during int) {
	f.Helper()
	if f.byFunction {
		f.read()
		f.readByFunction()
		f.given = map[string]given{}
	}
	f.changes(load(f.TB, wide), (*fixture).compareWide, 60, during)
}

// compareWide is compareMixed with what wide derives besides.
func (f *fixture) compareWide() {
	f.Helper()
	f.compareMixed()
	votes, teams := map[string][]value.Item{}, map[string]int{}
	for _, row := range f.rows(f.table) {
		switch row.Get("type").Text() {
		case "Vote":
			votes[row.Get("PK").Text()] = append(votes[row.Get("PK").Text()], row)
		case "Task":
			teams[row.Get("team").Text()]++
		}
	}
	for _, row := range f.rows(f.table) {
		switch row.Get("type").Text() {
		case "Task":
			if is, want := widely(row), wideOf(votes[row.Get("PK").Text()]); is != want {
				f.Errorf("%v shows %s, want %s", row.Get("PK"), is, want)
			}
		case "Team":
			if n, _ := row.Get("tasks").Int64(); int(n) != teams[row.Get("SK").Text()] {
				f.Errorf("%v shows %d tasks, want %d", row.Get("SK"), n, teams[row.Get("SK").Text()])
			}
			delete(teams, row.Get("SK").Text())
		}
	}
	if len(teams) > 0 {
		f.Errorf("no row for %v", teams)
	}
}

// widely is what a task shows of the kinds that only wide has.
func widely(task value.Item) (out string) {
	for _, name := range shownOfTask[2:] {
		out += fmt.Sprint(name, "=", task.Get(name).Text(), " ")
	}
	return out
}

// wideOf is what a task must show, by its votes.
func wideOf(votes []value.Item) string {
	points := func(v value.Item) int64 { n, _ := v.Get("points").Int64(); return n }
	slices.SortFunc(votes, func(a, b value.Item) int { // the later one of equal points has the greater key
		if points(a) != points(b) {
			return int(points(a) - points(b))
		}
		return strings.Compare(a.Get("SK").Text(), b.Get("SK").Text())
	})
	if len(votes) == 0 {
		return "mean= kinds=0 most= mostNr= least= last= first= "
	}
	sum, kinds := int64(0), map[string]bool{}
	for _, v := range votes {
		sum, kinds[v.Get("up").Text()] = sum+points(v), true
	}
	nr := func(v value.Item) string { return strings.TrimPrefix(v.Get("SK").Text(), "VOTE#") }
	last, first := votes[len(votes)-1], votes[0]
	hundredths := (sum*200 + int64(len(votes))) / (2 * int64(len(votes))) // rounded half up
	mean := strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100), "0"), ".")
	return fmt.Sprintf("mean=%s kinds=%d most=%d mostNr=%s least=%d last=%s first=%s ", mean, len(kinds),
		points(last), nr(last), points(first), last.Get("up").Text(), nr(first))
}

// functionCatchesUp hands the records of each shard to a function until there are no more, some of them twice.
func (f *fixture) functionCatchesUp() error {
	f.Helper()
	h := f.function(f.runner())
	for more := true; more; {
		more = false
		shards, err := f.Store.Shards(f.Context(), f.table)
		f.ok(err)
		for _, s := range shards {
			was := f.given[s.ID]
			page, err := f.Store.Read(f.Context(), f.table, s.ID, was.at, 25)
			f.ok(err)
			n := len(page.Records)
			if n == 0 {
				continue
			}
			if ok, why := f.invokeFor(s.ID, h, f.asEvents(slices.Concat(was.last, page.Records))...); !ok {
				return errors.Join(catalog.ErrRefused, errors.New(why))
			}
			f.given[s.ID], more = given{page.Records[n-1].Position, slices.Clone(page.Records[max(0, n-3):])}, true
		}
	}
	return nil
}

// given is how far a function has applied a shard: the position, and the last records.
type given struct {
	at   events.Position
	last []events.Record
}
