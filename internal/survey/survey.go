// Package survey asks AWS and the search cluster for the facts that doctor judges. It changes nothing: permissions are
// asked by calls that cannot succeed (dynamodb.Store.May).
package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/deploy"
	"weir/internal/doctor"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/search/opensearch"
	"weir/internal/seq"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/system"
)

// patience is how long a request is tried again. A person waits for the answers.
const patience = 1500 * time.Millisecond

// survey is one visit.
// It is of one goroutine, and is dropped after the visit.
type survey struct {
	at     system.Place
	models []*model.Model
	tables []store.Table // of weir first, by the model's names
	names  stage.Names
	db     *dynamodb.Store // by real names
	facts  doctor.Facts
	// silent is set once: if DynamoDB gave no answer at all for the first table, not even one with
	// its time, each further question would wait for nothing.
	silent string // why DynamoDB answers nothing: then it is not asked again for each thing
}

// open prepares a visit. It sends nothing. An error is one of the flags or the environment.
// The registry of stages is among the tables that are opened, also for a stage whose own table is
// another one. The caller closes the store.
func open(ctx context.Context, at system.Place, models []*model.Model) (*survey, *account, error) {
	tables, err := system.Tables(models)
	if err != nil {
		return nil, nil, err
	}
	s := &survey{at: at, models: models, tables: tables}
	if s.names, err = at.Names(tables); err != nil {
		return nil, nil, err
	}
	cfg, err := dynamodb.Config(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", system.ErrConfig, err)
	}
	real := s.names.Tables(tables)
	if registry := stage.Registry(); registry.Name != s.names.Own() {
		real = append(real, registry)
	}
	s.db = dynamodb.Open(cfg, real, dynamodb.Options{Patience: patience})
	return s, openAccount(cfg), nil
}

// Tables describes the tables of the models and weir's own, which comes first. It changes nothing.
// The names say which table of the model each one is. An error comes with the tables that were
// described before it.
func Tables(ctx context.Context, at system.Place, models []*model.Model) ([]doctor.Table, *stage.Names, error) {
	s, _, err := open(ctx, at, models)
	if err != nil {
		return nil, nil, err
	}
	defer s.db.Close()
	all, err := s.describeTables(ctx)
	return all, &s.names, err
}

// Of asks for everything that doctor judges of one model. A fact that cannot be
// asked is said in the facts; an error is one of the flags, the environment or the context.
// It sends requests one after the other, each tried again for patience at most. A model with more
// tables takes longer; nothing is asked twice.
func Of(ctx context.Context, at system.Place, m *model.Model, deriveIn string) (*doctor.Facts, error) {
	s, acc, err := open(ctx, at, []*model.Model{m})
	if err != nil {
		return nil, err
	}
	defer s.db.Close()
	m.Flags = at.Flags()
	f := &s.facts
	f.Command, f.DeriveIn, f.Searches = m.Command, deriveIn, len(m.Searches) > 0
	f.Identity, f.Concurrency = acc.identity(ctx), acc.concurrency(ctx)
	if f.Tables, err = s.describeTables(ctx); err != nil {
		return nil, err
	}
	f.Ahead = s.db.Ahead()
	s.silent = f.Tables[0].Unknown
	if f.Ahead.Unknown == "" {
		s.silent = ""
	}
	readers := s.askCatalog(ctx, m, deriveIn)
	for i := range f.Tables {
		t := &f.Tables[i]
		t.Reader = readers[t.Model]
		if t.Stream != "" && t.Images != "" {
			t.Mappings = acc.mappings(ctx, t.Stream)
		}
	}
	f.Permissions = s.askPermissions(ctx)
	if f.Searches {
		f.Search = s.askCluster(ctx, m)
	}
	return f, ctx.Err()
}

// describeTables asks for each table once.
func (s *survey) describeTables(ctx context.Context) (all []doctor.Table, err error) {
	needs := map[string]store.Images{}
	for _, m := range s.models {
		for _, t := range m.Tables {
			needs[t.Name] = t.Images
		}
	}
	for i := range s.tables {
		t, err := s.db.Look(ctx, s.names.Real(s.tables[i].Name))
		if err != nil {
			return all, err
		}
		if s.tables[i].Name != owntable.TableName {
			t.Model, t.Needs = s.tables[i].Name, needs[s.tables[i].Name]
		}
		all = append(all, t)
	}
	return all, nil
}

// askCatalog asks which stage the tables belong to, and whether this program may derive; it returns who reads each table.
// It claims no table and enters nothing in the catalog: a stage claims by its first start
// (stage.Claim).
func (s *survey) askCatalog(ctx context.Context, m *model.Model, deriveIn string) map[string]doctor.Reader {
	f, readers := &s.facts, map[string]doctor.Reader{}
	is := doctor.Names{Stage: s.at.Stage.Name, Own: s.names.Own()}
	if s.at.Stage.IsDefault() {
		is.Stage = stage.Default
	}
	is.Tables = append(is.Tables, seq.Map(m.Tables, func(t *model.Table) string { return s.names.Shown(t.Name) })...)
	if s.silent != "" {
		f.Names, f.Catalog = doctor.Not[doctor.Names](s.silent), doctor.Not[doctor.Catalog](s.silent)
		return readers
	}
	err := stage.Claim(ctx, s.db, &s.names, time.Now(), false)
	switch {
	case errors.Is(err, stage.ErrTaken):
		is.Taken = err.Error()
		f.Names = doctor.Known(is)
	case err != nil:
		f.Names = doctor.Not[doctor.Names](dynamodb.Needs("dynamodb:BatchGetItem", err) + ", to read which stage the tables belong to")
	default:
		f.Names = doctor.Known(is)
	}
	row, refused, err := catalog.New(m, stage.Wrap(s.db, s.names), time.Now, catalog.Options{DeriveIn: deriveIn}).ReadAndCheck(ctx)
	switch {
	case errors.Is(err, store.ErrNoTable):
		f.Catalog = doctor.Not[doctor.Catalog]("all tables, of which some do not exist")
		return readers
	case errors.Is(err, owntable.ErrNewer):
		f.Catalog = doctor.Known(doctor.Catalog{Begun: true, Refused: err.Error()})
		return readers
	case err != nil:
		f.Catalog = doctor.Not[doctor.Catalog](dynamodb.Needs("dynamodb:BatchGetItem", err) + ", to read the catalog")
		return readers
	}
	c := doctor.Catalog{Program: system.Formats()}
	for t, pin := range row.Tables {
		readers[t] = doctor.Reader(catalog.Reader(pin.Reader).Name())
		c.Begun = c.Begun || pin.Reader != ""
	}
	if refused != nil {
		c.Refused = refused.Error()
	}
	f.Catalog = doctor.Known(c)
	return readers
}

// askPermissions asks for the caller's permissions on the needs of a process: those of functions, with the streams, which a
// process reads itself, and scans, by which it builds and verifies.
// The permissions are those that deploy grants (deploy.Grants), so a permission that a template gives is one
// that doctor asks for. A table that does not exist is left out, since no permission on it can be
// asked.
func (s *survey) askPermissions(ctx context.Context) (out []doctor.Permission) {
	grants := deploy.Grants(deploy.Rows)
	scan := []string{"dynamodb:Scan"}
	grants = append(grants, deploy.Grant{On: deploy.OwnTable, Actions: scan, Reason: "Marks of a build."}, deploy.Grant{On: deploy.ModelTables, Actions: scan, Reason: "Builds and verify read all rows."})
	seen := map[string]bool{}
	for _, g := range grants {
		for _, t := range s.on(g.On) {
			if missing := slices.ContainsFunc(s.facts.Tables, func(is doctor.Table) bool { return is.Want.Name == t && is.Missing }); missing {
				continue // said already
			}
			resource := "table/" + t
			if g.On == deploy.ModelStreams {
				resource += "/stream/*"
			}
			for _, a := range g.Actions {
				if a == "dynamodb:ListStreams" || seen[a+resource] { // a mapping's
					continue
				}
				seen[a+resource] = true
				p := doctor.Permission{Action: a, Resource: resource, Reason: g.Reason, Allowed: doctor.Not[bool](s.silent)}
				if s.silent == "" {
					row := ""
					if g.On == deploy.Registry { // roles may only name the rows of their tables
						row = owntable.StageOf(s.names.Real(s.tables[1].Name)).Key.Partition.Text()
					}
					p.Allowed = s.db.May(ctx, a, t, row)
				}
				out = append(out, p)
			}
		}
	}
	return out
}

// on are the real tables of a kind of resource, none for a resource that is not of DynamoDB.
func (s *survey) on(r deploy.Resource) (out []string) {
	switch r {
	case deploy.OwnTable:
		return []string{s.names.Own()}
	case deploy.Registry:
		if registry := stage.Registry().Name; registry != s.names.Own() {
			return []string{registry}
		}
	case deploy.ModelTables, deploy.ModelStreams:
		out = append(out, seq.Map(s.tables[1:], func(t store.Table) string { return s.names.Real(t.Name) })...)
	}
	return out
}

// askCluster asks the search cluster, and weir's own table for the state of the model's indexes.
// Indexes of other definitions are not in the answer. One that no program has begun is new.
func (s *survey) askCluster(ctx context.Context, m *model.Model) doctor.Fact[doctor.Cluster] {
	if s.at.OpenSearch == "" {
		return doctor.Not[doctor.Cluster]("--opensearch URL: the model has searches")
	}
	c, err := opensearch.Look(ctx, s.at.OpenSearch)
	if errors.Is(err, opensearch.ErrTarget) {
		return doctor.Known(doctor.Cluster{Refused: err.Error()})
	} else if err != nil {
		return doctor.Not[doctor.Cluster](err.Error())
	}
	var found []system.SearchGeneration
	rows, err := system.Over(ctx, stage.Wrap(s.db, s.names), "", []*model.Model{m}, system.Options{NoQueries: true, NoSearch: true})
	if err == nil {
		found, err = rows.SearchGenerations(ctx, rows.Models[0])
	}
	if err != nil {
		c.Indexes = doctor.Not[map[string]string]("weir's own table: " + err.Error())
		return doctor.Known(c)
	}
	states := map[string]string{}
	for _, d := range m.Searches {
		states[d.Derivation()] = "new"
	}
	for _, g := range found {
		for _, ix := range g.Indexes {
			switch {
			case !g.Ours:
			case g.Filled:
				states[ix.Name] = "live"
			case g.Filling:
				states[ix.Name] = "building"
			}
		}
	}
	c.Indexes = doctor.Known(states)
	return doctor.Known(c)
}
