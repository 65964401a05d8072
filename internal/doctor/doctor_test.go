package doctor_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/doctor"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/findings.txt again")

func str(name string) store.KeyAttr { return store.KeyAttr{Name: name, Type: value.String} }

// whole are the facts of a setup in which all is well.
func whole() *doctor.Facts {
	own := doctor.Table{
		Want:   store.Table{Name: "weir", Key: store.KeySchema{Partition: str("k"), Sort: str("s")}, TTL: "x"},
		Status: "ACTIVE", Key: "k (S), s (S)", TTL: doctor.Known("x"), PITR: doctor.Known(true), OnDemand: true,
	}
	shop := doctor.Table{
		Want: store.Table{Name: "shop-prod", Key: store.KeySchema{Partition: str("PK"), Sort: str("SK")}, TTL: "until", Stream: true, Indexes: []store.Index{
			{Name: "byMaker", Key: store.KeySchema{Partition: str("maker"), Sort: store.KeyAttr{Name: "n", Type: value.Number}}},
			{Name: "near", Key: store.KeySchema{Partition: str("PK"), Sort: str("at")}, Local: true, KeysOnly: true},
		}},
		Model: "shop", Needs: store.NewAndOldImages, Status: "ACTIVE", Key: "PK (S), SK (S)",
		Indexes: []doctor.Index{{Name: "byMaker", Key: "maker (S), n (N)", Projects: "ALL", Status: "ACTIVE"}, {Name: "near", Local: true, Key: "PK (S), at (S)", Projects: "KEYS_ONLY"}},
		Images:  "NEW_AND_OLD_IMAGES", Stream: "arn:stream", Region: "eu-west-1", OnDemand: true, TTL: doctor.Known("until"), PITR: doctor.Known(true),
		Mappings: doctor.Known([]doctor.Mapping{mapping()}), Reader: doctor.ByShard,
	}
	typed := &model.Model{Arg: "shop.yaml", Flags: []model.Flag{{Name: "aws"}, {Name: "opensearch", Value: "https://search"}, {Name: "stage", Value: "prod"}}}
	return &doctor.Facts{
		Command: typed.Command, Identity: doctor.Known(doctor.Identity{ARN: "arn:aws:sts::1:assumed-role/weir/me", Region: "eu-west-1"}),
		Concurrency: doctor.Known(doctor.Concurrency{Limit: 1000, Unreserved: 900}),
		Ahead:       doctor.Known(time.Duration(0)), Names: doctor.Known(doctor.Names{Stage: "prod", Own: "weir-prod", Tables: []string{"shop (shop-prod)"}}),
		Catalog: doctor.Known(doctor.Catalog{Program: "own table 1", Begun: true}), Tables: []doctor.Table{own, shop},
		Permissions: []doctor.Permission{{Action: "dynamodb:PutItem", Resource: "table/shop-prod", Reason: "The derived values.", Allowed: doctor.Known(true)}},
		Searches:    true,
		Search: doctor.Known(doctor.Cluster{URL: "https://search", Distribution: "opensearch", Version: "2.19.1", Health: doctor.Known("green"), Scripts: doctor.Known(""),
			ReadOnly: doctor.Known(false), Free: doctor.Known(40), Indexes: doctor.Known(map[string]string{"search things": "live"})}),
	}
}

func mapping() doctor.Mapping {
	return doctor.Mapping{ID: "uuid-1", Function: "weir-shop-rows", State: "Enabled", Batch: 1000, Tumbling: 60, Parallel: 1, Retries: -1, MaxAge: -1,
		Partial: true, Failures: "arn:queue", Last: "OK",
		Program: doctor.Known(doctor.Program{Model: "shop", Timeout: 60, Memory: 512, Reserved: doctor.Known(-1), Log: "/weir/prod/shop/rows"})}
}

// cases spoil one thing each.
var cases = []struct {
	name  string
	spoil func(*doctor.Facts)
}{
	{"address refused", func(f *doctor.Facts) {
		f.Search = doctor.Known(doctor.Cluster{Refused: "the address is that of OpenSearch Serverless"})
	}},
	{"no credentials", func(f *doctor.Facts) { f.Identity = doctor.Not[doctor.Identity]("credentials") }},
	{"root", func(f *doctor.Facts) { f.Identity.Is.ARN = "arn:aws:iam::1:root" }},
	{"clock unknown", func(f *doctor.Facts) { f.Ahead = doctor.Not[time.Duration]("an answer of DynamoDB") }},
	{"clock behind", func(f *doctor.Facts) { f.Ahead.Is = -90 * time.Second }},
	{"clock wrong", func(f *doctor.Facts) { f.Ahead.Is = time.Hour }},
	{"clock just right", func(f *doctor.Facts) { f.Ahead.Is = 29 * time.Second }},
	{"names unknown", func(f *doctor.Facts) { f.Names = doctor.Not[doctor.Names]("the permission dynamodb:BatchGetItem") }},
	{"table of another stage", func(f *doctor.Facts) { f.Names.Is.Taken = "shop belongs to the stage dev" }},
	{"catalog unknown", func(f *doctor.Facts) { f.Catalog = doctor.Not[doctor.Catalog]("all tables") }},
	{"catalog refuses", func(f *doctor.Facts) { f.Catalog.Is.Refused = "the derivation Maker.n is not built" }},
	{"not begun", func(f *doctor.Facts) { f.Catalog.Is.Begun = false }},
	{"table unknown", func(f *doctor.Facts) { f.Tables[1].Unknown = "the permission dynamodb:DescribeTable" }},
	{"table missing", func(f *doctor.Facts) { f.Tables[1].Missing = true }},
	{"table being deleted", func(f *doctor.Facts) { f.Tables[1].Status = "DELETING" }},
	{"another key", func(f *doctor.Facts) { f.Tables[1].Key = "id (S)" }},
	{"no index", func(f *doctor.Facts) { f.Tables[1].Indexes = f.Tables[1].Indexes[1:] }},
	{"no local index", func(f *doctor.Facts) { f.Tables[1].Indexes = f.Tables[1].Indexes[:1] }},
	{"index projects less", func(f *doctor.Facts) { f.Tables[1].Indexes[0].Projects = "INCLUDE" }},
	{"index is being made", func(f *doctor.Facts) { f.Tables[1].Indexes[0].Status = "CREATING" }},
	{"no stream", func(f *doctor.Facts) { f.Tables[1].Images = "" }},
	{"stream without old images", func(f *doctor.Facts) { f.Tables[1].Images = "NEW_IMAGE" }},
	{"stream with what is needed", func(f *doctor.Facts) {
		f.Tables[1].Images, f.Tables[1].Needs = "NEW_IMAGE", store.NewImage
	}},
	{"TTL unknown", func(f *doctor.Facts) {
		f.Tables[1].TTL = doctor.Not[string]("the permission dynamodb:DescribeTimeToLive")
	}},
	{"TTL off", func(f *doctor.Facts) { f.Tables[1].TTL.Is = "" }},
	{"TTL of the own table off", func(f *doctor.Facts) { f.Tables[0].TTL.Is = "" }},
	{"TTL on another attribute", func(f *doctor.Facts) { f.Tables[1].TTL.Is = "expires" }},
	{"TTL that the model has not", func(f *doctor.Facts) { f.Tables[1].Want.TTL = "" }},
	{"provisioned", func(f *doctor.Facts) {
		f.Tables[1].OnDemand, f.Tables[1].Read, f.Tables[1].Write = false, 10, 5
	}},
	{"own table provisioned", func(f *doctor.Facts) { f.Tables[0].OnDemand = false }},
	{"PITR unknown", func(f *doctor.Facts) {
		f.Tables[1].PITR = doctor.Not[bool]("the permission dynamodb:DescribeContinuousBackups")
	}},
	{"PITR off", func(f *doctor.Facts) { f.Tables[1].PITR.Is = false }},
	{"strong consistency", func(f *doctor.Facts) { f.Tables[1].Replicas, f.Tables[1].Strong = "us-east-1", true }},
	{"replicated, no region", func(f *doctor.Facts) { f.Tables[1].Replicas = "us-east-1" }},
	{"replicated, another region", func(f *doctor.Facts) { f.Tables[1].Replicas, f.DeriveIn = "us-east-1", "us-east-1" }},
	{"replicated, this region", func(f *doctor.Facts) { f.Tables[1].Replicas, f.DeriveIn = "us-east-1", "eu-west-1" }},
	{"mappings unknown", func(f *doctor.Facts) {
		f.Tables[1].Mappings = doctor.Not[[]doctor.Mapping]("the permission lambda:ListEventSourceMappings")
	}},
	{"no mappings", func(f *doctor.Facts) { f.Tables[1].Mappings.Is, f.Tables[1].Reader = nil, "" }},
	{"mapping of we do not know whom", func(f *doctor.Facts) {
		f.Tables[1].Mappings.Is[0].Program = doctor.Not[doctor.Program]("the permission lambda:GetFunctionConfiguration")
	}},
	{"mapping of another program", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Program.Is.Model = "" }},
	{"mapping disabled", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].State = "Disabled" }},
	{"mapping without partial answers", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Partial = false }},
	{"mapping in parallel", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Parallel = 2 }},
	{"mapping without a window", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Tumbling = 0 }},
	{"mapping gives up", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Retries, f.Tables[1].Mappings.Is[0].MaxAge = 3, 60 }},
	{"mapping with filters", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Filters = true }},
	{"mapping tells nobody", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Failures = "" }},
	{"mapping with small batches", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Batch = 10 }},
	{"mapping that fails", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Last = "PROBLEM: Function call failed" }},
	{"short and small", func(f *doctor.Facts) {
		f.Tables[1].Mappings.Is[0].Program.Is.Timeout, f.Tables[1].Mappings.Is[0].Program.Is.Memory = 3, 128
	}},
	{"stopped", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Program.Is.Reserved = doctor.Known(0) }},
	{"one at a time", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Program.Is.Reserved = doctor.Known(1) }},
	{"reservation unknown", func(f *doctor.Facts) {
		f.Tables[1].Mappings.Is[0].Program.Is.Reserved = doctor.Not[int]("the permission lambda:GetFunctionConcurrency")
	}},
	{"an earlier version", func(f *doctor.Facts) { f.Tables[1].Mappings.Is[0].Program.Is.Behind = "live" }},
	{"new account", func(f *doctor.Facts) { f.Concurrency.Is = doctor.Concurrency{Limit: 10, Unreserved: 10} }},
	{"concurrency unknown", func(f *doctor.Facts) {
		f.Concurrency = doctor.Not[doctor.Concurrency]("the permission lambda:GetAccountSettings")
	}},
	{"index waits", func(f *doctor.Facts) { f.Tables[1].Indexes[0].Status = "CREATING" }},
	{"function and processes", func(f *doctor.Facts) { f.Tables[1].Reader = doctor.ByProcess }},
	{"two functions", func(f *doctor.Facts) {
		f.Tables[1].Mappings.Is = append(f.Tables[1].Mappings.Is, mapping())
	}},
	{"three readers", func(f *doctor.Facts) {
		f.Tables[1].Mappings.Is = append(f.Tables[1].Mappings.Is, mapping(), mapping())
	}},
	{"three readers, one disabled", func(f *doctor.Facts) {
		off := mapping()
		off.State = "Disabling"
		f.Tables[1].Mappings.Is = append(f.Tables[1].Mappings.Is, mapping(), off)
	}},
	{"denied", func(f *doctor.Facts) { f.Permissions[0].Allowed.Is = false }},
	{"permission unknown", func(f *doctor.Facts) { f.Permissions[0].Allowed = doctor.Not[bool]("an endpoint that answers") }},
	{"no searches", func(f *doctor.Facts) { f.Searches = false }},
	{"cluster unknown", func(f *doctor.Facts) { f.Search = doctor.Not[doctor.Cluster]("--opensearch URL") }},
	{"cluster down", func(f *doctor.Facts) { f.Search.Is.Down = "connection refused" }},
	{"another product", func(f *doctor.Facts) { f.Search.Is.Distribution = "" }},
	{"version nobody can read", func(f *doctor.Facts) { f.Search.Is.Version = "next" }},
	{"another version", func(f *doctor.Facts) { f.Search.Is.Version = "3.1.0" }},
	{"health unknown", func(f *doctor.Facts) {
		f.Search.Is.Health = doctor.Not[string]("the permission for GET _cluster/health")
		f.Search.Is.ReadOnly = doctor.Not[bool]("the permission for GET weir-*/_settings")
		f.Search.Is.Free = doctor.Not[int]("the permission for GET _cat/allocation")
		f.Search.Is.Scripts = doctor.Not[string]("the permission for POST _scripts/painless/_execute")
		f.Search.Is.Indexes = doctor.Not[map[string]string]("weir's own table")
	}},
	{"yellow", func(f *doctor.Facts) { f.Search.Is.Health.Is = "yellow" }},
	{"red", func(f *doctor.Facts) { f.Search.Is.Health.Is = "red" }},
	{"disk full", func(f *doctor.Facts) { f.Search.Is.ReadOnly.Is = true; f.Search.Is.Free.Is = 4 }},
	{"no scripts", func(f *doctor.Facts) { f.Search.Is.Scripts.Is = "cannot execute [inline] scripts" }},
	{"index being filled", func(f *doctor.Facts) { f.Search.Is.Indexes.Is["search things"] = "building" }},
	{"index not filled", func(f *doctor.Facts) { f.Search.Is.Indexes.Is["search things"] = "new" }},
}

// afterwards is prose behind a command, which no shell takes: a comma outside quotes, braces and lists of the CLI.
var afterwards = regexp.MustCompile(`^(aws|projector) ([^'"{]|'[^']*'|"[^"]*"|\{[^}]*\})*, `)

// TestMends: a mend that begins as a command is one, and no more.
func TestMends(t *testing.T) {
	commands := 0
	for _, c := range cases {
		facts := whole()
		c.spoil(facts)
		for _, f := range doctor.Examine(facts) {
			if strings.HasPrefix(f.Mend, "aws ") || strings.HasPrefix(f.Mend, "projector ") {
				commands++
				if afterwards.MatchString(f.Mend) || strings.Contains(f.Mend, " shows ") || strings.Contains(f.Mend, "or: ") || regexp.MustCompile(`\b[A-Z]+-[A-Z]+\b`).MatchString(f.Mend) {
					t.Errorf("%s: %s", c.name, f.Mend)
				}
			}
		}
	}
	if commands < 15 {
		t.Errorf("%d commands", commands)
	}
}

func line(f doctor.Finding) string {
	s := fmt.Sprintf("%s\t%s\t%s\t%s", f.Verdict, f.Subject, f.Check, f.Says)
	if f.Mend != "" {
		s += "\n\tmend: " + f.Mend
	}
	return s
}

// TestFindings compares what doctor says of each case with testdata/findings.txt: the whole setup first, and of each
// other case only what differs from it. -rewrite writes the file; review its diff.
func TestFindings(t *testing.T) {
	var b strings.Builder
	var good []string
	b.WriteString("== whole\n")
	for _, f := range doctor.Examine(whole()) {
		good = append(good, line(f))
		b.WriteString(line(f) + "\n")
		if f.Verdict == doctor.Bad || f.Verdict == doctor.Warn {
			t.Errorf("of a whole setup: %s", line(f))
		}
	}
	for _, c := range cases {
		facts := whole()
		c.spoil(facts)
		b.WriteString("== " + c.name + "\n")
		found, last := doctor.Examine(facts), 0
		for _, f := range found {
			if at := slices.Index(doctor.Verdicts, f.Verdict); at < last {
				t.Errorf("%s: %s stands behind something better", c.name, line(f))
			} else {
				last = at
			}
			if !slices.Contains(good, line(f)) {
				b.WriteString(line(f) + "\n")
			}
		}
	}
	path := filepath.Join("testdata", "findings.txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, is := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(is)) {
		if i >= len(got) || i >= len(is) || got[i] != is[i] {
			t.Fatalf("line %d of %s differs: got %q", i+1, path, got[min(i, len(got)-1)])
		}
	}
}

// TestEachFindingIsMet: the cases meet each verdict of each check that the code can give.
func TestEachFindingIsMet(t *testing.T) {
	met := map[string]bool{}
	for _, f := range doctor.Examine(whole()) {
		met[string(f.Verdict)+" "+f.Check] = true
	}
	for _, c := range cases {
		facts := whole()
		c.spoil(facts)
		for _, f := range doctor.Examine(facts) {
			met[string(f.Verdict)+" "+f.Check] = true
			if f.Verdict == doctor.Bad && f.Mend == "" {
				t.Errorf("%s: nothing mends %s", c.name, line(f))
			}
			if f.Verdict == doctor.Unknown && !strings.HasPrefix(f.Says, "unknown: needs ") {
				t.Errorf("%s: %s", c.name, line(f))
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`\bs\.(ok|bad|warn|addUnknown)\("([^"]*)"`)
	n := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range said.FindAllStringSubmatch(string(text), -1) {
			n++
			if !met[cmp.Or(map[string]string{"addUnknown": "unknown"}[m[1]], m[1])+" "+m[2]] {
				t.Errorf("%s: no case meets %s of %s", path, m[1], m[2])
			}
		}
	}
	if n < 60 {
		t.Errorf("%d findings in the code: the pattern no longer fits it", n)
	}
}

// TestNothingKnown: facts that were not asked are never ok.
func TestNothingKnown(t *testing.T) {
	facts := whole()
	facts.Identity, facts.Ahead, facts.Concurrency = doctor.Not[doctor.Identity]("x"), doctor.Not[time.Duration]("x"), doctor.Not[doctor.Concurrency]("x")
	facts.Names, facts.Catalog, facts.Search = doctor.Not[doctor.Names]("x"), doctor.Not[doctor.Catalog]("x"), doctor.Not[doctor.Cluster]("x")
	for i := range facts.Tables {
		facts.Tables[i].Unknown = "x"
	}
	facts.Permissions[0].Allowed = doctor.Not[bool]("x")
	for _, f := range doctor.Examine(facts) {
		if f.Verdict != doctor.Unknown {
			t.Errorf("%s", line(f))
		}
	}
}

// TestBlind: a table that could not be described is named, and all else that is unknown is not.
func TestBlind(t *testing.T) {
	f := whole()
	f.Identity, f.Tables[1].PITR = doctor.Not[doctor.Identity]("credentials"), doctor.Not[bool]("a permission")
	if blind := f.Blind(); len(blind) > 0 {
		t.Errorf("%v are described", blind)
	}
	f.Tables[1].Unknown = "the permission dynamodb:DescribeTable"
	if blind := f.Blind(); !slices.Equal(blind, []string{"shop-prod"}) {
		t.Errorf("%v, should be shop-prod alone", blind)
	}
}
