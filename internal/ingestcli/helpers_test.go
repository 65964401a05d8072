package ingestcli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// What scripts look at rows with. Each takes -data DIR, ./data else.

func opened(name string) (*system.System, func()) {
	m, err := model.Load(name)
	must(err)
	s, err := openWorld(*dataDir, m)
	must(err)
	return s, func() { must(s.Close()) }
}

var dataDir *string

func arguments() []string {
	dataDir = flag.String("data", "data", "")
	flag.Parse()
	return flag.Args()
}

// queryRows is query MODEL NAME key=value…: the rows of a query.
func queryRows() {
	a := arguments()
	s, done := opened(a[0])
	defer done()
	params := map[string]string{}
	for _, kv := range a[2:] {
		k, v, _ := strings.Cut(kv, "=")
		params[k] = v
	}
	res, err := s.Models[0].Query.Run(context.Background(), a[1], params, query.Page{})
	must(err)
	for _, row := range res.Items {
		fmt.Printf("%s\n", value.AppendPlainItem(nil, row))
	}
}

// rawRow is raw MODEL PARTITION SORT: a row of the model's first table as it is.
func rawRow() {
	a := arguments()
	s, done := opened(a[0])
	defer done()
	ref := store.Ref{Table: s.Models[0].Model.Tables[0].Name, Key: store.Key{Partition: value.OfString(a[1]), Sort: value.OfString(a[2])}}
	rows, err := s.Store.Get(context.Background(), []store.Ref{ref})
	must(err)
	if rows[0] != nil {
		fmt.Printf("%s\n", value.AppendPlainItem(nil, rows[0]))
	}
}

// foreign is foreign MODEL TABLE FILE: puts a row past everything, as others do.
func foreign() {
	a := arguments()
	text, err := os.ReadFile(a[2])
	must(err)
	row, err := ingest.ReadItem(text)
	must(err)
	s, done := opened(a[0])
	defer done()
	t := s.Models[0].Model.Table(a[1])
	key, _ := t.KeyOf(row)
	out, err := s.Store.Write(context.Background(), []store.Write{{Ref: store.Ref{Table: t.Name, Key: key}, Put: row}})
	must(err)
	must(out[0].Err)
}

// bom is bom FILE MARKED: the file behind a byte order mark.
func bom() {
	text, err := os.ReadFile(os.Args[1])
	must(err)
	must(os.WriteFile(os.Args[2], append([]byte("\ufeff"), text...), 0o644))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
