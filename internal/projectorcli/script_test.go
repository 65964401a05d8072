package projectorcli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/ingestcli"
	"weir/internal/model"
	"weir/internal/scripttest"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
	"weir/internal/web/webtest"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"projector": mainTyped, "weir": mainWeir, "ingest": func() { ingestcli.Main(os.Args[1:]) }, "get": get, "tamper": tamper})
}

// TestScripts runs testdata/script: what a person types, and what comes of it.
// Beside testscript's own commands there are
//
//	exits CODE COMMAND…          like exec, and the exit code is this one
//	pack FILE PACKED             makes PACKED, .gz or .zst, of FILE
//	get [-status N] [-header] [-until TEXT] PATH
//	                             GET http://$ADDR PATH, waiting for the server to come,
//	                             and until the answer has the text
//	http METHOD PATH …           asks the server on $ADDR; see webtest.HTTP
//	tamper DATA MODEL TABLE PARTITION SORT ATTRIBUTE NUMBER
//	                             writes a derived attribute behind weir's back
//	id FILE                      sets $ID to the first word of FILE
func TestScripts(t *testing.T) {
	soaktest.Calm(t)
	scripts(t, "testdata/script", func(*testscript.Env) {})
}

// TestScriptsOnAWS runs testdata/aws, each script against a world of its own in
// DynamoDB Local.
func TestScriptsOnAWS(t *testing.T) {
	endpoint := os.Getenv(dynamodbtest.Endpoint)
	dynamodbtest.Config(t)
	scripts(t, "testdata/aws", func(e *testscript.Env) {
		e.Setenv("AWS_REGION", "eu-west-1")
		e.Setenv("AWS_ACCESS_KEY_ID", rand.Text())
		e.Setenv("AWS_SECRET_ACCESS_KEY", "x")
		e.Setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
	})
}

func scripts(t *testing.T, dir string, setup func(*testscript.Env)) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"ADDR", "ADDR2"} {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return err
				}
				defer l.Close()
				e.Setenv(name, l.Addr().String())
			}
			streams, err := filepath.Abs("../../testdata/streams")
			e.Setenv("STREAMS", streams)
			setup(e)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scripttest.Exits,
			"http":  webtest.HTTP,
			"pack":  scripttest.Pack,
			"id": func(ts *testscript.TestScript, _ bool, args []string) {
				words := strings.Fields(ts.ReadFile(args[0]))
				if len(words) == 0 {
					ts.Fatalf("%s is empty", args[0])
				}
				ts.Setenv("ID", words[0])
			},
		},
	})
}

func get() {
	status := flag.Int("status", http.StatusOK, "")
	header := flag.Bool("header", false, "")
	until := flag.String("until", "", "")
	flag.Parse()
	url := "http://" + os.Getenv("ADDR") + flag.Arg(0)
	var res *http.Response
	var err error
	var body []byte
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if res, err = http.Get(url); err != nil {
			continue
		}
		body, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil && bytes.Contains(body, []byte(*until)) {
			break
		}
	}
	must(err)
	if *header {
		fmt.Println(res.Status, res.Header.Get("Content-Type"))
	}
	_, err = os.Stdout.Write(body)
	must(err)
	if res.StatusCode != *status {
		must(fmt.Errorf("status %s, not %d", res.Status, *status))
	}
}

// tamper writes past all that would put it right again: the number, and a version
// above the ledger's.
func tamper() {
	a := os.Args[1:]
	must(tampered(a[0], a[1], a[2], a[3], a[4], a[5], a[6]))
}

func tampered(data, of, table, partition, sort, attribute, number string) error {
	m, err := model.Load(of)
	if err != nil {
		return err
	}
	s, err := system.Open(context.Background(), data, []*model.Model{m}, system.Options{NoSearch: true})
	if err != nil {
		return err
	}
	out, err := s.Store.Write(context.Background(), []store.Write{{
		Ref: store.Ref{Table: table, Key: store.Key{Partition: value.OfString(partition), Sort: value.OfString(sort)}},
		Ops: []store.Op{
			{Kind: store.Set, Attr: attribute, Value: value.MustNumber(number)},
			{Kind: store.Add, Attr: "weir", Value: value.OfInt(1 << 50)},
		},
	}})
	if err == nil {
		err = out[0].Err
	}
	return errors.Join(err, s.Close())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
