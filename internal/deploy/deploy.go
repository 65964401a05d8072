// Package deploy describes the needs of a model on AWS: tables, functions with their event
// source mappings and roles, queues, logs, alarms and a dashboard. Of makes the plan, and
// CloudFormation prints it. The same models give the same bytes.
//
// A difference between two deployments of a template is a parameter of it: the stage, the names
// of tables, keys. Nothing in the plan knows an account.
//
// The files, in the order in which a template comes about:
//
//	deploy.go           the plan: which functions a model has, and how they read its streams
//	parameters.go       the choices of a deployment
//	policy.go           the permissions of each kind of process, and why
//	alarms.go           the alarms; dashboard.go: the dashboard
//	cloudformation.go   the plan for CloudFormation, over yaml.go
//
// A name in a template is the identity of a thing in a deployment: changing one makes the tool
// delete the thing and create another, so names only change with the model's.
package deploy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
)

// Limits of CloudFormation. A template above InlineBytes is uploaded to a bucket by the command that deploys it.
const (
	InlineBytes   = 51_200
	mostBytes     = 1 << 20
	mostResources = 500
)

// ErrLarge means that CloudFormation would refuse the template.
var ErrLarge = errors.New("the template is too large for CloudFormation")

// ErrName means that two things of the models would have one name in a template.
var ErrName = errors.New("two things would have one name in the template")

// Plan is the needs of the models. It is not changed after Of.
type Plan struct {
	Models []*Model
	// Tables are those of the models in the order of the models, each once; weir's own is not among
	// them, since each template has it.
	Tables []*Table // of all models
}

// Model is one model's part.
type Model struct {
	ID        string // begins the names of its resources
	Name      string
	File      string // the model's file in the package of a function, "" for a built-in model
	Tables    []*Table
	Searches  bool // it has search indexes
	Functions []*Function
}

// Table is a table of a model.
type Table struct {
	ID  string
	Def store.Table // with the model's name
}

// name, stream are the parameters with the table's name, and with the stream of a table that exists.
func (t *Table) name() string   { return t.ID + "TableName" }
func (t *Table) stream() string { return t.ID + "StreamArn" }

// Own is weir's own table.
func Own() store.Table { return owntable.Table() }

// Function is a Lambda function.
// Its work follows from Process alone; Env tells the program which part of the model it is.
type Function struct {
	ID      string
	Process Process
	Model   *Model
	Memory  int // MB
	Timeout int // seconds
	// Env has no key of the write side, which asks IAM, and no password: everyone who may look at the
	// function can read it.
	Env  []entry
	When string // the parameter that says "true" if it is to be made, "" for always
}

// readsStreams reports whether a function is fed by its model's streams.
func (f *Function) readsStreams() bool { return f.Process == Rows }

// hasURL reports whether a function is asked over HTTP.
func (f *Function) hasURL() bool { return f.Process == Ingest || f.Process == Query }

// Does describes a function in a few words.
func (f *Function) does() string {
	return map[Process]string{
		Rows:   "derives the rows of model " + f.Model.Name,
		Ingest: "takes the commands of model " + f.Model.Name + ", over HTTP and from a queue",
		Query:  "answers the queries of model " + f.Model.Name,
	}[f.Process]
}

// log is the last part of the name of a function's log group.
func (f *Function) log() string { return f.Model.Name + "/" + string(f.Process) }

// code is the parameter with the package of the function's program.
func (f *Function) code() string {
	if f.Process == Ingest {
		return "IngestCode"
	}
	return "ProjectorCode"
}

// live is the alias that events and requests go to, and alias is its resource.
const live = "live"

func (f *Function) alias() string { return f.ID + "Live" }

// Of returns the plan for models whose tables are all different.
// It reads nothing but the models. Two tables or models whose names differ only in characters that templates do not
// allow are ErrName.
func Of(models []*model.Model) (*Plan, error) {
	p := &Plan{}
	for _, m := range models {
		part := &Model{ID: pascal(m.Name), Name: m.Name, Searches: len(m.Searches) > 0}
		if m.Arg != "" && m.Arg != m.Name {
			part.File = m.Name + ".yaml"
		}
		for _, t := range m.Tables {
			def := t.Table
			def.Stream = true
			part.Tables = append(part.Tables, &Table{ID: pascal(t.Name), Def: def})
		}
		part.Functions = functions(part)
		p.Models, p.Tables = append(p.Models, part), append(p.Tables, part.Tables...)
	}
	return p, p.distinct()
}

// functions are a model's functions.
// The first derives rows and keeps documents, the last two take commands and answer queries.
// Memory and time are the same for every model. Timeouts are far below Lambda's 15 minutes, so an
// invocation that hangs ends after a minute.
func functions(m *Model) []*Function {
	at := m.Name
	if m.File != "" {
		at = "/var/task/" + m.File
	}
	tables := seq.Map(m.Tables, func(t *Table) string { return t.Def.Name + "=${" + t.name() + "}" })
	common := []entry{is("WEIR_MODEL", at), is("WEIR_STAGE", ref(paramStage)), is("WEIR_TABLES", sub(strings.Join(tables, ",")))}
	var cluster []entry
	if m.Searches {
		cluster = []entry{is("WEIR_OPENSEARCH", either("HasSecret", sub("${"+paramURL+"}?secret=${"+paramSecret+"}"), ref(paramURL)))}
	}
	// The URLs ask IAM, so the functions need no keys.
	open := slices.Concat(common, []entry{is("WEIR_OPEN", "1")})
	return []*Function{
		{ID: m.ID + "Rows", Process: Rows, Model: m, Memory: 512, Timeout: 60, Env: slices.Concat(common, []entry{is("WEIR_DERIVE_IN", ref(paramDerive)), is("WEIR_LETTER_TTL", ref(paramLetters)), is("WEIR_METRICS", either(paramMetrics+"Now", "table", "minute"))}, cluster)},
		{ID: m.ID + "Ingest", Process: Ingest, Model: m, Memory: 512, Timeout: 30, Env: open},
		{ID: m.ID + "Query", Process: Query, Model: m, Memory: 512, Timeout: 30, Env: slices.Concat(open, []entry{is("WEIR_QUERIES", "1")}, cluster), When: paramQueries},
	}
}

// distinct returns an error if two things have one name.
// The error wraps ErrName, and names both.
func (p *Plan) distinct() error {
	has := map[string]string{"Weir": "weir's own table", "Registry": "weir's own table"}
	for _, t := range p.Tables {
		if other, taken := has[t.ID]; taken {
			return fmt.Errorf("%w: %s and the table %s; give the table another name, or make a template for each", ErrName, other, t.Def.Name)
		}
		has[t.ID] = "the table " + t.Def.Name
	}
	clear(has)
	for _, m := range p.Models {
		if other, taken := has[m.ID]; taken {
			return fmt.Errorf("%w: %s and the model %s; make a template for each", ErrName, other, m.Name)
		}
		has[m.ID] = "the model " + m.Name
	}
	return nil
}

// pascal is a name as templates allow it: letters and digits, each word with a capital.
// Different names may give one: Plan.distinct finds that.
// Resource names in CloudFormation are letters and digits, and begin with a letter; a name that
// does not gets a T before it.
func pascal(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		switch {
		case !letter && (r < '0' || r > '9'):
			up = true
		case up && r >= 'a' && r <= 'z':
			b.WriteRune(r - 'a' + 'A')
			up = false
		default:
			b.WriteRune(r)
			up = false
		}
	}
	if s := b.String(); s != "" && (s[0] < '0' || s[0] > '9') {
		return s
	}
	return "T" + b.String()
}
