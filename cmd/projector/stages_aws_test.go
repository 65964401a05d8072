package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/lambda/lambdatest"
	"weir/internal/search/opensearch/opensearchtest"
)

// stages are two deployments in one account.
type stages struct {
	*testing.T
	bin    string
	cfg    aws.Config
	db     *sdk.Client
	env    []string
	search string // the URL of a cluster, "" for none
	data   string
	stages [2]deployment
}

// deployment is a stage and the table that the model's table is there.
type deployment struct {
	stage, table string
	flags        []string
	indexes      int // that the cluster had before
	log          buffer
}

func newStages(t *testing.T, bin string) *stages {
	cfg, env := localAWS(t)
	w := &stages{T: t, bin: bin, cfg: cfg, db: sdk.NewFromConfig(cfg), env: env, data: t.TempDir(), search: os.Getenv(opensearchtest.Endpoint)}
	w.drop()
	w.stages[0] = deployment{stage: "prod", table: "gallery-prod-1XYZ"}
	w.stages[1] = deployment{stage: "dev", table: "gallery"} // as the model calls it
	for i := range w.stages {
		s := &w.stages[i]
		s.flags = []string{"--aws", "--stage", s.stage}
		if s.table != "gallery" {
			s.flags = append(s.flags, "--tables", "gallery="+s.table)
		}
		if w.search != "" {
			s.indexes = w.indexes(s)
		}
	}
	return w
}

// command is the program with the flags of a stage.
func (w *stages) command(s *deployment, args ...string) *exec.Cmd {
	cmd := exec.Command(w.bin, append(args, s.flags...)...)
	cmd.Env = append(os.Environ(), w.env...)
	return cmd
}

// drop deletes the tables of the account when the test ends.
func (w *stages) drop() {
	w.Cleanup(func() {
		out, err := w.db.ListTables(context.Background(), &sdk.ListTablesInput{})
		if err != nil {
			w.Error(err)
			return
		}
		for _, table := range out.TableNames {
			if _, err := w.db.DeleteTable(context.Background(), &sdk.DeleteTableInput{TableName: &table}); err != nil {
				w.Error(err)
			}
		}
	})
}

// process follows a stage until stop is called, which ends it well.
func (w *stages) process(s *deployment) (stop func()) {
	w.Helper()
	args := []string{"run", "gallery", "--data", w.data, "--addr", "127.0.0.1:0"}
	if w.search != "" {
		args = append(args, "--opensearch", w.search)
	}
	cmd := w.command(s, args...)
	cmd.Stderr = &s.log
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() {
		w.Helper()
		for w.search != "" && !strings.Contains(s.log.text(), "the search indexes are complete") { // only then they answer
			if time.Sleep(20 * time.Millisecond); w.Context().Err() != nil {
				w.Fatal(s.log.text())
			}
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			w.Errorf("%s: %v\n%s", s.stage, err, s.log.text())
		}
		if _, err := os.Stat(filepath.Join(w.data, "stage-"+s.stage, "spool")); err != nil {
			w.Errorf("%s: what was read of the stream is elsewhere: %v", s.stage, err)
		}
		if want := "stage " + s.stage; !strings.Contains(s.log.text(), want) {
			w.Errorf("it does not say %s:\n%s", want, s.log.text())
		}
	}
}

// settles waits until a recount of the stage finds nothing that differs.
func (w *stages) settles(s *deployment) {
	w.Helper()
	args := []string{"verify", "gallery", "--data", w.data}
	if w.search != "" {
		args = append(args, "--opensearch", w.search)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		out, err := w.command(s, args...).CombinedOutput()
		if err == nil && bytes.Contains(out, []byte(" 0 differ")) && !bytes.HasPrefix(out, []byte("0 derived")) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s: %v\n%s\n%s", s.stage, err, out, s.log.text())
		}
	}
}

// counts compares the albums with a count of the table's rows.
func (w *stages) counts(s *deployment) {
	w.Helper()
	media, shown := map[string]int{}, map[string]string{}
	for _, row := range w.scan(s.table) {
		pk, sk := text(row["PK"]), text(row["SK"])
		if !strings.HasPrefix(pk, "ALBUM#"+s.stage+"-") {
			w.Errorf("%s has a row %s %s", s.stage, pk, sk)
		}
		if n, ok := row["mediaCount"].(*types.AttributeValueMemberN); ok && sk == "METADATA" {
			shown[pk] = n.Value
		} else if sk != "METADATA" {
			media[pk]++
		}
	}
	for pk, n := range shown {
		if n != fmt.Sprint(media[pk]) {
			w.Errorf("%s: %s shows %s of %d", s.stage, pk, n, media[pk])
		}
	}
	if len(shown) < 5 {
		w.Errorf("%s: %d albums have a count", s.stage, len(shown))
	}
	if w.search == "" {
		return
	}
	out, err := w.command(s, "query", "gallery", "search-albums", "q=title", "--opensearch", w.search, "--data", w.data).Output()
	if err != nil || len(out) == 0 || bytes.Count(out, []byte("\n")) != bytes.Count(out, []byte(`"id":"`+s.stage+"-")) {
		said := ""
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			said = string(exit.Stderr)
		}
		w.Errorf("%s finds %v %s%s", s.stage, err, out, said)
	}
	if n := w.indexes(s); n != s.indexes+1 {
		w.Errorf("%d more indexes have the name of the stage %s", n-s.indexes, s.stage)
	}
}

// indexes is how many indexes of albums in the cluster have the name of a stage. Other
// tests leave some.
func (w *stages) indexes(s *deployment) int {
	w.Helper()
	resp, err := http.Get(w.search + "/_cat/aliases/weir-" + s.stage + "-gallery-albums-*?h=alias")
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	var names bytes.Buffer
	if _, err := names.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		w.Fatal(resp.Status, err)
	}
	return bytes.Count(names.Bytes(), []byte("\n"))
}

func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return ""
}

func (w *stages) scan(table string) (rows []map[string]types.AttributeValue) {
	w.Helper()
	in := &sdk.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	for {
		out, err := w.db.Scan(w.Context(), in)
		if err != nil {
			w.Fatal(err)
		}
		if rows = append(rows, out.Items...); out.LastEvaluatedKey == nil {
			return rows
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// TestStagesOfOneTableOnDynamoDB: a stage does not get the table of another one, whatever
// program asks for it. Two that derived on the same rows would each put back, again and
// again, what the other overwrote.
func TestStagesOfOneTableOnDynamoDB(t *testing.T) {
	w := newStages(t, built(t))
	w.search = ""
	prod, dev := &w.stages[0], &w.stages[1]
	prod.table, prod.flags = "gallery", []string{"--aws", "--stage", "prod"}
	if out, err := w.command(prod, "deploy", "tables", "gallery").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	const taken = "gallery belongs to the stage prod, and this is the stage "
	refused := func(s *deployment, args ...string) {
		t.Helper()
		cmd := w.command(s, args...)
		defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exitUsage || !bytes.Contains(out, []byte(taken+s.stage)) {
			t.Errorf("%v: exit code %d, %s", args, cmd.ProcessState.ExitCode(), out)
		}
	}
	plain := &deployment{stage: "default", flags: []string{"--aws"}}
	for _, s := range []*deployment{dev, plain} {
		refused(s, "deploy", "tables", "gallery")
		refused(s, "run", "gallery", "--data", w.data, "--addr", "127.0.0.1:0")
		refused(s, "verify", "gallery")
		refused(s, "repair", "gallery")
		refused(s, "replay", "gallery", "/dev/null")
	}
	f := lambdatest.NewOf(t, w.bin, append(slices.Clone(w.env), "WEIR_MODEL=gallery", "WEIR_STAGE=dev")...)
	f.Start()
	select {
	case <-f.Done:
	case <-time.After(time.Minute):
		t.Error("a function of another stage runs")
	}
	if f.Kill(); !strings.Contains(f.Stderr.String(), taken+"dev") {
		t.Errorf("a function of another stage says %s", f.Stderr.String())
	}
	defer w.process(prod)()
	rng := mathrand.New(mathrand.NewPCG(5, 6))
	for range 200 {
		if err := deed(t.Context(), w.db, prod.table, "prod-", rng); err != nil {
			t.Fatal(err)
		}
	}
	w.settles(prod)
	w.counts(prod)
}
