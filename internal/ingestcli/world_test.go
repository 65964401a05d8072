package ingestcli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/store/dynamodb"
	"weir/internal/system"
)

// The scripts run twice: with rows in the embedded store, and the same scripts with
// rows in DynamoDB. There --aws stands where --data stood, and each directory that a
// script names is a world of its own.

// envAWS says that rows are in DynamoDB Local; it is what the access keys of the
// script's worlds begin with.
const envAWS = "WEIR_SCRIPT_AWS"

// scripted is the program, as scripts call it.
func scripted() {
	if os.Getenv(envAWS) != "" && slices.Contains([]string{"put", "serve", "backfill", "migrate"}, at(os.Args, 1)) {
		os.Args = awsArguments(os.Args)
	}
	Main(os.Args[1:])
}

func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// awsArguments makes the tables of the models that a command names, and has it look
// for rows there.
func awsArguments(args []string) []string {
	dir := ""
	if i := slices.Index(args, "--data"); i > 0 {
		dir = args[i+1]
		args = slices.Delete(slices.Clone(args), i, i+2)
	}
	var models []*model.Model
	for _, a := range args[2:] {
		if m, err := model.Load(a); err == nil {
			models = append(models, m)
		}
	}
	if len(models) > 0 {
		db, err := awsTables(dir, models)
		must(err)
		must(db.Close())
	}
	return append(args, "--aws")
}

// awsTables opens the tables of models in the world of a directory, those missing made.
func awsTables(dir string, models []*model.Model) (*dynamodb.Store, error) {
	world := os.Getenv(envAWS)
	if dir = filepath.Base(cmp.Or(dir, "data")); dir != "data" {
		world += dir
	}
	os.Setenv("AWS_ACCESS_KEY_ID", world)
	ctx := context.Background()
	cfg, err := dynamodb.Config(ctx)
	if err != nil {
		return nil, err
	}
	tables, err := system.Tables(models)
	if err != nil {
		return nil, err
	}
	db := dynamodb.Open(cfg, tables, dynamodb.Options{ReadInterval: -1, Lag: 300 * time.Millisecond})
	if _, err := system.DeployTables(ctx, db, models); err != nil {
		return nil, err
	}
	for _, t := range tables { // those that a migration is from
		if _, err := db.Deploy(ctx, t.Name, false); err != nil {
			return nil, err
		}
	}
	return db, nil
}

// openWorld opens a model's rows where the script has them.
func openWorld(dir string, m *model.Model) (*system.System, error) {
	models, o := []*model.Model{m}, system.Options{NoSearch: true}
	if os.Getenv(envAWS) == "" {
		return system.Open(context.Background(), dir, models, o)
	}
	db, err := awsTables(dir, models)
	if err != nil {
		return nil, err
	}
	return system.Over(context.Background(), db, "", models, o)
}
