package main

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/cli"
	"weir/internal/console"
	"weir/internal/drivers"
	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/lambda/lambdatest"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/sample"
	"weir/internal/store"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// TestHostileRows: whatever other writers put into a model's tables, each command ends,
// with a code that its help names, and what is derived on the rows beside is what a
// recount of this test gives.
func TestHostileRows(t *testing.T) {
	for _, name := range []string{"gallery", "wardrobe", "watchlists", "viewing", "movienight", "blobs"} {
		if testing.Short() && name != "wardrobe" && name != "blobs" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t, name)
			h.flags = []string{"--data", filepath.Join(t.TempDir(), "data")}
			h.open = func() (*system.System, error) {
				return system.Open(t.Context(), h.flags[1], []*model.Model{h.model}, system.Options{NoSearch: true})
			}
			h.fill()
			h.serves()
			h.recounts()
			h.deadLetters()
			h.rowsByName()
			h.repairs()
			h.flags = []string{"--data", filepath.Join(t.TempDir(), "again")}
			for range 2 {
				h.ends(h.with("replay", h.arg, h.recording), exitGood, exitCheck)
			}
			h.recounts()
			h.repairs()
		})
	}
}

// TestHostileRowsOnDynamoDB does the same with a recording of such rows. A repair leaves
// counts there, since it cannot tell what streams show later.
func TestHostileRowsOnDynamoDB(t *testing.T) {
	endpoint := os.Getenv(dynamodbtest.Endpoint)
	dynamodbtest.Config(t)
	for name, v := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": cryptorand.Text(), "AWS_SECRET_ACCESS_KEY": "x", "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
	} {
		t.Setenv(name, v)
	}
	h := newHostile(t, "wardrobe")
	h.few = true
	dir := filepath.Join(t.TempDir(), "data")
	h.open = func() (*system.System, error) {
		return system.Open(t.Context(), dir, []*model.Model{h.model}, system.Options{NoSearch: true})
	}
	h.fill()
	h.flags = []string{"--aws", "--data", filepath.Join(t.TempDir(), "spool")}
	h.open = func() (*system.System, error) {
		return cli.Open(t.Context(), drivers.Place{Data: h.flags[2], AWS: true}, []string{h.arg}, system.Options{NoSearch: true})
	}
	h.ends(h.with("replay", h.arg, h.recording), exitGood, exitCheck)
	h.recounts()
	h.serves()
	h.deadLetters()
	h.ends(h.with("repair", h.arg), exitGood, exitCheck)
	h.ends(h.with("verify", h.arg), exitGood, exitCheck)
	h.recounts()
}

// hostile runs commands on a model's rows, of which others wrote some.
type hostile struct {
	*testing.T
	model     *model.Model
	open      func() (*system.System, error)
	arg       string // what commands call the model
	flags     []string
	recording string
	d         *rand.Rand
	rows      []row // that the store took
	right     map[string]bool
	few       bool // not every hostile id
}

// row is a row by its key, and the entity that it is, nil for none.
type row struct {
	store.Ref
	of *model.Entity
}

// blobsModel has keys that are no strings.
const blobsModel = `
model: blobs
tables:
  Blobs: {key: [{id: binary}]}
  Parts: {key: [{blob: binary}, {n: number}], indexes: {by-name: [name, {size: number}]}}
entities:
  Blob: {table: Blobs, attributes: {id: binary!, name: string}}
  Part: {table: Parts, attributes: {blob: binary!, n: number!, size: number, name: string}}
derive:
  Blob.parts: {count: Part, to: {id: blob}}
  Blob.bytes: {sum: Part.size, to: {id: blob}}
queries:
  named: {list: Part, by: by-name, with: [name]}
`

func newHostile(t *testing.T, name string) *hostile {
	h := &hostile{T: t, arg: name, recording: filepath.Join(t.TempDir(), "stream.jsonl"), d: rand.New(rand.NewPCG(7, 1)), right: map[string]bool{}, few: testing.Short()}
	if name == "blobs" {
		h.arg = filepath.Join(t.TempDir(), "blobs.yaml")
		if err := os.WriteFile(h.arg, []byte(blobsModel), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if h.model, err = model.Load(h.arg); err != nil {
		t.Fatal(err)
	}
	return h
}

// Ids that keys, terminals, URLs or encodings take for something else. The first ones
// are in keys as they are, and what is derived on such rows is recounted too.
var (
	hostileIDs = []string{
		"\x00", "é", "\u2066\u2069", "\u202egpj.", "e\u0301", "\u009b31m", "\x1b[31m", "\u2028", "\ufeff", " ", "\U0001F469\u200d\U0001F680", strings.Repeat("l", 300),
		"-spoilt1", "-spoilt2", "-spoilt3", "-spoilt4", "#", "%23", "%", "|", "/..", "{id}", "\xff\xfe", "a\xc3", strings.Repeat("\x00", 700), strings.Repeat("y", 2100), strings.Repeat("x", 1100),
	}
	exactIDs = 12
)

// hostileValues are what attributes hold that no model asks for.
var hostileValues = []value.Value{
	value.OfNull(), value.OfBool(true), value.OfInt(0), value.OfInt(-7), value.MustNumber("9.9999999999999999999999999999999999999e125"), value.MustNumber("-1e-130"),
	value.OfString(""), value.OfString("x\x00"), value.OfString("\u202e"), value.OfString("\xff"), value.OfString("2025-13-41"), value.OfString("1e400"),
	value.OfString(strings.Repeat("k", 3000)), value.OfString(strings.Repeat("s", 1025)), value.OfString(strings.Repeat("u", 140_000)),
	value.OfString("2026-01-01T00:00:00." + strings.Repeat("1", 150_000) + "Z"), value.OfBinary(""), value.OfBinary("\x00\xff"), value.OfBinary(strings.Repeat("b", 200_000)),
	value.OfList(), value.OfList(value.OfInt(1), value.OfString("x")), value.OfMap(value.Item{}), nested(value.MaxDepth), value.OfStrings([]string{"", "a"}),
}

// big are values with which a row is close to DynamoDB's limit.
var big = []value.Value{value.OfString(strings.Repeat("h", 398<<10)), value.OfString(strings.Repeat("\u202e", 130<<10))}

func nested(levels int) value.Value {
	v := value.OfString("deep")
	for i := range levels {
		if i%2 == 0 {
			v = value.OfMap(value.Item{{Name: "m\u202e", Value: v}})
		} else {
			v = value.OfList(v)
		}
	}
	return v
}

// fill writes the model's sample rows, what is hostile beside them, and a recording of
// it all.
func (h *hostile) fill() {
	s, err := h.open()
	if err != nil {
		h.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			h.Error(err)
		}
	}()
	w := &ingest.Writer{Model: h.model, Store: s.Store, Again: true, Brief: true}
	for _, r := range w.Do(h.Context(), sample.Commands(h.model, time.Now().Add(-time.Hour).UTC().Truncate(time.Second))) {
		if r.Err != nil {
			h.Fatal(r.Err)
		}
	}
	for _, mt := range h.model.Tables {
		good := h.scan(s.Store, mt.Name)
		for _, row := range good {
			h.put(s.Store, mt, row.With(value.Attr{Name: "note\u202e", Value: nested(value.MaxDepth)}).With(value.Attr{Name: "extra", Value: value.MustNumber("1e125")}), true)
		}
		for i, id := range hostileIDs {
			if h.few && i%3 > 0 {
				continue
			}
			for _, row := range good {
				row = renamed(row, id)
				if i >= exactIDs {
					row = h.spoilt(mt, row)
				}
				h.put(s.Store, mt, row, i < exactIDs)
			}
		}
	}
	h.record(s.Store)
}

var anyName = regexp.MustCompile(`([A-Za-z_]+)-([0-9]+)`)

// renamed is a row with other ids, in all its texts alike.
func renamed(row value.Item, id string) value.Item {
	return rename(value.OfMap(row), id).Item()
}

func rename(v value.Value, id string) value.Value {
	name := func(s string) string {
		return anyName.ReplaceAllStringFunc(s, func(m string) string {
			return anyName.ReplaceAllString(m, "${1}-h${2}") + id
		})
	}
	switch v.Kind() {
	case value.String:
		return value.OfString(name(v.Text()))
	case value.Binary:
		return value.OfBinary("x-h1" + v.Text() + id)
	case value.List:
		var all []value.Value
		for _, e := range v.Elements() {
			all = append(all, rename(e.Value, id))
		}
		return value.OfList(all...)
	case value.Map:
		var it value.Item
		for _, a := range v.Item() {
			it = append(it, value.Attr{Name: a.Name, Value: rename(a.Value, id)})
		}
		return value.OfMap(it)
	}
	return v
}

// spoilt is a row of which some attributes are not what the model asks for: its own,
// those of indexes, those that weir keeps for itself, or its kind.
func (h *hostile) spoilt(mt *model.Table, row value.Item) value.Item {
	var names []string
	for _, a := range row {
		names = append(names, a.Name)
	}
	for _, ix := range mt.Indexes {
		names = append(names, ix.Key.Partition.Name, ix.Key.Sort.Name)
	}
	names = append(names, "weir", "weir.own", "weir.from", "zz")
	for range h.d.IntN(4) {
		name := names[h.d.IntN(len(names))]
		if name == "" || name == mt.Key.Partition.Name || name == mt.Key.Sort.Name {
			continue
		}
		v := hostileValues[h.d.IntN(len(hostileValues))]
		if h.d.IntN(40) == 0 {
			v = big[h.d.IntN(len(big))]
		}
		row = row.With(value.Attr{Name: name, Value: v})
	}
	return row
}

// put writes past all that would refuse a row, but for the store itself. What is
// derived on a row that is right is recounted.
func (h *hostile) put(db store.Store, mt *model.Table, image value.Item, right bool) {
	h.Helper()
	key, _ := mt.KeyOf(image)
	ref := store.Ref{Table: mt.Name, Key: key}
	out, err := db.Write(h.Context(), []store.Write{{Ref: ref, Put: image}})
	if err != nil {
		h.Fatal(err)
	}
	if out[0].Err == nil {
		h.rows = append(h.rows, row{ref, mt.Classify(image)})
		h.right[ref.String()] = right
	} else if right {
		h.Errorf("%.200s: %v", ref, out[0].Err)
	}
}

func (h *hostile) scan(db store.Store, table string) (rows []value.Item) {
	for q := (store.Query{Table: table}); ; {
		page, err := db.Query(h.Context(), q)
		if err != nil {
			h.Fatal(err)
		}
		rows = append(rows, page.Rows...)
		if q.After = page.Next; q.After == nil {
			return rows
		}
	}
}

// record writes the store's streams into a file, as Lambda has them.
func (h *hostile) record(db store.Store) {
	var b []byte
	for _, mt := range h.model.Tables {
		shards, err := db.Shards(h.Context(), mt.Name)
		if err != nil {
			h.Fatal(err)
		}
		for _, sh := range shards {
			for after := (events.Position{}); ; {
				page, err := db.Read(h.Context(), mt.Name, sh.ID, after, 1000)
				if err != nil {
					h.Fatal(err)
				}
				for i := range page.Records {
					b = append(append(b, lambdatest.Record(mt.Name, &page.Records[i])...), '\n')
					after = page.Records[i].Position
				}
				if len(page.Records) == 0 {
					break
				}
			}
		}
	}
	if err := os.WriteFile(h.recording, b, 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *hostile) with(args ...string) []string { return append(args, h.flags...) }

// ends runs a command, which must end with one of the codes.
func (h *hostile) ends(args []string, codes ...int) (stdout, stderr string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	var out, talk bytes.Buffer
	code := run(ctx, args, strings.NewReader(""), &out, &talk)
	if !slices.Contains(codes, code) || ctx.Err() != nil {
		h.Errorf("%.500q: exit %d, not one of %v\n%.2000s", args, code, codes, talk.String())
	}
	for what, text := range map[string]string{"stdout": out.String(), "stderr": talk.String()} {
		if at := misread.FindStringIndex(text); at != nil {
			h.Errorf("%.200q prints on %s what a terminal misreads: %.200q", args, what, text[max(0, at[0]-60):])
		}
	}
	return out.String(), talk.String()
}

// misread is what a terminal takes for a command, or for another order of the text.
var misread = regexp.MustCompile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

// repairs runs repair and verify, in all forms.
func (h *hostile) repairs() {
	h.Helper()
	h.ends(h.with("repair", h.arg, "--dry-run", "-o", "json"), exitGood, exitCheck)
	_, said := h.ends(h.with("repair", h.arg), exitGood, exitCheck)
	for _, form := range []string{"json", "jsonl", "text"} {
		h.ends(h.with("verify", h.arg, "-o", form), exitGood, exitCheck)
	}
	h.Log(strings.SplitN(said, "\n", 2)[0])
	h.recounts()
}

// serves follows the streams and answers queries for values of rows and for hostile
// ones, and stops when it is told to.
func (h *hostile) serves() {
	pool := append([]string{"true", "2025-01-01T00:00:00Z", "7", "green", "1e400", "like", "*", `"`}, hostileIDs...)
	for _, row := range h.rows {
		pool = append(pool, anyHostile.FindAllString(row.Key.Partition.Text()+"#"+row.Key.Sort.Text(), 2)...)
	}
	base := ""
	h.Run("run", func(t *testing.T) {
		base = serve(t, errTerminated, exitGood, h.with("run", h.arg, "--addr", "127.0.0.1:0", "--rate", "0")...)
		for name, params := range h.queries() {
			for i := range 60 {
				q := url.Values{}
				for _, p := range params {
					if p.Optional && i%2 == 0 {
						continue
					}
					v := pool[h.d.IntN(len(pool))]
					if i < 3 {
						v = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(p.Name), "id"), "_") + "-" + fmt.Sprint(i+1)
					}
					q.Set(p.Name, v)
				}
				h.asks(base + "/" + h.model.Name + "/" + name + "?" + q.Encode())
			}
		}
		h.asks(strings.TrimSuffix(base, "/v1") + "/metrics")
		h.asks(strings.TrimSuffix(base, "/v1") + "/healthz")
	})
	n := 0
	for name, params := range h.queries() {
		args := h.with("query", h.arg, name)
		for _, p := range params {
			args = append(args, p.Name+"="+pool[h.d.IntN(len(pool))])
		}
		if h.ends(args, exitGood, exitUsage); n > 3 {
			break
		}
		n++
	}
}

var anyHostile = regexp.MustCompile(`[A-Za-z_]+-h[0-9][^#|]*`)

type parameter struct {
	Name     string
	Optional bool
}

// queries are the model's, as the program lists them.
func (h *hostile) queries() map[string][]parameter {
	out, _ := h.ends([]string{"query", h.arg, "-o", "jsonl"}, exitGood)
	all := map[string][]parameter{}
	for line := range strings.Lines(out) {
		var q struct {
			Name       string
			Parameters []parameter
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			h.Fatal(err)
		}
		all[q.Name] = q.Parameters
	}
	return all
}

// asks gets an answer, or a refusal of the request.
func (h *hostile) asks(at string) {
	h.Helper()
	res, err := http.Get(at)
	if err != nil {
		h.Errorf("%.300s: %v", at, err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if slices.Contains(h.flags, "--aws") && bytes.Contains(body, []byte("search is not available")) {
		return // there is no cluster
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusBadRequest || err != nil {
		h.Errorf("%.300s: %s %.300s %v", at, res.Status, body, err)
	}
}

// deadLetters lists, shows, retries and discards letters of each kind.
func (h *hostile) deadLetters() {
	h.ends(h.with("dead", "list", h.arg), exitGood)
	h.ends(h.with("dead", "list", h.arg, "-o", "json"), exitGood)
	list, _ := h.ends(h.with("dead", "list", h.arg, "-o", "jsonl"), exitGood)
	h.documents(list)
	seen := map[string]int{}
	for line := range strings.Lines(list) {
		var d console.Letter
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			h.Fatal(err)
		}
		if seen[string(d.Kind)]++; seen[string(d.Kind)] > 2 {
			continue
		}
		if one, _ := h.ends(h.with("dead", "show", h.arg, d.ID), exitGood); !strings.Contains(one, d.ID) {
			h.Errorf("dead show %s: %.200s", d.ID, one)
		}
		h.ends(h.with("dead", "retry", h.arg, d.ID), exitGood, exitCheck)
		h.ends(h.with("dead", "discard", h.arg, d.ID), exitGood, exitUsage)
		h.ends(h.with("dead", "show", h.arg, d.ID), exitUsage)
	}
	h.Log("rows", len(h.rows), "dead letters", seen)
}

// documents demands that dead list of a row has the letters of its documents.
func (h *hostile) documents(list string) {
	n := 0
	for line := range strings.Lines(list) {
		var d console.Letter
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			h.Fatal(err)
		}
		if d.Kind != runner.DeadDocument || n > 4 {
			continue
		}
		n++
		one, _ := h.ends(h.with("dead", "show", h.arg, d.ID), exitGood)
		var whole struct {
			Record struct {
				Table struct{ S string }
				Keys  struct{ M map[string]struct{ S string } }
			}
		}
		if err := json.Unmarshal([]byte(one), &whole); err != nil {
			h.Fatal(err)
		}
		var key value.Item
		for name, v := range whole.Record.Keys.M {
			key = key.With(value.Attr{Name: name, Value: value.OfString(v.S)})
		}
		printed := whole.Record.Table.S + " " + string(value.AppendPlainItem(nil, key))
		if of, _ := h.ends(h.with("dead", "list", h.arg, printed, "-o", "jsonl"), exitGood); !strings.Contains(of, d.ID) {
			h.Errorf("dead list %.200q does not have the document %s: %.300s", printed, d.ID, of)
		}
	}
	h.Log("letters of documents", n)
}

// typed is a row as a person names it, by entity and the names in its key.
func typed(row row) string {
	var parts []string
	for _, k := range row.of.PrimaryKey() {
		for _, n := range k.Template.Names() {
			v := row.of.Field(n).Get(row.of.Table.Item(row.Key))
			text := value.Scalar(v)
			if v.Kind() == value.Binary {
				text = base64.StdEncoding.EncodeToString([]byte(v.Text()))
			}
			parts = append(parts, n+"="+strings.NewReplacer("%", "%25", ",", "%2C", "=", "%3D").Replace(text))
		}
	}
	return row.of.Name + ":" + strings.Join(parts, ",")
}

// rowsByName names hostile rows as people type them and as verify prints them.
func (h *hostile) rowsByName() {
	h.ends(h.with("repair", h.arg, "nosuch\u202e:\x1b"), exitUsage)
	seen, letters := map[string]int{}, 0
	for _, row := range h.rows {
		e := row.of
		if e == nil || len(e.Values) == 0 || e.Values[0].IsSet() || seen[e.Name] > 12 {
			continue
		}
		seen[e.Name]++
		printed := e.Table.Name + " " + string(value.AppendPlainItem(nil, e.Table.Item(row.Key)))
		for _, name := range []string{printed, cli.Line(printed), row.Ref.String(), cli.Line(row.Ref.String())} {
			h.ends([]string{"why", h.arg, name, e.Values[0].Attr, "--from", h.recording}, exitGood, exitCheck)
		}
		h.ends(h.with("repair", h.arg, cli.Line(printed), "--dry-run"), exitGood, exitCheck)
		as := typed(row)
		h.ends([]string{"why", h.arg, as, e.Values[0].Attr, "--from", h.recording}, exitGood, exitCheck)
		h.ends(h.with("repair", h.arg, as, "--dry-run"), exitGood, exitCheck)
		kept, _ := h.ends(h.with("dead", "list", h.arg, cli.Line(printed), "-o", "jsonl"), exitGood)
		all, _ := h.ends(h.with("dead", "list", h.arg, as, "-o", "jsonl"), exitGood)
		for line := range strings.Lines(kept) {
			if !strings.Contains(all, line) {
				h.Errorf("dead list %.200q does not have %.300s", as, line)
			}
		}
		letters += strings.Count(kept, "\n")
	}
	h.Log("dead letters of rows by name", letters)
}

// recounts compares what rows show that are right, hostile ids or not, with what a
// plain recount of all rows gives.
func (h *hostile) recounts() {
	h.Helper()
	s, err := h.open()
	if err != nil {
		h.Fatal(err)
	}
	defer s.Close()
	right, have := map[string][]value.Item{}, map[string]value.Item{}
	for _, mt := range h.model.Tables {
		for _, row := range h.scan(s.Store, mt.Name) {
			key, _ := mt.KeyOf(row)
			ref := store.Ref{Table: mt.Name, Key: key}.String()
			if have[ref] = row; h.right[ref] {
				right[mt.Name] = append(right[mt.Name], row)
			}
		}
	}
	n := 0
	for ref, want := range plainly(h.model.Name, right) {
		if have[ref] == nil && !want.Has("PK") {
			continue // what is counted before its row is there waits unseen
		}
		for _, a := range want {
			n++
			if v := have[ref].Get(a.Name); !bytes.Equal(value.AppendPlain(nil, v), value.AppendPlain(nil, a.Value)) {
				h.Errorf("%.300s shows %s %.200s, not %.200s", ref, a.Name, value.AppendPlain(nil, v), value.AppendPlain(nil, a.Value))
			}
		}
	}
	if n < 10 {
		h.Errorf("only %d values are recounted", n)
	}
}

// plainly is what rows show by the models' words, by row. It shares nothing with the
// code that derives.
func plainly(name string, rows map[string][]value.Item) map[string]value.Item {
	out := map[string]value.Item{}
	is := func(attr string, v value.Value, table string, key ...value.Value) {
		ref := store.Ref{Table: table, Key: store.Key{Partition: key[0]}}
		if len(key) > 1 {
			ref.Key.Sort = key[1]
		}
		id := ref.String()
		switch had := out[id].Get(attr); {
		case had.Kind() == value.Number:
			v = value.OfInt(int64Of(had) + int64Of(v))
		case had.Kind() == value.StringSet:
			var all []string
			for _, e := range append(had.Elements(), v.Elements()...) {
				all = append(all, e.Value.Text())
			}
			v = value.OfStrings(all)
		}
		out[id] = out[id].With(value.Attr{Name: attr, Value: v})
	}
	str, one := value.OfString, value.OfInt(1)
	for table, all := range rows {
		for _, row := range all {
			text := func(name string) string { return row.Get(name).Text() }
			kind := text("EntityType") + text("entityType")
			if kind == "" {
				kind = table
			}
			switch name + " " + kind {
			case "gallery AlbumMedia":
				is("mediaCount", one, table, row.Get("PK"), str("METADATA"))
			case "gallery UserInteraction":
				is(text("interactionType")+"Count", one, table, str("MEDIA#"+text("mediaId")), str("METADATA"))
			case "wardrobe Share":
				is("SharedCount", one, table, row.Get("PK"), str("METADATA"))
			case "wardrobe Item":
				for _, a := range []string{"PK", "Name", "Category"} {
					v := row.Get(a)
					if a == "PK" {
						v = str("USER#" + text("UserId"))
					}
					is(a, v, table, str("USER#"+text("UserId")), row.Get("PK"))
				}
			case "watchlists WATCHLIST_ITEM":
				is("itemCount", one, table, row.Get("PK"), str("METADATA"))
			case "watchlists RATING":
				is("ratingCount", one, table, str(text("contentType")+"#"+text("contentId")), str("METADATA"))
			case "viewing viewing-history":
				is("assetIds", value.OfStrings([]string{text("a.assetId")}), table, row.Get("profileId"), row.Get("a.state"))
			case "movienight Votes":
				is(text("vote")+"_votes", one, "Suggestions", row.Get("round_id"), row.Get("tmdb_movie_id"))
			case "movienight Picks":
				is("selected_at", row.Get("picked_at"), "Rounds", row.Get("round_id"))
			case "blobs Parts":
				is("parts", one, "Blobs", row.Get("blob"))
				is("bytes", row.Get("size"), "Blobs", row.Get("blob"))
			}
		}
	}
	return out
}

func int64Of(v value.Value) int64 { n, _ := v.Int64(); return n }
