package projectorcli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/soaktest"
)

var (
	histories   = flag.Int("histories", 40, "how many random histories TestHistories replays")
	historySeed = flag.Uint64("historyseed", 1, "the seed of the first history; 0 is any")
)

// The models of TestHistories are made of these: what is derived, with the entities and queries that belong to it.
const historyModel = `model: cart
tables: {cart: {key: [pk, sk]}}
entities:
  User: {where: {kind: user}, key: {pk: "USER#{user}", sk: PROFILE}, attributes: {name: string}}
  Order: {where: {kind: order}, key: {pk: "USER#{user}", sk: "ORDER#{order}"}, attributes: {total: number, status: string}}
`

var historyParts = []struct{ name, entity, derive, query string }{
	{"spent", "", `User.spent: {sum: Order.total}`, ""},
	{"paid", "", `User.paid: {count: Order, where: {status: paid}}`, ""},
	{"states", "", `User.states: {distinct: Order.status}`, ""},
	{"last", "", `User.last: {latest: Order.status, by: total}`, ""},
	{"grouped", `State: {where: {kind: state}, key: {pk: "STATES#{user}", sk: "{status}"}, attributes: {orders: number, last: string, top: number}}`,
		`State: {group: Order, set: {orders: count, last: {latest: order, by: total}, top: {max: total, where: {total: {above: 0}}}}}`, `list: State, with: [user]`},
	{"copy", `Paid: {where: {kind: paid}, key: {pk: "PAID#{user}", sk: "{order}"}, attributes: {total: number}}`,
		`Paid: {row: Order, where: {status: paid}, set: {user: user, order: order, total: total}}`, `list: Paid, with: [user]`},
	{"log", `Log: {where: {kind: log}, key: {pk: "LOG#{user}", sk: "{at}#{position}"}, attributes: {what: string, at: time, total: number, order: string}}`,
		`Log: {row: Order, keep: [insert, modify, remove], set: {user: user, at: $time, position: $position, what: $event, total: total, order: order}}`, `list: Log, with: [user]`},
	{"feed", `Entry: {where: {kind: entry}, key: {pk: "INBOX#{user}", sk: "{order}#{position}"}, attributes: {total: number}}`,
		`Entry: {row: Order, keep: insert, each: {of: User, by: {user: user}}, set: {user: User.user, order: order, position: $position, total: total}}`, `list: Entry, with: [user]`},
	{"found", "", "", `search: found, with: [user]`},
}

// plainModel has what adds up.
func plainModel() (text string, queries []string) {
	return historyModelOf("spent", "paid", "states")
}

// historyModelOf is the model of some parts, and the queries that show all that it has.
func historyModelOf(parts ...string) (text string, queries []string) {
	derive, ask, queries := "derive:\n  User.orders: {count: Order}\n", "queries:\n  user: {get: User, with: [user]}\n  order: {list: Order, with: [user]}\n", []string{"user", "order"}
	text = historyModel
	for _, p := range historyParts {
		if !slices.Contains(parts, p.name) {
			continue
		}
		if p.derive != "" {
			derive += "  " + p.derive + "\n"
		} else {
			derive += "search:\n  found: {of: Order, text: [status], filters: [user], sorts: [total]}\n"
		}
		if p.entity != "" {
			text += "  " + p.entity + "\n"
		}
		if p.query != "" {
			ask += "  " + p.name + ": {" + p.query + "}\n"
			queries = append(queries, p.name)
		}
	}
	return text + derive + ask, queries
}

// past is a made-up history of a table.
type past struct {
	*rand.Rand
	rows  map[string]map[string]any
	now   int64 // ms
	n     int
	ticks bool // times are whole seconds, and there are no sequence numbers
}

// pastChange is one recorded change.
type pastChange struct {
	row   string
	n     int
	time  int64 // ms
	event map[string]any
	state map[string]map[string]any // of all rows, after it
}

// next changes a row.
func (p *past) next() pastChange {
	user := fmt.Sprint("u", p.IntN(2))
	pk, sk, image := "USER#"+user, "PROFILE", map[string]any{"kind": stringOf("user"), "name": stringOf(fmt.Sprint("n", p.IntN(3)))}
	if p.IntN(5) > 0 {
		sk = fmt.Sprint("ORDER#o", p.IntN(3))
		image = map[string]any{"kind": stringOf("order"), "total": map[string]any{"N": fmt.Sprint(p.IntN(3))}, "status": stringOf([]string{"open", "paid"}[p.IntN(2)])}
	}
	row := pk + "|" + sk
	keys := map[string]any{"pk": stringOf(pk), "sk": stringOf(sk)}
	maps.Copy(image, keys)
	old := p.rows[row]
	if p.IntN(4) == 0 {
		image = nil
	}
	if image == nil && old == nil || fmt.Sprint(image) == fmt.Sprint(old) {
		return p.next()
	}
	if p.n++; p.IntN(3) > 0 {
		p.now += p.Int64N(2500)
	}
	if p.IntN(12) == 0 {
		p.now += 200_000
	}
	d := map[string]any{"Keys": keys, "SizeBytes": 9, "StreamViewType": "NEW_AND_OLD_IMAGES"}
	event := "MODIFY"
	if old != nil {
		d["OldImage"] = old
	} else {
		event = "INSERT"
	}
	if image != nil {
		d["NewImage"] = image
		p.rows[row] = image
	} else {
		event = "REMOVE"
		delete(p.rows, row)
	}
	out := map[string]any{"eventID": fmt.Sprintf("%08x-%d", p.n*7919, p.n), "eventName": event, "dynamodb": d}
	d["ApproximateCreationDateTime"] = p.now / 1000
	if p.ticks {
		out["tableName"], out["recordFormat"] = "cart", "application/json"
	} else {
		d["SequenceNumber"] = fmt.Sprintf("%d00000000000000%07d", 1000000, p.n)
		out["eventSourceARN"] = "arn:aws:dynamodb:eu-west-1:123456789012:table/cart/stream/2024-01-01T00:00:00.000"
	}
	return pastChange{row, p.n, p.now, out, maps.Clone(p.rows)}
}

func stringOf(text string) map[string]any { return map[string]any{"S": text} }

// file writes records in one of the forms that recordings have.
func (p *past) file(t *testing.T, dir string, all []pastChange) string {
	t.Helper()
	var b bytes.Buffer
	records := func(some []pastChange) (out []any) {
		for _, x := range some {
			out = append(out, x.event)
		}
		return out
	}
	write := func(v any) { must(json.NewEncoder(&b).Encode(v)) }
	switch form := p.IntN(4); {
	case form == 0 && len(all) > 0:
		for c := range slices.Chunk(all, 1+p.IntN(5)) {
			write(map[string]any{"Records": records(c)})
		}
	case form == 1 && !p.ticks && len(all) > 0:
		write(map[string]any{"DDBStreamBatchInfo": map[string]any{"shardId": "s"}, "payload": map[string]any{"Records": records(all)}})
	case form == 2 && !p.ticks && len(all) > 0: // a page of GetRecords
		page := records(all)
		for i := range page {
			event := maps.Clone(page[i].(map[string]any))
			delete(event, "eventSourceARN")
			page[i] = event
		}
		write(map[string]any{"Records": page, "NextShardIterator": "AAA"})
	default:
		for _, r := range records(all) {
			write(r)
		}
	}
	f, err := os.CreateTemp(dir, "records-*")
	must(err)
	_, err = f.Write(b.Bytes())
	must(err)
	must(f.Close())
	return f.Name()
}

// inTicks is a record of a stream in the form that Kinesis has.
func inTicks(event map[string]any) map[string]any {
	out := maps.Clone(event)
	d := maps.Clone(out["dynamodb"].(map[string]any))
	delete(d, "SequenceNumber")
	delete(out, "eventSourceARN")
	out["dynamodb"], out["eventID"], out["tableName"], out["recordFormat"] = d, out["eventID"].(string)+"-k", "cart", "application/json"
	return out
}

// export writes a full export of rows at a time.
func (p *past) export(t *testing.T, dir string, rows map[string]map[string]any, at int64) string {
	var items []any
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		items = append(items, map[string]any{"Item": rows[name]})
	}
	return p.exported(t, dir, items, map[string]any{"exportType": "FULL_EXPORT", "exportTime": exportTime(at)})
}

// window writes an incremental export of the changes between two times.
func (p *past) window(t *testing.T, dir string, some []pastChange, from, to int64) string {
	items, seen := []any{}, map[string]map[string]any{}
	for _, x := range some {
		d := x.event["dynamodb"].(map[string]any)
		item := seen[x.row]
		if item == nil {
			item = map[string]any{"Keys": d["Keys"]}
			if old := d["OldImage"]; old != nil {
				item["OldImage"] = old
			}
			seen[x.row], items = item, append(items, item)
		}
		item["Metadata"] = map[string]any{"WriteTimestampMicros": map[string]any{"N": fmt.Sprint(x.time * 1000)}}
		if delete(item, "NewImage"); d["NewImage"] != nil {
			item["NewImage"] = d["NewImage"]
		}
	}
	return p.exported(t, dir, items, map[string]any{
		"exportType": "INCREMENTAL_EXPORT", "exportFromTime": exportTime(from), "exportToTime": exportTime(to),
	})
}

func exportTime(at int64) string { return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z") }

// exported writes items as an export of two files, and its manifests.
func (p *past) exported(t *testing.T, dir string, items []any, summary map[string]any) string {
	t.Helper()
	dir, err := os.MkdirTemp(dir, "export-*")
	must(err)
	must(os.Mkdir(filepath.Join(dir, "data"), 0o755))
	var files bytes.Buffer
	for i := range 2 {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		n := 0
		for j, item := range items {
			if j%2 == i {
				n++
				must(json.NewEncoder(z).Encode(item))
			}
		}
		must(z.Close())
		must(os.WriteFile(filepath.Join(dir, "data", fmt.Sprintf("%d.json.gz", i)), b.Bytes(), 0o644))
		fmt.Fprintf(&files, `{"itemCount":%d,"dataFileS3Key":"AWSDynamoDB/x/data/%d.json.gz"}`+"\n", n, i)
	}
	must(os.WriteFile(filepath.Join(dir, "manifest-files.json"), files.Bytes(), 0o644))
	maps.Copy(summary, map[string]any{
		"exportArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/cart/export/x", "tableArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/cart",
		"manifestFilesS3Key": "AWSDynamoDB/x/manifest-files.json", "itemCount": len(items), "outputFormat": "DYNAMODB_JSON",
	})
	text, _ := json.Marshal(summary)
	must(os.WriteFile(filepath.Join(dir, "manifest-summary.json"), text, 0o644))
	return dir
}

// hides reports whether a change before another of its row left the row as one behind it found it.
func (p *past) hides(all []pastChange, missing int) bool {
	image := func(x pastChange, name string) string { return imageText(x.event["dynamodb"].(map[string]any)[name]) }
	for _, x := range all[:missing] {
		for _, y := range all[missing+1:] {
			if row := all[missing].row; x.row == row && y.row == row && image(x, "NewImage") == image(y, "OldImage") {
				return true
			}
		}
	}
	return false
}

// imageText is an image, without its keys.
func imageText(v any) string {
	m, _ := v.(map[string]any)
	if m == nil {
		return "-"
	}
	return fmt.Sprint(m["name"], m["total"], m["status"])
}

// cut writes a history in files: by shard, in pieces that overlap, some twice; within a file, order is kept if whole is set.
// Some pieces are shuffled.
func (p *past) cut(t *testing.T, dir string, all []pastChange, whole bool) (files []string) {
	t.Helper()
	shards := make([][]pastChange, 1+p.IntN(3))
	for _, x := range all {
		i := int(x.row[len(x.row)-1]+x.row[6]) % len(shards)
		shards[i] = append(shards[i], x)
	}
	for _, shard := range shards {
		for from := 0; from < len(shard); {
			to := min(len(shard), from+1+p.IntN(len(shard)))
			piece := slices.Clone(shard[max(0, from-p.IntN(3)):to])
			if !whole && p.IntN(3) == 0 {
				p.Shuffle(len(piece), func(i, j int) { piece[i], piece[j] = piece[j], piece[i] })
			}
			files = append(files, p.file(t, dir, piece))
			if testing.Verbose() {
				n := []int{}
				for _, x := range piece {
					n = append(n, x.n)
				}
				t.Log(files[len(files)-1], n)
			}
			if p.IntN(5) == 0 {
				files = append(files, p.file(t, dir, piece))
			}
			from = to
		}
	}
	p.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	return files
}

// replayFiles replays files, and says what comes out and the exit code.
func replayFiles(ctx context.Context, model, data string, files ...string) (said string, code int) {
	var out bytes.Buffer
	code = run(ctx, append([]string{"replay", model, "--data", data}, files...), strings.NewReader(""), &out, &out)
	return out.String(), code
}

// stopReplay replays files for so long. In the long form of the test the process is killed, else the context ends.
func stopReplay(t *testing.T, after time.Duration, model, data string, files ...string) string {
	if testing.Short() {
		ctx, stop := context.WithTimeout(t.Context(), after)
		defer stop()
		said, code := replayFiles(ctx, model, data, files...)
		return fmt.Sprint(said, code)
	}
	ctx, stop := context.WithTimeout(t.Context(), processStart+5*after)
	defer stop()
	said, err := exec.CommandContext(ctx, built(t), append([]string{"replay", model, "--data", data}, files...)...).CombinedOutput()
	return fmt.Sprint(string(said), err)
}

// processStart is about how long the program takes until it begins to replay.
const processStart = 50 * time.Millisecond

// asked is all that the model's queries answer.
func asked(t *testing.T, model, data string, queries ...string) string {
	t.Helper()
	var out bytes.Buffer
	for _, q := range queries {
		for _, user := range []string{"u0", "u1"} {
			fmt.Fprintln(&out, q, user)
			args := []string{"query", "--data", data, model, q, "user=" + user}
			if q == "found" {
				args = append(args, "q=", "sort=total")
			}
			if code := run(t.Context(), args, strings.NewReader(""), &out, &out); code != 0 {
				t.Fatalf("query %s: exit code %d\n%s", q, code, out.String())
			}
		}
	}
	return out.String()
}

// check compares what one pass has come to with what the test knows by itself: which orders there are, and how many entries.
func check(t *testing.T, all []pastChange, got string, parts []string) {
	t.Helper()
	var want []string
	for _, x := range all {
		user, is, order := strings.TrimPrefix(strings.Split(x.row, "|")[0], "USER#"), strings.Contains(x.row, "|ORDER#"), x.row[strings.LastIndex(x.row, "#")+1:]
		if is && slices.Contains(parts, "feed") && x.event["eventName"] == "INSERT" && x.state["USER#"+user+"|PROFILE"] != nil {
			want = append(want, fmt.Sprintf("INBOX#%s %s %07d", user, order, x.n))
		}
		if is && slices.Contains(parts, "log") {
			want = append(want, fmt.Sprintf("LOG#%s %s %s", user, order, x.event["eventName"]))
		}
	}
	for row := range all[len(all)-1].state {
		if pk, sk, _ := strings.Cut(row, "|"); sk != "PROFILE" {
			want = append(want, pk+" "+sk)
			if slices.Contains(parts, "found") {
				want = append(want, pk+" "+sk)
			}
		}
	}
	var have []string
	for _, line := range strings.Split(got, "\n") {
		var row struct{ PK, SK, Kind, Order, Position, What string }
		if json.Unmarshal([]byte(line), &row) != nil {
			continue
		}
		switch row.Kind {
		case "order":
			have = append(have, row.PK+" "+row.SK)
		case "entry":
			have = append(have, row.PK+" "+row.Order+" "+row.Position[len(row.Position)-7:])
		case "log":
			have = append(have, row.PK+" "+row.Order+" "+row.What)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if d := cmp.Diff(want, have); d != "" {
		t.Fatalf("one pass: -want +have\n%s\n%s", d, got)
	}
}

// TestHistories replays random histories: in every form, cut into files, doubled, overlapping, in any order, in one command or several,
// broken off and begun again, with full exports of random moments. What comes of them is what comes of one pass, and nothing is called a
// gap. If a record is missing, a gap says so, also the second time, until it comes. Where nothing tells the order of a moment, or the changes before it
// came later, a gap stays.
func TestHistories(t *testing.T) {
	soaktest.Calm(t)
	n, seed := *histories, *historySeed
	if testing.Short() {
		n = min(n, 5)
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	unclear := 0
	for i := range n {
		seed := seed + uint64(i)
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if testHistory(t, seed) {
				unclear++
			}
		}) {
			t.Logf("-historyseed %d -histories 1", seed)
		}
	}
	if t.Logf("%d of %d have moments of which nothing tells the order", unclear, n); unclear > 2+n/10 {
		t.Error("these are too many")
	}
}

func testHistory(t *testing.T, seed uint64) (unclear bool) {
	p := &past{Rand: rand.New(rand.NewPCG(seed, 7)), rows: map[string]map[string]any{}, now: 1_700_000_000_000}
	var parts []string
	for len(parts) == 0 {
		for _, part := range historyParts {
			if p.IntN(3) == 0 {
				parts = append(parts, part.name)
			}
		}
	}
	text, queries := historyModelOf(parts...)
	feed := slices.Contains(parts, "feed")
	p.ticks = !feed && p.IntN(2) == 0
	dir := t.TempDir()
	model := filepath.Join(dir, "model.yaml")
	must(os.WriteFile(model, []byte(text), 0o644))
	all := make([]pastChange, 5+p.IntN(40))
	for i := range all {
		all[i] = p.next()
	}
	once := filepath.Join(dir, "once")
	if said, code := replayFiles(t.Context(), model, once, p.file(t, dir, all)); code != 0 {
		t.Fatalf("one pass: exit code %d\n%s", code, said)
	}
	want := asked(t, model, once, queries...)

	check(t, all, want, parts)

	missing := -1
	if p.IntN(4) == 0 { // one that others of its row surround
		x := 1 + p.IntN(len(all)-1)
		row := func(y pastChange) bool { return y.row == all[x].row }
		if slices.ContainsFunc(all[:x], row) && slices.ContainsFunc(all[x+1:], row) {
			missing = x
		}
	}
	given := slices.Clone(all)
	if missing >= 0 {
		given = slices.Delete(given, missing, missing+1)
	}
	files := p.cut(t, dir, given, feed)
	mixed := !p.ticks && !feed && missing < 0 && p.IntN(4) == 0
	if mixed { // a part of it in another form too, without sequence numbers
		some := slices.Clone(given[p.IntN(len(given)):])
		for i := range some {
			some[i].event = inTicks(some[i].event)
		}
		files = append(files, p.file(t, dir, some))
	}
	streams, exports := slices.Clone(files), [][]string{}
	if missing < 0 {
		for range p.IntN(3) {
			x := all[p.IntN(len(all))]
			at := x.time
			if x.n < len(all) {
				at += p.Int64N(1 + all[x.n].time - x.time)
			}
			files = append(files, p.export(t, dir, x.state, at))
			exports = append(exports, []string{files[len(files)-1]})
			if testing.Verbose() {
				t.Log(files[len(files)-1], "after", x.n, "at", at)
			}
		}
		p.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	}
	data := filepath.Join(dir, "data")
	said, code, commands := "", 0, [][]string{files}
	switch { // what is recorded within a minute of an export is in one command
	case feed:
	case len(exports) > 0 && p.IntN(3) == 0:
		commands = append(exports, streams)
	case len(exports) > 0 && p.IntN(2) == 0:
		commands = append([][]string{streams}, exports...)
	case len(exports) == 0:
		commands = slices.Collect(slices.Chunk(files, 1+p.IntN(len(files))))
	}
	if len(commands) > 0 && !feed && p.IntN(3) == 0 { // all once more
		commands = append(commands, files)
	}
	log := ""
	defer func() {
		if t.Failed() {
			for _, x := range all {
				d := x.event["dynamodb"].(map[string]any)
				t.Logf("%d %s %d: %v to %v", x.n, x.row, x.time, imageText(d["OldImage"]), imageText(d["NewImage"]))
			}
		}
	}()
	for _, c := range commands {
		if p.IntN(3) == 0 {
			log += fmt.Sprintf("stopped: %v\n%s\n", c, stopReplay(t, time.Duration(p.IntN(60))*time.Millisecond, model, data, c...))
		}
		said, code = replayFiles(t.Context(), model, data, c...)
		log += fmt.Sprintf("%v\n%s%d\n", c, said, code)
		if mixed && code != 0 && strings.Contains(said, "in two forms") && len(commands) > 1 {
			return false // refused
		}
	}
	if missing >= 0 {
		// Between commands, a row remembers no change in its middle: one that is missing there is known only if images around it tell.
		if said, code = replayFiles(t.Context(), model, data, commands[len(commands)-1]...); code == 0 && len(commands) > 1 && p.hides(all, missing) {
			return false
		}
		if code != 1 || !strings.Contains(said, "gap: ") {
			t.Fatalf("%d of %s is missing, and the exit code is %d\n%s", missing, all[missing].row, code, log)
		}
		if said, code = replayFiles(t.Context(), model, data, commands[len(commands)-1]...); code != 1 || !strings.Contains(said, "gap: ") {
			t.Fatalf("the second time the exit code is %d\n%s", code, said)
		}
		if feed {
			return false
		}
		said, code = replayFiles(t.Context(), model, data, p.file(t, dir, all[missing:missing+1]))
		log += said
	}
	if p.ticks && code == 1 && (strings.Contains(said, "nothing tells the order") || missing >= 0 && haveTies(all, all[missing].row) || len(commands) > 1 && haveTies(all, "")) {
		return true // a moment was put in an order without what came later
	}
	if code != 0 {
		t.Errorf("exit code %d\n%s", code, log)
	}
	if have := asked(t, model, data, queries...); have != want {
		t.Errorf("-one pass +replayed:\n%s\n%s", cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n")), log)
	}
	return false
}

// haveTies reports whether a row, "" for any, has two changes of one second.
func haveTies(all []pastChange, row string) bool {
	last := map[string]int64{}
	for _, x := range all {
		if row != "" && x.row != row {
			continue
		}
		if was, ok := last[x.row]; ok && was == x.time/1000 {
			return true
		}
		last[x.row] = x.time / 1000
	}
	return false
}

// TestExportHistories brings random histories in steps, each a full export, an incremental export or a stream, in commands of their own that are
// killed, or all in one command in any order. Bare data files may come first. What a full export lacks was removed. Without one of the steps
// there is a gap until it comes.
func TestExportHistories(t *testing.T) {
	soaktest.Calm(t)
	n, seed := *histories/2, *historySeed
	if testing.Short() {
		n = min(n, 5)
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	for i := range n {
		t.Run(fmt.Sprint(seed+uint64(i)), func(t *testing.T) { testExports(t, seed+uint64(i)) })
	}
}

func testExports(t *testing.T, seed uint64) {
	p := &past{Rand: rand.New(rand.NewPCG(seed, 8)), rows: map[string]map[string]any{}, now: 1_700_000_000_000}
	p.ticks = p.IntN(2) == 0
	dir := t.TempDir()
	model := filepath.Join(dir, "model.yaml")
	text, queries := plainModel()
	must(os.WriteFile(model, []byte(text), 0o644))
	var all []pastChange
	var steps [][]pastChange
	var kinds []string
	for range 2 + p.IntN(4) {
		kinds = append(kinds, []string{"full", "window", "stream"}[p.IntN(3)])
		if kinds[0] == "window" {
			kinds[0] = "full"
		}
	}
	for i, soon := 0, false; i < len(kinds); i++ {
		from := len(all)
		for range 1 + p.IntN(8) {
			all = append(all, p.next())
		}
		steps, p.now = append(steps, all[from:]), p.now+300_000
		// What comes behind a full export may be within a minute of it, if nothing hidden is.
		// Without sequence numbers, nothing tells the order of its moments then.
		if soon = !soon && !p.ticks && i+1 < len(kinds) && kinds[i] == "full" && kinds[i+1] != "full" && p.IntN(2) == 0; soon {
			p.now -= 250_000 + p.Int64N(49_000)
		}
	}
	once := filepath.Join(dir, "once")
	if said, code := replayFiles(t.Context(), model, once, p.file(t, dir, all)); code != 0 {
		t.Fatalf("one pass: exit code %d\n%s", code, said)
	}
	want, files := asked(t, model, once, queries...), []string{}
	known := int64(0) // up to then, by the steps so far
	for i, some := range steps {
		last := some[len(some)-1]
		end := last.time + 100_000
		if i+1 < len(steps) {
			end = min(end, steps[i+1][0].time-1)
		}
		switch kinds[i] {
		case "full":
			files = append(files, p.export(t, dir, last.state, end))
		case "window":
			files = append(files, p.window(t, dir, some, min(some[0].time-1, known), end))
		default:
			files = append(files, p.file(t, dir, some))
			end = last.time
		}
		known = end
	}
	if kinds[0] == "full" && p.IntN(2) == 0 {
		bare, _ := filepath.Glob(filepath.Join(files[0], "data", "*"))
		files, kinds = append(bare, files...), append(slices.Repeat([]string{"bare"}, len(bare)), kinds...)
	}
	missing := -1
	for i := 1; i+1 < len(kinds); i++ {
		if kinds[i-1] != "bare" && kinds[i] == "window" && kinds[i+1] == "window" && p.IntN(2) == 0 {
			missing = i
		}
	}
	data, log := filepath.Join(dir, "data"), fmt.Sprintln(kinds)
	given, late := slices.Clone(files), ""
	if missing >= 0 {
		late = files[missing]
		given = slices.Delete(given, missing, missing+1)
	}
	commands := slices.Collect(slices.Chunk(given, 1))
	if p.IntN(3) == 0 {
		p.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
		commands = [][]string{given}
	}
	said, code := "", 0
	gap := false
	for i, c := range commands {
		if p.IntN(3) == 0 {
			log += stopReplay(t, time.Duration(p.IntN(60))*time.Millisecond, model, data, c...)
		}
		said, code = replayFiles(t.Context(), model, data, c...)
		log += fmt.Sprintf("%d %v\n%s%d\n", i, c, said, code)
		gap = gap || code == 1 && strings.Contains(said, "the window of an incremental export begins")
	}
	if missing >= 0 {
		if healed := slices.Contains(kinds[missing+1:], "full"); !gap && !(healed && len(commands) == 1) {
			t.Fatalf("step %d is missing, and there is no gap\n%s", missing, log)
		}
		said, code = replayFiles(t.Context(), model, data, late)
		log += fmt.Sprintf("late: %s\n%s%d\n", late, said, code)
	}
	if p.ticks && code == 1 && strings.Contains(said, "nothing tells the order") {
		return
	}
	if have := asked(t, model, data, queries...); code != 0 || have != want {
		t.Errorf("exit code %d\n-one pass +replayed:\n%s\n%s", code, cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n")), log)
		for _, x := range all {
			d := x.event["dynamodb"].(map[string]any)
			t.Logf("%d %s %d: %v to %v", x.n, x.row, x.time, imageText(d["OldImage"]), imageText(d["NewImage"]))
		}
	}
}

// TestExportBeforeAChange: what was made of changes that no stream has, a full export says, also to a change that is made within a minute of
// it. A history lacks them, and says so.
func TestExportBeforeAChange(t *testing.T) {
	soaktest.Calm(t)
	for _, parts := range [][]string{{"spent"}, {"spent", "log"}} {
		for _, gone := range []bool{false, true} {
			p := &past{Rand: rand.New(rand.NewPCG(1, 9)), rows: map[string]map[string]any{}, now: 1_700_000_000_000}
			row := func(total int) map[string]any {
				return map[string]any{"pk": stringOf("USER#u0"), "sk": stringOf("ORDER#o0"), "kind": stringOf("order"), "total": map[string]any{"N": fmt.Sprint(total)}, "status": stringOf("open")}
			}
			dir := t.TempDir()
			first := p.export(t, dir, map[string]map[string]any{"o": row(1)}, p.now)
			at, is := p.now+600_000, map[string]map[string]any{}
			change := map[string]any{"Keys": map[string]any{"pk": stringOf("USER#u0"), "sk": stringOf("ORDER#o0")}, "NewImage": row(3), "SequenceNumber": "7000", "SizeBytes": 9, "ApproximateCreationDateTime": at/1000 + 30}
			event := map[string]any{"eventID": "1", "eventName": "INSERT", "dynamodb": change, "eventSourceARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/cart/stream/2024-01-01T00:00:00.000"}
			if !gone {
				is["o"], change["OldImage"], event["eventName"] = row(2), row(2), "MODIFY"
			}
			second, stream := p.export(t, dir, is, at), p.file(t, dir, []pastChange{{event: event}})
			text, _ := historyModelOf(parts...)
			model := filepath.Join(dir, "model.yaml")
			must(os.WriteFile(model, []byte(text), 0o644))
			want := map[bool]int{false: 0, true: 1}[len(parts) > 1]
			for i, commands := range [][][]string{{{first}, {second}, {stream}}, {{first}, {stream, second}}, {{first, second, stream}}, {{first}, {stream}, {second}}} {
				if gone && i == 3 { // what is within a minute of an export that lacks a row is in its command
					continue
				}
				data, said, code := filepath.Join(dir, fmt.Sprint(i)), "", 0
				for _, files := range commands {
					said, code = replayFiles(t.Context(), model, data, files...)
				}
				if total := asked(t, model, data, "order"); code != want || !strings.Contains(total, `"total":3`) {
					t.Errorf("%v, removed %v, in commands %d: exit code %d, %s\n%s", parts, gone, i, code, total, said)
				}
			}
		}
	}
}

// TestTwoForms: a change is taken once that one command has in two forms. In two commands the second form is refused, and nothing of it
// is written; so is a stream behind an incremental export, if there is a history. Where a history has the form without sequence numbers alone,
// replay says that its entries of one moment are in no order.
func TestTwoForms(t *testing.T) {
	soaktest.Calm(t)
	p := &past{Rand: rand.New(rand.NewPCG(1, 11)), rows: map[string]map[string]any{}, now: 1_700_000_000_000}
	var all, again []pastChange
	for range 60 {
		all = append(all, p.next())
		again = append(again, all[len(all)-1])
		again[len(again)-1].event = inTicks(again[len(again)-1].event)
	}
	dir := t.TempDir()
	placed, timed, window := p.file(t, dir, all), p.file(t, dir, again), p.window(t, dir, all, all[0].time-1, p.now+1)
	for _, parts := range [][]string{{"spent"}, {"spent", "log"}} {
		text, queries := historyModelOf(parts...)
		model := filepath.Join(dir, parts[len(parts)-1]+".yaml")
		must(os.WriteFile(model, []byte(text), 0o644))
		once := filepath.Join(dir, parts[len(parts)-1])
		if said, code := replayFiles(t.Context(), model, once, placed); code != 0 {
			t.Fatal(said)
		}
		want := asked(t, model, once, queries...)
		kept := len(parts) > 1
		for i, c := range []struct {
			commands      [][]string
			refused, same bool
		}{
			{[][]string{{placed, timed, timed}, {timed, placed}}, false, true}, {[][]string{{placed}, {timed}}, true, true}, {[][]string{{timed}, {placed}}, true, false},
			{[][]string{{window, placed}, {window, placed}}, false, true}, {[][]string{{placed}, {window}}, false, true},
			{[][]string{{window}, {window, placed}}, kept, !kept}, {[][]string{{window}, {timed}}, kept, !kept},
		} {
			commands := c.commands
			data := filepath.Join(dir, fmt.Sprint(parts, i))
			refused := false
			for _, files := range commands {
				said, code := replayFiles(t.Context(), model, data, files...)
				refused = refused || code != 0 && strings.Contains(said, "in two forms, ")
				if code != 0 && !refused {
					t.Errorf("%v %v: exit code %d\n%s", parts, commands, code, said)
				}
				if code == 0 && strings.Contains(said, "in no order") != (files[0] == timed && len(files) == 1 && len(parts) > 1) {
					t.Errorf("%v %v: entries in no order: %s", parts, files, said)
				}
			}
			if refused != c.refused {
				t.Errorf("%v %v: refused: %v", parts, commands, refused)
			}
			if have := asked(t, model, data, queries...); c.same && have != want {
				t.Errorf("%v %v: %s", parts, commands, cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n")))
			}
		}
	}
}

// TestMomentBesideAnExport: a row that was made and removed in a moment is gone, though a full export within it has the row. Records without
// sequence numbers that come in another order are a gap.
func TestMomentBesideAnExport(t *testing.T) {
	p := &past{Rand: rand.New(rand.NewPCG(1, 12)), rows: map[string]map[string]any{}, now: 1_700_000_000_000, ticks: true}
	made := p.next()
	for made.event["eventName"] != "INSERT" || !strings.Contains(made.row, "ORDER") {
		made = p.next()
	}
	d := made.event["dynamodb"].(map[string]any)
	event := maps.Clone(made.event)
	event["eventName"], event["eventID"], event["dynamodb"] = "REMOVE", "removed", map[string]any{"Keys": d["Keys"], "OldImage": d["NewImage"], "ApproximateCreationDateTime": d["ApproximateCreationDateTime"]}
	removed := pastChange{row: made.row, event: event}
	dir := t.TempDir()
	text, _ := plainModel()
	model := filepath.Join(dir, "model.yaml")
	must(os.WriteFile(model, []byte(text), 0o644))
	export := p.export(t, dir, map[string]map[string]any{made.row: d["NewImage"].(map[string]any)}, made.time+130)
	for i, files := range [][]pastChange{{made, removed}, {removed, made}} {
		data := filepath.Join(dir, fmt.Sprint(i))
		if said, code := replayFiles(t.Context(), model, data, export); code != 0 {
			t.Fatal(said)
		}
		said, code := replayFiles(t.Context(), model, data, p.file(t, dir, files))
		if gone := !strings.Contains(asked(t, model, data, "order"), "pk"); code == 0 && !gone || i == 0 && code != 0 {
			t.Errorf("in the order %d: exit code %d, removed %v\n%s", i, code, gone, said)
		}
	}
}

// TestCircleBehindAHole: changes of one moment without sequence numbers lead back to where they begin, and changes before them come later. What
// is known of the row then does not tell their order: the row is right in the end, or a gap says so.
func TestCircleBehindAHole(t *testing.T) {
	p := &past{Rand: rand.New(rand.NewPCG(1, 13)), ticks: true}
	before := []pastChange{renamed("e1", 1, "", "a"), renamed("e2", 2, "a", "")}
	circle := []pastChange{renamed("e5", 200, "b", ""), renamed("e6", 200, "", "b")}
	late := []pastChange{renamed("e3", 100, "", "a"), renamed("e4", 101, "a", "b")}
	text, _ := plainModel()
	for name, commands := range map[string][][]pastChange{"in one command": {slices.Concat(before, circle), late}, "in two": {before, circle, late}} {
		dir := t.TempDir()
		model := filepath.Join(dir, "model.yaml")
		must(os.WriteFile(model, []byte(text), 0o644))
		said, code := "", 0
		for _, c := range commands {
			said, code = replayFiles(t.Context(), model, filepath.Join(dir, "data"), p.file(t, dir, c))
		}
		if code == 0 && !strings.Contains(asked(t, model, filepath.Join(dir, "data"), "user"), `"name":"b"`) {
			t.Errorf("%s: the row is wrong, and the exit code is 0\n%s", name, said)
		}
	}
}

// renamed is a record without sequence number of a change of the name of a user, "" for no row.
func renamed(id string, second int, old, new string) pastChange {
	keys := map[string]any{"pk": stringOf("USER#u1"), "sk": stringOf("PROFILE")}
	d := map[string]any{"Keys": keys, "SizeBytes": 9, "StreamViewType": "NEW_AND_OLD_IMAGES", "ApproximateCreationDateTime": 1_700_000_000 + second}
	event := "MODIFY"
	for attr, name := range map[string]string{"OldImage": old, "NewImage": new} {
		if name != "" {
			d[attr] = map[string]any{"pk": keys["pk"], "sk": keys["sk"], "kind": stringOf("user"), "name": stringOf(name)}
		}
	}
	if old == "" {
		event = "INSERT"
	} else if new == "" {
		event = "REMOVE"
	}
	return pastChange{event: map[string]any{"eventID": id, "eventName": event, "dynamodb": d, "tableName": "cart", "recordFormat": "application/json"}}
}

// arrived is a record in a record of Kinesis.
func arrived(number string, x pastChange) pastChange {
	data, _ := json.Marshal(x.event)
	return pastChange{event: map[string]any{"SequenceNumber": number, "Data": data}}
}

// TestTies: changes of one moment, in files of one command. Images tell their order, else the sequence numbers of Kinesis or the order in one file;
// else there is a gap. Equal ones without eventID are copies, unless the images before and after need them.
func TestTies(t *testing.T) {
	soaktest.Calm(t)
	p := &past{Rand: rand.New(rand.NewPCG(1, 14)), ticks: true}
	there, back := renamed("e1", 5, "a", "b"), renamed("e2", 5, "b", "a")
	put, remove := renamed("", 5, "", "a"), renamed("", 5, "a", "")
	before, after := []pastChange{renamed("", 1, "", "b"), renamed("", 2, "b", "")}, []pastChange{renamed("", 9, "a", "b"), renamed("", 9, "b", "c")}
	text, _ := plainModel()
	for name, x := range map[string]struct {
		files [][]pastChange
		want  string // "gap", or the user's name
	}{
		"pages in another order":          {[][]pastChange{{arrived("10", back)}, {arrived("9", there)}}, "a"},
		"one file":                        {[][]pastChange{{there, back}}, "a"},
		"two files":                       {[][]pastChange{{back}, {there}}, "gap"},
		"one has arrived":                 {[][]pastChange{{arrived("10", back), there}}, "gap"},
		"images before sequence numbers":  {[][]pastChange{{arrived("9", renamed("e3", 5, "b", "c")), arrived("10", there)}}, "c"},
		"sequence numbers against images": {[][]pastChange{{renamed("e0", 1, "", "a"), arrived("9", back), arrived("10", there)}}, "gap"},
		"put twice":                       {[][]pastChange{before, {put, remove, put}, after}, "c"},
		"put twice or a copy":             {[][]pastChange{before, {put, remove, put}}, "gap"},
		"a file doubled":                  {[][]pastChange{before, {put, put, remove, remove}, before}, ""},
		"a page doubled, put once more":   {[][]pastChange{before, {put, remove, put, put, remove, put}, after}, "c"},
		"files that overlap":              {[][]pastChange{slices.Concat(before, after[:1]), {before[1], put, after[0]}, slices.Concat(after, after)}, "c"},
	} {
		dir := t.TempDir()
		model, data, files := filepath.Join(dir, "model.yaml"), filepath.Join(dir, "data"), []string{}
		must(os.WriteFile(model, []byte(text), 0o644))
		for _, all := range x.files {
			files = append(files, p.file(t, dir, all))
		}
		said, code := replayFiles(t.Context(), model, data, files...)
		if is := asked(t, model, data, "user"); code == 0 && !strings.Contains(is, fmt.Sprintf(`"name":%q`, x.want)) && x.want != strings.Trim(is, "user 01\n") || (code == 1) != (x.want == "gap") {
			t.Errorf("%s: exit code %d, want %s\n%s%s", name, code, x.want, is, said)
		}
	}
}

// TestFeedTies: a notification is sent where the subscription and what it tells are of one moment, in the order of Kinesis or of the file. What is
// older than what an earlier command sent is refused, also within the second.
func TestFeedTies(t *testing.T) {
	soaktest.Calm(t)
	p := &past{Rand: rand.New(rand.NewPCG(1, 15)), ticks: true}
	at := func(ms int, sk, kind string) pastChange {
		x := renamed(sk, 0, "", "a")
		d := x.event["dynamodb"].(map[string]any)
		d["ApproximateCreationDateTime"], d["Keys"].(map[string]any)["sk"] = 1_700_000_000_000+ms, stringOf(sk)
		maps.Copy(d["NewImage"].(map[string]any), map[string]any{"kind": stringOf(kind), "sk": stringOf(sk)})
		return x
	}
	subscribed, post, older := at(300, "PROFILE", "user"), at(300, "ORDER#1", "order"), at(200, "ORDER#2", "order")
	text, _ := historyModelOf("feed")
	for name, all := range map[string][]pastChange{"file": {subscribed, post}, "Kinesis": {arrived("10", post), arrived("9", subscribed)}} {
		dir := t.TempDir()
		model := filepath.Join(dir, "model.yaml")
		must(os.WriteFile(model, []byte(text), 0o644))
		for _, bulk := range []string{"auto", "never"} {
			data := filepath.Join(dir, bulk)
			if said, code := replayFiles(t.Context(), model, data, "--bulk", bulk, p.file(t, dir, all)); code != 0 || !strings.Contains(asked(t, model, data, "feed"), `"order":"1"`) {
				t.Errorf("%s, --bulk %s: exit code %d, and no notification\n%s", name, bulk, code, said)
			}
			if said, code := replayFiles(t.Context(), model, data, p.file(t, dir, []pastChange{older})); code != 2 {
				t.Errorf("an older record: exit code %d\n%s", code, said)
			}
		}
	}
}
