package ingestcli

import (
	"crypto/rand"
	"flag"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/scripttest"
	"weir/internal/soaktest"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/web/webtest"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ingest": scripted, "query": queryRows, "raw": rawRow, "foreign": foreign, "rows": rows, "follow": follow, "bom": bom,
	})
}

// TestScripts runs testdata/script: what a person types, and what comes of it.
// Beside testscript's own commands there are
//
//	exits CODE COMMAND…          like exec, and the exit code is this one
//	http METHOD PATH …           asks the server on $ADDR; see webtest.HTTP
//	query MODEL NAME key=value…  the rows of a query
//	raw MODEL PARTITION SORT     a row as it stands in the table
//	foreign MODEL TABLE FILE     writes a row as others do, past everything
//	pack FILE PACKED             makes PACKED, .gz or .zst, of FILE
//	fill FILE BYTES [JSON]       makes a file of JSON with a text of so many bytes
//	rows MODEL FILE              writes rows as an application does; see rows
//	follow MODEL QUERY …         what projector run does, and a query; see follow
//	bom FILE MARKED              makes MARKED, a byte order mark and FILE
//	keep NAME REGEXP             sets $NAME from what was printed last
//
// A line for the embedded store alone begins with [!aws].
func TestScripts(t *testing.T) {
	soaktest.Calm(t)
	scripts(t, nil)
}

// TestScriptsOnAWS runs the same scripts, each in a world of its own in DynamoDB Local.
func TestScriptsOnAWS(t *testing.T) {
	dynamodbtest.Config(t)
	scripts(t, awsWorld)
}

// awsWorld is the environment of a world of its own.
func awsWorld() map[string]string {
	world := rand.Text()
	return map[string]string{
		envAWS: world, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": world, "AWS_SECRET_ACCESS_KEY": "x",
		"AWS_ENDPOINT_URL_DYNAMODB": os.Getenv(dynamodbtest.Endpoint), "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": os.Getenv(dynamodbtest.Endpoint),
	}
}

func scripts(t *testing.T, world func() map[string]string) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("ADDR", l.Addr().String())
			if world != nil {
				for name, v := range world() {
					e.Setenv(name, v)
				}
			}
			return l.Close()
		},
		Condition: func(cond string) (bool, error) {
			if cond == "aws" {
				return world != nil, nil
			}
			return false, fmt.Errorf("there is no condition %s", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": scripttest.Exits, "http": webtest.HTTP, "keep": webtest.Keep, "fill": scripttest.Fill, "pack": scripttest.Pack},
	})
}
