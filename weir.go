// Package weir keeps derived data in DynamoDB tables exactly right, from a program of your own. A model file declares what is
// derived; the commands and the documentation of weir say the rest.
//
//	Load, Parse    read a model
//	NewHandler     derives from a table's stream in your own Lambda function, beside its other work on the records
//	Open           opens the rows, to ask the model's queries
//	Register       gives a model a Go function, which returns a row's additions to sums
//	Main           makes your program weir, with all its commands
//
// Package weirtest tests models in Go tests.
package weir

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"

	"weir/internal/cli"
	"weir/internal/function"
	"weir/internal/ingestcli"
	"weir/internal/model"
	"weir/internal/projectorcli"
	"weir/internal/query"
	"weir/internal/system"
	"weir/internal/value"
)

// Model is a model that has passed every check of weir lint. It never changes, and many goroutines may use it.
type Model struct{ is *model.Model }

// own is the model for one opening, which notes in it where the rows are.
func (m *Model) own() *model.Model {
	is := *m.is
	return &is
}

// Load reads a model file, or a built-in model by its name. The error lists each mistake in the file with its line.
func Load(nameOrPath string) (*Model, error) { return modelOf(model.Load(nameOrPath)) }

// Parse reads the text of a model file, such as one that the program embeds. Messages call it file.
func Parse(file string, text []byte) (*Model, error) { return modelOf(model.Parse(file, text)) }

func modelOf(m *model.Model, err error) (*Model, error) {
	if err != nil {
		return nil, err
	}
	return &Model{m}, nil
}

// Row has the attributes of a row as JSON has them: a number is a json.Number with all its digits, a set a list, binary data a
// text in base64.
type Row map[string]any

// rowOf is a row of the store.
func rowOf(it value.Item) (row Row, err error) {
	d := json.NewDecoder(strings.NewReader(string(value.AppendPlainItem(nil, it))))
	d.UseNumber()
	err = d.Decode(&row)
	return row, err
}

// Add is an addition of a function to the sum of one target row. To has names in the key of that row, such as {"product": "p1"}; a
// name that it lacks is the source row's of that name. Amount is a number below 10^12 with at most 17 decimals.
type Add struct {
	To     map[string]string
	Amount json.Number
}

// Register gives the program a function that a model names: sum: Order.points(v1). The row has what the model
// declares of it, but for hidden attributes. A row contributes the additions that f returns of it, at most 100, and takes them away
// again when it changes or goes. So f must be pure: for the same row it must return the same, in every process and on any day,
// and several goroutines may call it. Count the version up, here and in the model, whenever f may return something else: then
// weir builds the sum again. If f panics, or returns an invalid number or key, the row is a dead letter. Call Register
// before models are loaded.
func Register(name string, version int, f func(Row) []Add) {
	model.Register(model.Function{Name: name, Version: version}, func(it value.Item) (out []model.FunctionAdd, err error) {
		row, err := rowOf(it)
		if err != nil {
			return nil, err
		}
		for _, a := range f(row) {
			n, err := value.ParseNumber(a.Amount.String())
			if err != nil {
				return nil, err
			}
			out = append(out, model.FunctionAdd{To: a.To, Amount: n})
		}
		return out, nil
	})
}

// Place says where the rows of a model are. The zero Place is DynamoDB, which the environment of the AWS SDK describes. WEIR_STAGE
// and WEIR_TABLES in the environment name the deployment.
type Place struct {
	Data       string // directory of an embedded store, instead of DynamoDB
	OpenSearch string // URL of the cluster that has the search indexes; an embedded store has its own
}

// DB answers the queries of a model. Many goroutines may use it.
type DB struct {
	system *system.System
	shared bool
}

// Open opens the rows of a model. It derives nothing. One process at a time has the directory of an embedded store. Call Close
// when done.
func Open(ctx context.Context, m *Model, at Place) (*DB, error) {
	in, err := cli.StageOfEnvironment()
	if err != nil {
		return nil, err
	}
	place := system.Place{Data: at.Data, AWS: at.Data == "", OpenSearch: at.OpenSearch, Stage: in.Deployment()}
	s, err := cli.OpenModels(ctx, place, []*model.Model{m.own()}, system.Options{WhenBuilt: place.AWS, Existing: place.AWS})
	if err == nil && !place.AWS {
		if err = s.Reach(ctx, func(system.Filling) {}); err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if err != nil {
		return nil, err
	}
	return &DB{s, place.AWS}, nil
}

// Query asks a query of the model by its name, and yields the rows of all pages. An error is the last that it yields. Pages are
// read as rows are taken. They are not one snapshot: a row that is written meanwhile may come twice or not at all.
func (d *DB) Query(ctx context.Context, name string, params map[string]string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		part := d.system.Models[0]
		if q := part.Model.Query(name); d.shared && q != nil && q.Search != nil {
			if err := d.system.Built(ctx, part); err != nil {
				yield(nil, err)
				return
			}
		}
		for page := (query.Page{}); ; {
			res, err := part.Query.Run(ctx, name, params, page)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, it := range res.Items {
				if row, err := rowOf(it); !yield(row, err) || err != nil {
					return
				}
			}
			if page.Cursor = res.Cursor; page.Cursor == "" {
				return
			}
		}
	}
}

// Close closes the rows and the indexes.
func (d *DB) Close() error { return d.system.Close() }

// Handler derives from the events of DynamoDB streams, as a Lambda function. It is a lambda.Handler.
type Handler struct {
	handler lambda.Handler
	close   func() error
}

// NewHandler makes the handler of a model for a Lambda function of your own, so that a table which has a function needs no
// further reader of its stream. All else is in the environment of the function, as weir's own function reads it (WEIR_OPENSEARCH,
// WEIR_STAGE, …). The event source mapping needs the settings of weir deploy template: FunctionResponseTypes
// ReportBatchItemFailures, a tumbling window, and a parallelization factor of 1. Metrics are written as lines of CloudWatch's
// embedded metric format: in Lambda to os.Stdout.
func NewHandler(ctx context.Context, m *Model, metrics io.Writer) (*Handler, error) {
	h, closing, err := function.Open(ctx, m.own(), metrics, os.Stderr)
	if err != nil {
		return nil, err
	}
	return &Handler{h, closing}, nil
}

// Invoke derives from one event, and returns the answer of the function to Lambda. It also takes the scheduled invocations
// that the template has. An event that comes again changes nothing, so the caller may fail after Invoke. After an error of
// Invoke the caller must fail. Only one goroutine may call it at a time, as in Lambda.
func (h *Handler) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	return h.handler.Invoke(ctx, event)
}

// Close sends the traces that the handler still has, and closes the rows.
func (h *Handler) Close() error { return h.close() }

// Main is the program weir: it reads the command line and ends the process. Commands find the given models by their names. In
// Lambda it derives from the model that WEIR_MODEL names.
func Main(models ...*Model) {
	for _, m := range models {
		model.Give(m.is)
	}
	if model.Called == "projector" {
		model.Called = strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	}
	if len(os.Args) > 1 && os.Args[1] == "ingest" {
		ingestcli.Main(os.Args[2:])
	}
	projectorcli.Main(os.Args[1:])
}
