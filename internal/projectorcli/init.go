package projectorcli

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"weir/internal/cli"
	"weir/internal/model"
	"weir/internal/sample"
	"weir/internal/store"
	"weir/internal/survey"
	"weir/internal/system"
	"weir/internal/value"
)

// initCommand writes a first model.
type initCommand struct {
	FromTable string `placeholder:"NAME" help:"Draft the model from rows of this table in DynamoDB, which is only read."`
	AWS       bool   `name:"aws" help:"Rows are in DynamoDB, found by the SDK's own environment: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB and the rest. --from-table needs it."`
	Rows      int    `default:"1000" placeholder:"N" help:"Read so many rows of the table at most (default ${default})."`
	Name      string `arg:"" optional:"" help:"Name of the model: small letters, digits and hyphens. Otherwise it is made of the table's."`
}

func (initCommand) Help() string {
	return `Writes NAME.yaml, a small model to go on with, and NAME.test.md, a case of it for test.
No file is overwritten.

With --from-table, it reads rows of an existing table, and drafts a model: the table with
its indexes, entities told apart by an attribute such as EntityType or by the form of
their keys, templates of keys, types by the values, and queries. Derivations stand there
as suggestions. Rows that it cannot tell apart are named in the draft. It reads the first
rows of a scan, a read unit for each 8 KB.

  projector init shop
  projector init NAME --from-table shop-prod --aws`
}

//go:embed init.yaml
var firstModel string

//go:embed init.test.md
var firstCase string

// Run writes the files.
func (c *initCommand) Run(p *program) error {
	if c.Name == "" && c.FromTable != "" {
		c.Name = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(c.FromTable), "-"), "-")
	}
	if _, ok := model.Named(c.Name); !ok {
		return usage("%q cannot be the name of a model: it has small letters, digits and single hyphens", c.Name)
	}
	files := [][2]string{{c.Name + ".yaml", strings.ReplaceAll(firstModel, "NAME", c.Name)}, {c.Name + ".test.md", strings.ReplaceAll(firstCase, "NAME", c.Name)}}
	if c.FromTable != "" {
		text, err := c.draftModel(p)
		if err != nil {
			return err
		}
		files = [][2]string{{c.Name + ".yaml", text}}
	}
	for _, f := range files {
		if _, err := os.Lstat(f[0]); err == nil {
			return usage("%s exists, and is not overwritten", f[0])
		}
	}
	for _, f := range files {
		is, err := os.OpenFile(f[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // no link, and nothing that came meanwhile
		if err != nil {
			return err
		}
		if _, err := is.WriteString(cli.Typed(f[1])); err != nil {
			return errors.Join(err, is.Close())
		}
		if err := is.Close(); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "%s: written\n", f[0])
	}
	m, err := cli.LoadModel(p.ctx, files[0][0])
	if err != nil { // of a draft; it says which parts are to be mended
		return err
	}
	if c.FromTable != "" {
		fmt.Fprintf(p.stderr, "go on with an editor, and %s\n", m.Command("lint"))
	} else {
		fmt.Fprintf(p.stderr, "go on with %s and %s\n", m.Command("test"), m.Command("dev"))
	}
	return nil
}

// draftModel reads the table and returns a model of it.
func (c *initCommand) draftModel(p *program) (string, error) {
	if !c.AWS {
		return "", usage("--from-table reads a table in DynamoDB: say --aws")
	}
	t, err := c.describeTable(p)
	if err != nil {
		return "", err
	}
	db, _, err := system.Place{AWS: true}.Open(p.ctx, []store.Table{*t}, time.Now, false)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var rows []value.Item
	for q := (store.Query{Table: t.Name}); len(rows) < c.Rows; {
		q.Limit = c.Rows - len(rows)
		page, err := db.Query(p.ctx, q)
		if err != nil {
			return "", err
		}
		if rows = append(rows, page.Rows...); page.Next == nil {
			break
		}
		q.After = page.Next
	}
	if len(rows) == 0 {
		return "", usage("the table %s has no rows to draft a model from", t.Name)
	}
	fmt.Fprintf(p.stderr, "drafted from %d rows\n", len(rows))
	return sample.Model(c.Name, t, rows), nil
}

// describeTable describes the table, with those indexes that a model can have.
func (c *initCommand) describeTable(p *program) (*store.Table, error) {
	t := &store.Table{Name: c.FromTable, Key: store.KeySchema{Partition: store.KeyAttr{Name: "?", Type: value.String}}}
	all, _, err := survey.Tables(p.ctx, system.Place{AWS: true}, []*model.Model{{Name: c.Name, Tables: []*model.Table{{Table: *t}}}})
	if errors.Is(err, system.ErrConfig) {
		return nil, usage("%v", err)
	}
	if err != nil {
		return nil, err
	}
	is := all[len(all)-1]
	switch {
	case is.Unknown != "":
		return nil, errors.New(is.Unknown)
	case is.Missing:
		return nil, usage("there is no table %s", c.FromTable)
	}
	t.Key, t.TTL = keyOf(is.Key), is.TTL.Is
	for _, ix := range is.Indexes {
		if ix.Projects != "INCLUDE" {
			t.Indexes = append(t.Indexes, store.Index{Name: ix.Name, Local: ix.Local, Key: keyOf(ix.Key), KeysOnly: ix.Projects == "KEYS_ONLY"})
		}
	}
	return t, nil
}

// keyOf reads a text of doctor.KeyText.
func keyOf(text string) (k store.KeySchema) {
	types := map[string]value.Kind{"(S)": value.String, "(N)": value.Number, "(B)": value.Binary}
	for i, part := range strings.Split(text, ", ") {
		name, kind, _ := strings.Cut(part, " ")
		a := store.KeyAttr{Name: name, Type: types[kind]}
		if i == 0 {
			k.Partition = a
		} else {
			k.Sort = a
		}
	}
	return k
}
